"""Tasks: what is to be done in which database, and how it is checked."""

from __future__ import annotations

import functools
import importlib.resources
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gem_postgres._cluster import Cluster
from gem_postgres._host import OWNERS, Host
from gem_postgres._slot import Slot
from gem_postgres._snapshot import Rows

DATABASES = ("library", "warehouse", "school")
"""Our own databases."""


class PostgresTask(ABC):
    """What is to be done in a database."""

    name: str
    instruction: str
    template: str
    """The name of the database at the start: letters, digits and `_`. Tasks with the same start share it."""
    makes_roles: bool = False
    """Whether the task is about roles, so that its episodes need a database server of their own."""

    @abstractmethod
    def fill(self, cluster: Cluster, database: str) -> None:
        """Make the start in an empty database. Raises `psycopg.Error` or `EnvError`."""

    @abstractmethod
    def problem(self, host: Host, slot: Slot) -> str | None:
        """What is wrong with what an episode has left; `None` if nothing is."""


@dataclass(frozen=True)
class OwnTask(PostgresTask):
    """A task with a reference solution. Queries must find in the final database what they find after the solution."""

    name: str
    instruction: str
    template: str
    solution: Sequence[str]
    """Statements. Only their effect counts; other statements may lead there, too."""
    checks: Sequence[str]
    """Queries whose rows must be the same."""
    changes: Sequence[str] = field(default=())
    """Tables that the solution changes. Any other must be what it was at the start."""

    def fill(self, cluster: Cluster, database: str) -> None:
        """Run the script of the database."""
        script = importlib.resources.files("gem_postgres").joinpath(f"data/{self.template}.sql").read_bytes()
        with cluster.connect(database) as connection:
            connection.execute(script)

    def problem(self, host: Host, slot: Slot) -> str | None:
        """Compare with the reference: the queries of the task, and the tables that it leaves alone."""
        reference = host.remembered(self.name, self._reference)
        with host.snapshot(slot.name) as left:
            for query, rows in reference.items():
                if (problem := left.difference(query, rows)) is not None:
                    return problem
        return None

    def _reference(self, host: Host) -> Mapping[str, Rows]:
        """The rows that each query has to find. The first ones read only what the system says about the tables."""
        with host.copy(self.template) as name:
            with host.snapshot(name) as start:
                before = {table: start.rows(start.columns_of(table)) for table in start.tables()}
            with host.cluster.connect(name, options=f"-c role={OWNERS}") as connection:
                for statement in self.solution:
                    connection.execute(statement.encode())
            with host.snapshot(name) as wanted:
                columns = {wanted.columns_of(table): rows for table, rows in before.items()}
                same = [query for query, rows in columns.items() if wanted.rows(query) == rows]
                kept = [wanted.content_of(table) for table in before if table not in self.changes]
                queries = [wanted.shapes_of(wanted.tables()), *same, *self.checks, *kept]
                return {query: wanted.rows(query) for query in queries}


@functools.lru_cache(maxsize=1)
def own_tasks() -> Mapping[str, OwnTask]:
    """Our own tasks by name."""
    text = importlib.resources.files("gem_postgres").joinpath("data/tasks.json").read_text(encoding="utf-8")
    rows: list[dict[str, Any]] = json.loads(text)
    return {
        row["name"]: OwnTask(
            row["name"], row["instruction"], row["database"], row["solution"], row["checks"], row["changes"]
        )
        for row in rows
    }
