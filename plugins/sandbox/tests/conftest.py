"""A sandbox of each backend that this machine has."""

from collections.abc import Iterator

import pytest
from sandbox_processes import LIMITS, available, sandbox_of

from gem_sandbox import LocalSandbox
from gem_sandbox._backends import BACKENDS, SAFE


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return available(request.param)


@pytest.fixture(scope="module")
def sandbox(backend: str) -> Iterator[LocalSandbox]:
    with sandbox_of(backend) as one:
        yield one


@pytest.fixture(scope="module", params=SAFE)
def safe(request: pytest.FixtureRequest) -> Iterator[LocalSandbox]:
    with sandbox_of(request.param) as one:
        yield one


@pytest.fixture(scope="module")
def best() -> Iterator[LocalSandbox]:
    with LocalSandbox(limits=LIMITS) as one:
        yield one
