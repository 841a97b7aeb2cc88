"""`remote:` ids play what a server plays, and say what went wrong there."""

from __future__ import annotations

import pickle
import random
import socket
from collections.abc import Iterator

import pytest
from env_servers import Server, serving

from gem_core import make, make_vec
from gem_core.errors import EnvError, EnvKwargsError, NotFoundError
from gem_core.image import PngImage, images_of
from gem_core.tools import Function, Tool, ToolEnv
from gem_testing import check_env

pytest.importorskip("websockets")

GUESS = "game:GuessTheNumber-v0-easy"
GAMES = [
    GUESS,
    "game:Corridor-v0",
    "game:Game2048-v1-easy",
    "game:Hangman-v1-easy",
    "game:Minesweeper-v1-easy",
    "game:Sokoban-v1-easy",
    "game:Wordle-v0-easy",
]
MAZE = "visual:Maze-v0-easy"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(*GAMES, "rg:word_sorting", "demo:Odd-v0", "demo:Shifting-v0") as one:
        yield one


def remote(server: Server, env_id: str, **kwargs: object) -> object:
    return make(f"remote:{env_id}", url=server.url, patience=0.0, **kwargs)


@pytest.mark.parametrize("env_id", GAMES)
def test_a_seed_gives_the_same_transitions_as_it_does_there(server: Server, env_id: str) -> None:
    with make(env_id) as here, remote(server, env_id) as there:
        for seed in range(20):
            assert here.reset(seed=seed) == there.reset(seed=seed)
            for _ in range(30):
                action = here.sample_random_action()
                assert there.sample_random_action() == action
                transition = here.step(action)
                assert there.step(action) == transition
                if transition[2] or transition[3]:
                    break


def test_images_arrive_as_they_were_drawn() -> None:
    pytest.importorskip("PIL")
    with serving(MAZE) as maze, make(MAZE) as here, remote(maze, MAZE) as there:
        for seed in range(3):
            opening = here.reset(seed=seed)
            assert there.reset(seed=seed) == opening
            assert [image.size for image in images_of(opening[1])] == [(56, 56)]
            ended = False
            while not ended:
                action = here.sample_random_action()
                transition = here.step(action)
                assert there.step(action) == transition
                ended = transition[2] or transition[3]


def test_a_image_of_any_kind_arrives_as_data(server: Server) -> None:
    pytest.importorskip("PIL")
    with remote(server, "demo:Odd-v0") as env:
        env.reset(seed=1)
        images = env.step("image")[4]["images"]
        assert [(type(one), PngImage.of(one).size) for one in images] == [(str, (28, 14))]


def test_it_keeps_the_contract(server: Server) -> None:
    check_env(f"remote:{GUESS}", url=server.url)


def test_task_numbers_arrive(server: Server) -> None:
    with make("rg:word_sorting") as here, remote(server, "rg:word_sorting") as there:
        assert there.takes_data_index
        assert there.data_size == here.data_size
        assert there.reset(seed=1, data_index=5) == here.reset(seed=1, data_index=5)


def test_options_and_values_of_any_kind_arrive(server: Server) -> None:
    with remote(server, "demo:Odd-v0") as env:
        observation, info = env.reset(seed=1, row=7)
        assert observation.startswith("row 7 of 3")
        assert info == {"pair": (1, 2), "big": 2**70, "odd": "\ud800"}
        assert env.step("\ud800 \0")[0] == "\ud800 \0"
        with pytest.raises(EnvKwargsError, match="rows"):
            env.reset(rows=1)
        assert env.step("end")[2]


def test_an_exception_keeps_its_type_and_text(server: Server) -> None:
    with remote(server, "demo:Odd-v0") as env:
        for action, said in (
            ("raise", "Mazed: no exit .raised by demo:Odd-v0 at ws://"),
            ("leave", "SystemExit: 3"),
            ("object", "TypeError: the environment's answer cannot be sent: .*object"),
        ):
            env.reset(seed=1)
            with pytest.raises(EnvError, match=said):
                env.step(action)
            assert env.step("on")[0] == "on"


def test_what_is_no_transition_is_judged_as_it_is_here(server: Server) -> None:
    vector = make_vec("remote:demo:Odd-v0", num_envs=1, seed=1, env_kwargs={"url": server.url})
    vector.reset()
    *_, infos = vector.step(["on"])
    assert infos[0]["env_error"] == "its own"
    _, _, _, truncated, infos = vector.step(["garbage"])
    assert truncated == [True]
    assert "step() gave ('three', 1, True)" in infos[0]["final_info"]["error"]
    vector.close()


def test_a_snapshot_is_played_again(server: Server) -> None:
    with remote(server, "demo:Odd-v0") as env:
        env.reset(seed=1)
        env.step(env.sample_random_action())
        state = env.get_state()
        expected = [env.step(env.sample_random_action()) for _ in range(3)]
        copies = [pickle.loads(pickle.dumps(env)), env.spawn(same_state=True), env]
        for copy in copies:
            copy.set_state(state)
            assert [copy.step(copy.sample_random_action()) for _ in range(3)] == expected
            copy.close()


def test_a_snapshot_that_goes_another_way_is_noticed(server: Server) -> None:
    with remote(server, "demo:Shifting-v0") as env:
        env.reset(seed=1)
        env.set_state(env.get_state())
        with pytest.raises(EnvError, match="another way"):
            env.step("on")


def test_random_actions_of_another_generator_leave_the_episode_alone(server: Server) -> None:
    with remote(server, "demo:Odd-v0") as env, make(GUESS) as here, remote(server, GUESS) as there:
        env.reset(seed=1)
        assert env.draw_action(random.Random(5)) == env.draw_action(random.Random(5))
        here.reset(seed=3)
        there.reset(seed=3)
        assert there.render() == here.render()


class Clock(Tool):
    """Says the time."""

    def functions(self) -> list[Function]:
        return [Function("time", "The time.")]

    def call(self, function: str, arguments: object, context: object) -> str:
        return "noon"


def test_tools_are_called_by_the_client(server: Server) -> None:
    with ToolEnv(remote(server, GUESS), [Clock()]) as env, make(GUESS) as here:
        env.reset(seed=1)
        assert "noon" in env.step('<tool_call>{"name": "time", "arguments": {}}</tool_call>')[0]
        here.reset(seed=1)
        assert env.step("\\boxed{3}")[:4] == here.step("\\boxed{3}")[:4]


def test_what_a_user_may_get_wrong(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEM_REMOTE_URL", raising=False)
    with pytest.raises(EnvError, match="needs the address of its server"):
        make(f"remote:{GUESS}")
    with pytest.raises(EnvError, match="needs the address of its server, not 'localhost:1'"):
        make(f"remote:{GUESS}", url="localhost:1")
    with pytest.raises(EnvKwargsError, match="no argument 'max_turns'"):
        make(f"remote:{GUESS}", url=server.url, max_turns=3)
    with pytest.raises(NotFoundError, match="name one of the server, as in 'remote:game:Corridor-v0'"):
        make("remote:")
    with pytest.raises(EnvError, match=f"'game:GuessTheNumber' is not served. Did you mean '{GUESS}'"):
        remote(server, "game:GuessTheNumber").reset()
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and nobody listens
        nowhere = make(f"remote:{GUESS}", url=f"ws://127.0.0.1:{nobody.getsockname()[1]}", patience=0.0)
        with pytest.raises(EnvError, match="no server answers at ws://127"):
            nowhere.reset()
    monkeypatch.setenv("GEM_REMOTE_URL", server.url)
    with make(f"remote:{GUESS}") as env:
        env.reset()
