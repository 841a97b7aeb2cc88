"""Pages are run as they are read: the Python of a page, in order, in one fresh process and one empty folder.

A block that cannot run says why in a comment right above it: `<!-- not run: needs a served model -->`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[3] / "docs" / "tutorials"
BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+) -->\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
END = "--- end of block ---"


def run_tutorial(name: str, folder: Path) -> None:
    """Run the page `name` of docs/tutorials; see `run_page`."""
    run_page(FOLDER / f"{name}.md", folder)


def python_of(page: Path) -> list[tuple[str, str | None]]:
    """The blocks of Python of a page that run, each with what it prints if a `text` block below says so."""
    blocks = [*BLOCK.finditer(page.read_text())]
    shown = [block["text"] if block["language"] == "text" else None for block in [*blocks, {"language": ""}]]
    return [
        (block["text"], expected)
        for block, expected in zip(blocks, shown[1:], strict=True)
        if block["language"] == "python" and not block["reason"]
    ]


def run_page(page: Path, folder: Path) -> None:
    """Run a page, and compare what each block prints with the `text` block below it, if there is one.

    Args:
        page: the file.
        folder: an empty folder, in which it runs.

    Raises:
        AssertionError: a block raised, or printed something else.
    """
    python = python_of(page)
    assert python, f"{page} has no block of Python"
    script = folder / f"{page.stem}.py"
    script.write_text("".join(f"{text}\nprint({END!r}, flush=True)\n" for text, _ in python))
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, script.name]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, f"{page}: {done.stdout[-1000:]}\n{done.stderr[-3000:]}"
    printed = done.stdout.split(f"{END}\n")
    for (text, expected), actual in zip(python, printed[:-1], strict=True):
        if expected is not None:
            assert actual == expected, f"{page} shows another output for\n{text}\nIt printed\n{actual}"
