"""What came of running a program."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Ending: TypeAlias = Literal["exit", "timeout", "memory", "killed", "lost"]
"""How a program ended:

- `exit`: by itself, with `exit_code`; so also after an exception.
- `timeout`: it had used up its wall time or CPU time.
- `memory`: a `MemoryError` that it did not catch.
- `killed`: by a signal that the sandbox did not send; a crash, or its own doing.
- `lost`: the sandbox failed, not the program; `stderr` says how.
"""


class Execution(NamedTuple):
    """What a program wrote and how it ended. Undecodable bytes are replaced."""

    stdout: str
    stderr: str
    exit_code: int | None
    """As a shell's `$?` for `exit` and `memory`, minus the signal's number for `killed`, `None` for the others."""
    ending: Ending
    seconds: float
    """Wall time."""
    stdout_truncated: bool = False
    """Whether something is left out; a line in its place says how much."""
    stderr_truncated: bool = False
    restarted: bool = False
    """In a session: the process of the runs before had ended, so that this one found nothing of theirs."""

    @property
    def succeeded(self) -> bool:
        """It ended by itself, with exit code 0."""
        return self.ending == "exit" and self.exit_code == 0
