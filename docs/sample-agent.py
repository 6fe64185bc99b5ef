"""A sample agent for Tribunal: it finds and removes doubled words such as "the the". See agent-protocol.md."""
import json, os, pathlib, re, sys

BLOCK = re.compile(r"^=== begin (\w+) (\w+)[^\n]* ===\n(.*?)^=== end \1 ===$", re.M | re.S)
DOUBLED = re.compile(r"\b([a-z]+)( \1)+\b", re.I)

task = os.environ["TRIBUNAL_TASK"]
blocks = {name: text for _, name, text in BLOCK.findall(sys.stdin.buffer.read().decode())}

if "/review/" in task:
    answer = {"findings": []}
    for number, line in enumerate(blocks["subject"].split("\n"), start=1):
        if found := DOUBLED.search(line):
            answer["findings"].append({"severity": "low", "category": "wording", "quote": line.strip(), "line": number,
                                       "description": f"Doubled word: {found[0]}"})
elif "/challenge/" in task:
    answer = {"verdicts": []}
    for finding in json.loads(blocks["disputed"]):
        verdict = "VALID" if DOUBLED.search(finding.get("text", "")) else "AMBIGUOUS"
        answer["verdicts"].append({"id": finding["id"], "verdict": verdict, "reason": "Searched for a doubled word."})
else:
    answer = {"fixes": []}
    for finding in json.loads(blocks["assigned"]):
        quote, file = finding.get("text", ""), pathlib.Path(finding["place"].rpartition(":")[0])
        if can_fix := bool(DOUBLED.search(quote)) and file.is_file():
            fixed = DOUBLED.sub(r"\1", quote)
            file.write_bytes(file.read_bytes().replace(quote.encode(), fixed.encode()))
        answer["fixes"].append({"id": finding["id"], "status": "FIXED" if can_fix else "BLOCKED",
                                "fix_description": "Removed the word." if can_fix else "This is not a doubled word."})

print(json.dumps(answer))
