"""Programs on this machine, kept apart from it by its kernel."""

from __future__ import annotations

import contextlib
import os
import time
import weakref
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from gem_sandbox import _choice as choice
from gem_sandbox import _pool as pool
from gem_sandbox._call import NotStarted, RunningProcess
from gem_sandbox._endings import execution
from gem_sandbox._errors import SandboxError, machine_trouble
from gem_sandbox._execution import Execution
from gem_sandbox._limits import Limits
from gem_sandbox._pool import Settings
from gem_sandbox._root import WORK
from gem_sandbox._sandbox import Sandbox, SandboxSession
from gem_sandbox._shell import LocalShell
from gem_sandbox._source import sealed
from gem_sandbox.forkserver import ForkServer, Keeper, ServerLost

_T = TypeVar("_T")
_PAUSES = (0.05, 0.2, 0.5, 1.0, 2.0)
"""Seconds before each further attempt where the system refuses what a call needs."""


class LocalSandbox(Sandbox):
    """Runs programs on this machine, each in a process forked from a server that has everything imported.

    Sandboxes with the same settings share a server in each process that uses them. It starts with the first call,
    and ends when all of them are closed, or with the process. Can be pickled, and used after `os.fork`.

    Args:
        backend: `bubblewrap`, `namespaces`, `limits`, or `auto`: the first of the two safe ones that works here.
        preload: modules that are imported in the server, so that programs find them imported.
        limits: of each call that has none of its own.
        concurrency: calls that may run at one time, of all sandboxes that share the server; as many as there are
            cores by default. The others wait, and their clocks with them.
        allow_unsafe: accept `limits`, which keeps out accidents but no attacker, also from `auto` where neither of
            the safe ones works.

    Raises:
        SandboxError: by the first call: there is no such backend here, or a module cannot be preloaded.
    """

    def __init__(
        self,
        *,
        backend: str = "auto",
        preload: Sequence[str] = (),
        limits: Limits = Limits(),  # noqa: B008  # it cannot be changed
        concurrency: int | None = None,
        allow_unsafe: bool = False,
    ) -> None:
        self._asked: dict[str, Any] = {
            "backend": backend,
            "preload": tuple(preload),
            "limits": limits,
            "concurrency": concurrency,
            "allow_unsafe": allow_unsafe,
        }
        choice.check(backend, allow_unsafe)
        if isinstance(preload, str):
            raise SandboxError(f"preload is a list of modules, not {preload!r}")
        if concurrency is not None and (type(concurrency) is not int or concurrency < 1):
            raise SandboxError(f"concurrency is a number of calls, at least 1, not {concurrency!r}")
        self._limits = limits
        self._concurrency = concurrency or len(os.sched_getaffinity(0))
        self._settings: Settings | None = None
        """Of the server that this one uses."""

    def run(self, code: str, *, stdin: str = "", limits: Limits | None = None) -> Execution:
        with sealed(code) as source, sealed(stdin) as text:
            return self._run(source, text, limits or self._limits)

    def runs(self, code: str, inputs: Iterable[str], *, limits: Limits | None = None) -> Generator[Execution]:
        with sealed(code) as source:
            for stdin in inputs:
                with sealed(stdin) as text:
                    done = self._run(source, text, limits or self._limits)
                yield done

    def session(self, *, limits: Limits | None = None) -> SandboxSession:
        return LocalSession(self, limits or self._limits)

    def close(self) -> None:
        if self._settings is not None:
            pool.leave(self._settings, id(self))

    def shell(
        self,
        *,
        limits: Limits | None = None,
        folder: str = WORK,
        variables: Mapping[str, str] | None = None,
        guarded: bool = False,
    ) -> LocalShell:
        """A shell with a root of its own; see `gem_sandbox._shell`. It starts with its first command.

        Args:
            limits: in place of the sandbox's own; `wall` is that of a command that names no other.
            folder: where commands start.
            variables: of the environment, beside the usual ones.
            guarded: its processes cannot read the memory, the environment and the open files of its shells, Pythons and
                Perls, so a check may run a program under test. Nobody can read the files of these programs there.

        Raises:
            SandboxError: the backend `limits` gives no process a root of its own. By the first command: see above.
        """
        return LocalShell(self, limits or self._limits, folder, variables or {}, guarded=guarded)

    @property
    def backend(self) -> str:
        """The backend that is used. Raises `SandboxError` where there is none."""
        return self._found().backend

    def converse(self, talk: Callable[[ForkServer], _T]) -> _T:
        """Hand a server to a function that may raise `ServerLost`, and another one if it does; and do so again after a
        pause where the system refuses what is needed (`OSError`).

        Raises:
            SandboxError: it is all in vain.
        """
        for pause in _PAUSES:
            with contextlib.suppress(OSError):
                return self._attempt(talk)
            time.sleep(pause)
        with machine_trouble():
            return self._attempt(talk)

    def _attempt(self, talk: Callable[[ForkServer], _T]) -> _T:
        done = self._pool().converse(talk, id(self))
        if done is None:
            raise SandboxError(
                "the process that programs are forked from was killed again and again. Is the machine out of memory?"
            )
        return done

    def __getstate__(self) -> dict[str, Any]:
        return self._asked

    def __setstate__(self, asked: dict[str, Any]) -> None:
        self.__init__(**asked)

    def _run(self, code: int, stdin: int, limits: Limits) -> Execution:
        def talk(server: ForkServer) -> Execution:
            with contextlib.closing(RunningProcess(server, limits, session=False)) as call:
                call.give(code, stdin)
                return execution(call, call.wait(), limits)

        return self.converse(talk)

    def _pool(self) -> Keeper:
        return pool.pool(self._found())

    def _found(self) -> Settings:
        if self._settings is None:
            backend = choice.chosen(self._asked["backend"], allow_unsafe=self._asked["allow_unsafe"])
            self._settings = Settings(backend, self._asked["preload"], self._concurrency)
            weakref.finalize(self, pool.leave, self._settings, id(self))
        return self._settings


class LocalSession(SandboxSession):
    """An interpreter in a process of `LocalSandbox`."""

    def __init__(self, sandbox: LocalSandbox, limits: Limits) -> None:
        self._sandbox = sandbox
        self._limits = limits
        self._call: RunningProcess | None = None
        self._owner = os.getpid()
        self._ended = False
        self._has_state = False

    def run(self, code: str, *, stdin: str = "") -> Execution:
        with sealed(code) as source, sealed(stdin) as text:
            return self._sandbox.converse(lambda server: self._run(server, source, text))

    def close(self) -> None:
        self._drop()
        self._ended = False

    def _run(self, server: ForkServer, code: int, stdin: int) -> Execution:
        if self._owner != os.getpid():  # a fork: the process is its parent's
            self._owner = os.getpid()
            self._end()
        call = self._continued(code, stdin) or self._begun(server, code, stdin)
        try:
            turn = call.wait()
        except ServerLost:
            self._lose()
            raise
        except NotStarted:
            self._drop()
            raise
        self._check_open(call)
        done = execution(call, turn, self._limits)._replace(restarted=self._ended)
        self._ended = False
        self._has_state = True
        if turn.ended:
            self._end()
        return done

    def _continued(self, code: int, stdin: int) -> RunningProcess | None:
        """The call of the runs before, with this one, if it is still there."""
        call = self._call
        if call is None:
            return None
        try:
            is_there = call.give(code, stdin)
        except ServerLost:
            self._lose()
            return None
        self._check_open(call)
        if not is_there:
            self._end()
        return self._call

    def _begun(self, server: ForkServer, code: int, stdin: int) -> RunningProcess:
        self._call = call = RunningProcess(server, self._limits, session=True)
        call.give(code, stdin)
        return call

    def _check_open(self, call: RunningProcess) -> None:
        """Raises `SandboxError` if another thread has closed the session meanwhile: it must not begin once more."""
        if call is not self._call:
            raise SandboxError("the session was closed while it ran a program")

    def _end(self) -> None:
        """The process has ended: the next run says so."""
        self._drop()
        self._ended = True

    def _drop(self) -> None:
        # In this order: a thread that waits for the call wakes up by its end, and must find it gone.
        call, self._call, self._has_state = self._call, None, False
        if call is not None:
            call.close()

    def _lose(self) -> None:
        """The server has died, through no fault of this session. Raises `SandboxError` where runs have left something,
        which cannot be had again."""
        if self._has_state:
            self._end()
            raise SandboxError(
                "the process that sessions are forked from was killed, and with it this session's interpreter with all "
                "that was defined in it. The next run starts another. Is the machine out of memory?"
            )
        self._drop()
