"""A shell with a root of its own: commands of bash one after the other, and files in and out.

    with LocalSandbox() as sandbox, sandbox.shell(limits=Limits(disk=32 << 20)) as shell:
        shell.put({"/app/names.txt": Entry(b"Ada\\n")})
        shell.run("cd /app && export N=1")
        shell.run("wc -l names.txt; echo $N").output        # "1 names.txt\\n1\\n"
        files = shell.take("/app")

`gem_sandbox._console` is the other side.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from gem_sandbox import _files as files
from gem_sandbox._call import NotStarted, RunningProcess, Turn
from gem_sandbox._endings import ending_of
from gem_sandbox._errors import SandboxError, ShellError, machine_trouble
from gem_sandbox._execution import Ending
from gem_sandbox._files import Entry
from gem_sandbox._limits import Limits
from gem_sandbox._source import sealed
from gem_sandbox.forkserver import ForkServer, ServerLost

_T = TypeVar("_T")
_OTHER_SECONDS = 300.0
"""For all that is no command, and on top of a command's own time. Only a process that was stopped takes as long."""


class Ran(NamedTuple):
    """What came of a command."""

    output: str
    """What it wrote, errors too, in order, and with it what earlier commands in the background have written."""
    exit_code: int | None
    """`None` where it was ended."""
    ending: Ending
    """`timeout`: its time was up, and it was ended alone. `memory`, `killed`: the shell was ended with all it had."""
    seconds: float
    """Wall time."""
    truncated: bool = False
    """Whether a part of the output is left out."""
    new_shell: bool = False
    """The bash has ended (`exit`, or it ignored interrupts). The next command finds another one, and the same files."""


class Conversing(Protocol):
    """What a shell needs of its sandbox: `LocalSandbox`."""

    @property
    def backend(self) -> str: ...
    def converse(self, talk: Callable[[ForkServer], _T]) -> _T: ...


class LocalShell:
    """A shell in a root of its own. For one thread.

    /app, /root, /tmp, /etc and all other folders are writable, but those with the system's programs and libraries. The
    user is called root and has no rights. All files are in memory and count as `disk`; they are gone with the shell.

    Args:
        sandbox: runs it.
        limits: `wall` for a command that names no time, `cpu` for one process, the others for the whole shell.
        folder: where commands start; made if it is missing.
        variables: of the environment, beside the usual ones.
        guarded: see `LocalSandbox.shell`.

    Raises:
        SandboxError: by all methods but `close`: there is no sandbox to run it in, or the server was killed and with it
            all that this shell had.
        ShellError: by all methods but `close`: the process of the shell has ended before.
    """

    def __init__(
        self, sandbox: Conversing, limits: Limits, folder: str, variables: Mapping[str, str], *, guarded: bool = False
    ) -> None:
        self._sandbox = sandbox
        self._guarded = guarded
        self._limits = limits
        self._folder = folder
        self._variables = dict(variables)
        self._call: RunningProcess | None = None
        self._owner = os.getpid()
        self.ended: str | None = None
        """Why the shell has no process any more; `None` while it has one, or is yet to start."""

    def run(self, command: str, *, seconds: float | None = None) -> Ran:
        """Run a command, as if it were typed. Nothing is typed to it: its input is empty.

        Args:
            command: in bash's language, one or many lines.
            seconds: after which it is ended, with what it has started, but not the shell. `Limits.wall` by default.
        """
        seconds = self._limits.wall if seconds is None else seconds
        if "\0" in command:
            return Ran("bash: a command has no character 0\n", 2, "exit", 0.0)
        request = {
            "do": "run",
            "command": command,
            "seconds": seconds,
            "folder": self._folder,
            "variables": self._variables,
        }
        turn, answer, output, truncated = self._ask(request, seconds=seconds)
        if turn.ended:
            code, ending = ending_of(turn, self._limits)
            return Ran(output, code, "killed" if ending == "exit" else ending, turn.seconds, truncated)
        if "problem" in answer:
            return Ran(f"{output}bash: {answer['problem']}\n", 1, "exit", turn.seconds, truncated, True)
        late, new = bool(answer.get("late")), bool(answer.get("new_shell"))
        code = answer.get("code")
        ending = "timeout" if late else "exit"
        return Ran(output, code if isinstance(code, int) else None, ending, turn.seconds, truncated, new)

    def put(self, entries: Mapping[str, Entry]) -> None:
        """Write files, folders and links. What is in the way of one is removed.

        Args:
            entries: by absolute paths. Folders above them are made.

        Raises:
            ShellError: they do not fit, or a place cannot be written to.
        """
        with _memory_file(files.packed(entries)) as data:
            self._do({"do": "write"}, data)

    def take(self, *roots: str, left_out: Sequence[str] = ()) -> dict[str, Entry]:
        """Read all files, folders and links at or below some paths, but no pipes.

        The system's programs, libraries and links are left out, whatever commands have put in their places, and so are
        the files that decide what these programs load when they start. So another shell can be given all that
        `take("/")` returns, and its own programs are still the system's.

        Args:
            roots: absolute paths; those that are not there are skipped.
            left_out: further paths that are skipped with all below them.

        Raises:
            ShellError: they are larger than the shell's disk, as files with holes can be.
        """
        request = {"do": "read", "roots": roots, "left_out": left_out, "most": self._limits.disk}
        with _memory_file(b"") as data:
            self._do(request, data)
            content = os.pread(data, os.fstat(data).st_size, 0)
        try:
            return files.unpacked(content)
        except ValueError as error:
            raise ShellError(f"the shell sent {error}") from None

    def settle(self) -> None:
        """End all processes of the shell; its files stay, and the next command finds another bash."""
        self._do({"do": "settle"})

    def close(self) -> None:
        """End the shell. Nothing of it is left. The next command starts another, with an empty root."""
        call, self._call, self.ended = self._call, None, None
        if call is not None:
            call.close()

    def __enter__(self) -> LocalShell:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _do(self, request: Mapping[str, Any], data: int | None = None) -> None:
        turn, answer, *_ = self._ask(request, data)
        if turn.ended:
            raise ShellError(f"the shell has ended: {self.ended}")
        if "problem" in answer:
            raise ShellError(f"the shell could not {request['do']}: {answer['problem']}")

    def _ask(
        self, request: Mapping[str, Any], data: int | None = None, *, seconds: float = 0.0
    ) -> tuple[Turn, dict[str, Any], str, bool]:
        """What came of a request: the turn, the answer, the output, and whether that is truncated."""
        self._check()
        with sealed(json.dumps(request)) as text:
            turn, call = self._sandbox.converse(
                lambda server: self._talk(server, text, text if data is None else data, seconds + _OTHER_SECONDS)
            )
        truncated = call.stdout.truncated
        output = call.stdout.take()
        if turn.ended:
            code, ending = ending_of(turn, self._limits)
            self.ended = f"it exceeded its {ending}" if ending in ("memory", "timeout") else f"exit code {code}"
            self._drop()
        return turn, _answer(turn), output, truncated

    def _check(self) -> None:
        if self._sandbox.backend == "limits":
            raise SandboxError(
                "the backend 'limits' has no shells: they need a root of their own. Use 'bubblewrap' or 'namespaces'."
            )
        if self.ended is not None:
            raise ShellError(f"the shell has ended: {self.ended}. Open another one.")
        if self._owner != os.getpid():
            raise SandboxError("this shell belongs to another process, which was forked. Open one of its own.")

    def _talk(self, server: ForkServer, request: int, data: int, seconds: float) -> tuple[Turn, RunningProcess]:
        call = self._call
        begun = call is not None
        if call is None:
            self._call = call = RunningProcess(server, self._limits, session=True, shell=True, guarded=self._guarded)
        try:
            call.send(request, data)  # if its process has ended, waiting tells how
            return call.wait(seconds), call
        except ServerLost:
            self._drop()
            if begun:
                raise SandboxError(
                    "the process that shells are forked from was killed, and with it this shell and all its files. "
                    "Is the machine out of memory?"
                ) from None
            raise
        except NotStarted:
            self._drop()
            raise

    def _drop(self) -> None:
        if self._call is not None:
            self._call.close()
            self._call = None


def _answer(turn: Turn) -> dict[str, Any]:
    """What a shell's process says, which may be anything."""
    try:
        answer: Any = json.loads(turn.report.detail) if turn.report else {}
    except ValueError:
        return {}
    return cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}


@contextlib.contextmanager
def _memory_file(content: bytes) -> Generator[int]:
    """A file in memory that a shell's process can write to as well."""
    with machine_trouble():
        file = os.memfd_create("files", os.MFD_CLOEXEC)
    try:
        with machine_trouble():
            rest = memoryview(content)
            while rest:
                rest = rest[os.write(file, rest) :]
        yield file
    finally:
        os.close(file)
