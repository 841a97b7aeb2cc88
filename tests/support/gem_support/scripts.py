"""Programs run without a process for each: a new process would import its framework again."""

from __future__ import annotations

import contextlib
import io
import json
import os
import runpy
import shutil
import subprocess
import sys
import traceback
from collections.abc import Sequence
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


_ONE_AFTER_ANOTHER = """
import json, runpy, sys
for script, *flags in json.loads(sys.argv[1]):
    sys.argv[1:] = flags
    runpy.run_path(script, run_name="__main__")
"""


def run_one_after_another(runs: Sequence[tuple[Path, Sequence[str]]], folder: Path) -> None:
    """Run scripts in one other process, alone in a folder and without a network. Each must succeed.

    Args:
        runs: scripts, which are copied to the folder, and the flags of each.
        folder: where they run.
    """
    told = json.dumps([[shutil.copy(script, folder), *flags] for script, flags in runs])
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", _ONE_AFTER_ANOTHER, told]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
