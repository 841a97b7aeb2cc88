"""Starting Oat's program, and ending it whole."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
from oat.args import default_args_validation
from oat.interface import get_program, lp

from gem_core.errors import AdapterError
from gem_oat.actor import GemActor
from gem_oat.args import GemOatArgs
from gem_oat.checks import prepare
from gem_oat.learner import GemLearner
from gem_oat.signs import FOLDER, Signs

PATIENCE = 5.0
"""Seconds that processes get to end by themselves after training, or to say why they ended."""


def run(args: GemOatArgs) -> None:
    """Train, as Oat's own programs do: with actors, learners and shared memory in processes of their own.

    Launchpad would wait for ever where one of them is gone. Here the others are ended, and the first error is raised.

    Args:
        args: as a rule `oat.args.get_default_args(GemOatArgs)`, which reads the command line.

    Raises:
        SettingsError: settings that cannot work, or that would silently change the algorithm.
        NotFoundError, EnvKwargsError, MissingExtraError, EnvError: as `gem_core.make`.
        AdapterError: a process failed; the message has its error.
    """
    default_args_validation(prepare(args))
    with tempfile.TemporaryDirectory(prefix="gem_oat") as folder:
        os.environ[FOLDER] = folder
        try:
            _launch(args, Signs(Path(folder)))
        finally:
            del os.environ[FOLDER]


def _launch(args: GemOatArgs, signs: Signs) -> None:
    program, resources = get_program(args, learner_cls=GemLearner, actor_cls=GemActor)
    before = {*psutil.Process().children()}
    manager = lp.launch(program, launch_type="local_mp", local_resources=resources, terminal="current_terminal")
    workers = [one for one in psutil.Process().children() if one not in before]
    try:
        _wait(workers, signs)
    finally:
        _end(workers)
        if manager is not None:
            manager.wait()  # nothing is left to wait for, but Launchpad still counts down to killing this process


def _wait(workers: Sequence[psutil.Process], signs: Signs) -> None:
    """Wait until training is over.

    Raises:
        AdapterError: a process failed.
    """
    while not (signs.error or signs.done):
        ended, alive = psutil.wait_procs(workers, timeout=0.2)
        if ended or not alive:
            break
    if not signs.done:
        deadline = time.monotonic() + PATIENCE
        while not signs.error and time.monotonic() < deadline:
            time.sleep(0.1)
        raise AdapterError(f"a process of Oat's program failed, and the others were ended.\n{signs.error or _UNKNOWN}")
    psutil.wait_procs(workers, timeout=PATIENCE)


def _end(workers: Sequence[psutil.Process]) -> None:
    """Kill what is left of them and what they have started."""
    for worker in workers:
        try:
            family = [*worker.children(recursive=True), worker]
        except psutil.NoSuchProcess:
            continue
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
    psutil.wait_procs(workers, timeout=PATIENCE)


_UNKNOWN = "It left no word: it was killed, for example for want of memory. Its output is above."
