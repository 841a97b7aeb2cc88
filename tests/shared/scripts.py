"""A program run in this process, for tests of its command line: a new process would import its framework again."""

from __future__ import annotations

import contextlib
import io
import runpy
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from unittest import mock


@dataclass(frozen=True)
class Answer:
    """Like `subprocess.CompletedProcess`."""

    returncode: int
    stdout: str
    stderr: str


def answer_of(program: Path | str, *flags: str) -> Answer:
    """What a script, or a module by name, answers to flags, and its exit code.

    It must end before it changes anything in this process.
    """
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with (
        mock.patch.object(sys, "argv", [str(program), *flags]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            run = runpy.run_module if isinstance(program, str) else runpy.run_path
            run(str(program), run_name="__main__")
        except SystemExit as ended:
            code = ended.code
        except Exception:
            code = traceback.format_exc()
    if code is None or isinstance(code, int):
        return Answer(code or 0, out.getvalue(), err.getvalue())
    return Answer(1, out.getvalue(), f"{err.getvalue()}{code}\n")
