"""What tests of a module share: a terminal, and a container engine."""

from collections.abc import Iterator

import pytest
from containers_here import engine as engine
from sandbox_here import LONG, needs_a_sandbox

import gem_core
from gem_support.programs import one_server
from gem_terminal.env import _AT_ONE_TIME, TerminalEnv


@pytest.fixture(scope="module", autouse=True)
def _one_server() -> Iterator[None]:
    with one_server(concurrency=_AT_ONE_TIME):
        yield


@pytest.fixture(scope="module")
def terminal() -> Iterator[TerminalEnv]:
    """Our own tasks. A busy machine makes no command late."""
    needs_a_sandbox()
    with gem_core.make("terminal:Tasks-v0", timeout=LONG) as env:
        yield env
