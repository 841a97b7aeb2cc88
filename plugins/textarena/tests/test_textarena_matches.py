"""TextArena's two-player games: the contract, opponents, invalid moves and ends."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("textarena")

import gem_core
from gem_core.env import Env
from gem_core.errors import EnvError, EnvKwargsError
from gem_core.vector import make_vec
from gem_testing import check_env
from gem_textarena._names import MATCHES, match_names

ONE_EACH = [f"{game}-v0" for game in MATCHES]
CHECKED = ["ConnectFour-v0", "IteratedRockPaperScissors-v0", "KuhnPoker-v0", "LiarsDice-v0", "WildTicTacToe-v0"]
"""Boards, hidden moves, hidden cards, another of TextArena's states; `textarena_contract.py` checks all ids."""


def opened(name: str, /, **kwargs: Any) -> Env:
    return gem_core.make(f"textarena:{name}", **kwargs)


def played_out(env: Env, seed: int) -> list[Any]:
    turns: list[Any] = [env.reset(seed=seed)]
    while len(turns) == 1 or not (turns[-1][2] or turns[-1][3]):
        turns.append(env.step(env.sample_random_action()))
    return turns


@pytest.mark.parametrize("name", CHECKED)
def test_two_players_keep_the_contract(name: str) -> None:
    check_env(f"textarena:{name}")


@pytest.mark.parametrize("name", CHECKED[:2])
def test_against_an_opponent_a_match_keeps_the_contract(name: str) -> None:
    check_env(f"textarena:{name}", opponents={"player 1": "random"})


@pytest.mark.parametrize("name", sorted({*match_names()} - {*ONE_EACH}))
def test_every_variant_is_played(name: str) -> None:
    env = opened(name)
    env.reset(seed=0)
    for _ in range(4):
        *_, info = env.step(env.sample_random_action())
        assert not info.get("invalid_action")


@pytest.mark.parametrize("name", ONE_EACH)
def test_random_play_is_valid_and_ends_with_rewards_of_both(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    env = opened(name)
    for seed in range(2):
        opening, *turns = played_out(env, seed)
        assert turns == played_out(env, seed)[1:]
        assert all(each[0] == each[0].strip("\n") for each in (opening, *turns))
        assert not any(turn[4].get("invalid_action") for turn in turns)
        *_, (observation, reward, terminated, truncated, info) = turns
        assert (terminated, truncated) == (True, False)
        assert reward + sum(info["agent_rewards"].values()) == 0.0
        assert info["success"] == (reward == 1.0)
        assert observation
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ONE_EACH)
def test_the_second_unreadable_action_in_a_row_loses(name: str) -> None:
    env = opened(name)
    _, info = env.reset(seed=0)
    _, *first, told = env.step("I wonder.")
    assert (first, told["invalid_action"], told["agent"]) == ([0.0, False, False], True, info["agent"])
    _, reward, terminated, _, told = env.step("[]")
    assert (reward, terminated, told["invalid_action"], [*told["agent_rewards"].values()]) == (-1.0, True, True, [1.0])


@pytest.mark.parametrize("name", ["IndianPoker-v0-extreme", "QuantumTicTacToe-v0", "UltimateTicTacToe-v0"])
def test_a_player_without_a_move_loses(name: str) -> None:
    env = opened(name)
    ends = (played_out(env, seed)[-1] for seed in range(100))
    observation, reward, *_, info = next(end for end in ends if "has no allowed move" in end[0])
    loser = f"player {observation.rpartition('Player ')[2][0]}"
    assert info["agent_rewards"].get(loser, reward) == -1.0
    assert not info.get("invalid_action")


def test_nobody_sees_another_s_cards() -> None:
    env = opened("KuhnPoker-v0")
    seen = [env.reset(seed=1)[0], env.step("[check]")[0]]
    cards = [text.partition("Your card is: ")[2][:3] for text in seen]
    assert {*cards} < {"'J'", "'Q'", "'K'"}
    assert cards[0] != cards[1]
    assert all(cards[1 - number] not in seen[number] for number in (0, 1))


def test_players_see_the_board_and_each_other_s_moves() -> None:
    env = opened("TicTacToe-v0")
    observation, info = env.reset(seed=0)
    assert info["agent"] == "player 0"
    assert "You are Player 0" in observation
    assert "Available Moves: '[0]'" in observation
    observation, *_, info = env.step("I take the middle: [4]")
    assert info["agent"] == "player 1"
    assert "You are Player 1" in observation
    assert "placed their symbol (O) in cell 4" in observation
    assert "I take" not in observation


def test_a_hand_is_shown_to_nobody_before_both_have_played() -> None:
    env = opened("IteratedRockPaperScissors-v0")
    env.reset(seed=0)
    observation, *_ = env.step("[rock]")
    assert "selects move rock" not in observation
    observation, *_, info = env.step("[paper]")
    assert info["agent"] == "player 0"
    assert "Player 1 wins!" in observation


def test_the_second_invalid_move_in_a_row_loses() -> None:
    env = opened("Nim-v0")
    env.reset(seed=0)
    observation, reward, terminated, _, info = env.step("[9 9]")
    assert (reward, terminated, info["agent"], info["invalid_action"]) == (0.0, False, "player 0", True)
    assert "Pile index 9 is out of range" in observation
    _, reward, terminated, _, info = env.step("nothing")
    assert (reward, terminated, info["agent_rewards"]) == (-1.0, True, {"player 1": 1.0})
    assert info["success"] is False
    assert info["agent_infos"]["player 1"]["success"] is True


def test_an_opponent_plays_inside_the_environment() -> None:
    env = opened("ConnectFour-v0", opponents={"player 0": "random"})
    assert played_out(env, 3) == played_out(opened("ConnectFour-v0", opponents={"player 0": "random"}), 3)
    assert env.agents == ("player 1",)


def test_worker_processes_play_what_this_process_plays() -> None:
    ids = [f"textarena:{name}" for name in ONE_EACH]
    with make_vec(ids, backend="process", workers=2, autoreset="disabled") as vec:
        vec.reset(seed=[*range(len(ids))])
        envs = [opened(name) for name in ONE_EACH]
        for seed, env in enumerate(envs):
            env.reset(seed=seed)
        for _ in range(4):
            actions = {slot: env.sample_random_action() for slot, env in enumerate(envs)}
            turns = [*zip(*vec.step(actions), strict=True)]
            assert turns == [envs[slot].step(action) for slot, action in actions.items()]


def test_a_copy_plays_on_in_a_process_that_has_played_nothing(tmp_path: Path) -> None:
    env = opened("Nim-v0-large")
    env.reset(seed=5)
    env.step(env.sample_random_action())
    (tmp_path / "env").write_bytes(pickle.dumps(env))
    source = (
        "import pickle, sys, pathlib\nenv = pickle.loads(pathlib.Path(sys.argv[1]).read_bytes())\n"
        "print(env.step(env.sample_random_action()))"
    )
    command = [sys.executable, "-c", source, str(tmp_path / "env")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(env.step(env.sample_random_action()))


def test_the_constructor_says_what_it_does_not_take() -> None:
    with pytest.raises(EnvKwargsError, match="Did you mean 'num_rows'"):
        opened("ConnectFour-v0", num_row=5)
    with pytest.raises(EnvKwargsError, match="no agent 'player 2'"):
        opened("Nim-v0", opponents={"player 2": "random"})
    with pytest.raises(EnvError, match="gem-core list"):
        opened("Nim-v0", name="Sudoku-v0")
