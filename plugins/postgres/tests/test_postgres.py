"""The environment: its contract, what an episode cannot reach, and what is left when something dies."""

import copy
import os
import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from database_here import FINISH, LONG, begin, finished, needs_a_database, reward_of, rows, run

import gem_core
from gem_core.errors import EnvError
from gem_postgres import _cluster as cluster
from gem_postgres import _host as host
from gem_postgres import _programs as programs
from gem_postgres._cluster import Cluster
from gem_postgres._tasks import own_tasks
from gem_postgres.env import PostgresEnv
from gem_support.processes import processes_with
from gem_support.waiting import wait_until
from gem_testing import check_env

SOLUTION = own_tasks()["lost-copies"].solution


def test_it_keeps_the_contract(env: PostgresEnv) -> None:
    env.reset(seed=0)  # so that the server stays between the kit's environments
    check_env("postgres:School-v0", timeout=LONG, only=["clean-cities", "orphans"])


def test_native_calls(env: PostgresEnv) -> None:
    with gem_core.make("postgres:Library-v0", form="native", timeout=LONG) as native:
        observation, info = native.reset(data_index=1)
        assert observation == native.unwrapped.tasks[1].instruction  # pyright: ignore
        names = [tool["function"]["name"] for tool in info["tools"]]
        assert names == ["query", "execute", "list_schemas", "list_tables", "describe_table", "finish"]
        observation, *_ = native.step('{"name": "list_tables", "arguments": {}}')
        assert observation == '{"tables":["books","copies","fines","loans","members"]}'


def test_responses_without_a_call_and_the_end_of_turns(env: PostgresEnv) -> None:
    with gem_core.make("postgres:Library-v0", max_turns=3, timeout=LONG) as short:
        short.reset(data_index=1)
        *_, info = short.step("I am done.")
        assert info["invalid_action"]
        *_, info = short.step('<tool_call>{"name": "quarry", "arguments": {}}</tool_call>')
        assert "query" in info["tool_error"]
        _, reward, terminated, truncated, info = short.step("And now?")
        assert (reward, terminated, truncated, info["success"]) == (0.0, False, True, False)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"database": "zoo"}, "library"),
        ({"only": ["orphan"]}, "orphans"),
        ({"only": "orphans"}, "list of names"),
        ({"only": []}, "empty"),
        ({"form": "xml"}, "native"),
        ({"max_turns": 0}, "at least 1"),
        ({"timeout": 0}, "from 0.001"),
        ({"timeout": 0.0004}, "from 0.001"),
        ({"timeout": float("inf")}, "from 0.001"),
        ({"timeout": float("nan")}, "from 0.001"),
    ],
)
def test_bad_arguments(arguments: dict[str, object], word: str) -> None:
    with pytest.raises(EnvError, match=word):
        PostgresEnv(**arguments)  # pyright: ignore[reportArgumentType]


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvError, match="npm install --global mcp-postgres-server"):
        programs.mcp_server()
    monkeypatch.setattr(programs, "_DEBIAN", tmp_path)
    with pytest.raises(EnvError, match="apt-get install postgresql"):
        programs.postgresql()


@pytest.mark.parametrize(
    ("says", "message"), [("v18.20.4", "Node 18 is on the PATH"), (None, "no Node is on the PATH")]
)
def test_an_old_node_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, says: str | None, message: str) -> None:
    for name, text in (("mcp-postgres", ""), ("node", says)):
        if text is not None:
            (tmp_path / name).write_text(f"#!/bin/sh\necho {text}\n")
            (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvError, match=message):
        programs.mcp_server()


def test_copies_continue_apart(env: PostgresEnv) -> None:
    begin(env, "lost-copies")
    run(env, "UPDATE copies SET condition = 'lost' WHERE copy_id = 1")
    twins = [copy.deepcopy(env), pickle.loads(pickle.dumps(env)), env.spawn(same_state=True)]
    run(env, "DELETE FROM fines")
    for twin in twins:
        with twin:
            assert rows(twin, "SELECT condition FROM copies WHERE copy_id = 1") == [{"condition": "lost"}]
            assert rows(twin, "SELECT count(*)::int AS n FROM fines") != [{"n": 0}]
            run(twin, SOLUTION[0])
            assert twin.step(FINISH)[1] == 0.0  # copy 1 is not lost


HARMFUL = {  # with the code of PostgreSQL's refusal: 42501 is a lack of rights
    "COPY copies TO PROGRAM 'touch /tmp/gem-postgres-was-here'": "42501",
    "COPY copies FROM '/etc/passwd'": "42501",
    "SELECT pg_read_file('/etc/passwd')": "42501",
    "SELECT lo_import('/etc/passwd')": "42501",
    "CREATE ROLE another SUPERUSER": "42501",
    "ALTER ROLE checker SET search_path = public": "42501",
    "SET ROLE gem": "42501",
    "SET SESSION AUTHORIZATION gem": "42501",
    "CREATE DATABASE another": "42501",
    "DROP DATABASE template_library": "42501",
    "ALTER DATABASE template_library ALLOW_CONNECTIONS true": "42501",
    "ALTER SYSTEM SET fsync = on": "42501",
    "CREATE EXTENSION dblink": "42501",
    "CREATE FUNCTION f() RETURNS int LANGUAGE c AS '/lib/x86_64-linux-gnu/libc.so.6', 'getpid'": "42501",
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'gem'": "42501",
    "COMMIT; DROP TABLE loans": "42601",
}


@pytest.mark.parametrize(("statement", "code"), HARMFUL.items())
def test_what_a_role_may_not_do(env: PostgresEnv, statement: str, code: str) -> None:
    begin(env, "lost-copies")
    _, info = run(env, statement)
    assert f'"code":"{code}"' in info["tool_error"]


def test_a_policy_fills_neither_the_log_nor_the_memory() -> None:
    database = Cluster()

    def size() -> int:
        return os.fstat(database._log.fileno()).st_size

    try:
        database.execute("CREATE ROLE pupil LOGIN")
        with database.connect("postgres", "pupil") as connection:
            warn = "FOR i IN 1..10 LOOP RAISE WARNING '%', repeat('x', 1000000); RAISE LOG 'y'; END LOOP"
            connection.execute(f"DO $$ BEGIN {warn}; END $$")  # type: ignore[arg-type]
            assert size() < 10_000
            with pytest.raises(psycopg.errors.OutOfMemory):
                connection.execute("SELECT length(string_agg(repeat('x', 60000000), '')) FROM generate_series(1, 16)")
            assert connection.execute("SELECT 1").fetchone() == (1,)
            fail = "BEGIN PERFORM repeat('x', 1073741000); EXCEPTION WHEN out_of_memory THEN NULL; END"
            connection.execute(f"DO $$ BEGIN FOR i IN 1..50 LOOP {fail}; END LOOP; END $$")  # type: ignore[arg-type]
            assert size() <= 1 << 16
    finally:
        database.close()


def test_a_server_that_does_not_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_SETTINGS", "no_such_setting = 1\n")
    with pytest.raises(EnvError, match='unrecognized configuration parameter "no_such_setting"'):
        Cluster()


def test_no_episode_finds_what_another_one_left(env: PostgresEnv) -> None:
    """Not in its database, and not in the role that it gets: settings and memberships last longer than a database."""
    begin(env, "lost-copies")
    role = rows(env, "SELECT current_user AS name")[0]["name"]
    for statement in ("CREATE TABLE mine (x int)", f"ALTER ROLE {role} SET search_path = nowhere"):
        run(env, statement)
    run(env, f"REVOKE {role} FROM checker")
    run(env, f"ALTER ROLE {role} SET default_transaction_read_only = on")
    finished(env)
    # Its table is the role's own, so the checker must be the role's member again.
    assert reward_of(env, "genre-report", *own_tasks()["genre-report"].solution) == 1.0
    begin(env, "lost-copies")
    assert rows(env, "SELECT to_regclass('mine') AS found, current_setting('search_path') AS path") == [
        {"found": None, "path": '"$user", public'}
    ]


FAKES = {
    "a view with the right rows over the wrong table": (
        "ALTER TABLE copies RENAME TO real",
        "CREATE VIEW copies AS SELECT copy_id, book_id, shelf, CASE WHEN copy_id IN (SELECT copy_id FROM loans "
        "WHERE returned IS NULL AND lent < date '2026-01-01') THEN 'lost' ELSE condition END AS condition FROM real",
    ),
    "functions with the names of the system's": (
        "CREATE FUNCTION public.md5(text) RETURNS text LANGUAGE sql AS 'SELECT ''x'''",
        "CREATE FUNCTION public.to_regclass(text) RETURNS regclass LANGUAGE sql AS 'SELECT NULL::regclass'",
        "DELETE FROM fines",
    ),
    "code that runs as whoever looks": (
        "CREATE FUNCTION public.f() RETURNS text LANGUAGE plpgsql AS "
        "$$BEGIN EXECUTE 'ALTER ROLE checker SET search_path = public'; RETURN 'lost'; END$$",
        "ALTER TABLE copies RENAME TO real",
        "CREATE VIEW copies AS SELECT copy_id, book_id, shelf, public.f() AS condition FROM real",
    ),
    "code that wants to write": (
        "CREATE FUNCTION public.g() RETURNS text LANGUAGE plpgsql AS "
        "$$BEGIN SET transaction_read_only = off; DELETE FROM public.real; RETURN 'x'; END$$",
        "ALTER TABLE copies RENAME TO real",
        "CREATE VIEW copies AS SELECT copy_id, book_id, shelf, public.g() AS condition FROM real",
    ),
    "how a row becomes text": (
        SOLUTION[0],
        "UPDATE fines SET amount = amount + 1",
        "CREATE FUNCTION line(fines) RETURNS text LANGUAGE sql AS "
        "$$SELECT format('(%s,%s,%s,%s)', $1.fine_id, $1.loan_id, $1.amount - 1, $1.paid)$$",
        "CREATE CAST (fines AS text) WITH FUNCTION line(fines)",
    ),
}


@pytest.mark.parametrize("why", FAKES)
def test_the_check_is_not_fooled_and_does_not_run_with_rights(env: PostgresEnv, why: str) -> None:
    assert reward_of(env, "lost-copies", *FAKES[why]) == 0.0
    assert reward_of(env, "lost-copies", *SOLUTION) == 1.0


def test_rows_that_a_policy_of_the_table_hides_are_not_deleted(env: PostgresEnv) -> None:
    statements = (
        "CREATE POLICY p ON enrolments USING (NOT (grade IS NULL AND course_id IN "
        "(SELECT course_id FROM courses WHERE ends < date '2026-04-01')))",
        "ALTER TABLE enrolments ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE enrolments FORCE ROW LEVEL SECURITY",
    )
    assert reward_of(env, "missing-grades", *statements) == 0.0


CATCHES = """
CREATE FUNCTION average_grade(integer) RETURNS numeric LANGUAGE plpgsql AS $$BEGIN LOOP
    BEGIN PERFORM pg_sleep(1000); EXCEPTION WHEN query_canceled THEN NULL; END;
END LOOP; END$$
"""
FAKED_FUNCTIONS = (
    "CREATE SCHEMA e",
    "CREATE FUNCTION average_grade(integer) RETURNS numeric LANGUAGE plpgsql AS $$BEGIN "
    "PERFORM pg_catalog.set_config('search_path', 'e, pg_catalog', false); "
    "RETURN (SELECT pg_catalog.round(pg_catalog.avg(grade), 2) FROM public.enrolments WHERE student_id = $1); END$$",
)


def test_a_check_that_code_of_the_policy_holds_up_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    needs_a_database()
    monkeypatch.setattr(host, "_GRACE_SECONDS", 1.0)
    with gem_core.make("postgres:School-v0", timeout=5) as made:
        env = made.unwrapped
        assert isinstance(env, PostgresEnv)
        begin(env, "average-function")
        run(env, CATCHES)
        start = time.monotonic()
        reward, info = finished(env)
        assert reward == 0.0
        assert "the check took too long" in info["check_problem"]
        assert time.monotonic() - start < 60


def test_code_that_a_check_runs_changes_no_later_check(env: PostgresEnv) -> None:
    """The function is right, and also has later queries call the policy's `md5`, which says what was true before."""
    assert reward_of(env, "average-function", *FAKED_FUNCTIONS) == 1.0
    begin(env, "average-function")
    content = "SELECT md5(string_agg(t::text, chr(10) ORDER BY t::text)) AS teachers FROM teachers AS t"
    before = rows(env, content)[0]["teachers"]
    run(env, "UPDATE teachers SET hours = hours + 1")
    after = rows(env, content)[0]["teachers"]
    for statement in (
        *FAKED_FUNCTIONS,
        "CREATE FUNCTION e.md5(text) RETURNS text LANGUAGE sql AS "
        f"$$SELECT pg_catalog.replace(pg_catalog.md5($1), '{after}', '{before}')$$",
    ):
        assert "tool_error" not in run(env, statement)[1]
    assert finished(env)[0] == 0.0


def test_many_at_once_see_only_their_own(env: PostgresEnv) -> None:
    env.reset(seed=0)
    many = [gem_core.make("postgres:Library-v0", timeout=LONG) for _ in range(8)]

    def play(number: int) -> list[dict[str, object]]:
        one = many[number].unwrapped
        assert isinstance(one, PostgresEnv)
        begin(one, "lost-copies")
        run(one, f"CREATE TABLE mark AS SELECT {number} AS n")
        run(one, f"INSERT INTO fines (loan_id, amount) SELECT 1, {number} FROM generate_series(1, {number})")
        found = rows(
            one, f"SELECT n, (SELECT count(*)::int FROM fines WHERE loan_id = 1 AND amount = {number}) AS m FROM mark"
        )
        one.close()
        return found

    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(play, range(8))]
    assert found == [[{"n": number, "m": number}] for number in range(8)]


def servers_of(env: PostgresEnv) -> list[int]:
    """The processes of the MCP server of an episode."""
    slot = rows(env, "SELECT current_database() AS name")[0]["name"]
    return processes_with(f"postgresql://{slot}@localhost/{slot}?host={host_of(env).cluster.socket}")


def host_of(env: PostgresEnv) -> host.Host:
    found = env._place._host  # pyright: ignore[reportPrivateUsage]
    assert found is not None
    return found


def test_a_killed_mcp_server_costs_one_call(env: PostgresEnv) -> None:
    begin(env, "lost-copies")
    with gem_core.make("postgres:Library-v0", timeout=LONG) as other:
        neighbor = other.unwrapped
        assert isinstance(neighbor, PostgresEnv)
        begin(neighbor, "lost-copies")
        run(env, SOLUTION[0])
        run(neighbor, SOLUTION[0])
        for pid in servers_of(env):
            os.kill(pid, signal.SIGKILL)
        _, info = run(env, "SELECT 1", "query")
        assert "It is started again for the next call" in info["tool_error"]
        assert rows(env, "SELECT 1 AS one") == [{"one": 1}]  # it was started again, and the database is what it was
        assert finished(env)[0] == finished(neighbor)[0] == 1.0


def test_a_killed_process_of_the_database_server_costs_calls_in_progress_only(env: PostgresEnv) -> None:
    begin(env, "lost-copies")
    run(env, SOLUTION[0])
    os.kill(rows(env, "SELECT pg_backend_pid() AS pid")[0]["pid"], signal.SIGKILL)
    wait_until(lambda: "tool_error" not in run_any(env, "SELECT 1"), "no connection came back")
    assert finished(env)[0] == 1.0
    assert reward_of(env, "lost-copies", *SOLUTION) == 1.0


def run_any(env: PostgresEnv, sql: str) -> dict[str, object]:
    env._turns = 0  # waiting takes no turns
    return run(env, sql, "query")[1]


def test_a_lost_database_server_fails_its_episodes_and_the_next_reset_starts_another() -> None:
    needs_a_database()
    with gem_core.make("postgres:Library-v0", timeout=LONG + 1) as made:  # a server of its own
        env = made.unwrapped
        assert isinstance(env, PostgresEnv)
        begin(env, "lost-copies")
        run(env, SOLUTION[0])
        cluster = host_of(env).cluster
        os.kill(cluster.keeper, signal.SIGKILL)
        wait_until(lambda: not cluster.alive)
        wait_until(lambda: not processes_with(str(cluster.folder / "data")), "the server outlived its keeper")
        with pytest.raises(EnvError, match="has ended"):
            run(env, "SELECT 1")
        assert reward_of(env, "lost-copies", *SOLUTION) == 1.0
        wait_until(lambda: not cluster.folder.exists())


FORK = """
import os, gem_core
env = gem_core.make("postgres:Library-v0", only=["lost-copies"])
env.reset(data_index=0)
execute = '<tool_call>{"name": "execute", "arguments": {"sql": "%s"}}</tool_call>'
finish = '<tool_call>{"name": "finish", "arguments": {}}</tool_call>'
env.step(execute % SOLUTION)
folder = env.unwrapped._place._host.cluster.folder
child = os.fork()
env.step(execute % ("SELECT 1" if child else "DELETE FROM fines"))
reward = env.step(finish)[1]
if not child:
    own = env.unwrapped._place._host.cluster.folder
    env.close()
    os._exit(0 if reward == 0 and own != folder else 1)
assert os.waitpid(child, 0)[1] == 0
assert reward == 1, reward
env.close()
"""


def test_a_fork_has_a_database_of_its_own() -> None:
    needs_a_database()
    script = FORK.replace("% SOLUTION", f"% {SOLUTION[0]!r}")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=LONG)
    assert done.returncode == 0, done.stderr


SCRIPT = """
import os, sys, gem_core
env = gem_core.make("postgres:Library-v0")
env.reset(data_index=1)
print(env.unwrapped._place._host.cluster.folder, flush=True)
sys.stdin.read()
if sys.argv[1] == "close":
    env.close()
elif sys.argv[1] == "drop":
    del env
elif sys.argv[1] == "kill":
    os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("how", ["close", "end", "drop", "kill"])
def test_nothing_is_left(how: str) -> None:
    needs_a_database()
    pipe = subprocess.PIPE
    owner = subprocess.Popen([sys.executable, "-c", SCRIPT, how], stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert owner.stdout is not None
    folder = Path(owner.stdout.readline().strip())
    assert folder.name.startswith("gempg-")
    assert len(processes_with(str(folder))) >= 2
    _, errors = owner.communicate("")
    assert errors == ""
    assert owner.returncode == (-9 if how == "kill" else 0)
    wait_until(lambda: not folder.exists() and not processes_with(str(folder)), "something was left")
