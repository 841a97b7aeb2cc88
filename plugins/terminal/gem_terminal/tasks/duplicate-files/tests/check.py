from pathlib import Path

BEFORE = {
    "a-letter.txt": "Dear Ravi,\n",
    "b-letter.txt": "Dear Ravi,\n",
    "c-list.txt": "milk\n",
    "d-letter.txt": "Dear Ravi, \n",
    "e-list.txt": "milk\n",
    "f-list.txt": "milk\n",
    "g.txt": "",
    "h.txt": "",
    "z.txt": "alone\n",
}
first = {}
for name in sorted(BEFORE):
    first.setdefault(BEFORE[name], name)
found = {path.name: path.read_text() for path in Path("/app/inbox").iterdir()}
assert found == {name: text for text, name in first.items()}
