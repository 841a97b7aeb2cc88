"""How a template is started: in a view of the file system of its own, by bubblewrap or by our own launcher, or not."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import threading
from pathlib import Path

from gem_core.errors import SandboxError
from gem_sandbox import seccomp
from gem_sandbox.view import BOX, DEVICES, PACKAGE_FOLDER, view

SAFE = ("bubblewrap", "namespaces")
UNSAFE = "limits"
BACKENDS = (*SAFE, UNSAFE)

_TEMPLATE = "import sys; sys.path[0] = {!r}; from gem_sandbox.template import main; main()"
_LAUNCHER = "import sys; sys.path.insert(0, {!r}); from gem_sandbox.launcher import main; main()"
_OLDEST_KERNEL = (5, 14)
"""The first that counts processes per user namespace."""
_ADVICE = (
    "Install bubblewrap (0.5 or newer), or allow user namespaces (kernel.unprivileged_userns_clone=1, "
    "user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns=0, a container's seccomp profile), "
    "or use a remote sandbox. allow_unsafe=True accepts one that keeps out accidents only."
)
_found: dict[str, str | None] = {}
_lock = threading.Lock()
_HERE = str(Path(__file__).parents[1])


def command(backend: str, file: int) -> list[str]:
    """What starts a template that serves the socket with this file descriptor."""
    folder = PACKAGE_FOLDER if backend in SAFE else _HERE
    template = [sys.executable, "-c", _TEMPLATE.format(folder), str(file)]
    if backend == "bubblewrap":
        return [*_bubblewrap(), *template]
    if backend == "namespaces":
        task = json.dumps([view(), template])
        return [sys.executable, "-I", "-S", "-c", _LAUNCHER.format(_HERE), task]
    return template


def _bubblewrap() -> list[str]:
    seen = view()
    binds = [word for path, source in seen.binds.items() for word in ("--ro-bind", source, path)]
    # Or they would be for root alone.
    above = sorted({str(folder) for path in [*seen.binds, *seen.links] for folder in Path(path).parents} - {"/"})
    folders = [word for path in above for word in ("--perms", "0755", "--dir", path)]
    links = [word for path, target in seen.links.items() for word in ("--symlink", target, path)]
    devices = [word for path in DEVICES for word in ("--dev-bind", path, path)]
    # The template makes itself a user that is not root, and sets up user namespaces through /proc.
    root = ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"] if os.geteuid() == 0 else []
    return [
        str(shutil.which("bwrap")), "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", *root, *folders,
        *links, *binds, *devices, "--dir", BOX, "--bind", "/proc", "/proc", "--remount-ro", "/", "--chdir", "/", "--",
    ]  # fmt: skip


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
    """Why a backend does not work here, found out by running a program in it once; `None` where it does."""
    with _lock:
        if backend not in _found:
            _found[backend] = _needs(backend) or _try(backend)
        return _found[backend]


def _needs(backend: str) -> str | None:
    if sys.platform != "linux":
        return "needs Linux"
    if problem := seccomp.unavailable():
        return problem
    if backend in SAFE and _kernel_version() < _OLDEST_KERNEL:
        return f"needs Linux {'.'.join(map(str, _OLDEST_KERNEL))}, this is {os.uname().release}"
    if backend == "bubblewrap" and shutil.which("bwrap") is None:
        return "bwrap is not on PATH"
    return None


def _try(backend: str) -> str | None:
    from gem_sandbox.trial import trial

    return trial(backend)


def _kernel_version() -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
