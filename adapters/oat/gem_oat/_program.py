"""Starts Oat's program, and ends all its processes."""

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
from gem_oat._actor import GemActor
from gem_oat._args import GemOatArgs
from gem_oat._checks import check_model, prepare
from gem_oat._learner import GemLearner
from gem_oat._status import FOLDER, RunStatus
from gem_train.cleanup import clean_up_after_this_process
from gem_train.report import curve_at_the_end

PATIENCE = 5.0
"""Time limit in seconds for processes to end by themselves after training, or to report why they ended."""


def run(args: GemOatArgs) -> None:
    """Train as Oat's own programs do: actors, learners and shared memory run in separate processes.

    Launchpad would wait forever if a process died. This function ends the others and raises the first error.

    Args:
        args: usually `oat.args.get_default_args(GemOatArgs)`, which reads the command line. Not modified.

    Raises:
        SettingsError: settings that cannot work, or that would silently change the algorithm.
        NotFoundError, EnvKwargsError, MissingExtraError, EnvError: as `gem_core.make`.
        AdapterError: a process failed (the message has its error), or the program was stopped.
    """
    args = prepare(copy.deepcopy(args))
    default_args_validation(args)
    check_model(args)
    clean_up_after_this_process()
    drawn = curve_at_the_end(args.report, ", ".join(args.train_weights))
    with drawn, tempfile.TemporaryDirectory(prefix="gem_oat") as folder:
        os.environ[FOLDER] = folder
        try:
            _launch(args, RunStatus(Path(folder)))
        finally:
            del os.environ[FOLDER]


def _launch(args: GemOatArgs, status: RunStatus) -> None:
    program, resources = get_program(args, learner_cls=GemLearner, actor_cls=GemActor)
    before = {*psutil.Process().children()}
    manager = lp.launch(program, launch_type="local_mp", local_resources=resources, terminal="current_terminal")
    shells = [one for one in psutil.Process().children() if one not in before]
    try:
        with _stop_request() as stop:
            wait([_node(shell) for shell in shells], status, args.learners_per_group, stop)
    finally:
        end(status, shells)
        signal.alarm(0)  # otherwise Launchpad's countdown would kill this process, too
        if manager is not None:
            manager.wait()


@contextlib.contextmanager
def _stop_request() -> Iterator[threading.Event]:
    """An event that Ctrl-C or a scheduler's signal sets. Launchpad handles these signals and ends the nodes."""
    stop = threading.Event()
    lp.register_stop_handler(stop.set)
    try:
        yield stop
    finally:
        lp.unregister_stop_handler(stop.set)


def _node(shell: psutil.Process) -> psutil.Process:
    """The process of a node. Launchpad starts it in a shell, which lives as long as any of its children."""
    found: list[psutil.Process] = []

    def started() -> bool:
        with contextlib.suppress(psutil.NoSuchProcess):
            # The shell forks for the node and for `sed`, which colors the node's output.
            others = [child for child in shell.children() if child.cmdline() != shell.cmdline()]
            found[:] = [child for child in others if child.name() != SED]
        return bool(found) or _ended(shell)

    _wait_for(started)
    return found[0] if found else shell


def wait(nodes: Sequence[psutil.Process], status: RunStatus, learners: int, stop: threading.Event) -> None:
    """Wait until training is over.

    Args:
        nodes: the processes of the program on this machine.
        status: the reports of the processes.
        learners: number of learners among them.
        stop: set when the program must stop.

    Raises:
        AdapterError: a process failed or ended without a report, or the program was stopped.
    """

    def decided() -> bool:
        return status.error is not None or len(status.finished) >= learners

    def missing() -> bool:
        return any(node.pid not in status.finished | status.failed and _ended(node) for node in nodes)

    while not (decided() or missing()):
        time.sleep(0.2)
    _wait_for(decided)  # actors end before the last learner has finished
    if len(status.finished) < learners:
        # A killed process is reported first; the others usually report only a lost connection.
        reason = _STOPPED if stop.is_set() else _UNKNOWN if missing() else _FAILED
        raise AdapterError("\n".join(filter(None, (reason, status.error))))
    _wait_for(lambda: all(map(_ended, nodes)))


def end(status: RunStatus, shells: Sequence[psutil.Process]) -> None:
    """Kill all remaining processes of a run. The shells end last, after they have printed the output of the others."""

    def working() -> list[psutil.Process]:
        return [one for one in status.processes if one not in shells and _name(one) != SED]

    def ended() -> bool:
        _kill(left := working())
        return not left

    _wait_for(ended)
    _wait_for(lambda: not status.processes)
    _kill(status.processes)


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
    # Not by waiting for the process: Launchpad waits for its processes itself, and fails if another waiter was first.
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


SED = "sed"
"""Launchpad's shells pipe the output of nodes through it."""
_STOPPED = (
    "Oat's program was stopped before training was over, by Ctrl-C or a signal, and all its processes were ended."
)
_FAILED = "a process of Oat's program failed, and the others were ended."
_UNKNOWN = (
    "a process of Oat's program ended without reporting an error, and the others were ended. It was killed, for "
    "example because memory ran out; its output is above. Later reports of other processes follow, if there are any."
)
