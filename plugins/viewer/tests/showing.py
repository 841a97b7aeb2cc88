"""Pages of runs: from the real command, or exported; and an episode that is played while they are open."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from made_up import Plan, episode

from gem_train.records import open_records
from gem_viewer._page import write_page


@contextmanager
def served(*paths: Path, browser: Path | None = None, first: str = "") -> Generator[str, None, None]:
    """The address of `gem-core view` over these runs, which opens this browser; its process runs a statement first."""
    options = [] if browser else ["--no-browser"]
    program = f"{first}\nfrom gem_core.cli import main; main()"
    command = [sys.executable, "-c", program, "view", *options, *map(str, paths)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", **({"BROWSER": f"{browser} %s"} if browser else {})}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(120) == 0


def exported(path: Path, page: Path, **options: Any) -> Path:
    """The exported page."""
    write_page([open_records(path)], page, done=lambda _: None, **options)
    return page


def played(slot: int, run: str = "run") -> Any:
    """An episode."""
    chance = np.random.default_rng(slot)
    return episode("demo:A-v0", slot // 2, slot, 0, run=run, plan=Plan(), chance=chance, solved=slot % 2 == 0)
