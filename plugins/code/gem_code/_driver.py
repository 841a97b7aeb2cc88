"""Calls a function of a program, in the sandbox. This text is sent there, so it needs nothing but the standard library.

Values travel as JSON, in which an object with one key stands for what JSON has no form for.
"""

from __future__ import annotations

import json
import math
import numbers
import os
import sys
import types
from typing import Any, cast


def encoded(value: Any) -> Any:
    """A value as JSON has it; an unknown object by the name of its type."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        number = float(value)
        return number if math.isfinite(number) else {"float": str(number)}
    if isinstance(value, list):
        return [encoded(each) for each in cast("list[Any]", value)]
    if isinstance(value, (tuple, set, frozenset)):
        return {"tuple" if isinstance(value, tuple) else "set": [encoded(each) for each in cast("set[Any]", value)]}
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {"dict": [[encoded(key), encoded(each)] for key, each in items]}
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return encoded(value.tolist())
    return {"other": type(value).__name__}


def decoded(value: Any) -> Any:
    """What `encoded` made of a value. Raises `ValueError` and `TypeError` for anything else."""
    if isinstance(value, list):
        return [decoded(each) for each in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    [(kind, content)] = cast("dict[str, Any]", value).items()
    if kind == "dict":
        return {decoded(key): decoded(each) for key, each in content}
    if kind == "float":
        return float(content)
    if kind == "other":
        return object()
    return {"tuple": tuple, "set": set}[kind](decoded(each) for each in content)


def call(program: str) -> None:
    """Run a program, call the function that standard input names, and write the result to standard output.

    What the program prints goes to standard error, and its own standard input is empty.
    """
    asked = json.load(sys.stdin)
    answer = os.dup(1)
    os.dup2(2, 1)
    module = types.ModuleType("program")
    sys.modules["program"] = module
    names = vars(module)
    exec(compile(program, "program.py", "exec", dont_inherit=True), names)
    function = _found(names, asked["function"])
    result = function(*decoded(asked["arguments"]), **decoded(asked["keywords"]))
    with open(answer, "w") as file:
        json.dump(encoded(result), file)


def _found(names: dict[str, Any], function: str) -> Any:
    solution = names.get("Solution")
    if isinstance(solution, type) and hasattr(solution, function):
        return getattr(solution(), function)
    if function not in names:  # no NameError: that would be mended by an import
        raise AttributeError(f"the program has no function {function!r}")
    return names[function]
