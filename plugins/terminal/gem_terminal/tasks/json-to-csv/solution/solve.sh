#!/bin/bash
set -e
python3 - <<'END'
import csv, json
with open("/app/people.csv", "w", newline="") as file:
    out = csv.writer(file)
    out.writerow(["name", "city", "zip", "skills"])
    for one in json.load(open("/app/people.json")):
        address = one.get("address", {})
        out.writerow([one["name"], address.get("city", ""), address.get("zip", ""), ";".join(one["skills"])])
END
