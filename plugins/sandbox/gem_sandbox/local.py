"""Programs on this machine, kept apart from it by its kernel."""

from __future__ import annotations

import contextlib
import os
import signal
import weakref
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any

from gem_sandbox import choice, pool
from gem_sandbox.call import Call, Turn
from gem_sandbox.errors import SandboxError
from gem_sandbox.execution import Ending, Execution
from gem_sandbox.forkserver import ForkServer, Keeper, ServerLost
from gem_sandbox.limits import Limits
from gem_sandbox.messages import OUT_OF_MEMORY
from gem_sandbox.pool import Settings
from gem_sandbox.sandbox import Sandbox, Session
from gem_sandbox.source import sealed


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
        self._leave: Callable[[], object] | None = None

    def run(self, code: str, *, stdin: str = "", limits: Limits | None = None) -> Execution:
        with sealed(code) as source, sealed(stdin) as text:
            return self._run(source, text, limits or self._limits)

    def runs(self, code: str, inputs: Iterable[str], *, limits: Limits | None = None) -> Generator[Execution]:
        with sealed(code) as source:
            for stdin in inputs:
                with sealed(stdin) as text:
                    done = self._run(source, text, limits or self._limits)
                yield done

    def session(self, *, limits: Limits | None = None) -> Session:
        return LocalSession(self, limits or self._limits)

    def close(self) -> None:
        if self._leave is not None:
            self._leave()
            self._leave = None

    def converse(self, talk: Callable[[ForkServer], Execution]) -> Execution:
        """Hand a server to a function that may raise `ServerLost`, and another one if it does."""
        lost = Execution("", "lost: the process that programs are forked from died, twice", None, "lost", 0.0)
        return self._pool().converse(talk, id(self)) or lost

    def __getstate__(self) -> dict[str, Any]:
        return self._asked

    def __setstate__(self, asked: dict[str, Any]) -> None:
        self.__init__(**asked)

    def _run(self, code: int, stdin: int, limits: Limits) -> Execution:
        def talk(server: ForkServer) -> Execution:
            with contextlib.closing(Call(server, limits, session=False)) as call:
                call.give(code, stdin)
                return _execution(call, call.wait(), limits)

        return self.converse(talk)

    def _pool(self) -> Keeper:
        backend = choice.chosen(self._asked["backend"], allow_unsafe=self._asked["allow_unsafe"])
        settings = Settings(backend, self._asked["preload"], self._concurrency)
        if self._leave is None:
            self._leave = weakref.finalize(self, pool.leave, settings, id(self))
        return pool.pool(settings)


class LocalSession(Session):
    """An interpreter in a process of `LocalSandbox`."""

    def __init__(self, sandbox: LocalSandbox, limits: Limits) -> None:
        self._sandbox = sandbox
        self._limits = limits
        self._call: Call | None = None
        self._owner = os.getpid()
        self._ended = False

    def run(self, code: str, *, stdin: str = "") -> Execution:
        with sealed(code) as source, sealed(stdin) as text:
            return self._sandbox.converse(lambda server: self._run(server, source, text))

    def close(self) -> None:
        if self._call is not None:
            self._call.close()
        self._call, self._ended = None, False

    def _run(self, server: ForkServer, code: int, stdin: int) -> Execution:
        if self._owner != os.getpid():  # a fork: the process is its parent's
            self._call, self._owner, self._ended = None, os.getpid(), True
        try:
            if self._call is not None and not self._call.give(code, stdin):
                self._end()  # it has ended since
            if self._call is None:
                self._call = Call(server, self._limits, session=True)
                self._call.give(code, stdin)
            call = self._call
            turn = call.wait()
        except ServerLost:
            self._end()
            raise
        done = _execution(call, turn, self._limits)._replace(restarted=self._ended)
        self._ended = False
        if turn.report is None or turn.ended or turn.problem is not None:
            self._end()
        return done

    def _end(self) -> None:
        """The process has ended: the next run says so."""
        self.close()
        self._ended = True


def _execution(call: Call, turn: Turn, limits: Limits) -> Execution:
    cut = call.stdout.truncated, call.stderr.truncated
    stdout, stderr = call.stdout.take(), call.stderr.take()
    if turn.problem is not None:
        return Execution("", f"lost: the sandbox could not start the program: {turn.problem}", None, "lost", 0.0)
    code, ending = _ending(turn, limits)
    return Execution(stdout, stderr, code, ending, turn.seconds, *cut)


def _ending(turn: Turn, limits: Limits) -> tuple[int | None, Ending]:
    out_of_memory = turn.report is not None and turn.report.kind == OUT_OF_MEMORY
    if turn.ended is None:
        assert turn.report is not None
        return _exit_code(turn.report.detail), "memory" if out_of_memory else "exit"
    code = os.waitstatus_to_exitcode(turn.ended.status)
    if code >= 0:
        return code, "memory" if out_of_memory and code == 1 else "exit"
    if code == -signal.SIGKILL and turn.late:
        return None, "timeout"
    # The kernel's own count may be ahead of what it tells.
    if code in {-signal.SIGXCPU, -signal.SIGKILL} and turn.ended.cpu >= limits.cpu_seconds / 2:
        return None, "timeout"
    return code, "killed"


def _exit_code(text: str) -> int:
    """As the session's process says, which may say anything."""
    return int(text) if text.isdecimal() and len(text) <= 3 else 1
