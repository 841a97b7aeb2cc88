"""Ports for processes that meet at one that is agreed upon before any of them has it."""

from __future__ import annotations

import random
import socket
from pathlib import Path

_HANDED_OUT = Path("/proc/sys/net/ipv4/ip_local_port_range")
_PRIVILEGED = 1024


def unused_port() -> int:
    """A port of 127.0.0.1 that nobody listens at.

    It is none that the system hands out by itself: those may be given to any other process before it is bound.

    Raises:
        OSError: a hundred ports were taken.
    """
    first = int(_HANDED_OUT.read_text().split()[0])
    for port in random.SystemRandom().sample(range(_PRIVILEGED, first), 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no port is free")
