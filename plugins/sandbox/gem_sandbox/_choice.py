"""Which backend is used: the one asked for, or the first of the safe ones that runs a program here."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import shutil
import sys
import threading

from gem_core.errors import OUT_OF_ROOM
from gem_sandbox import seccomp
from gem_sandbox._backends import BACKENDS, SAFE
from gem_sandbox._call import NotStarted, RunningProcess
from gem_sandbox._errors import SandboxError
from gem_sandbox._limits import Limits
from gem_sandbox._pool import ProgramServer, Settings
from gem_sandbox._source import sealed
from gem_sandbox.forkserver import ServerLost
from gem_sandbox.serving import MIN_FILES

_TRIAL_SECONDS = 30.0
_OLDEST_KERNEL = (5, 14)
"""The first that counts processes per user namespace."""
_ADVICE = (
    "Where it is namespaces that are missing: install bubblewrap (0.5 or newer), or allow user namespaces "
    "(kernel.unprivileged_userns_clone=1, user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns=0, "
    "a container's seccomp profile), or use a remote sandbox. allow_unsafe=True accepts one that keeps out accidents "
    "only."
)
_found: dict[str, str | None] = {}
_lock = threading.Lock()


def check(backend: str, allow_unsafe: bool) -> None:
    """Raises `SandboxError` for a backend that can never be used as asked."""
    if backend not in ("auto", *BACKENDS):
        raise SandboxError(f"no backend {backend!r}: there are 'auto', {', '.join(map(repr, BACKENDS))}")
    if backend == "limits" and not allow_unsafe:
        raise SandboxError(
            "the backend 'limits' is unsafe: it keeps programs from accidents, not from what they set their minds to. "
            "Use 'auto', or accept that with allow_unsafe=True."
        )


def chosen(backend: str, *, allow_unsafe: bool) -> str:
    """The backend that is used where this one is asked for.

    Raises:
        SandboxError: it does not work here, or, for `auto`, none does that is allowed.
    """
    if backend != "auto":
        if problem := problems(backend):
            raise SandboxError(f"the backend {backend!r} does not work here: {problem}. {_ADVICE}")
        return backend
    found = {name: problems(name) for name in (BACKENDS if allow_unsafe else SAFE)}
    for name, problem in found.items():
        if problem is None:
            return name
    reasons = "; ".join(f"{name}: {problem}" for name, problem in found.items())
    raise SandboxError(f"no backend works here that would be safe: {reasons}. {_ADVICE}")


def problems(backend: str) -> str | None:
    """Why a backend does not work here, found out by running a program in it once; `None` where it does.

    Raises:
        OSError: the machine has no room to find out now.
    """
    with _lock:
        if backend not in _found:
            _found[backend] = _needs(backend) or _try(backend)
        return _found[backend]


def _needs(backend: str) -> str | None:
    if sys.platform != "linux":
        return "needs Linux"
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < MIN_FILES:
        return f"needs {MIN_FILES} file descriptors, and this process may have {hard}: raise its limit (ulimit -Hn)"
    if problem := seccomp.unavailable():
        return problem
    if backend in SAFE and _kernel_version() < _OLDEST_KERNEL:
        return f"needs Linux {'.'.join(map(str, _OLDEST_KERNEL))}, this is {os.uname().release}"
    if backend == "bubblewrap" and shutil.which("bwrap") is None:
        return "bwrap is not on PATH"
    return None


def _try(backend: str) -> str | None:
    try:
        server = ProgramServer(Settings(backend, (), 1))
    except (SandboxError, OSError) as error:
        if isinstance(error, OSError) and error.errno in OUT_OF_ROOM:
            raise
        return str(error)
    try:
        with (
            sealed("") as nothing,
            contextlib.closing(RunningProcess(server, Limits(wall=_TRIAL_SECONDS), session=False)) as call,
        ):
            call.give(nothing, nothing)
            turn = call.wait()
            return None if turn.ended and turn.ended.status == 0 else call.stderr.take()
    except NotStarted as error:
        return str(error)
    except ServerLost:
        return "its server died"
    finally:
        server.end()


def _kernel_version() -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
