from collections import defaultdict
from pathlib import Path

times = defaultdict(list)
lines = Path("/app/access.txt").read_text().splitlines()
assert len(lines) == 120
for line in lines:
    _, _, path, status, milliseconds = line.replace('"', "").split()
    if status == "200":
        times[path].append(int(milliseconds))
averages = {path: sum(one) // len(one) for path, one in times.items()}
assert len({*averages.values()}) == len(averages) == 5
wanted = [f"{path} {average}" for path, average in sorted(averages.items(), key=lambda one: -one[1])]
assert Path("/app/slow.txt").read_text().splitlines() == wanted
