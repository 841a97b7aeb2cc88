"""A shell in a container of Docker or podman, used through their command lines.

A container lives as long as its first process, a bash that reads from this process. So the container ends when it is
closed, and also when this process is killed. Commands run in a second bash, and what they wrote ends with a line that
has a random word and the exit code.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import posixpath
import re
import select
import shlex
import shutil
import subprocess
import tarfile
import threading
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

from gem_core.errors import EnvError
from gem_sandbox import Entry, Limits, Ran, ShellError
from gem_terminal._task import Image

PROGRAMS = ("docker", "podman")
NO_NETWORK = "none"
_OTHER_SECONDS = 120.0
"""For what is no command and no build."""
_BUILD_SECONDS = 3600.0
_NOWHERE = "/proc"
"""Where clients run: podman's helper writes a file `oom` to its folder when a container runs out of memory."""
_ROOM = 200
"""Bytes that a last line may have."""
_GRACE = 15.0
"""Seconds that a bash has to come back once its command was ended, and that a client has to end."""
_BASH = ("bash", "--norc", "--noprofile")
_KEEPER = (*_BASH, "-c", "echo; while read -r; do :; done")
"""The first process: it says that it is there, waits for the processes that lost their parents, and ends with its
input."""
_GONE = "its first process was ended, by its memory or by a command"
_NO_BASH = "no bash starts in it any more: a command removed it, or used up the memory or the processes"
_OTHERS = 'for p in /proc/[0-9]*; do p=${p#/proc/}; case $p in 1|$$|%s) ;; *) kill -9 "$p" 2>/dev/null;; esac; done'


@dataclass(frozen=True)
class Engine:
    """Starts containers.

    Args:
        program: `docker` or `podman`.
        network: what containers are connected to, as `--network` takes it.
    """

    program: str
    network: str = NO_NETWORK

    def image(self, image: Image) -> str:
        """The name of a task's image, which is built where it has a Dockerfile, once per process.

        Raises:
            EnvError: it cannot be built, or its name is none.
        """
        if image.context is not None:
            with _BUILDING:
                return _built(self, image.context)
        name = str(image.name)
        if name.startswith("-"):
            raise EnvError(f"the image's name {name!r} begins with '-', so {self.program} takes it for an option")
        return name

    def run(
        self, arguments: Sequence[str], given: bytes = b"", seconds: float = _OTHER_SECONDS
    ) -> subprocess.CompletedProcess[bytes]:
        """What a command of the program says. Raises `EnvError` where there is no such program, or no end of it."""
        try:
            return subprocess.run([self.program, *arguments], input=given, capture_output=True, timeout=seconds)
        except FileNotFoundError as error:
            raise self.missing() from error
        except subprocess.TimeoutExpired as error:
            raise EnvError(f"{self.program} {arguments[0]} took more than {seconds:g} seconds") from error

    def missing(self) -> EnvError:
        """The error where there is no such program."""
        return EnvError(f"there is no program {self.program!r}. Next: install it, or leave out backend=...")


_BUILDING = threading.Lock()
"""Environments in threads start together, and their image is built once."""


@functools.lru_cache(maxsize=4096)
def _built(engine: Engine, context: Path) -> str:
    done = engine.run(["build", "-q", str(context)], seconds=_BUILD_SECONDS)
    if done.returncode:
        raise EnvError(f"the image of {context} cannot be built: {_said(done)}")
    return done.stdout.decode().strip().splitlines()[-1]


class ContainerShell:
    """A shell in a container of its own; has the methods of `gem_sandbox.LocalShell` that this package uses.

    Args:
        engine: starts it.
        image: the name of its image, which has a bash.
        limits: `wall` for a command that names no time; `memory` and `processes` for the container.
        folder: where commands start; the image's own where it is empty.
        variables: of the environment, beside the image's.

    Raises:
        EnvError: the container cannot be started.
    """

    def __init__(self, engine: Engine, image: str, limits: Limits, folder: str, variables: Mapping[str, str]) -> None:
        self._engine = engine
        self._limits = limits
        self._folder = folder
        self._variables = dict(variables)
        self._name = f"gem-core-{uuid.uuid4().hex}"
        self._shell: subprocess.Popen[bytes] | None = None
        self._shell_pid = "1"
        self.ended: str | None = None
        """Why there is no container any more."""
        limited = ["--memory", f"{limits.memory}b", "--memory-swap", f"{limits.memory}b", "--pids-limit"]
        started = ["run", "-i", "--rm", "--name", self._name, "--network", engine.network, *limited]
        self._keeper = _started(engine, [*started, str(limits.processes), image, *_KEEPER], errors=subprocess.PIPE)
        assert self._keeper.stdout is not None
        if not _ready(self._keeper.stdout.fileno(), _OTHER_SECONDS) or not self._keeper.stdout.readline():
            said = self._end_keeper()
            with contextlib.suppress(EnvError):  # it may be there, though it has not begun
                engine.run(["rm", "-f", self._name])
            raise EnvError(
                f"{engine.program} cannot start a container of {image}: {said}. "
                f"Next: if it is not on this machine, {engine.program} pull {image}"
            )

    def run(self, command: str, *, seconds: float | None = None) -> Ran:
        """Run a command of bash, as if it were typed; see `LocalShell.run`."""
        self._check()
        seconds = self._limits.wall if seconds is None else seconds
        began = time.monotonic()
        shell = self._opened()
        word = uuid.uuid4().hex
        _send(
            shell,
            f"eval {shlex.quote(command)} </dev/null 2>&1; builtin printf '\\n%s %d\\n' {word} $?\n",
            began + seconds,
        )
        reading = _Reading(shell, word, self._limits.output)
        code = reading.until(began + seconds)
        late = code is None and not reading.ended
        if late:
            self._kill(_OTHERS % self._shell_pid)
            reading.until(time.monotonic() + _GRACE)
        new = reading.code is None
        if new:
            code = self._lost()
        ending = "timeout" if late else "killed" if self.ended else "exit"
        spent = time.monotonic() - began
        return Ran(reading.text, None if late else code, ending, spent, reading.truncated, new)

    def put(self, entries: Mapping[str, Entry]) -> None:
        """Write files, folders and links, by absolute paths. Raises `ShellError` where that fails."""
        self._check()
        done = self._engine.run(["cp", "-", f"{self._name}:/"], _packed(entries))
        if done.returncode:
            raise ShellError(f"the container could not be written to: {_said(done)}")

    def take(self, *roots: str) -> dict[str, Entry]:
        """Read all files below folders.

        Raises:
            ShellError: there is no such folder, or the files are larger than `disk`.
        """
        self._check()
        found: dict[str, Entry] = {}
        for root in roots:
            with _started(self._engine, ["cp", f"{self._name}:{root}/.", "-"]) as client:
                assert client.stdout is not None
                archive = _read(client.stdout, self._limits.disk)
                client.stdout.close()  # what writes more than that ends
            if client.returncode:
                raise ShellError(f"{root} could not be read from the container, or is too large")
            found |= _unpacked(archive, root)
        return found

    def send(self, other: ContainerShell, paths: Iterable[str]) -> None:
        """Write files and folders of this container to the same places of another one, where nothing is in their way.

        Args:
            other: gets them.
            paths: absolute ones; those that are not there are skipped.

        Raises:
            ShellError: they cannot be written.
        """
        self._check()
        for path in paths:
            with _started(self._engine, ["cp", f"{self._name}:{path}", "-"]) as source:
                assert source.stdout is not None
                first = source.stdout.read(1)
                if first:
                    other.receive(first, source.stdout, posixpath.dirname(path))

    def receive(self, first: bytes, rest: IO[bytes], folder: str) -> None:
        """Unpack an archive, which comes in two pieces, in a folder. Raises `ShellError`."""
        made = self._engine.run(["exec", self._name, "mkdir", "-p", folder])
        with _started(self._engine, ["cp", "-", f"{self._name}:{folder}"]) as target:
            assert target.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                target.stdin.write(first)
                shutil.copyfileobj(rest, target.stdin)
            target.stdin.close()
        if made.returncode or target.returncode:
            raise ShellError(f"{folder} of the container for the tests could not be written to")

    def working_folder(self) -> str:
        """The image's own, as reported by the engine; empty if it has none."""
        said = self._engine.run(["inspect", "-f", "{{.Config.WorkingDir}}", self._name])
        return said.stdout.decode(errors="replace").strip()

    def settle(self) -> None:
        """End all processes; files stay, and the next command finds another bash."""
        self._check()
        if not self._kill("kill -9 -1"):  # all but itself and the first, at one moment
            raise ShellError("the processes of the container could not be ended")
        self._end_shell()

    def close(self) -> None:
        """End the container. Nothing of it is left."""
        assert self._keeper.stderr is not None
        if not self._keeper.stderr.closed:
            self._end_keeper()  # the container ends with the input of its first process
            if self._keeper.returncode < 0:
                self._engine.run(["rm", "-f", self._name])
        self._end_shell()

    def __enter__(self) -> ContainerShell:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _opened(self) -> subprocess.Popen[bytes]:
        if self._shell is None:
            folder = ["-w", self._folder] if self._folder else []
            variables = [word for name, value in self._variables.items() for word in ("-e", f"{name}={value}")]
            self._shell = _started(self._engine, ["exec", "-i", *folder, *variables, self._name, *_BASH])
            word = uuid.uuid4().hex
            deadline = time.monotonic() + _OTHER_SECONDS
            _send(self._shell, f"set +H; builtin printf '%s\\n%s 0\\n' $$ {word}\n", deadline)
            reading = _Reading(self._shell, word, 1000)
            if reading.until(deadline) is None:
                self._lost()
                raise ShellError(f"no bash starts in the container{f': {self.ended}' if self.ended else ''}")
            self._shell_pid = reading.text.split()[-1]
        return self._shell

    def _kill(self, script: str) -> bool:
        """Run a script that ends processes. Returns whether it could run."""
        return self._engine.run(["exec", self._name, *_BASH, "-c", f"{script}; true"]).returncode == 0

    def _lost(self) -> int:
        """The exit code of a bash that has ended, or that ends now."""
        if not self._kill(f"kill -9 {self._shell_pid} 2>/dev/null"):
            state = self._engine.run(["inspect", "-f", "{{.State.Running}}", self._name])
            self.ended = _NO_BASH if state.stdout.strip() == b"true" else _GONE
        return self._end_shell()

    def _end_shell(self) -> int:
        shell, self._shell = self._shell, None
        return 0 if shell is None else _end(shell)

    def _end_keeper(self) -> str:
        """End the container, and say what its client wrote to its errors."""
        _end(self._keeper)
        assert self._keeper.stderr is not None
        with self._keeper.stderr as errors:
            return errors.read().decode(errors="replace").strip()[-500:]

    def _check(self) -> None:
        if self.ended is None and self._keeper.poll() is not None:
            self.ended = _GONE
        if self.ended is not None:
            raise ShellError(f"the container has ended: {self.ended}")


class _Reading:
    """What a bash writes until a line with a word and an exit code."""

    def __init__(self, shell: subprocess.Popen[bytes], word: str, limit: int) -> None:
        assert shell.stdout is not None
        self._file = shell.stdout.fileno()
        self._last = re.compile(rb"(?:^|\n)%s (\d+)\n" % word.encode())
        self._limit = limit
        self._head, self._tail, self._total = b"", b"", 0
        self.code: int | None = None
        self.ended = False
        """Whether the bash has ended instead."""

    def until(self, deadline: float) -> int | None:
        """The exit code; `None` if it does not come in time."""
        while self.code is None and not self.ended:
            left = deadline - time.monotonic()
            if left <= 0 or not _ready(self._file, left):  # output without end is no reason to go on
                break
            chunk = os.read(self._file, 1 << 16)
            self.ended = not chunk
            self._keep(chunk)
            if found := self._last.search(self._tail):
                self._total -= len(self._tail) - found.start()
                self.code, self._tail = int(found[1]), self._tail[: found.start()]
        return self.code

    @property
    def text(self) -> str:
        """The output: all of it, or its first half and its last as far as the limit allows."""
        text, half = self._head + self._tail, self._limit // 2
        if len(text) <= self._limit:
            return text.decode(errors="replace")
        note = f"\n[... {self._total - self._limit} bytes left out ...]\n".encode()
        return (text[:half] + note + text[len(text) - (self._limit - half) :]).decode(errors="replace")

    @property
    def truncated(self) -> bool:
        """Whether a part of the output is left out."""
        return len(self._head) + len(self._tail) > self._limit

    def _keep(self, chunk: bytes) -> None:
        self._total += len(chunk)
        self._tail += chunk
        if not self._head and len(self._tail) > 2 * self._limit + _ROOM:
            half = self._limit // 2
            self._head, self._tail = self._tail[:half], self._tail[half:]
        if self._head and len(self._tail) > self._limit + _ROOM:
            self._tail = self._tail[-self._limit - _ROOM :]


def _started(engine: Engine, arguments: Sequence[str], errors: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    command = [engine.program, *arguments]
    try:
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, bufsize=0, cwd=_NOWHERE
        )
    except FileNotFoundError as error:
        raise engine.missing() from error


def _end(process: subprocess.Popen[bytes]) -> int:
    """End the input of a client of the engine, and return its exit code; below 0 where it had to be killed."""
    with contextlib.suppress(BrokenPipeError):
        if process.stdin is not None:
            process.stdin.close()
    try:
        process.wait(_GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
    return process.returncode


def _send(shell: subprocess.Popen[bytes], text: str, deadline: float) -> None:
    """Write to a bash; only a part where it does not read the rest in time, so that it does not answer either."""
    assert shell.stdin is not None
    file = shell.stdin.fileno()
    os.set_blocking(file, False)
    poll = select.poll()
    poll.register(file, select.POLLOUT)
    rest = memoryview(text.encode("utf-8", "replace"))
    with contextlib.suppress(BrokenPipeError):  # its end is noticed later
        while rest and (left := deadline - time.monotonic()) > 0:
            if poll.poll(left * 1000):
                rest = rest[os.write(file, rest) :]


def _ready(file: int, seconds: float) -> bool:
    """Whether something can be read within this time."""
    poll = select.poll()
    poll.register(file, select.POLLIN)
    return bool(poll.poll(max(0.0, seconds) * 1000))


def _read(file: IO[bytes], most: int) -> bytes:
    """What comes from a client until its end, or more than `most` bytes of it."""
    chunks: list[bytes] = []
    size = 0
    while size <= most and (chunk := file.read(1 << 16)):
        chunks.append(chunk)
        size += len(chunk)
    return b"".join(chunks)


def _packed(entries: Mapping[str, Entry]) -> bytes:
    """A tar archive."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path, entry in sorted(entries.items()):
            info = tarfile.TarInfo(path.lstrip("/"))
            info.mode, info.mtime = entry.mode, time.time()
            if entry.target is not None:
                info.type, info.linkname = tarfile.SYMTYPE, entry.target
            elif entry.is_folder:
                info.type = tarfile.DIRTYPE
            else:
                info.size = len(entry.content)
            archive.addfile(info, None if info.size == 0 else io.BytesIO(entry.content))
    return packed.getvalue()


def _unpacked(archive: bytes, root: str) -> dict[str, Entry]:
    """The files of a tar archive, by their paths below a folder."""
    found: dict[str, Entry] = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as members:
        for member in members:
            if member.isfile() and (content := members.extractfile(member)) is not None:
                found[posixpath.normpath(posixpath.join(root, member.name))] = Entry(content.read(), member.mode)
    return found


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    return done.stderr.decode(errors="replace").strip()[-500:]
