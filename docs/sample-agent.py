"""A sample agent for Tribunal: it finds doubled words such as "the the" and removes them. See agent-protocol.md."""
import json, os, pathlib, re, sys

BLOCK = re.compile(r"^=== begin (\w+) (\w+)[^\n]*\n(.*?)^=== end \1 ===$", re.M | re.S)
DOUBLED = re.compile(r"\b([a-z]+)( \1)+\b", re.I)
blocks = {name: text for _, name, text in BLOCK.findall(sys.stdin.buffer.read().decode())}
task, items = os.environ["TRIBUNAL_TASK"], []

if "/review/" in task:
    for number, line in enumerate(blocks["subject"].split("\n"), start=1):
        if DOUBLED.search(line):
            items.append({"severity": "low", "description": "A word is doubled.", "quote": line, "line": number})
elif "/judge" in task:
    for part in json.loads(blocks.get("proposed", "[]")) + json.loads(blocks["findings"]):
        verdict = "INVALID" if DOUBLED.search(part.get("after", "")) else "VALID"
        items.append({"id": part["id"], "verdict": verdict, "reason": "I searched the new text for a doubled word."})
elif "/challenge/" in task:
    for finding in json.loads(blocks["disputed"]):
        verdict = "VALID" if DOUBLED.search(finding.get("text", "")) else "AMBIGUOUS"
        items.append({"id": finding["id"], "verdict": verdict, "reason": "I searched for a doubled word."})
else:
    for finding in json.loads(blocks["assigned"]):
        quote, file = finding.get("text", ""), pathlib.Path(finding["place"].rpartition(":")[0])
        if can_fix := DOUBLED.search(quote):
            file.write_bytes(file.read_bytes().replace(quote.encode(), DOUBLED.sub(r"\1", quote).encode()))
        items.append({"id": finding["id"], "status": "FIXED" if can_fix else "BLOCKED",
                      "fix_description": "Removed the doubled word." if can_fix else "I only fix doubled words."})

is_verdict = "/challenge/" in task or "/judge" in task
print(json.dumps({"findings" if "/review/" in task else "verdicts" if is_verdict else "fixes": items}))
