"""What runs programs. Tools and graders know no more of a sandbox than this, wherever it runs them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable
from types import TracebackType
from typing import TypeVar

from gem_sandbox._execution import Execution
from gem_sandbox._limits import Limits

_Session = TypeVar("_Session", bound="SandboxSession")
_Sandbox = TypeVar("_Sandbox", bound="Sandbox")


class SandboxSession(ABC):
    """One interpreter that runs one piece of code after the other, and keeps what they leave. For one thread."""

    @abstractmethod
    def run(self, code: str, *, stdin: str = "") -> Execution:
        """Run code in the module `__main__` of this session.

        A run that is ended (by a limit, a crash, `os._exit`) ends the interpreter; the next one starts another, and
        says so in `Execution.restarted`. An exception, and `sys.exit` too, ends the run alone.
        """

    @abstractmethod
    def close(self) -> None:
        """End the interpreter; the next `run` starts another."""

    def __enter__(self: _Session) -> _Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class Sandbox(ABC):
    """Runs Python programs in a way that they can do no harm. Safe in threads."""

    @abstractmethod
    def run(self, code: str, *, stdin: str = "", limits: Limits | None = None) -> Execution:
        """Run a program as `python program.py` would, and wait for its end.

        Args:
            code: source text of the program.
            stdin: what it reads.
            limits: in place of the sandbox's own.

        Raises:
            SandboxError: there is no sandbox to run it in. Whatever the program does is told by `Execution`.
        """

    def runs(self, code: str, inputs: Iterable[str], *, limits: Limits | None = None) -> Generator[Execution]:
        """Run a program once per input, each in a fresh process with limits of its own, when the result is asked for.

        Closing the iterator ends it. Raises as `run` does.
        """
        for stdin in inputs:
            yield self.run(code, stdin=stdin, limits=limits)

    @abstractmethod
    def session(self, *, limits: Limits | None = None) -> SandboxSession:
        """An interpreter that keeps its state from run to run. It starts with the first `run`, which raises as here."""

    @abstractmethod
    def close(self) -> None:
        """End what this sandbox holds; the next call starts it again."""

    def __enter__(self: _Sandbox) -> _Sandbox:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
