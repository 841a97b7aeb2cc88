"""Imports that a program forgot."""

from __future__ import annotations

import importlib
import re

from gem_sandbox._execution import Execution

_NAME = re.compile(r"NameError: name '(\w+)' is not defined")
_MODULES = frozenset({
    "bisect", "collections", "copy", "datetime", "decimal", "fractions", "functools", "heapq", "itertools", "json",
    "math", "numpy", "operator", "os", "pandas", "random", "re", "statistics", "string", "sympy", "sys", "time",
    "typing",
})  # fmt: skip
_MIN_SECONDS = 0.01
_ALIASES = {"np": "numpy", "pd": "pandas", "sp": "sympy"}
_OPEN = ("typing", "collections", "itertools", "functools", "math", "heapq", "bisect", "string", "copy")
"""Modules whose names programs use without saying where they come from."""


class Imports:
    """The imports that a program turns out to need, within the time that it has.

    Args:
        code: the program.
        seconds: what failed attempts together may take; one that only says it misses an import could go on for ever.
    """

    def __init__(self, code: str, seconds: float) -> None:
        self._code = code
        self._added: list[str] = []
        self.seconds = seconds
        """What is left."""

    @property
    def code(self) -> str:
        """The program with what was added."""
        return "\n".join([*self._added, self._code])

    def complete(self, failed: Execution) -> bool:
        """Add the well-known import for want of which an attempt failed; whether another one is worth it."""
        self.seconds -= failed.seconds
        missing = _NAME.search(failed.stderr.rstrip().rpartition("\n")[2])
        statement = _import_of(missing[1]) if missing and not failed.succeeded else None
        if statement is None or statement in self._added or self.seconds <= _MIN_SECONDS:
            return False
        self._added.append(statement)
        return True


def _import_of(name: str) -> str | None:
    if name in _MODULES:
        return f"import {name}"
    if name in _ALIASES:
        return f"import {_ALIASES[name]} as {name}"
    home = next((module for module in _OPEN if name in _public(module)), None)
    return None if home is None else f"from {home} import {name}"


def _public(module: str) -> list[str]:
    return [name for name in vars(importlib.import_module(module)) if not name.startswith("_")]
