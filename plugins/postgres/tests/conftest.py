"""Databases for a module's tests."""

from collections.abc import Iterator

import pytest
from database_here import LONG, needs_a_database

import gem_core
from gem_postgres.env import PostgresEnv


@pytest.fixture(scope="module")
def env() -> Iterator[PostgresEnv]:
    """Our own tasks. A busy machine makes no statement late."""
    needs_a_database()
    with gem_core.make("postgres:Tasks-v0", timeout=LONG) as made:
        yield made
