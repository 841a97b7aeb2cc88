"""Fixtures: the tests of a file share one server of programs."""

from collections.abc import Iterator

import pytest

from gem_support.programs import one_server


@pytest.fixture(scope="module", autouse=True)
def _one_server() -> Iterator[None]:
    with one_server():
        yield
