"""Running one program on one input. This runs in a grading process and never in the process that trains."""

from __future__ import annotations

import builtins
import importlib
import io
import sys
from types import CodeType
from typing import Any

_LIBRARY = (
    "typing", "collections", "itertools", "functools", "math", "heapq", "bisect", "string", "random", "operator", "re",
    "datetime", "decimal", "fractions", "copy", "time", "io", "os", "sys", "numpy",
)  # fmt: skip
# Imported here, so that programs find them loaded: each runs in a fork of the process that imported this module.
_MODULES = {name: importlib.import_module(name) for name in _LIBRARY}
_FLAT = _LIBRARY[:8]
"""Modules whose names programs use without saying where they come from."""


_ERROR_CHARACTERS = 500


def run(program: str, given: str) -> dict[str, str]:
    """What a program `printed`, or the exception that it `raised`, `SystemExit` of a failure included.

    A program that misses an import is run again with the usual ones, as upstream does.

    Raises:
        MemoryError: the program needs more than it may have.
    """
    try:
        return {"printed": _run(program, given)}
    except MemoryError:
        raise
    except BaseException as error:
        return {"raised": f"{type(error).__name__}: {error}"[:_ERROR_CHARACTERS]}


def _run(program: str, given: str) -> str:
    code = compile(program, "<program>", "exec")
    try:
        return _printed(code, given, {})
    except NameError:
        return _printed(code, given, _usual_names())


def _printed(code: CodeType, given: str, names: dict[str, Any]) -> str:
    printed = io.BytesIO()
    sys.stdin = io.TextIOWrapper(io.BytesIO(given.encode("utf-8", "surrogatepass")), encoding="utf-8")
    sys.stdout = io.TextIOWrapper(printed, encoding="utf-8", errors="replace", newline="")
    sys.argv = ["program.py"]
    _redirect(sys.stdin)
    try:
        exec(code, {**names, "__name__": "__main__"})
    except SystemExit as ending:
        if ending.code:
            raise
    sys.stdout.flush()
    return printed.getvalue().decode("utf-8", "replace")


def _redirect(stdin: io.TextIOWrapper, open_file: Any = open) -> None:
    # The process has no standard input, and may neither read its file descriptor nor call the builtin input.
    def open_or_stdin(file: Any, *arguments: Any, **options: Any) -> Any:
        return stdin if file == 0 else open_file(file, *arguments, **options)

    def read_line(prompt: object = "", /) -> str:
        print(prompt, end="")
        line = stdin.readline()
        if not line:
            raise EOFError("EOF when reading a line")
        return line.removesuffix("\n")

    builtins.open, builtins.input = open_or_stdin, read_line


def _usual_names() -> dict[str, Any]:
    names: dict[str, Any] = {"np": _MODULES["numpy"], "deepcopy": _MODULES["copy"].deepcopy, **_MODULES}
    for module in _FLAT:
        public = {name: value for name, value in vars(_MODULES[module]).items() if not name.startswith("_")}
        names.update({name: value for name, value in public.items() if not hasattr(builtins, name)})
    return names
