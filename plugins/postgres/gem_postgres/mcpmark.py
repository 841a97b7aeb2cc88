"""Folders of tasks in MCPMark's format, read as they are; nothing of MCPMark is imported.

A task is a folder with `description.md` and `verify.py`, perhaps with `meta.json` and `prepare_environment.py`, in a
folder that is named like its database. The start of a task is a backup of that database, or what its
`prepare_environment.py` makes of an empty one. (github.com/eval-sys/mcpmark, tasks/postgres)
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gem_core.errors import EnvError
from gem_core.tools import Form
from gem_postgres._cluster import ADMIN, Cluster
from gem_postgres._host import Host
from gem_postgres._slot import Slot
from gem_postgres._tasks import PostgresTask
from gem_postgres.env import PostgresEnv, chosen

_NOTE = "\n\nNote: Use PostgreSQL MCP tools to complete this task. The database connection is already configured."
"""What MCPMark adds to an instruction."""
_ROLES = re.compile(r"create\s+(?:role|user)|pg_roles|set\s+role", re.IGNORECASE)
_SCRIPT_SECONDS = 300.0
_LAST_WORDS = 500


@dataclass(frozen=True)
class FolderTask(PostgresTask):
    """A task of MCPMark."""

    name: str
    instruction: str
    template: str
    folder: Path
    backup: Path | None
    """The start; without one `prepare_environment.py` makes it."""
    makes_roles: bool = False

    def fill(self, cluster: Cluster, database: str) -> None:
        """Restore the backup, or run `prepare_environment.py`, which is trusted: it gets all rights in the server."""
        if self.backup is not None:
            cluster.restore(database, self.backup)
            return
        done = self._ran("prepare_environment.py", cluster, database, ADMIN)
        if done.returncode:
            said = f"{done.stdout}{done.stderr}".strip()[-_LAST_WORDS:]
            raise EnvError(f"{self.name}: prepare_environment.py failed: {said}")

    def problem(self, host: Host, slot: Slot) -> str | None:
        """Run `verify.py` with the rights of the episode's role: its queries may run code that the policy left."""
        with host.opened_again(slot):
            done = self._ran("verify.py", host.cluster, slot.name, slot.name)
        said = f"{done.stdout}{done.stderr}".strip()[-_LAST_WORDS:]
        return None if done.returncode == 0 else f"verify.py: {said}"

    def _ran(self, script: str, cluster: Cluster, database: str, user: str) -> subprocess.CompletedProcess[str]:
        variables = {
            "POSTGRES_HOST": str(cluster.socket),
            "POSTGRES_PORT": "5432",
            "POSTGRES_DATABASE": database,
            "POSTGRES_USERNAME": user,
            "POSTGRES_PASSWORD": "",
            "DATABASE_URL": f"postgresql://{user}@/{database}?host={cluster.socket}",
        }
        command = [sys.executable, str(self.folder / script), database]
        try:
            return subprocess.run(
                command,
                cwd=self.folder,
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_SCRIPT_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, 1, "", f"no end within {_SCRIPT_SECONDS:g} seconds")


class MCPMark(PostgresEnv):
    """Tasks of MCPMark, from a folder of its repository. Actions and ends are those of `PostgresEnv`.

    The reward is 1 if the task's `verify.py` ends with 0. It runs once, after a call of `finish`.

    Args:
        tasks: a folder with tasks at any depth, for example `mcpmark/tasks/postgres/standard`.
        backups: a folder with `<database>.backup`, which MCPMark keeps in `postgres_state`.
        only: names of tasks, in this order; all that can run by default.
        form, max_turns, timeout: as in `PostgresEnv`.

    Raises:
        EnvError: no task can run, or one that is asked for cannot; the message says why. Otherwise as `PostgresEnv`.
    """

    def __init__(
        self,
        tasks: str | os.PathLike[str],
        backups: str | os.PathLike[str] | None = None,
        *,
        only: Sequence[str] | None = None,
        form: Form = "text",
        max_turns: int = 100,
        timeout: float = 60.0,
    ) -> None:
        known, refused = read(Path(tasks).expanduser(), None if backups is None else Path(backups).expanduser())
        for name in only or ():
            if name in refused and not isinstance(only, str):
                raise EnvError(f"the task {name!r} cannot run here: {refused[name]}")
        if not known:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in refused.items())
            raise EnvError(f"no task of {tasks} can run here. {reasons or 'There is no folder with a verify.py'}")
        self._begin(chosen(known, only), form, max_turns, timeout)


def read(folder: Path, backups: Path | None) -> tuple[Mapping[str, FolderTask], Mapping[str, str]]:
    """The tasks below a folder that can run, and why the others cannot; both by name.

    Raises:
        EnvError: two tasks have one name.
    """
    known: dict[str, FolderTask] = {}
    refused: dict[str, str] = {}
    folders: dict[str, Path] = {}
    for script in sorted(folder.rglob("verify.py")):
        task = _task(script.parent, backups)
        if (other := folders.setdefault(task.name, task.folder)) != task.folder:
            raise EnvError(
                f"two tasks are named {task.name!r}: {other} and {task.folder}. Next: give a folder with one of them"
            )
        if (problem := _refusal(task, backups)) is None:
            known[task.name] = task
        else:
            refused[task.name] = problem
    return known, refused


def _task(folder: Path, backups: Path | None) -> FolderTask:
    category = folder.parent.name
    if (path := folder / "meta.json").exists():
        category = json.loads(path.read_text(encoding="utf-8")).get("category_id", category)
    backup = None if backups is None else backups / f"{category}.backup"
    description = folder / "description.md"
    instruction = description.read_text(encoding="utf-8") if description.exists() else ""
    prepared = (folder / "prepare_environment.py").exists()
    start = f"{category}_{folder.name}" if prepared else category
    texts = [instruction, *(path.read_text(encoding="utf-8", errors="replace") for path in folder.glob("*.py"))]
    return FolderTask(
        folder.name,
        instruction.rstrip() + _NOTE,
        _template(start, folder if prepared or backup is None else backup),
        folder,
        None if prepared else backup,
        any(_ROLES.search(text) for text in texts),
    )


def _template(start: str, source: Path) -> str:
    """A name that tells what it is and is the same for the same source only."""
    digest = hashlib.sha256(os.fsencode(source.resolve())).hexdigest()[:12]
    return re.sub(r"[^a-z0-9]", "_", f"mcpmark_{start}".lower())[:40] + f"_{digest}"


def _refusal(task: FolderTask, backups: Path | None) -> str | None:
    """Why a task cannot run."""
    if not (task.folder / "description.md").exists():
        return "there is no description.md"
    if not (task.folder / "prepare_environment.py").exists():
        if task.backup is None:
            return "it begins with a backup. Give backups=, the folder with MCPMark's backups"
        if not task.backup.exists():
            return f"its backup {task.backup} is missing"
    scripts = "".join(path.read_text(encoding="utf-8", errors="replace") for path in task.folder.glob("*.py"))
    if re.search(r"^\s*(?:import|from) psycopg2", scripts, re.MULTILINE) and not importlib.util.find_spec("psycopg2"):
        return "its scripts need psycopg2. Next: pip install psycopg2-binary"
    return None
