#!/bin/bash
set -e
python3 - <<'END'
import csv
names = {row["id"]: row["name"] for row in csv.DictReader(open("/app/students.csv"))}
marks = list(csv.DictReader(open("/app/marks.csv")))
rows = sorted((names[m["id"]], m["subject"], m["mark"]) for m in marks if m["id"] in names)
with open("/app/report.csv", "w") as file:
    print("name,subject,mark", *map(",".join, rows), sep="\n", file=file)
with open("/app/unknown.txt", "w") as file:
    print(*sorted({int(m["id"]) for m in marks if m["id"] not in names}), sep="\n", file=file)
END
