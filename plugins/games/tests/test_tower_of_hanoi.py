"""Tower of Hanoi, played: moves, rewards, endings and parameters."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from gem_core.env import StepResult
from gem_core.errors import EnvError
from gem_games.tower_of_hanoi import TowerofHanoi


def start(**kwargs: Any) -> TowerofHanoi:
    env = TowerofHanoi(**kwargs)
    env.reset(seed=0)
    return env


def go(env: TowerofHanoi, move: str) -> StepResult:
    return env.step(f"so \\boxed{{{move}}}")


def solution(disks: int, source: str = "A", target: str = "C", spare: str = "B") -> Iterator[str]:
    """The shortest way to move a pile."""
    if disks:
        yield from solution(disks - 1, source, spare, target)
        yield f"{source} {target}"
        yield from solution(disks - 1, spare, target, source)


@pytest.mark.parametrize(("disks", "turns"), [(3, 10), (4, 20), (5, 35), (1, 1)])
def test_the_shortest_solution_wins_in_time(disks: int, turns: int) -> None:
    env = start(num_disks=disks, max_turns=turns)
    answers = [go(env, move) for move in solution(disks)]
    assert len(answers) == 2**disks - 1
    assert [answer[1:4] for answer in answers[:-1]] == [(0.0, False, False)] * (len(answers) - 1)
    assert answers[-1][1:4] == (1.0, True, False)
    assert [answer[4]["success"] for answer in answers] == [False] * (len(answers) - 1) + [True]


def test_the_board_shows_the_piles_with_the_top_on_the_right() -> None:
    env = TowerofHanoi(num_disks=3, max_turns=10)
    rules, info = env.reset(seed=0)
    assert "3 disks" in rules
    assert "10 moves" in rules
    assert info == {"suffix": "A: 3 2 1\nB: -\nC: -"}
    go(env, "A C")
    assert go(env, "A B")[4]["suffix"] == "A: 3\nB: 2\nC: 1"


@pytest.mark.parametrize("move", ["A C", "a c", "A,C", "AC", "A ,\n C", "A,  c", "a\u00a0C"])
def test_letters_are_read_in_any_case_and_however_parted(move: str) -> None:
    env = start()
    assert "invalid_action" not in go(env, move)[4]
    assert env.board() == "A: 3 2\nB: -\nC: 1"


@pytest.mark.parametrize("move", ["", "A", "A D", "A C B", " A C", "A C ", "A;C", "A,,C", "A to C", "1 3", "\uff21 C"])
@pytest.mark.parametrize("turn", [1, 2])
def test_without_two_towers_in_a_box_the_episode_ends(move: str, turn: int) -> None:
    env = start(num_disks=3, max_turns=2)
    for _ in range(turn - 1):
        go(env, "A C")
    board = env.board()
    info = {"success": False, "invalid_action": True, "suffix": board}
    assert go(env, move)[1:] == (-0.1, True, turn == 2, info)


@pytest.mark.parametrize("move", ["B A", "C C", "A C"])
def test_an_empty_tower_or_a_smaller_disk_costs_the_turn_and_nothing_else(move: str) -> None:
    """`A C` after disk 1 went there."""
    env = start(num_disks=3, max_turns=10)
    if move == "A C":
        go(env, "A C")
    board = env.board()
    _, *rest = go(env, move)
    assert rest == [0.0, False, False, {"success": False, "invalid_action": True, "suffix": board}]


def test_a_move_from_a_tower_to_itself_is_allowed_and_changes_nothing() -> None:
    env = start()
    board = env.board()
    assert go(env, "A A")[1:] == (0.0, False, False, {"success": False, "suffix": board})


@pytest.mark.parametrize(("moves", "reward"), [("AB", 0.0), ("AC", 1 / 3), ("AC BA", 1 / 3), ("AB AC BC", 2 / 3)])
def test_the_last_turn_pays_for_the_disks_on_c(moves: str, reward: float) -> None:
    *before, last = moves.split()
    env = start(num_disks=3, max_turns=len(before) + 1)
    for move in before:
        assert go(env, move)[1:4] == (0.0, False, False)
    _, paid, *rest = go(env, last)
    assert paid == pytest.approx(reward)
    assert rest[:2] == [True, True]
    assert rest[2]["success"] is False


def test_a_solution_on_the_last_turn_is_a_win_and_no_truncation() -> None:
    env = start(num_disks=2, max_turns=3)
    assert [go(env, move)[1:4] for move in solution(2)][-1] == (1.0, True, False)


def test_the_random_variant_draws_one_of_three_sizes_for_each_episode() -> None:
    env = TowerofHanoi(num_disks=None, max_turns=None)
    sizes = set()
    for seed in range(60):
        env.reset(seed=seed)
        sizes.add((env.num_disks, env.max_turns))
    assert sizes == {(3, 10), (4, 20), (5, 35)}


@pytest.mark.parametrize(
    "size", [{"num_disks": None}, {"max_turns": None}, {"num_disks": 0}, {"max_turns": 0}], ids=str
)
def test_sizes_that_make_no_game_are_refused(size: dict[str, Any]) -> None:
    with pytest.raises(EnvError):
        TowerofHanoi(**size)


def test_random_play_is_legal_and_solves_it_in_the_end() -> None:
    for seed in range(20):
        env = TowerofHanoi(num_disks=3, max_turns=10_000)
        env.reset(seed=seed)
        info = {"success": False}
        while not info["success"]:
            action = env.sample_random_action()
            info = env.step(action)[4]
            assert "invalid_action" not in info
            assert action[7] != action[9]


def test_a_box_full_of_white_space_is_read_in_linear_time() -> None:
    began = time.process_time()
    assert go(start(), "A" + " " * 200_000)[1] == -0.1
    assert go(start(), "A" + " " * 200_000 + "," + " " * 200_000)[1] == -0.1
    assert time.process_time() - began < 1


def test_the_example_in_the_rules_is_a_move() -> None:
    env = TowerofHanoi()
    assert "invalid_action" not in env.step(env.reset(seed=0)[0])[4]
