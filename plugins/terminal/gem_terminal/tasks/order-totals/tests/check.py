import csv
from pathlib import Path

assert (
    Path("/app/orders.csv").read_text()
    == 'order,customer,item,amount\n1,"Berg, Ltd",chair,120.50\n2,Ada Shop,"table, round",300.00\n3,"Berg, Ltd",lamp,19.95\n4,Cafe Nord,"cup ""blue""",4.20\n5,Ada Shop,chair,120.50\n6,Cafe Nord,plate,6.10\n7,"Berg, Ltd",lamp,19.95\n'
)
with open("/app/totals.csv", newline="") as file:
    rows = list(csv.reader(file))
assert rows == [["customer", "total"], ["Ada Shop", "420.50"], ["Berg, Ltd", "160.40"], ["Cafe Nord", "10.30"]]
