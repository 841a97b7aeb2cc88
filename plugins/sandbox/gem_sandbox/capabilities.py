"""What this machine has for a sandbox to build on, as `gem-core doctor` shows it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from gem_core.specs import Capability, Isolation
from gem_sandbox import _backends as backends
from gem_sandbox import _choice as choice
from gem_sandbox import landlock
from gem_sandbox import seccomp as filters
from gem_sandbox._errors import SandboxError

_LIMITS = ("AS", "CPU", "FSIZE", "NOFILE", "NPROC")


def capabilities() -> list[Capability]:
    """What can confine programs here. Runs an empty one in each of the safe backends, and leaves nothing behind."""
    return [*map(_backend, backends.SAFE), _unsafe(), seccomp(), _landlock(), resource_limits(), cgroup_v2(), _choice()]


def isolation() -> Isolation:
    """What confines programs here, in words."""
    confined = "programs that a policy wrote"
    try:
        backend = choice.chosen("auto", allow_unsafe=False)
    except SandboxError as error:
        return Isolation(confined, False, f"Programs do not run: {error}")
    return Isolation(
        confined,
        True,
        f"{backend}: each program has its own processes, files in memory, and no network; seccomp filters its system "
        "calls, and a watcher ends it above its memory limit",
    )


def seccomp(status: Path = Path("/proc/self/status")) -> Capability:
    """Does the kernel filter system calls, and have we a list of them for this machine?"""
    if sys.platform != "linux":
        return Capability("seccomp", False, "needs Linux")
    fields = dict(line.split(":", 1) for line in _read(status).splitlines() if ":" in line)
    if "Seccomp" not in fields:
        return Capability("seccomp", False, f"no Seccomp in {status}")
    mode = {"0": "off", "1": "strict", "2": "filtering"}.get(fields["Seccomp"].strip(), "unknown")
    problem = filters.unavailable()
    return Capability("seccomp", problem is None, problem or f"now {mode} for this process")


def resource_limits() -> Capability:
    """Are there resource limits, and which hold now?"""
    try:
        import resource
    except ImportError:
        return Capability("resource limits", False, "needs a POSIX system")

    def limit(name: str) -> str:
        soft, _ = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))
        return f"{name} {'unlimited' if soft == resource.RLIM_INFINITY else soft}"

    known = [name for name in _LIMITS if hasattr(resource, f"RLIMIT_{name}")]
    return Capability("resource limits", bool(known), ", ".join(map(limit, known)))


def cgroup_v2(mount: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> Capability:
    """Is there a cgroup v2 hierarchy, and may this user limit processes in it? No backend uses it yet."""
    controllers = _read(mount / "cgroup.controllers").split()
    if not controllers:
        return Capability("cgroup v2", False, f"no controllers in {mount}")
    group = next((line[3:] for line in _read(own).splitlines() if line.startswith("0::")), "/")
    writable = os.access(mount / group.lstrip("/") / "cgroup.procs", os.W_OK)
    return Capability(
        "cgroup v2", True, f"own group {'' if writable else 'not '}writable, controllers: {' '.join(controllers)}"
    )


def _backend(name: str) -> Capability:
    problem = choice.problems(name)
    return Capability(name, problem is None, problem or "runs programs")


def _unsafe() -> Capability:
    detail = "UNSAFE: keeps out accidents but no attacker; used only with allow_unsafe=True"
    return Capability(backends.UNSAFE, sys.platform == "linux", detail)


def _landlock() -> Capability:
    version = landlock.version() if sys.platform == "linux" else 0
    return Capability(
        "landlock", version > 0, f"version {version}" if version else "the kernel has none, or has it off"
    )


def _choice() -> Capability:
    try:
        return Capability("sandbox", True, f"LocalSandbox uses {choice.chosen('auto', allow_unsafe=False)}")
    except SandboxError as error:
        return Capability("sandbox", False, str(error))


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
