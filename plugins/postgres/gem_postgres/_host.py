"""The databases of a process: templates, copies made ahead, and the slots in which episodes have them."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import psycopg

from gem_core.errors import EnvError
from gem_core.tool import Function
from gem_postgres._cluster import Cluster
from gem_postgres._slot import Slot
from gem_postgres._snapshot import Snapshot

_T = TypeVar("_T")

OWNERS = "owners"
"""The role that owns what is in a template. Slots' roles are members, so they may change it, also with `ALTER`."""
CHECKER = "checker"
"""The role that looks at what an episode has left."""
_WORKERS = 2
_GRACE_SECONDS = 10.0
"""A check may take as long as a statement, and so much longer."""
_NOBODY_ENDS_ANOTHER = """
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_terminate_backend(integer, bigint), pg_catalog.pg_cancel_backend(integer)
FROM PUBLIC
"""
"""Otherwise code that the checker runs for one episode could end the checks of others."""
_END_CONNECTIONS = """
SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = %s AND usename = %s
"""
_MEMBERS = (
    "SELECT quote_ident(pg_get_userbyid(member)) FROM pg_auth_members "
    "WHERE pg_get_userbyid(roleid) = %s AND member <> %s::regrole"
)

_ROLES_MADE = f"""
SELECT quote_ident(rolname) FROM pg_roles
WHERE rolname !~ '^pg_' AND NOT rolsuper AND rolname NOT IN ('{OWNERS}', '{CHECKER}', %s)
"""
_WITHOUT_PROGRAMS = """
SET allow_system_table_mods = on;
DELETE FROM pg_authid
WHERE rolname IN ('pg_execute_server_program', 'pg_read_server_files', 'pg_write_server_files');
RESET allow_system_table_mods
"""
"""Until PostgreSQL 16, who may make roles may also grant those that run programs. Here they do not exist."""

Fill = Callable[[Cluster, str], None]
"""Fills an empty database, given the server and the database's name."""


class Host:
    """One server of PostgreSQL with all that the environments of this process have in it.

    A reset renames a copy that was made before; another copy is then made in the background.

    Args:
        timeout: seconds of a statement.
        makes_roles: whether slots' roles may make roles.
    """

    def __init__(self, timeout: float, makes_roles: bool = False) -> None:
        self.cluster = Cluster()
        self._makes_roles = makes_roles
        self._timeout = timeout
        self._lock = threading.RLock()
        self._numbers = itertools.count()
        self._slots: list[Slot] = []
        self._free: list[Slot] = []
        self._templates: dict[str, threading.Lock] = defaultdict(threading.Lock)
        self._made: set[str] = set()
        self._spares: dict[str, list[str]] = defaultdict(list)
        self._wanted: Counter[str] = Counter()
        """Copies of each template that are to be kept ahead: as many as were once missing."""
        self._coming: Counter[str] = Counter()
        self._remembered: dict[str, Any] = {}
        self._making: dict[str, threading.Lock] = defaultdict(threading.Lock)
        self._functions: Sequence[Function] = ()
        self._work = ThreadPoolExecutor(_WORKERS, "gem-postgres")
        self._jobs: set[Future[None]] = set()
        try:
            self._make_roles()
        except BaseException:
            self.close()
            raise

    @property
    def functions(self) -> Sequence[Function]:
        """What the MCP server offers.

        Raises:
            EnvError: it does not start.
        """
        with self._lock:
            if not self._functions:
                slot = self._taken()
                try:
                    self._functions = slot.open()
                finally:
                    self._free.append(slot)
            return self._functions

    def prepare(self, template: str, fill: Fill) -> None:
        """Make a template, unless there is one of that name.

        Args:
            template: a name of letters, digits and `_`.
            fill: makes the tables.
        """
        with self._templates[template]:
            if template in self._made:
                return
            with _as_env_error(f"the data of {template!r} could not be loaded"):
                name = f"template_{template}"
                self.cluster.execute(f"DROP DATABASE IF EXISTS {name}")
                self.cluster.execute(f"CREATE DATABASE {name} TEMPLATE template0")
                fill(self.cluster, name)
                self._hand_over(name)
                self.cluster.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false")
            self._made.add(template)

    def begin(self, template: str) -> Slot:
        """A slot with a database that equals the template.

        Raises:
            EnvError: the server has ended, or cannot make one.
        """
        with _as_env_error("no database could be made"):
            slot = self._taken()
            try:
                self._place(self._spare(template), slot.name)
            except BaseException:
                self.end(slot)
                raise
        return slot

    def settle(self, slot: Slot) -> None:
        """End what an episode still has running, and let nothing else begin."""
        with _as_env_error("the database of an episode could not be settled"):
            self.cluster.execute(f"REVOKE CONNECT ON DATABASE {slot.name} FROM {slot.name}")
            self.cluster.execute(_END_CONNECTIONS, (slot.name, slot.name))
        slot.probe()

    def end(self, slot: Slot) -> None:
        """Throw the database of a settled slot away; another episode may have the slot."""
        trash = f"trash_{next(self._numbers)}"
        try:
            self.cluster.execute(_END_CONNECTIONS, (slot.name, CHECKER))
            self.cluster.execute(f"ALTER DATABASE {slot.name} RENAME TO {trash}")
        except psycopg.errors.InvalidCatalogName:
            pass  # it never got one
        except (psycopg.Error, EnvError):
            return  # the name is still taken, so nobody else may have the slot
        else:
            self._later(lambda: self.cluster.execute(f"DROP DATABASE {trash} WITH (FORCE)"))
        with self._lock:
            self._free.append(slot)

    @contextlib.contextmanager
    def copy(self, template: str) -> Generator[str]:
        """The name of a copy of a template, which is thrown away afterwards."""
        with _as_env_error("no database could be made"):
            name = self._copied(template)
            try:
                yield name
            finally:
                self.cluster.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    @contextlib.contextmanager
    def snapshot(self, database: str) -> Generator[Snapshot]:
        """A database as it is now."""
        options = f"-c search_path=pg_catalog,pg_temp -c statement_timeout={int(self._timeout * 1000)}"
        with _as_env_error("what an episode has left could not be checked"):
            connection = self.cluster.connect(database, CHECKER, options=options, prepare_threshold=None)
            pid = connection.info.backend_pid
            limit = threading.Timer(self._timeout + _GRACE_SECONDS, self._end_connection, (pid,))
            limit.daemon = True
            limit.start()
            try:
                yield Snapshot(connection)
            finally:
                limit.cancel()
                connection.close()

    def _end_connection(self, pid: int) -> None:
        """Code of a policy's can catch the end of its statement's time, but not the end of its connection."""
        with contextlib.suppress(psycopg.Error, EnvError):
            self.cluster.execute("SELECT pg_terminate_backend(%s)", (pid,))

    @contextlib.contextmanager
    def opened_again(self, slot: Slot) -> Generator[None]:
        """Let a settled slot's role in once more, without settings, and with the rights of the roles that were made."""
        with _as_env_error("what an episode has left could not be checked"):
            # A schema of the role's name would come first in its path.
            self.cluster.execute(
                f"ALTER ROLE {slot.name} RESET ALL; ALTER ROLE {slot.name} IN DATABASE {slot.name} RESET ALL; "
                f"ALTER ROLE {slot.name} IN DATABASE {slot.name} SET search_path = public; "
                f"GRANT CONNECT ON DATABASE {slot.name} TO {slot.name}"
            )
            if self._makes_roles:
                for (role,) in self.cluster.execute(_ROLES_MADE, (slot.name,)):
                    self.cluster.execute(f"GRANT {role} TO {slot.name}")
            yield
            self.cluster.execute(_END_CONNECTIONS, (slot.name, slot.name))

    def remembered(self, name: str, make: Callable[[Host], _T]) -> _T:
        """Something that is made once for this server."""
        with self._making[name]:
            if name not in self._remembered:
                self._remembered[name] = make(self)
            return self._remembered[name]

    def wait(self) -> None:
        """Wait for what is being done in the background."""
        while jobs := [*self._jobs]:
            for job in jobs:
                job.result()

    def close(self) -> None:
        """End all servers. Safe to call twice."""
        self._work.shutdown(wait=True, cancel_futures=True)
        if self._slots:
            with ThreadPoolExecutor(len(self._slots)) as pool:  # each waits for its server to end
                list(pool.map(Slot.close, self._slots))
        self._slots, self._free = [], []
        self.cluster.close()

    def _make_roles(self) -> None:
        with _as_env_error("the database server could not be prepared"):
            self.cluster.execute(f"CREATE ROLE {OWNERS}; CREATE ROLE {CHECKER} LOGIN IN ROLE {OWNERS}")
            self.cluster.execute("REVOKE CONNECT ON DATABASE postgres, template1 FROM PUBLIC")
            if self._makes_roles:
                self.cluster.execute(_WITHOUT_PROGRAMS)

    # -- slots -------------------------------------------------------------------------------------------------------

    def _taken(self) -> Slot:
        with self._lock:
            if self._free:
                return self._free.pop()
            slot = Slot(len(self._slots), str(self.cluster.socket), self._timeout)
            self._slots.append(slot)
        # The checker must be able to read what the slot's role makes.
        rights = "LOGIN CREATEROLE" if self._makes_roles else "LOGIN"
        self.cluster.execute(f"CREATE ROLE {slot.name} {rights} IN ROLE {OWNERS} ROLE {CHECKER}")
        self._later(slot.open)
        return slot

    def _place(self, spare: str, name: str) -> None:
        """Give a spare the name of a slot, and the slot's role what it may do there."""
        for (member,) in self.cluster.execute(_MEMBERS, (name, CHECKER)):
            self.cluster.execute(f"REVOKE {name} FROM {member}")
        # What the role may have changed about itself lasts longer than a database. It can also name a spare in it.
        self.cluster.execute(
            f"GRANT {name} TO {CHECKER}; ALTER ROLE {name} RESET ALL; ALTER DATABASE {spare} RENAME TO {name}; "
            f"ALTER ROLE {name} IN DATABASE {name} RESET ALL; "
            f"GRANT CONNECT, TEMPORARY, CREATE ON DATABASE {name} TO {name}"
        )
        if self._makes_roles:  # roles that the task makes have to come in, too
            self.cluster.execute(f"GRANT CONNECT ON DATABASE {name} TO PUBLIC")

    # -- copies ------------------------------------------------------------------------------------------------------

    def _spare(self, template: str) -> str:
        with self._lock:
            found = self._spares[template].pop(0) if self._spares[template] else None
            self._wanted[template] += found is None
            missing = self._wanted[template] - len(self._spares[template]) - self._coming[template]
            self._coming[template] += missing
        for _ in range(missing):
            self._later(lambda: self._add_spare(template))
        return self._copied(template) if found is None else found

    def _add_spare(self, template: str) -> None:
        try:
            name = self._copied(template)
            with self._lock:
                self._spares[template].append(name)
        finally:
            with self._lock:
                self._coming[template] -= 1

    def _copied(self, template: str) -> str:
        name = f"spare_{next(self._numbers)}"
        self.cluster.execute(f"CREATE DATABASE {name} TEMPLATE template_{template} STRATEGY file_copy")
        self.cluster.execute(
            f"REVOKE ALL ON DATABASE {name} FROM PUBLIC; GRANT CONNECT ON DATABASE {name} TO {CHECKER}"
        )
        return name

    def _hand_over(self, name: str) -> None:
        """Let the owners have all that is in a database; copies keep their owners."""
        with self.cluster.connect(name) as connection:
            for (statement,) in connection.execute(_HAND_OVER).fetchall():
                connection.execute(statement)
            connection.execute(_NOBODY_ENDS_ANOTHER)
            connection.execute("ANALYZE")

    def _later(self, job: Callable[[], object]) -> None:
        """Do it in the background. What fails there is noticed by whoever needs the result."""

        def done() -> None:
            with contextlib.suppress(psycopg.Error, EnvError):
                job()

        with contextlib.suppress(RuntimeError):  # at the end of the process nothing begins any more
            future = self._work.submit(done)
            self._jobs.add(future)
            future.add_done_callback(self._jobs.discard)


_HAND_OVER = f"""
SELECT format('ALTER SCHEMA %I OWNER TO {OWNERS}', nspname) FROM pg_namespace
WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
UNION ALL
SELECT format('ALTER %s %I.%I OWNER TO {OWNERS}', CASE relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW'
    WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, nspname, relname)
FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' AND relkind IN ('r', 'p', 'v', 'm', 'S')
    AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = c.oid AND deptype IN ('a', 'i', 'e'))
UNION ALL
SELECT format('ALTER ROUTINE %I.%I(%s) OWNER TO {OWNERS}', nspname, proname, pg_get_function_identity_arguments(p.oid))
FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace
WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
    AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = p.oid AND deptype = 'e')
UNION ALL
SELECT format('ALTER TYPE %I.%I OWNER TO {OWNERS}', nspname, typname)
FROM pg_type t JOIN pg_namespace n ON n.oid = typnamespace
WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' AND typtype IN ('e', 'd')
    AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = t.oid AND deptype = 'e')
"""
"""Statements that give everything in a database to the owners. A sequence of a column follows its table."""


@contextlib.contextmanager
def _as_env_error(what: str) -> Generator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise EnvError(f"{what}: {str(error).strip()}") from error


# -- one for all environments of a process ---------------------------------------------------------------------------

_shared: dict[str, tuple[Host, set[str]]] = {}
"""Hosts by their kind, each with its users."""
_shared_lock = threading.RLock()


def attach(user: str, timeout: float) -> Host:
    """This process's host; the first user starts it, and so does the first one after its server has ended.

    Raises:
        EnvError: it does not start.
    """
    kind = f"{timeout:g}"
    with _shared_lock:
        host, users = _shared.get(kind, (None, set[str]()))
        if host is None or not host.cluster.alive:
            if host is not None:
                host.close()
            host = Host(timeout)
            _shared[kind] = host, users
        users.add(user)
        return host


def detach(user: str) -> None:
    """The last user ends it."""
    with _shared_lock:
        for kind, (host, users) in [*_shared.items()]:
            users.discard(user)
            if not users:
                del _shared[kind]
                host.close()


def _forget() -> None:
    global _shared_lock
    _shared_lock = threading.RLock()
    for host, _ in _shared.values():
        host.cluster.forget()
    _shared.clear()


os.register_at_fork(after_in_child=_forget)
