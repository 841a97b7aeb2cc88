"""The address that a command listens at, and the signal that ends it."""

from __future__ import annotations

import os
import signal
import socket
import sys
from types import FrameType
from typing import NoReturn

from gem_core.errors import GemError


def bound_socket(host: str, port: int, error_type: type[GemError], *, listen: bool = False) -> socket.socket:
    """A TCP socket bound to an address.

    Args:
        host: a name or an IP address of this machine.
        port: 0 takes any that is free.
        error_type: what is raised.
        listen: also listen, so that connections wait until they are accepted.

    Raises:
        GemError: of that type; there is no such address here, or the port is taken.
    """
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # The protocol is named because asyncio sends small packets without delay only if it can see that this is TCP.
        address = socket.socket(family, kind, protocol)
    except OSError as error:
        raise error_type(f"there is no address {host!r} here: {error.strerror or error}") from error
    try:
        address.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        address.bind(place)
        if listen:
            address.listen()
    except OSError as error:
        address.close()
        reason = os.strerror(error.errno) if error.errno else error
        raise error_type(f"cannot listen at {host}:{port}: {reason}. Next: another --port, or 0 for any") from error
    return address


def end_on_sigterm() -> None:
    """Let SIGTERM raise `SystemExit`, so that the process cleans up as it does after Ctrl-C."""
    signal.signal(signal.SIGTERM, _exit)


def _exit(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(0)
