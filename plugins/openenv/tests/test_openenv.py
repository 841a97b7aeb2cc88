"""Exported ids play through OpenEnv's own server as they do here, and `openenv:` ids play any server of OpenEnv."""

from __future__ import annotations

import json
import pickle
import random
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from gem_core import Env, make
from gem_core.cli import main
from gem_core.errors import EnvError, EnvKwargsError, NotFoundError
from gem_core.plugins import manager
from gem_support.ports import unused_port
from gem_support.waiting import wait_until

pytest.importorskip("openenv")

GUESS = "game:GuessTheNumber-v0-easy"
GAMES = [one.spec.id for one in manager.registrations("gem_envs", "game") if one.spec.id.startswith("game:")]
TURNS = 12
SERVER = Path(__file__).with_name("packages_server.py")


def name_of(env_id: str) -> str:
    """The name of an id's package."""
    return "".join(letter if letter.isalnum() else "_" for letter in env_id.lower())


def command(*arguments: str) -> object:
    """The exit status of `gem-core`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["gem-core", *arguments])
        try:
            main()
        except SystemExit as end:
            return end.code
    return None


def export(*arguments: str) -> object:
    """The exit status of the command that exports."""
    return command("export", "openenv", *arguments)


def exported(env_id: str, folder: Path, *options: str) -> Path:
    """The package of an id, as the command writes it."""
    package = folder / name_of(env_id)
    assert not export(env_id, "--out", str(package), *options)
    return package


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packages")
    for env_id in GAMES:
        exported(env_id, folder)
    return folder


@pytest.fixture(scope="module")
def url(packages: Path) -> Iterator[str]:
    port = unused_port()
    server = subprocess.Popen([sys.executable, str(SERVER), str(port), str(packages)])
    url = f"http://127.0.0.1:{port}"

    def ready() -> bool:
        assert server.poll() is None, "the server ended"
        try:
            return urllib.request.urlopen(f"{url}/field/health").status == 200
        except OSError:
            return False

    wait_until(ready)
    yield url
    server.kill()
    server.wait()


def served(url: str, env_id: str) -> Env:
    return make(f"openenv:{url}/{name_of(env_id)}")


@pytest.mark.parametrize("env_id", GAMES)
def test_an_exported_id_has_the_same_transitions(url: str, env_id: str) -> None:
    with make(env_id) as here, served(url, env_id) as there:
        for seed in range(20):
            assert there.reset(seed=seed) == here.reset(seed=seed)
            drawn = random.Random(seed)
            for _ in range(TURNS):
                action = here.draw_action(drawn)
                transition = here.step(action)
                assert there.step(action) == transition
                if transition[2] or transition[3]:
                    break


def test_openenv_accepts_the_package_and_the_server(url: str, packages: Path) -> None:
    validate = [sys.executable, "-m", "openenv.cli", "validate"]
    name = "game_guessthenumber_v0_easy"
    for target in (str(packages / name), f"{url}/{name}"):
        local = [] if target.startswith("http") else ["--level", "static", "--skip-build"]
        report = subprocess.run([*validate, target, *local], capture_output=True, text=True)
        assert report.returncode == 0, report.stdout
        assert "Verdict: PASS" in report.stdout


def test_its_own_client_plays_the_package(url: str) -> None:
    from openenv.core import GenericEnvClient

    with make(GUESS) as here, GenericEnvClient(base_url=f"{url}/game_guessthenumber_v0_easy").sync() as client:
        assert client.reset(seed=3).observation["text"] == here.reset(seed=3)[0]
        result = client.step({"text": "\\boxed{5}"})
        observation, reward, terminated, _, info = here.step("\\boxed{5}")
        assert (result.observation["text"], result.reward, result.done) == (observation, reward, terminated)
        assert result.observation["info"] == info


def test_arguments_and_options_of_an_exported_id(tmp_path: Path, url: str) -> None:
    package = exported(GUESS, tmp_path, "--set", "max_turns=2")
    assert json.loads((package / "server" / "gem.json").read_text())["kwargs"] == {"max_turns": 2}
    with served(url, GUESS) as env, pytest.raises(EnvKwargsError, match="no reset option 'rows'"):
        env.reset(rows=1)


def test_what_cannot_be_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "full").touch()
    for arguments, said in (
        ([GUESS, "--out", str(tmp_path)], "is there already"),
        (["game:GuessTheNumber", "--out", str(tmp_path / "a")], "Did you mean"),
        ([GUESS, "--set", "turns=1", "--out", str(tmp_path / "b")], "no argument 'turns'"),
        ([GUESS, "--reward-range", "1", "0", "--out", str(tmp_path / "c")], "is none"),
    ):
        assert export(*arguments)
        assert said in capsys.readouterr().err


def test_a_prefix_alone_says_what_may_follow(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NotFoundError, match="name a server, as in 'openenv:http://localhost:8000', the folder"):
        make("openenv:")
    assert not command("list", "openenv:")
    assert "Nothing matches. no environment 'openenv:': name a server" in " ".join(capsys.readouterr().out.split())


def test_several_fields_are_json(url: str) -> None:
    with make(f"openenv:{url}/field") as env:
        observation, info = env.reset(seed=1, start=1)
        assert json.loads(observation) == {"row": 1, "words": "go north"}
        assert "north" in info["prefix"]
        assert "steps" in info["prefix"]
        for bad in ("north", "[1]", '{"direction": "up"}', '{"direction": "north", "speed": 1}'):
            _, reward, *ended, info = env.step(bad)
            assert (reward, *ended, info["invalid_action"]) == (0.0, False, False, True)
        observation, reward, terminated, truncated, _ = env.step('{"direction": "north", "steps": 2}')
        assert (json.loads(observation)["row"], reward, terminated, truncated) == (3, 3.0, True, False)
        env.reset(seed=1)
        assert env.step('{"direction": "south", "steps": 11}')[1:4] == (-11.0, False, True)
        env.reset(seed=1)
        assert json.loads(env.sample_random_action())["direction"] in ("north", "south")
        with pytest.raises(EnvError, match="the ground gives way"):
            env.step('{"direction": "north", "steps": 13}')


def test_fields_by_name(url: str) -> None:
    with make(f"openenv:{url}/field", action="direction", observation="words") as env:
        assert env.reset(seed=1)[0] == "go north"
        assert env.step("north")[1] == 1.0
        assert env.step("up")[4]["invalid_action"]
        assert env.sample_random_action() in ("north", "south")
    with make(f"openenv:{url}/field", action="way") as env, pytest.raises(EnvError, match="no field 'way'"):
        env.reset()


def test_a_full_server_and_none(url: str) -> None:
    with make(f"openenv:{url}/field") as first, make(f"openenv:{url}/field", patience=0.0) as second:
        first.reset(seed=1)
        with pytest.raises(EnvError, match="has no room"):
            second.reset(seed=1)
    with pytest.raises(EnvError, match="no OpenEnv server: its /schema is HTTP 404"):
        make(f"openenv:{url}/nothing").reset()
    with pytest.raises(EnvError, match="write openenv:http://host:port"):
        make("openenv:Guess-v0")


def test_snapshots_and_copies(url: str) -> None:
    actions = [f"\\boxed{{{number}}}" for number in (5, 3, 8)]
    with served(url, GUESS) as env:
        env.reset(seed=2)
        env.step(actions[0])
        copies = [pickle.loads(pickle.dumps(env)), env.spawn(same_state=True)]
        expected = [env.step(action)[:4] for action in actions[1:2]]
        for copy in copies:
            assert [copy.step(action)[:4] for action in actions[1:2]] == expected
            copy.close()
