#!/bin/bash
set -e
cat > /app/calc.py <<'END'
import ast
import operator
import re
import sys

DO = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.USub: operator.neg, ast.UAdd: operator.pos}

def value(node):
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp):
        return DO[type(node.op)](value(node.operand))
    if isinstance(node, ast.BinOp):
        return DO[type(node.op)](value(node.left), value(node.right))
    raise ValueError

for line in sys.stdin:
    try:
        if not re.fullmatch(r"[\d+*() -]+", line.strip()) or re.search(r"\d\s+\d|\*\s*\*", line):
            raise ValueError
        text = re.sub(r"\d+", lambda number: str(int(number[0])), line.strip())
        print(value(ast.parse(text, mode="eval").body))
    except (SyntaxError, ValueError, KeyError):
        print("error")
END
