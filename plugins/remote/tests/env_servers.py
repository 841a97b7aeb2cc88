"""Servers of environments, each a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).with_name("odd_server.py")


class Server:
    """`gem-core serve`, ready to be asked."""

    def __init__(self, *arguments: str, port: int = 0, token: str = "") -> None:
        command = [sys.executable, str(PROGRAM), "serve", *arguments, "--port", str(port)]
        environment = {**os.environ, "GEM_SERVE_TOKEN": token}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip().removeprefix("Listening at ")
        assert self.url.startswith("ws://"), "the server ended before it was ready"
        self.port = int(self.url.rpartition(":")[2])

    def health(self) -> dict[str, Any]:
        """What the server says of its sessions."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=240) as answer:
            return json.load(answer)

    @property
    def sessions(self) -> int:
        """Sessions whose environment is not closed yet."""
        return self.health()["sessions"]

    def end(self, how: signal.Signals = signal.SIGKILL) -> str:
        """Send a signal, wait for the end, and return what the server wrote to its log."""
        self.process.send_signal(how)
        _, log = self.process.communicate(timeout=240)
        return log


@contextlib.contextmanager
def serving(*arguments: str, port: int = 0, token: str = "") -> Iterator[Server]:
    """A server for the length of a block."""
    server = Server(*arguments, port=port, token=token)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.end()
