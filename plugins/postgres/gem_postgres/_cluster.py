"""A PostgreSQL server of our own: on a socket of its own, for as long as its owner lives."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import psycopg

from gem_core.errors import EnvError
from gem_postgres import _keeper as keeper
from gem_postgres._programs import postgresql

ADMIN = "gem"
"""The role that may do everything. No MCP server and no query of a task ever gets it."""
_MAX_SOCKET_LENGTH = 100
"""Bytes of a socket's path that the kernel takes, less some for the name of the file."""
_MAX_CONNECTIONS = 8
"""Connections of the one who may do everything: a new one takes as long as ten short statements."""
_MEMORY, _ROOM = "/dev/shm", 4 << 30
"""A file system in memory, and the bytes that have to be free there. A database is 8 MB in 300 files, and 64 episodes
have up to 130 databases, which a busy disk takes minutes to remove."""
_START_SECONDS, _END_SECONDS = 120.0, 40.0
_SETTINGS = """
listen_addresses = ''
fsync = off
full_page_writes = off
wal_level = minimal
max_wal_senders = 0
shared_buffers = 32MB
max_connections = 400
autovacuum = off
max_wal_size = 256MB
logging_collector = off
log_min_messages = fatal
log_min_error_statement = panic
dynamic_shared_memory_type = mmap
jit = off
max_parallel_workers = 0
temp_file_limit = 256MB
timezone = 'UTC'
log_timezone = 'UTC'
"""
# A policy chooses the text of warnings and errors, so the log has only why a session or the server ended.
# Nothing has to survive the machine, so nothing waits for the disk. What is committed has to survive the server's
# processes, so `synchronous_commit` stays on: the log is written, though not to the disk.
# Without autovacuum no worker is connected to a database that is to be renamed. A socket in a private folder is the
# only way in.


class Cluster:
    """A server in a temporary folder. Root hands it to the user `postgres`, because PostgreSQL refuses root.

    Raises:
        EnvError: there is no PostgreSQL, or it did not start.
    """

    def __init__(self) -> None:
        self._programs = postgresql()
        self._user = _unprivileged()
        self._idle: list[psycopg.Connection[tuple[Any, ...]]] = []
        """Connections of the one who may do everything, which no thread uses now."""
        self._turns = threading.BoundedSemaphore(_MAX_CONNECTIONS)
        # Not in the folder, which the keeper removes when the server ends, be it before it has started.
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        self.folder = Path(tempfile.mkdtemp(prefix="gempg-", dir=_roomy()))
        try:
            self.socket = self.folder / "s"
            if len(os.fsencode(self.socket)) > _MAX_SOCKET_LENGTH:
                raise EnvError(
                    f"the path of the socket {self.socket} is too long. Next: set TMPDIR to a shorter folder"
                )
            self._make()
            self._process = self._started()
            self._idle.append(self._connected())
        except BaseException:
            self.close()
            raise

    def connect(self, database: str, user: str = ADMIN, **parameters: Any) -> psycopg.Connection[tuple[Any, ...]]:
        """A connection on which each statement is a transaction of its own.

        Raises:
            psycopg.Error: the server refuses it, or has ended.
        """
        return psycopg.connect(host=str(self.socket), user=user, dbname=database, autocommit=True, **parameters)

    def execute(self, statement: str, parameters: tuple[Any, ...] | None = None) -> list[tuple[Any, ...]]:
        """Carry out a statement as the one who may do everything; returns the rows.

        Raises:
            psycopg.Error: the statement fails.
            EnvError: the server has ended.
        """
        with self._turns:
            connection = self._idle_one() or self._connected()
            try:
                return _rows(connection, statement, parameters)
            except psycopg.OperationalError:
                if not connection.broken:
                    raise
                # When one process of the server is killed, the server drops all connections and starts anew.
                connection = self._connected()
                return _rows(connection, statement, parameters)
            finally:
                if not connection.closed:
                    self._idle.append(connection)

    @property
    def alive(self) -> bool:
        """Whether the server runs."""
        return self._process.poll() is None

    @property
    def keeper(self) -> int:
        """The number of the process that ends the server."""
        return self._process.pid

    def log(self) -> str:
        """The beginning of what the server said, at most 64 KiB."""
        return os.pread(self._log.fileno(), keeper.LOG_BYTES, 0).decode(errors="replace")

    def close(self) -> None:
        """End the server, and remove its folder. Safe to call twice."""
        while (connection := self._idle_one()) is not None:
            connection.close()
        process: subprocess.Popen[bytes] | None = getattr(self, "_process", None)
        if process is not None and process.stdin is not None and not process.stdin.closed:
            process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_END_SECONDS)
        shutil.rmtree(self.folder, ignore_errors=True)
        self._log.close()

    def forget(self) -> None:
        """In a fork: the server is the parent's."""
        process: subprocess.Popen[bytes] | None = getattr(self, "_process", None)
        if process is not None and process.stdin is not None:
            process.stdin.close()

    def restore(self, database: str, backup: Path) -> None:
        """Fill a database from a backup in a format of `pg_restore`.

        Raises:
            EnvError: the backup cannot be read.
        """
        command = [str(self._programs / "pg_restore"), "--no-owner", "--no-privileges", "-h", str(self.socket)]
        done = subprocess.run([*command, "-U", ADMIN, "-d", database, str(backup)], capture_output=True, text=True)
        if done.returncode and "errors ignored on restore" not in done.stderr:  # MCPMark ignores them, too
            raise EnvError(f"pg_restore could not read {backup}: {done.stderr.strip()[-500:]}")

    def _make(self) -> None:
        data = self.folder / "data"
        self.folder.chmod(0o755)
        for path in (self.socket, data):
            path.mkdir(mode=0o700)
            if self._user is not None:
                os.chown(path, *self._user)
        command = [str(self._programs / "initdb"), "-D", str(data), "-U", ADMIN, "-A", "trust", "-N", "-E", "UTF8"]
        command += ["--locale=C.UTF-8", "--no-instructions"]
        owner: dict[str, Any] = {}
        if self._user is not None:
            owner = {"user": self._user[0], "group": self._user[1], "extra_groups": []}
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=self.folder, env=self._environment(), **owner
        )
        if done.returncode:
            raise EnvError(f"initdb failed: {done.stderr.strip()[-500:] or done.stdout.strip()[-500:]}")
        with (data / "postgresql.conf").open("a") as file:
            file.write(f"{_SETTINGS}unix_socket_directories = '{self.socket}'\n")

    def _started(self) -> subprocess.Popen[bytes]:
        user = "-" if self._user is None else ":".join(map(str, self._user))
        server = [str(self._programs / "postgres"), "-D", str(self.folder / "data")]
        return subprocess.Popen(
            [sys.executable, "-I", "-S", keeper.__file__, str(self.folder), user, *server],
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=self._log,
            cwd="/",
            env=self._environment(),
            start_new_session=True,  # Ctrl-C is the owner's business
        )

    def _environment(self) -> dict[str, str]:
        return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8", "HOME": str(self.folder)}

    def _idle_one(self) -> psycopg.Connection[tuple[Any, ...]] | None:
        with contextlib.suppress(IndexError):
            return self._idle.pop()
        return None

    def _connected(self) -> psycopg.Connection[tuple[Any, ...]]:
        """A connection, as soon as the server takes one."""
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                return self.connect("postgres")
            except psycopg.OperationalError as error:
                if not self.alive or time.monotonic() > deadline:
                    raise EnvError(f"PostgreSQL does not run: {self.log().strip()[-500:] or error}") from error
                time.sleep(0.01)


def _rows(
    connection: psycopg.Connection[tuple[Any, ...]], statement: str, parameters: tuple[Any, ...] | None
) -> list[tuple[Any, ...]]:
    cursor = connection.execute(statement.encode(), parameters)
    return cursor.fetchall() if cursor.description else []


def _roomy() -> str | None:
    """Where the databases lie: in memory if there is room, otherwise where temporary files do."""
    with contextlib.suppress(OSError):
        if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free >= _ROOM:
            return _MEMORY
    return None


def _unprivileged() -> tuple[int, int] | None:
    """The user and the group that run the server, where this user is root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return entry.pw_uid, entry.pw_gid
    raise EnvError("PostgreSQL refuses root, and there is no user postgres or nobody to run it")
