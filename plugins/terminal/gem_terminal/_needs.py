"""What a task needs that is not here, as far as its files tell."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

_PATH = "/usr/local/bin:/usr/bin:/bin"
_NETWORK = re.compile(r"(?:^|[\s;&|(`])(apt-get|apt|apk|curl|wget|uvx|uv|pip3?|npm|npx|conda|git\s+clone)\s")
_PYTEST = re.compile(r"(?:^|[\s;&|(`])(?:pytest|python3?\s+-m\s+pytest)\b")


def needing_network(script: str) -> str | None:
    """The first program of a shell script that works with the network, or `None`."""
    found = next((match for line in _lines(script) if (match := _NETWORK.search(f"{line} "))), None)
    return found[1] if found else None


def missing_program(script: str) -> str | None:
    """A program that a shell script of tests runs and that this machine lacks, or `None`. Looks for pytest only."""
    needed = any(_PYTEST.search(line) for line in _lines(script))
    return "pytest" if needed and shutil.which("pytest", path=_PATH) is None else None


def problem_of(
    scripts: Iterable[Path], folder: Path, *, own_programs: bool = False, network: bool = False
) -> str | None:
    """Why the tests of a task cannot run here, or `None`.

    Args:
        scripts: shell scripts that are run.
        folder: of the task.
        own_programs: they run with the programs of an image, not with this machine's.
        network: there is one.
    """
    for path in scripts:
        text = path.read_text(encoding="utf-8", errors="replace")
        name = path.relative_to(folder).as_posix()
        if not network and (program := needing_network(text)):
            return f"{name} runs {program!r}, which needs the network, and there is none"
        if not own_programs and (program := missing_program(text)):
            return f"{name} runs {program!r}, which the system does not have. Install it for the system's Python"
    return None


def _lines(script: str) -> list[str]:
    return [line for line in script.splitlines() if not line.lstrip().startswith("#")]
