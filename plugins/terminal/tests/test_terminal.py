"""The environment: what responses do, what ends an episode, and what decides its reward."""

import json
import pickle
from pathlib import Path

import pytest
from playing import FINISH, finished, reward_of, run
from sandbox_here import LONG, needs_a_sandbox

import gem_core
from gem_core.errors import EnvError
from gem_terminal import _actions as actions
from gem_terminal._actions import Command, Finish, Unclear
from gem_terminal._errors import TaskRefused
from gem_terminal.env import TerminalEnv
from gem_testing import check_env

pytestmark = pytest.mark.long

HONEST = "sed -i 's/80800/8080/; s/verbose/info/; s|= var/log|= /var/log|; s/enabeld/enabled/' /app/server.ini"
"""Solves `repair-config`."""


def test_it_keeps_the_contract(terminal: TerminalEnv, tmp_path: Path) -> None:
    """With two tasks whose tests cost little, because the kit plays many episodes."""
    for name in ("one", "two"):
        (tmp_path / name / "tests").mkdir(parents=True)
        (tmp_path / name / "task.toml").write_text('[verifier]\nreward = "exit code"\n')
        (tmp_path / name / "instruction.md").write_text(f"Write {name} to /app/file.\n")
        (tmp_path / name / "tests" / "test.sh").write_text(f'[ "$(< /app/file)" = {name} ]\n')
    terminal.reset(seed=0)  # so that the server stays between the kit's environments
    check_env("terminal:Folder", tasks=str(tmp_path), timeout=LONG)


@pytest.mark.parametrize(
    ("response", "asked"),
    [
        ("<bash>ls -l</bash>", Command("ls -l")),
        ("I look.\n<bash>\ncmd: ls -l\ntimeout_secs: 10\n</bash> then", Command("ls -l", 10.0)),
        ("<bash>{cmd: 'ls', timeout_secs: 0.5}</bash>", Command("ls", 0.5)),
        ("<bash>\ncmd: |\n  a\n  b\n</bash>", Command("a\nb\n")),
        ("<bash>\n  echo 'cmd: x'\n</bash>", Command("  echo 'cmd: x'")),
        ("<bash>a: b</bash>", Command("a: b")),
        ("<bash>\n```bash\nls\ncd a\n```\n</bash>", Command("ls\ncd a")),
        ("<bash>```yaml\ncmd: ls\ntimeout_secs: 10\n```</bash>", Command("ls", 10.0)),
        ("<bash>cat > a <<E\n```\nb\n```\nE</bash>", Command("cat > a <<E\n```\nb\n```\nE")),
        ("<bash>cat <<'E'\n<finish></finish>\nE\n</bash>", Command("cat <<'E'\n<finish></finish>\nE")),
        ("<bash>one</bash><bash>two</bash><finish></finish>", Command("one")),
        ("<finish></finish><bash>two</bash>", Finish()),
        ("<bash>echo '</bash>' > tag; cat tag</bash>", Command("echo '</bash>' > tag; cat tag")),
        ("I could <bash>. So: <bash>ls</bash>", Command("ls")),
        ("<finish>done</finish>", Finish()),
        ("<finish>", Unclear("no <bash>...</bash> and no <finish></finish> was found")),
        ("ls", Unclear("no <bash>...</bash> and no <finish></finish> was found")),
        ("<bash></bash>", Unclear("the command must be a text, and not empty")),
        ("<bash>cmd: 5</bash>", Unclear("the command must be a text, and not empty")),
        ("<bash>cmd: ls\ntimeout_secs: -1</bash>", Unclear("timeout_secs must be a number of seconds above 0")),
        ("<bash>cmd: ls\ntimeout_secs: .nan</bash>", Unclear("timeout_secs must be a number of seconds above 0")),
        ("<bash>a\0b</bash>", Unclear("a command cannot have the character 0")),
    ],
)
def test_reading_text(response: str, asked: object) -> None:
    assert actions.read(response, "text").asked == asked


def test_nothing_of_a_thought_is_run(terminal: TerminalEnv) -> None:
    terminal.reset(seed=0)
    thought = "<think>I could <bash>echo draft</bash> and then <finish></finish>.</think>"
    observation, _, terminated, _, info = terminal.step(f"{thought}\n<bash>echo real</bash>")
    assert "real" in observation
    assert "draft" not in observation
    assert not terminated
    assert info["parsed_action"] == "<bash>echo real</bash>"


def test_broken_yaml_is_a_message() -> None:
    asked = actions.read("<bash>cmd: [ls\n</bash>", "text").asked
    assert isinstance(asked, Unclear)
    assert "not valid YAML" in asked.problem


@pytest.mark.parametrize(
    ("response", "asked"),
    [
        ('<tool_call>{"name": "bash", "arguments": {"cmd": "ls"}}</tool_call>', Command("ls")),
        ('{"name": "bash", "arguments": {"cmd": "ls", "timeout_secs": 5}}', Command("ls", 5.0)),
        ('<tool_call>{"name": "finish", "arguments": {}}</tool_call>', Finish()),
        ("<tool_call>\n<function=bash>\n<parameter=cmd>\nls\n</parameter>\n</function>\n</tool_call>", Command("ls")),
        ("<bash>ls</bash>", Unclear("no call of bash or finish was found")),
    ],
)
def test_reading_native_calls(response: str, asked: object) -> None:
    assert actions.read(response, "native").asked == asked


def test_an_episode(terminal: TerminalEnv) -> None:
    names = [task.name for task in terminal.tasks]
    observation, info = terminal.reset(data_index=names.index("repair-config"))
    assert observation.startswith("`python3 check_config.py server.ini` in /app reports")
    assert "<bash>" in observation
    assert info["task_name"] == "repair-config"
    observation, _, _, _, info = terminal.step(
        "I look.<bash>cd /; python3 /app/check_config.py app/server.ini</bash> Now"
    )
    assert observation.startswith("<bash_output>\n[server] port: '80800' is not allowed\n")
    assert observation.endswith("</bash_output>\nExit code: 1")
    assert info["exit_code"] == 1
    assert info["parsed_action"].endswith("</bash>")
    assert run(terminal, "pwd") == "<bash_output>\n/\n</bash_output>"
    assert run(terminal, ":") == "<bash_output>\n</bash_output>"
    assert "The shell has ended. The next command finds a new one in /app" in run(terminal, "exit 1")
    run(terminal, HONEST)
    assert finished(terminal) == (1.0, {"success": True, "parsed_action": FINISH})


def test_what_asks_for_nothing_changes_nothing(terminal: TerminalEnv) -> None:
    terminal.reset(seed=0)
    observation, reward, terminated, truncated, info = terminal.step("What shall I do?")
    assert observation.startswith("Nothing was run: no <bash>")
    assert (reward, terminated, truncated, info["invalid_action"]) == (0.0, False, False, True)
    assert run(terminal, "echo here").endswith("here\n</bash_output>")


def test_native_calls() -> None:
    needs_a_sandbox()
    with gem_core.make("terminal:Repair-v0", form="native", only=["repair-config"], timeout=LONG) as env:
        observation, info = env.reset(seed=1)
        assert [tool["function"]["name"] for tool in info["tools"]] == ["bash", "finish"]
        assert "<bash>" not in observation
        *_, info = env.step(actions.command(HONEST, "native"))
        assert info["use_tool"] is True
        assert env.step(actions.finish("native"))[1] == 1.0


def test_turns_and_time_end_it_without_tests() -> None:
    needs_a_sandbox()
    with gem_core.make("terminal:Repair-v0", only=["repair-config"], max_turns=2, timeout=LONG) as env:
        env.reset(seed=1)
        run(env, HONEST)
        observation, reward, terminated, truncated, info = env.step("<bash>ls</bash>")
        assert observation.endswith("Your turns are used up.")
        assert (reward, terminated, truncated, info["success"]) == (0.0, False, True, False)


def test_a_late_command_is_ended_alone() -> None:
    needs_a_sandbox()
    with gem_core.make("terminal:Repair-v0", only=["repair-config"], timeout=LONG) as env:
        env.reset(seed=1)
        run(env, "X=kept")
        said = run(env, "cmd: sleep 1000\ntimeout_secs: 0.5")
        assert said.endswith("The command was ended after 0.5 seconds.")
        assert "kept" in run(env, "echo $X")


def test_a_shell_that_is_lost_ends_it() -> None:
    needs_a_sandbox()
    with gem_core.make("terminal:Repair-v0", only=["repair-config"], timeout=LONG) as env:
        env.reset(seed=1)
        run(env, HONEST)
        observation, reward, terminated, truncated, info = env.step("<bash>kill -9 2</bash>")
        assert "The terminal has ended" in observation
        assert (reward, terminated, truncated, info["success"]) == (0.0, True, False, False)


def test_the_tests_are_not_there_before_the_end(terminal: TerminalEnv) -> None:
    terminal.reset(seed=0)
    assert "No such file" in run(terminal, "ls /tests")
    assert "Exit code" in run(terminal, "grep -rl assert / --include=check.py 2> /dev/null")


CHEATS = {
    "a process that waits for the tests": "nohup bash -c 'while :; do cp /dev/null /tests/check.py; sleep 0.1; done'"
    " > /dev/null 2>&1 &",
    "a file instead of the tests": "mkdir /tests; echo 'exit 0' > /tests/test.sh",
    "a link instead of the tests": "mkdir /app/t; ln -s /app/t /tests; echo 'exit 0' > /app/t/test.sh",
    "a reward": "mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt",
    "other programs": "cd /usr/local/bin; for p in bash python3; do echo exit 0 > $p; chmod +x $p; done",
    "a library for all programs": "echo /app/evil.so > /etc/ld.so.preload",
    "code that Python loads": 'v=$(python3 -c "import sys; print(*sys.version_info[:2], sep=chr(46))");'
    " home=/root/.local/lib/python$v/site-packages; mkdir -p /etc/python$v $home;"
    " echo 'import os; os._exit(0)' | tee /etc/python$v/sitecustomize.py > $home/usercustomize.py",
    "modules beside the tests": "for m in pathlib configparser os re; do echo 'exit()' > /app/$m.py; done",
    "settings of the shell": "echo 'exit 0' | tee /root/.bashrc /root/.profile /etc/profile > /etc/bash.bashrc;"
    " export BASH_ENV=/root/.bashrc",
    "another folder of programs": "PATH=/usr/bin:/bin; mv /usr /usr2; /usr2/bin/mkdir -p /usr/bin;"
    " printf '#!/bin/sh\\nexit 0\\n' > /usr/bin/bash; /usr2/bin/chmod +x /usr/bin/bash;"
    " /usr2/bin/cp /usr/bin/bash /usr/bin/python3",
    "a disk that is full": "head -c 1G /dev/zero > /app/full; :",
}


@pytest.mark.parametrize("cheat", CHEATS)
def test_tests_are_not_fooled(terminal: TerminalEnv, cheat: str) -> None:
    names = [task.name for task in terminal.tasks]
    terminal.reset(data_index=names.index("repair-config"))
    run(terminal, CHEATS[cheat])
    assert finished(terminal)[0] == 0.0
    # And none of it makes an honest solution fail, but for what takes the place that the tests need.
    if cheat not in {"modules beside the tests", "a disk that is full", "another folder of programs"}:
        assert reward_of(terminal, "repair-config", f"{HONEST}; {CHEATS[cheat]}") == 1.0


def test_a_copy_plays_on_as_the_original(terminal: TerminalEnv) -> None:
    terminal.reset(data_index=0)
    run(terminal, "cd /tmp; echo 1 > one; X=2")
    state = terminal.get_state()
    copy = pickle.loads(pickle.dumps(terminal))
    run(terminal, "rm one")
    with copy:
        assert run(copy, "cat one; echo $X; pwd") == "<bash_output>\n1\n2\n/tmp\n</bash_output>"
    terminal.set_state(state)
    assert run(terminal, "cat one; echo $X") == "<bash_output>\n1\n2\n</bash_output>"


def test_tasks_by_number_seed_and_turn(terminal: TerminalEnv) -> None:
    names = [task.name for task in terminal.tasks]
    assert terminal.data_size == len(names)
    assert terminal.reset(data_index=len(names) + 3)[1]["task_name"] == names[3]
    assert terminal.reset(seed=5)[1] == terminal.reset(seed=5)[1]
    one = terminal.reset()[1]["task_name"]
    assert names.index(terminal.reset()[1]["task_name"]) == (names.index(one) + 1) % len(names)


def test_infos_are_json(terminal: TerminalEnv) -> None:
    json.dumps(terminal.reset(seed=0)[1])
    json.dumps(terminal.step("<bash>printf '\\xff\\xfe'; ls</bash>")[4])


def test_what_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(EnvError, match="form must be one of"):
        gem_core.make("terminal:Tasks-v0", form="json")
    with pytest.raises(EnvError, match="max_turns"):
        gem_core.make("terminal:Tasks-v0", max_turns=0)
    with pytest.raises(EnvError, match=r"no task 'repair-confg'.*repair-config"):
        gem_core.make("terminal:Tasks-v0", only=["repair-confg"])
    with pytest.raises(TaskRefused, match="holds no task"):
        gem_core.make("terminal:Folder", tasks=tmp_path)
    with pytest.raises(TaskRefused, match="no folder"):
        gem_core.make("terminal:Folder", tasks=tmp_path / "none")
    with pytest.raises(EnvError, match="no package"):
        gem_core.make("terminal:Folder", tasks="package:no_such_package/tasks")
