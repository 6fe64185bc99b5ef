"""A sample agent for Tribunal: it finds doubled words such as "the the" and removes them. See agent-protocol.md."""
import json, os, pathlib, re, sys

BLOCK = re.compile(r"^=== begin (\w+) (\w+)[^\n]*\n(.*?)^=== end \1 ===$", re.M | re.S)
DOUBLED = re.compile(r"\b([a-z]+)( \1)+\b", re.I)
blocks = {name: text for _, name, text in BLOCK.findall(sys.stdin.buffer.read().decode())}
task, items = os.environ["TRIBUNAL_TASK"], []
role = "findings" if "/review/" in task else "verdicts" if "/challenge/" in task or "/judge" in task else "fixes"

if role == "findings":
    for number, line in enumerate(blocks["subject"].split("\n"), start=1):
        if DOUBLED.search(line):
            items.append({"severity": "low", "description": "A word is doubled.", "quote": line, "line": number})
elif role == "verdicts":
    for item in sum((json.loads(blocks.get(name, "[]")) for name in ("disputed", "findings", "proposed")), []):
        is_right = not DOUBLED.search(item["after"]) if "after" in item else DOUBLED.search(item.get("text", ""))
        items.append({"id": item["id"], "verdict": "VALID" if is_right else "AMBIGUOUS", "reason": "I searched for it."})
else:
    for finding in json.loads(blocks["assigned"]):
        quote, file = finding.get("text", ""), pathlib.Path(finding["place"].rpartition(":")[0])
        if can_fix := DOUBLED.search(quote):
            file.write_bytes(file.read_bytes().replace(quote.encode(), DOUBLED.sub(r"\1", quote).encode()))
        items.append({"id": finding["id"], "status": "FIXED" if can_fix else "BLOCKED",
                      "fix_description": "Removed the doubled word." if can_fix else "I only fix doubled words."})

print(json.dumps({role: items}))
