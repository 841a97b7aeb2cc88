import sqlite3

base = sqlite3.connect("/app/library.db")
rows = base.execute("SELECT isbn, title, year, copies FROM books ORDER BY isbn").fetchall()
assert rows == [
    ("0011", "The Long Field", 1987, 5),
    ("0042", "A Small Engine", 1969, 4),
    ("0200", "Winter Bees", 2001, 2),
]
columns = {row[1]: (row[2].upper(), row[5]) for row in base.execute("PRAGMA table_info(books)")}
assert columns == {"isbn": ("TEXT", 1), "title": ("TEXT", 0), "year": ("INTEGER", 0), "copies": ("INTEGER", 0)}
