"""What an episode has left, as queries see it that cannot change anything.

The database may hold code of the policy's: views, functions, triggers, functions with the names of the system's.
Queries run as a role without rights of its own, in a transaction that only reads and cannot be made to write, and look
names up in the system's schema alone. Each begins without what the one before it may have set.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import psycopg

Rows: TypeAlias = Sequence[tuple[Any, ...]]

_TABLES = """
SELECT c.relname FROM pg_catalog.pg_class AS c
WHERE c.relnamespace = 'public'::pg_catalog.regnamespace AND c.relkind = 'r' ORDER BY 1
""".strip()
_SHAPES = """
SELECT c.relname, c.relkind, c.relrowsecurity, c.relforcerowsecurity, c.relhasrules FROM pg_catalog.pg_class AS c
WHERE c.relnamespace = 'public'::pg_catalog.regnamespace AND c.relname IN ({}) ORDER BY 1
""".strip()
_COLUMNS = """
SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attgenerated
FROM pg_catalog.pg_attribute AS a
WHERE a.attrelid = pg_catalog.to_regclass('public.{}') AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
""".strip()
# A row is not cast to text: its type is the policy's, who may say how it is cast.
_CONTENT = """
SELECT pg_catalog.count(*), pg_catalog.md5(pg_catalog.string_agg(t.line, '\n' ORDER BY t.line))
FROM (SELECT pg_catalog.textin(pg_catalog.record_out(r)) AS line FROM public.{} AS r) AS t
""".strip()


class Snapshot:
    """A database at one moment. Nobody else may change it meanwhile.

    Args:
        connection: of the role that checks, without a transaction.
    """

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._connection = connection

    def tables(self) -> list[str]:
        """Names of the tables of the schema public."""
        return [name for (name,) in self.rows(_TABLES)]

    @staticmethod
    def shapes_of(tables: Sequence[str]) -> str:
        """A query that shows whether these are tables, and show their own rows. It runs no code of the policy's."""
        return _SHAPES.format(", ".join(f"'{table}'" for table in tables))

    @staticmethod
    def columns_of(table: str) -> str:
        """A query that shows the columns of a table. It runs no code of the policy's."""
        return _COLUMNS.format(table)

    @staticmethod
    def content_of(table: str) -> str:
        """A query that shows whether the rows of a table are what they were, in any order."""
        return _CONTENT.format(table)

    def rows(self, query: str, most: int = 10_000) -> Rows:
        """The first rows that a query finds. Raises `psycopg.Error`."""
        self._begin()
        return self._connection.execute(f"SELECT * FROM ({query}) AS checked LIMIT {most}".encode()).fetchall()

    def difference(self, query: str, wanted: Rows) -> str | None:
        """How the rows of a query differ from those that it should find; `None` if they do not.

        Raises:
            psycopg.Error: the connection is lost.
        """
        try:
            found = self.rows(query, len(wanted) + 1)
        except psycopg.errors.AdminShutdown:  # only this server's owner ends connections
            return f"{query}: the check took too long"
        except psycopg.Error as error:
            if self._connection.broken:
                raise
            return f"{query}: {str(error).splitlines()[0]}"
        if list(found) == list(wanted):
            return None
        rows = "more" if len(found) > len(wanted) else str(len(found))
        return f"{query}: found {rows} rows, other than the {len(wanted)} that it should find"

    def _begin(self) -> None:
        """Forget the settings of the last query, and begin a transaction."""
        self._connection.execute("ROLLBACK")
        self._connection.execute("DISCARD ALL")
        # After the first SELECT the transaction cannot be made to write any more.
        self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT 1")
