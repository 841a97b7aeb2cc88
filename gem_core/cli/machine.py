"""What this machine can do: confine untrusted code, and run a model on a GPU. Looks only; torch is not imported."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# Namespaces of its own, and the mapping without which they are useless (AppArmor may allow one and forbid the other).
# They end with the process.
_PROBE_NAMESPACES = """
import ctypes, os
user, mount, network, uid = 0x10000000, 0x00020000, 0x40000000, os.getuid()
if ctypes.CDLL(None, use_errno=True).unshare(user | mount | network):
    raise SystemExit("unshare: " + os.strerror(ctypes.get_errno()))
with open("/proc/self/uid_map", "w") as file:
    file.write(f"0 {uid} 1")
"""
_LIMITS = ("AS", "CPU", "FSIZE", "NOFILE", "NPROC")


@dataclass(frozen=True)
class Ability:
    """Something that a sandbox can build on."""

    name: str
    available: bool
    detail: str


def sandbox_abilities() -> list[Ability]:
    """What can confine untrusted code here. Starts two short processes at most, and leaves nothing behind."""
    return [bubblewrap(), user_namespaces(), seccomp(), resource_limits(), cgroup_v2()]


def bubblewrap() -> Ability:
    """Does `bwrap` start a process in a sandbox?"""
    path = shutil.which("bwrap")
    if path is None:
        return Ability("bubblewrap", False, "bwrap is not on PATH")
    problem = _problem([path, "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "true"])
    return Ability("bubblewrap", problem is None, problem or path)


def user_namespaces() -> Ability:
    """May this user make namespaces?"""
    if sys.platform != "linux":
        return Ability("user namespaces", False, "needs Linux")
    problem = _problem([sys.executable, "-I", "-S", "-c", _PROBE_NAMESPACES])
    return Ability("user namespaces", problem is None, problem or "user, mount and network")


def seccomp(status: Path = Path("/proc/self/status")) -> Ability:
    """Does the kernel filter system calls?"""
    fields = dict(line.split(":", 1) for line in _read(status).splitlines() if ":" in line)
    if "Seccomp" not in fields:
        return Ability("seccomp", False, f"no Seccomp in {status}")
    mode = {"0": "off", "1": "strict", "2": "filtering"}.get(fields["Seccomp"].strip(), "unknown")
    return Ability(
        "seccomp", True, f"now {mode} for this process, filters: {fields.get('Seccomp_filters', '?').strip()}"
    )


def resource_limits() -> Ability:
    """Are there resource limits, and which hold now?"""
    try:
        import resource
    except ImportError:
        return Ability("resource limits", False, "needs a POSIX system")

    def limit(name: str) -> str:
        soft, _ = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))
        return f"{name} {'unlimited' if soft == resource.RLIM_INFINITY else soft}"

    known = [name for name in _LIMITS if hasattr(resource, f"RLIMIT_{name}")]
    return Ability("resource limits", bool(known), ", ".join(map(limit, known)))


def cgroup_v2(mount: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> Ability:
    """Is there a cgroup v2 hierarchy, and may this user limit processes in it?"""
    controllers = _read(mount / "cgroup.controllers").split()
    if not controllers:
        return Ability("cgroup v2", False, f"no controllers in {mount}")
    group = next((line[3:] for line in _read(own).splitlines() if line.startswith("0::")), "/")
    writable = os.access(mount / group.lstrip("/") / "cgroup.procs", os.W_OK)
    return Ability(
        "cgroup v2", True, f"own group {'' if writable else 'not '}writable, controllers: {' '.join(controllers)}"
    )


def accelerator() -> dict[str, str | None]:
    """The versions that decide whether a model runs on a GPU; `None` for what is not here."""
    driver = re.search(r"Kernel Module.*?(\d[\d.]+)", _read(Path("/proc/driver/nvidia/version")))
    devices = sorted(path.name for path in Path("/dev").glob("nvidia[0-9]*"))
    return {
        "torch": distribution_version("torch"),
        "CUDA of torch": _cuda_of_torch(),
        "vllm": distribution_version("vllm"),
        "nvidia-smi": shutil.which("nvidia-smi"),
        "NVIDIA driver": driver[1] if driver else None,
        "GPUs": ", ".join(devices) or None,
    }


def distribution_version(name: str) -> str | None:
    """Version of an installed distribution."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cuda_of_torch() -> str | None:
    try:
        source = _read(Path(str(importlib.metadata.distribution("torch").locate_file("torch/version.py"))))
    except importlib.metadata.PackageNotFoundError:
        return None
    found = re.search(r"^cuda\b[^=]*=\s*['\"]([^'\"]+)", source, re.MULTILINE)
    return found[1] if found else None


def _problem(command: Sequence[str]) -> str | None:
    """Run a probe; why it failed, or `None`."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=10
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return None
    return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
