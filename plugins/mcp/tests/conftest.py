"""Servers to test with, and a look for what they left behind."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gem_support.waiting import wait_until

pytest.importorskip("mcp.client", reason='needs pip install "gem-core[mcp]"')

from mcp_users import User

from gem_core.tools import Toolbox
from gem_support.ports import unused_port
from gem_support.processes import processes_with

HERE = Path(__file__).parent


def _marked() -> Iterator[str]:
    mark = f"marker-{secrets.token_hex(8)}"
    yield mark
    try:
        wait_until(lambda: not processes_with(mark))
    finally:
        for pid in processes_with(mark):
            os.kill(pid, signal.SIGKILL)


marker = pytest.fixture(_marked)
"""Something in the command line of each process that a test starts; none may be left."""
marker_for_module = pytest.fixture(_marked, scope="module")


@pytest.fixture
def use(marker: str) -> Iterator[Callable[..., User]]:
    """Open a toolbox and use it; it is closed after the test."""
    users: list[User] = []

    def used(*tools: Any, **settings: Any) -> User:
        users.append(User(Toolbox([*tools], **settings)))
        return users[-1]

    yield used
    for user in users:
        user.session.close()


@pytest.fixture
def sdk(marker: str) -> dict[str, Any]:
    """A server written with the SDK, as a process."""
    return _sdk(marker)


@pytest.fixture(scope="module")
def sdk_for_module(marker_for_module: str) -> dict[str, Any]:
    return _sdk(marker_for_module)


def _sdk(mark: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(HERE / "sdk_server.py"), "stdio", mark]}


@pytest.fixture
def raw(marker: str) -> Callable[..., dict[str, Any]]:
    """A server that behaves as its name says, as a process."""
    return lambda *kind: {"command": sys.executable, "args": [str(HERE / "raw_server.py"), *map(str, kind), marker]}


@pytest.fixture
def listen(marker: str) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start a program that listens on a port, and wait until it does."""
    started: list[subprocess.Popen[bytes]] = []

    def start(program: str, kind: str, port: int) -> subprocess.Popen[bytes]:
        arguments = [sys.executable, str(HERE / program), kind, str(port), marker]
        started.append(subprocess.Popen(arguments, stderr=subprocess.DEVNULL))
        wait_until(lambda: not socket.socket().connect_ex(("127.0.0.1", port)))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def port() -> int:
    return unused_port()
