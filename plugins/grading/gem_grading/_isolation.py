"""What confines answers on this machine, in words, for `gem-core doctor`."""

from __future__ import annotations

from gem_core.specs import Isolation
from gem_grading.confinement import namespaces_allowed
from gem_sandbox import landlock, seccomp


def isolation() -> Isolation:
    """The isolation of answers. It tries namespaces in a process of its own."""
    confined = "answers while they are graded"
    if problem := seccomp.unavailable():
        return Isolation(confined, False, f"Nothing is graded: {problem}")
    means = [
        "one process per answer: an allow list of system calls (seccomp)",
        "installed packages to read (Landlock)" if landlock.version() else "no file to read, as there is no Landlock",
        "namespaces of its own" if namespaces_allowed() else "no namespaces, which are not allowed here",
    ]
    return Isolation(confined, True, ", ".join(means))
