"""Starting Oat's program, and ending it whole."""

from __future__ import annotations

import contextlib
import copy
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil
from oat.args import default_args_validation
from oat.interface import get_program, lp

from gem_core.errors import AdapterError
from gem_core.training.report import curve_at_the_end
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
        args: as a rule `oat.args.get_default_args(GemOatArgs)`, which reads the command line. Not changed.

    Raises:
        SettingsError: settings that cannot work, or that would silently change the algorithm.
        NotFoundError, EnvKwargsError, MissingExtraError, EnvError: as `gem_core.make`.
        AdapterError: a process failed; the message has its error. Or the program was told to stop.
    """
    args = prepare(copy.deepcopy(args))
    default_args_validation(args)
    drawn = curve_at_the_end(args.report, ", ".join(args.settings.train_weights))
    with drawn, tempfile.TemporaryDirectory(prefix="gem_oat") as folder:
        os.environ[FOLDER] = folder
        try:
            _launch(args, Signs(Path(folder)))
        finally:
            del os.environ[FOLDER]


def _launch(args: GemOatArgs, signs: Signs) -> None:
    program, resources = get_program(args, learner_cls=GemLearner, actor_cls=GemActor)
    before = {*psutil.Process().children()}
    manager = lp.launch(program, launch_type="local_mp", local_resources=resources, terminal="current_terminal")
    shells = [one for one in psutil.Process().children() if one not in before]
    try:
        with _told_to_stop() as told:
            wait([_node(shell) for shell in shells], signs, args.learners_per_group, told)
    finally:
        end(signs, shells)
        signal.alarm(0)  # Launchpad counts down to killing this process, too
        if manager is not None:
            manager.wait()


@contextlib.contextmanager
def _told_to_stop() -> Iterator[threading.Event]:
    """Whether Ctrl-C or a signal of a scheduler came, which Launchpad takes and answers by ending the nodes."""
    told = threading.Event()
    lp.register_stop_handler(told.set)
    try:
        yield told
    finally:
        lp.unregister_stop_handler(told.set)


def _node(shell: psutil.Process) -> psutil.Process:
    """The process of a node. What Launchpad starts is a shell, which outlives it as long as any child of its does."""
    found: list[psutil.Process] = []

    def started() -> bool:
        with contextlib.suppress(psutil.NoSuchProcess):
            # The shell forks for the node and for `sed`, which colours its output.
            others = [child for child in shell.children() if child.cmdline() != shell.cmdline()]
            found[:] = [child for child in others if child.name() != SED]
        return bool(found) or _ended(shell)

    _wait_for(started)
    return found[0] if found else shell


def wait(nodes: Sequence[psutil.Process], signs: Signs, learners: int, told: threading.Event) -> None:
    """Wait until training is over.

    Args:
        nodes: the processes of the program on this machine.
        signs: what they say.
        learners: how many of them learn.
        told: set when the program was told to stop.

    Raises:
        AdapterError: a process failed or ended without a word, or the program was told to stop.
    """

    def decided() -> bool:
        return signs.error is not None or len(signs.finished) >= learners

    def missing() -> bool:
        return any(node.pid not in signs.finished | signs.failed and _ended(node) for node in nodes)

    while not (decided() or missing()):
        time.sleep(0.2)
    _wait_for(decided)  # actors end while the last learner is still at its last lines
    if len(signs.finished) < learners:
        # Where one is killed, what another one says is as a rule that it has lost the connection.
        reason = _STOPPED if told.is_set() else _UNKNOWN if missing() else _FAILED
        raise AdapterError("\n".join(filter(None, (reason, signs.error))))
    _wait_for(lambda: all(map(_ended, nodes)))


def end(signs: Signs, shells: Sequence[psutil.Process]) -> None:
    """Kill what is left of a run, whoever started it, and have the shells print what it still had to say."""

    def working() -> list[psutil.Process]:
        return [one for one in signs.processes if one not in shells and _name(one) != SED]

    def ended() -> bool:
        _kill(left := working())
        return not left

    _wait_for(ended)
    _wait_for(lambda: not signs.processes)
    _kill(signs.processes)


def _kill(processes: Sequence[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return ""


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


SED = "sed"
"""Launchpad's shells hand the output of nodes to it."""
_STOPPED = "Oat's program was told to stop before training was over, by Ctrl-C or a signal, and all of it was ended."
_FAILED = "a process of Oat's program failed, and the others were ended."
_UNKNOWN = (
    "a process of Oat's program ended without a word, and the others were ended. It was killed, for example for want "
    "of memory; its output is above. If another one said something after that, it follows."
)
