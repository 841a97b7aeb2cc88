"""What an episode has left, as queries see it that cannot change anything.

The database may hold code of the policy's: views, functions, triggers, functions with the names of the system's.
Queries run as a role without rights of its own, in a transaction that only reads and cannot be made to write, and look
names up in the system's schema alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import psycopg

Rows: TypeAlias = Sequence[tuple[Any, ...]]

_TABLES = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY 1"
_COLUMNS = """
SELECT attname, format_type(atttypid, atttypmod), attnotnull, relkind
FROM pg_attribute JOIN pg_class ON attrelid = pg_class.oid
WHERE attrelid = to_regclass('public.{}') AND attnum > 0 AND NOT attisdropped ORDER BY attnum
""".strip()
_CONTENT = "SELECT count(*), md5(string_agg(t::text, chr(10) ORDER BY t::text)) FROM public.{} AS t"


class Snapshot:
    """A database at one moment.

    Args:
        connection: of the role that checks; its transaction begins here.
    """

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._connection = connection
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        connection.execute("SELECT 1")  # from now on the transaction cannot be made to write

    def tables(self) -> list[str]:
        """Names of the tables of the schema public."""
        return [name for (name,) in self._connection.execute(_TABLES).fetchall()]

    @staticmethod
    def all_of(table: str) -> list[str]:
        """Queries that show whether a table is as it was: its columns, and its rows in any order."""
        return [_COLUMNS.format(table), _CONTENT.format(table)]

    def rows(self, query: str, most: int = 10_000) -> Rows:
        """The first rows that a query finds. Raises `psycopg.Error`."""
        return self._connection.execute(f"SELECT * FROM ({query}) AS checked LIMIT {most}".encode()).fetchall()

    def difference(self, query: str, wanted: Rows) -> str | None:
        """How the rows of a query differ from those that it should find; `None` if they do not."""
        try:
            found = self.rows(query, len(wanted) + 1)
        except psycopg.Error as error:
            self._connection.execute("ROLLBACK")
            return f"{query}: {str(error).splitlines()[0]}"
        if list(found) == list(wanted):
            return None
        rows = "more" if len(found) > len(wanted) else str(len(found))
        return f"{query}: found {rows} rows, other than the {len(wanted)} that it should find"
