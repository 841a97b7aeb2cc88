from pathlib import Path

assert Path("/app/report.csv").read_text().split() == [
    "name,subject,mark",
    "Sven,art,4",
    "Sven,maths,1",
    "Tariq,maths,2",
    "Uma,music,2",
    "Vera,art,1",
]
assert Path("/app/unknown.txt").read_text().split() == ["9", "12"]
