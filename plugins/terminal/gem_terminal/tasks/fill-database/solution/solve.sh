#!/bin/bash
set -e
python3 - <<'END'
import csv, sqlite3
with sqlite3.connect("/app/library.db") as base:
    base.execute("CREATE TABLE books (isbn TEXT PRIMARY KEY, title TEXT, year INTEGER, copies INTEGER)")
    for row in csv.DictReader(open("/app/books.csv")):
        base.execute(
            "INSERT INTO books VALUES (:isbn, :title, :year, :copies) "
            "ON CONFLICT (isbn) DO UPDATE SET copies = copies + excluded.copies",
            {**row, "year": int(row["year"]), "copies": int(row["copies"])},
        )
END
