import re
from collections import Counter
from pathlib import Path

LINE = re.compile(r"^\S+ \S+ (\w+) \[(\w+)\]")
log = Path("/app/service.txt").read_text()
assert log.count("\n") == 160
found = (LINE.match(line) for line in log.splitlines())
counts = Counter(match[2] for match in found if match[1] == "ERROR")
rows = [f"{service},{number}" for service, number in sorted(counts.items(), key=lambda one: (-one[1], one[0]))]
assert ["billing,14", "mail,9", "login,6", "search,6"] == rows
assert Path("/app/errors.csv").read_text().split() == ["service,errors", *rows]
