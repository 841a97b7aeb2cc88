"""A server of an OpenEnv package, started here, which ends with its owner."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from pathlib import Path
from typing import IO

from gem_core.errors import EnvError
from gem_core.installation import install_line

_RUNNER = Path(__file__).with_name("_runner.py")  # not imported: only the server needs its requirements
_END_SECONDS = 20.0  # the program takes 5 at most, on a machine that lets it run
_SHOWN_BYTES = 4000


class LocalServer:
    """The server of a package, in a process of its own on a free port of this machine.

    It ends with `close()`, with the last reference to this object, and with this process, however that ends.

    Args:
        package: the folder of a package, or the name of an installed one.
        python: an interpreter that has the package's requirements.
        seconds: how long its start may take.

    Raises:
        EnvError: it does not start; the message has what it printed last.
    """

    def __init__(self, package: str, python: str | None, seconds: float) -> None:
        self._package = package
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  closed with the server
        try:
            self._process = subprocess.Popen(
                [python or sys.executable, str(_RUNNER), package],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,
                start_new_session=True,  # Ctrl-C is for the owner, and the process group is killed at the end
            )
        except OSError as error:
            self._said.close()
            raise EnvError(f"cannot run {python} for the OpenEnv package {package}: {error}") from error
        self._end = weakref.finalize(self, _ended, self._process, self._said)
        try:
            self.url = f"http://127.0.0.1:{self._port(seconds)}"
        except BaseException:
            self.close()
            raise

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._end.alive and self._process.poll() is None

    def close(self) -> None:
        """End the server and all that it started."""
        self._end()

    def _port(self, seconds: float) -> int:
        """What the program writes once it answers."""
        output = self._process.stdout
        assert output is not None
        deadline, told = time.monotonic() + seconds, b""
        with output, selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            while not told.endswith(b"\n"):
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise EnvError(f"the OpenEnv package {self._package} did not start in {seconds:g} seconds")
                part = os.read(output.fileno(), 64)
                if not part:
                    raise EnvError(self._failure())
                told += part
        return int(told)

    def _failure(self) -> str:
        self._process.wait()
        size = self._said.seek(0, os.SEEK_END)
        self._said.seek(max(0, size - _SHOWN_BYTES))
        said = self._said.read().decode(errors="replace").strip()
        lines = said.splitlines()
        missing = next((line for line in lines if line.startswith("ModuleNotFoundError")), "")
        hint = f" Next: {install_line('openenv')}" if any(f"'{one}'" in missing for one in _NEEDED) else ""
        return f"the server of the OpenEnv package {self._package} ended: {missing or said}.{hint}"


_NEEDED = ("openenv", "uvicorn", "yaml")


def _ended(process: subprocess.Popen[bytes], said: IO[bytes]) -> None:
    """End the process through its standard input, and kill its group if that takes too long."""
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
    said.close()
