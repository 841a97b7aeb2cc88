"""Whether this machine has a sandbox for shells."""

import pytest

from gem_sandbox._backends import SAFE
from gem_sandbox._choice import problems

LONG = 240.0
"""Seconds that only a hang takes."""


def needs_a_sandbox() -> None:
    """Skip where there is none."""
    if all(problems(backend) for backend in SAFE):
        pytest.skip("no backend gives a process a root of its own here")
