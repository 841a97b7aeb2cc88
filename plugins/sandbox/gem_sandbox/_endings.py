"""How what a process ran has ended, from what the kernel and the process itself say of it."""

from __future__ import annotations

import os
import signal

from gem_sandbox._call import RunningProcess, Turn
from gem_sandbox._execution import Ending, Execution
from gem_sandbox._limits import Limits
from gem_sandbox.messages import OUT_OF_MEMORY


def execution(call: RunningProcess, turn: Turn, limits: Limits) -> Execution:
    """What a program wrote, and how it ended."""
    cut = call.stdout.truncated, call.stderr.truncated
    stdout, stderr = call.stdout.take(), call.stderr.take()
    code, ending = ending_of(turn, limits)
    return Execution(stdout, stderr, code, ending, turn.seconds, *cut)


def ending_of(turn: Turn, limits: Limits) -> tuple[int | None, Ending]:
    """The exit code and the ending of what a process ran; see `Execution`."""
    out_of_memory = turn.report is not None and turn.report.kind == OUT_OF_MEMORY
    if turn.ended is None:
        assert turn.report is not None
        return _exit_code(turn.report.detail), "memory" if out_of_memory else "exit"
    code = os.waitstatus_to_exitcode(turn.ended.status)
    if turn.ended.too_large:
        return None, "memory"
    if code >= 0:
        return code, "memory" if out_of_memory and code == 1 else "exit"
    if code == -signal.SIGKILL and turn.late:
        return None, "timeout"
    # The kernel's own count may be ahead of what it tells.
    if code in {-signal.SIGXCPU, -signal.SIGKILL} and turn.ended.cpu >= limits.cpu_seconds / 2:
        return None, "timeout"
    return code, "killed"


def _exit_code(text: str) -> int:
    """As the session's process says, which may say anything."""
    return int(text) if text.isdecimal() and len(text) <= 3 else 1
