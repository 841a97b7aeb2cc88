"""Imports that a program forgot."""

from __future__ import annotations

import importlib
import re

_NAME = re.compile(r"NameError: name '(\w+)' is not defined")
_MODULES = frozenset({
    "bisect", "collections", "copy", "datetime", "decimal", "fractions", "functools", "heapq", "itertools", "json",
    "math", "numpy", "operator", "os", "pandas", "random", "re", "statistics", "string", "sympy", "sys", "time",
    "typing",
})  # fmt: skip
_ALIASES = {"np": "numpy", "pd": "pandas", "sp": "sympy"}
_OPEN = ("typing", "collections", "itertools", "functools", "math", "heapq", "bisect", "string", "copy")
"""Modules whose names programs use without saying where they come from."""


def with_missing_import(code: str, stderr: str) -> str | None:
    """The program with the import of the well-known name for want of which it failed.

    Args:
        code: a program.
        stderr: what it wrote to standard error.

    Returns:
        `None` where it failed for another reason, or the name is not well known.
    """
    failure = _NAME.search(stderr.rstrip().rpartition("\n")[2])
    statement = _import_of(failure[1]) if failure else None
    return None if statement is None else f"{statement}\n{code}"


def _import_of(name: str) -> str | None:
    if name in _MODULES:
        return f"import {name}"
    if name in _ALIASES:
        return f"import {_ALIASES[name]} as {name}"
    home = next((module for module in _OPEN if name in _public(module)), None)
    return None if home is None else f"from {home} import {name}"


def _public(module: str) -> list[str]:
    return [name for name in vars(importlib.import_module(module)) if not name.startswith("_")]
