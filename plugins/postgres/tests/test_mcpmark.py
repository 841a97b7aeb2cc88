"""Folders in MCPMark's format: a start from a backup or a script, the verdict of a script, and roles."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from database_here import LONG, begin, finished, needs_a_database, rows, run

import gem_core
from gem_core.errors import EnvError
from gem_postgres import _keeper as keeper
from gem_postgres import _programs as programs
from gem_postgres import mcpmark
from gem_postgres._cluster import Cluster
from gem_postgres.env import PostgresEnv
from gem_support.processes import processes_with

CONNECT = """
import os, sys, psycopg
names = {"host": "HOST", "port": "PORT", "user": "USERNAME", "password": "PASSWORD", "dbname": "DATABASE"}
connection = psycopg.connect(**{key: os.environ[f"POSTGRES_{name}"] for key, name in names.items()}, autocommit=True)
"""
VERIFY_TOYS = f"""{CONNECT}
assert connection.execute("SELECT current_setting('is_superuser')").fetchone() == ("off",)
wooden = connection.execute("SELECT count(*) FROM toys WHERE material = 'wood'").fetchone()[0]
print("found", wooden)
sys.exit(0 if wooden == 3 else 1)
"""
PREPARE = f"""{CONNECT}
connection.execute("CREATE TABLE visits (place text); INSERT INTO visits VALUES ('Graz'); CREATE ROLE guest LOGIN")
"""
VERIFY_ROLES = f"""{CONNECT}
connection.execute("SET ROLE guest")
print(connection.execute("SELECT place FROM visits").fetchall())
connection.execute("RESET ROLE")
sys.exit(connection.execute("SELECT count(*) FROM pg_roles WHERE rolname = 'keeper'").fetchone()[0] - 1)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tasks: one begins with a backup, the other with a script and is about roles."""
    needs_a_database()
    root = tmp_path_factory.mktemp("mcpmark")
    toys, access = root / "tasks" / "toys" / "wooden_toys", root / "tasks" / "security" / "guest_access"
    for path in (toys, access, root / "backups"):
        path.mkdir(parents=True)
    (toys / "description.md").write_text("One toy has no material. It is made of wood.\n")
    (toys / "meta.json").write_text(json.dumps({"task_id": "wooden_toys", "category_id": "toys"}))
    (toys / "verify.py").write_text(VERIFY_TOYS)
    (access / "description.md").write_text("Let the role guest read visits, and create a role keeper.\n")
    (access / "prepare_environment.py").write_text(PREPARE)
    (access / "verify.py").write_text(VERIFY_ROLES)
    cluster = Cluster()
    try:
        cluster.execute("CREATE DATABASE toys")
        with cluster.connect("toys") as connection:
            connection.execute("CREATE TABLE toys (name text PRIMARY KEY, material text)")
            connection.execute("INSERT INTO toys VALUES ('train', 'wood'), ('duck', NULL), ('horse', 'wood')")
        dump = [programs.postgresql() / "pg_dump", "-Fc", "-h", cluster.socket, "-U", "gem", "-f"]
        subprocess.run([*dump, root / "backups" / "toys.backup", "toys"], check=True)
    finally:
        cluster.close()
    return root


def made(folder: Path, **arguments: object) -> PostgresEnv:
    env = gem_core.make(
        "postgres:MCPMark", tasks=folder / "tasks", backups=folder / "backups", timeout=LONG, **arguments
    ).unwrapped
    assert isinstance(env, PostgresEnv)
    return env


def test_a_task_that_begins_with_a_backup(folder: Path) -> None:
    with made(folder, only=["wooden_toys"]) as env:
        observation, info = env.reset(data_index=0)
        assert observation.startswith("One toy has no material.")
        assert info["task_name"] == "wooden_toys"
        reward, info = finished(env)
        assert (reward, info["check_problem"]) == (0.0, "verify.py: found 2")
        env.reset(data_index=0)
        run(env, "UPDATE toys SET material = 'wood' WHERE material IS NULL")
        assert finished(env)[0] == 1.0


def test_the_script_is_not_fooled_by_what_the_role_says_of_itself(folder: Path) -> None:
    """By a setting, and by a schema with its name, in which it would look first."""
    with made(folder, only=["wooden_toys"]) as env:
        for setting in (True, False):
            env.reset(data_index=0)
            role = rows(env, "SELECT current_user AS name")[0]["name"]
            schema = "e" if setting else role
            run(env, f"CREATE SCHEMA {schema}")
            run(env, f"CREATE TABLE {schema}.toys AS SELECT name, 'wood'::text AS material FROM public.toys")
            if setting:
                assert "tool_error" not in run(env, f"ALTER ROLE {role} SET search_path = e, public")[1]
            reward, info = finished(env)
            assert (reward, info["check_problem"]) == (0.0, "verify.py: found 2")


def test_folders_with_one_category_share_nothing(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "tasks" / "toys", tmp_path / "tasks" / "toys")
    shutil.copytree(folder / "backups", tmp_path / "backups")
    one, _ = mcpmark.read(folder / "tasks", folder / "backups")
    two, _ = mcpmark.read(tmp_path / "tasks", tmp_path / "backups")
    assert one["wooden_toys"].template != two["wooden_toys"].template
    shutil.copytree(tmp_path / "tasks" / "toys", tmp_path / "tasks" / "more")
    with pytest.raises(EnvError, match="two tasks are named 'wooden_toys'"):
        mcpmark.read(tmp_path / "tasks", None)


def test_a_task_about_roles_has_a_server_of_its_own(folder: Path) -> None:
    with made(folder, only=["guest_access"]) as env, made(folder, only=["guest_access"]) as other:
        begin(env, "guest_access")
        begin(other, "guest_access")
        run(env, "GRANT SELECT ON visits TO guest")
        run(env, "CREATE ROLE keeper")
        assert rows(other, "SELECT count(*)::int AS n FROM pg_roles WHERE rolname = 'keeper'") == [{"n": 0}]
        assert finished(env)[0] == 1.0
        assert finished(other)[0] == 0.0


HARMFUL = {  # 42501 is a lack of rights, 42704 is for what does not exist
    "GRANT pg_execute_server_program TO current_user": "42704",
    "CREATE ROLE evil IN ROLE pg_execute_server_program": "42704",
    "GRANT gem TO current_user": "42501",
    "ALTER ROLE gem NOSUPERUSER": "42501",
    "CREATE ROLE evil SUPERUSER": "42501",
    "COPY visits TO PROGRAM 'true'": "42501",
    "SELECT pg_read_file('/etc/passwd')": "42501",
}


@pytest.mark.parametrize(("statement", "code"), HARMFUL.items())
def test_who_may_make_roles_may_run_no_programs(roles: PostgresEnv, statement: str, code: str) -> None:
    assert f'"code":"{code}"' in run(roles, statement)[1]["tool_error"]


@pytest.fixture(scope="module")
def roles(folder: Path) -> Iterator[PostgresEnv]:
    """An episode of the task about roles."""
    with made(folder, only=["guest_access"]) as env:
        env.reset(data_index=0)
        yield env


def test_what_cannot_run_is_refused_by_name(folder: Path) -> None:
    known, refused = mcpmark.read(folder / "tasks", None)
    assert [*known] == ["guest_access"]
    assert "Give backups=" in refused["wooden_toys"]
    with pytest.raises(EnvError, match=r"'wooden_toys' cannot run here.*toys\.backup is missing"):
        gem_core.make("postgres:MCPMark", tasks=folder / "tasks", backups=folder, only=["wooden_toys"])
    with pytest.raises(EnvError, match=r"no folder with a verify\.py"):
        gem_core.make("postgres:MCPMark", tasks=folder / "backups")


def test_no_server_is_left_when_an_episode_cannot_begin(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "tasks" / "security", tmp_path / "security")
    (tmp_path / "security" / "guest_access" / "prepare_environment.py").write_text("raise SystemExit('no data')")
    with gem_core.make("postgres:MCPMark", tasks=tmp_path, timeout=LONG) as env:
        before = servers()
        for _ in range(2):
            with pytest.raises(EnvError, match="no data"):
                env.reset(data_index=0)
        assert servers() <= before


def servers() -> set[int]:
    """The keepers that this process started, one for each database server."""
    return {pid for pid in processes_with(keeper.__file__) if parent_of(pid) == os.getpid()}


def parent_of(pid: int) -> int:
    """The number of a process's parent."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0  # it has ended meanwhile
