"""Shared by all tests."""

import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

# A busy machine makes no test wrong.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.fixture(scope="module", autouse=True)
def _grading_ends_with_its_tests() -> Iterator[None]:
    """Other tests look for processes that were left behind."""
    yield
    if grading := sys.modules.get("gem_grading.grading"):
        grading.close_server()
