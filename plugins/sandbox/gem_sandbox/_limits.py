"""What one call may use."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gem_sandbox._errors import SandboxError

_DAY = 86_400
_MIB = 1 << 20
_TIB = 1 << 40
# A program file, three folders and a page or two: less disk than this starts nothing.
_MIN_DISK = 1 << 16


@dataclass(frozen=True)
class Limits:
    """What one call may use; in a session, what one `run` may use, and memory and disk for as long as it lives.

    Raises:
        SandboxError: a value that is no limit.
    """

    wall: float = 5.0
    """Seconds from start to end."""
    cpu: float | None = None
    """Seconds of CPU time of one process, with all its threads; counted in whole seconds, rounded up. By default as
    `wall`."""
    memory: int = 1 << 30
    """Bytes of address space of one process, on top of what the server has mapped (the interpreter and `preload`)."""
    processes: int = 64
    """Processes and threads at one time, the program itself among them."""
    disk: int = 64 << 20
    """Bytes that may be written: to all files together in the safe backends, to each file in `limits`."""
    output: int = 1 << 20
    """Bytes of stdout, and of stderr, that are kept: the first half and the last half. The rest is read and dropped."""

    def __post_init__(self) -> None:
        _check("wall", self.wall, "seconds", 0.001, _DAY)
        if self.cpu is not None:
            _check("cpu", self.cpu, "seconds", 0.001, _DAY)
        _check("memory", self.memory, "bytes", _MIB, 16 * _TIB)
        _check("processes", self.processes, "processes", 1, 1 << 16)
        _check("disk", self.disk, "bytes", _MIN_DISK, _TIB)
        _check("output", self.output, "bytes", 0, 1 << 30)

    @property
    def cpu_seconds(self) -> int:
        """Whole seconds of CPU time."""
        return math.ceil(self.wall if self.cpu is None else self.cpu)


def _check(name: str, value: object, unit: str, least: float, most: float) -> None:
    kinds = (int, float) if unit == "seconds" else (int,)
    if isinstance(value, bool) or not isinstance(value, kinds) or not least <= value <= most:
        whole = "" if unit == "seconds" else "a whole number of "
        raise SandboxError(f"Limits({name}={value!r}): give {whole}{unit}, from {least:g} to {most:g}")
