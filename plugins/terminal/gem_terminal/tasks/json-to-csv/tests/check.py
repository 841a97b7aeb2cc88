import csv

with open("/app/people.csv", newline="") as file:
    rows = list(csv.reader(file))
assert rows == [
    ["name", "city", "zip", "skills"],
    ["Noor", "Oslo", "0150", "go;sql"],
    ["Pia", "Rome", "00184", ""],
    ["Quinn", "Bern", "", "c"],
    ["Rui", "", "", "sql;python;r"],
]
