"""Tutorials are run as they are read: the Python of a page, in order, in one fresh process and one empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[3] / "docs" / "tutorials"
BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
END = "--- end of block ---"


def run_tutorial(name: str, folder: Path) -> None:
    """Run a page, and compare what each block prints with the `text` block below it, if there is one.

    Args:
        name: the page in docs/tutorials, without `.md`.
        folder: an empty folder, in which it runs.

    Raises:
        AssertionError: a block raised, or printed something else.
    """
    blocks = [(match["language"], match["text"]) for match in BLOCK.finditer((FOLDER / f"{name}.md").read_text())]
    following = [*blocks[1:], ("", "")]
    python = [(text, shown) for (language, text), shown in zip(blocks, following, strict=True) if language == "python"]
    assert python, f"{name}.md has no block of Python"
    script = folder / f"{name}.py"
    script.write_text("".join(f"{text}\nprint({END!r}, flush=True)\n" for text, _ in python))
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, script.name]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, f"{name}.md: {done.stdout[-1000:]}\n{done.stderr[-3000:]}"
    printed = done.stdout.split(f"{END}\n")
    for (text, (language, expected)), actual in zip(python, printed[:-1], strict=True):
        if language == "text":
            assert actual == expected, f"{name}.md shows another output for\n{text}\nIt printed\n{actual}"
