"""What came of running a program."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Ending: TypeAlias = Literal["exit", "timeout", "memory", "killed"]
"""How a program ended:

- `exit`: by itself, with `exit_code`; so also after an exception.
- `timeout`: it had used up its wall time or CPU time.
- `memory`: a `MemoryError` that it did not catch; or all its processes together had used up its memory.
- `killed`: by a signal that the sandbox did not send; a crash, or its own doing.
"""


class Execution(NamedTuple):
    """What a program wrote and how it ended. Undecodable bytes are replaced."""

    stdout: str
    stderr: str
    exit_code: int | None
    """As a shell's `$?` where it ended by itself, minus the signal's number for `killed`, `None` where it was ended."""
    ending: Ending
    seconds: float
    """Wall time."""

    @property
    def exceeded_memory(self) -> bool:
        """It was ended because all its processes together exceeded the memory limit."""
        return self.ending == "memory" and self.exit_code is None

    stdout_truncated: bool = False
    """Whether something is left out; a line in its place says how much."""
    stderr_truncated: bool = False
    restarted: bool = False
    """In a session: the process of the runs before had ended, so that this one found nothing of theirs."""

    @property
    def succeeded(self) -> bool:
        """It ended by itself, with exit code 0."""
        return self.ending == "exit" and self.exit_code == 0
