"""Starting Oat's program, and ending it whole."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
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
        signal.alarm(0)  # Launchpad counts down to killing this process, too
        if manager is not None:
            manager.wait()


def _wait(workers: Sequence[psutil.Process], signs: Signs) -> None:
    """Wait until training is over.

    Raises:
        AdapterError: a process failed.
    """
    while not (signs.error or signs.done or any(map(_ended, workers))):
        time.sleep(0.2)
    if not signs.done:
        _wait_for(lambda: signs.error is not None)
        raise AdapterError(f"a process of Oat's program failed, and the others were ended.\n{signs.error or _UNKNOWN}")
    _wait_for(lambda: all(map(_ended, workers)))


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)


def _ended(process: psutil.Process) -> bool:
    # Not by waiting for it, as Launchpad does not expect that its processes are gone before it waits for them.
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _end(workers: Sequence[psutil.Process]) -> None:
    """Kill what is left of them and what they have started."""
    for worker in workers:
        with contextlib.suppress(psutil.NoSuchProcess):
            for process in [*worker.children(recursive=True), worker]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()


_UNKNOWN = "It left no word: it was killed, for example for want of memory. Its output is above."
