"""The corridor, played."""

from __future__ import annotations

import pytest

import gem_core
from gem_core.errors import EnvError

ID = "game:Corridor-v0"
SEEDS = range(50)


def towards_goal(row: str) -> str:
    return ">" if row.index("G") > row.index("@") else "<"


def away_from_goal(row: str) -> str:
    return "<" if towards_goal(row) == ">" else ">"


def moved(row: str, move: str) -> str:
    """The row after a legal move that does not reach the goal."""
    cells = list(row)
    here = row.index("@")
    there = here + (1 if move == ">" else -1)
    cells[here], cells[there] = ".", "@"
    return "".join(cells)


def start(seed: int, **kwargs: int) -> tuple[gem_core.Env, str]:
    env = gem_core.make(ID, **kwargs)
    return env, env.reset(seed=seed)[0]


def seed_with(player: int, goal: int, length: int = 7) -> int:
    """A seed whose episode starts like this."""
    row = "".join("@" if cell == player else "G" if cell == goal else "." for cell in range(length))
    return next(seed for seed in range(10_000) if start(seed, length=length)[1] == row)


def test_a_row_shows_player_and_goal_on_two_cells() -> None:
    for seed in SEEDS:
        env, row = start(seed)
        assert sorted(row) == sorted("@G.....")
        assert env.reset(seed=seed) == (row, {})
        assert env.render() == row


def test_every_pair_of_cells_is_a_start() -> None:
    assert len({start(seed)[1] for seed in range(1000)}) == 7 * 6


@pytest.mark.parametrize("seed", SEEDS)
def test_walking_to_the_goal_pays_one(seed: int) -> None:
    env, row = start(seed)
    distance = abs(row.index("G") - row.index("@"))
    for _ in range(distance - 1):
        expected = moved(row, towards_goal(row))
        assert env.step(towards_goal(row)) == (expected, 0.0, False, False, {"success": False})
        row = expected
    arrived = row.replace("@", ".")  # the goal covers the player
    assert env.step(towards_goal(row)) == (arrived, 1.0, True, False, {"success": True})


def test_walking_away_pays_nothing() -> None:
    env, row = start(seed_with(player=3, goal=5))
    assert env.step("<") == (moved(row, "<"), 0.0, False, False, {"success": False})


@pytest.mark.parametrize("action", [" > ", "\n>\n", "\t>"])
def test_white_space_around_a_move_is_ignored(action: str) -> None:
    env, row = start(seed_with(player=0, goal=6))
    assert env.step(action) == (moved(row, ">"), 0.0, False, False, {"success": False})


@pytest.mark.parametrize("action", ["", ">>", "> >", "right", "<>", "\\boxed{>}", "\uff1e"])
def test_what_is_no_move_costs_a_tenth_and_the_turn(action: str) -> None:
    env, row = start(seed_with(player=3, goal=6))
    assert env.step(action) == (row, -0.1, False, False, {"success": False, "invalid_action": True})
    for _ in range(6):
        env.step(action)
    assert env.step(action)[1:] == (-0.1, False, True, {"success": False, "invalid_action": True})


@pytest.mark.parametrize(("player", "goal", "move"), [(0, 3, "<"), (6, 3, ">")])
def test_there_is_no_way_through_a_wall(player: int, goal: int, move: str) -> None:
    env, row = start(seed_with(player, goal))
    assert env.step(move) == (row, -0.1, False, False, {"success": False, "invalid_action": True})


def test_the_episode_is_cut_off_after_eight_turns() -> None:
    env, row = start(seed_with(player=0, goal=6))
    for turn, move in enumerate("><><><><", start=1):
        _, reward, terminated, truncated, info = env.step(move)
        assert (reward, terminated, truncated, info) == (0.0, False, turn == 8, {"success": False})
    assert env.render() == row


def test_the_goal_on_the_last_turn_is_a_win_and_no_truncation() -> None:
    env, _ = start(seed_with(player=0, goal=6))
    for move in "><>>>>>":
        assert env.step(move)[1:4] == (0.0, False, False)
    assert env.step(">")[1:] == (1.0, True, False, {"success": True})


def test_the_goal_is_always_within_reach() -> None:
    for seed in SEEDS:
        env, row = start(seed)
        while True:
            row, _, terminated, truncated, _ = env.step(towards_goal(row))
            assert not truncated
            if terminated:
                break


@pytest.mark.parametrize("length", [2, 3, 12])
def test_length_and_limit_can_be_chosen(length: int) -> None:
    env, row = start(0, length=length, max_turns=1)
    assert len(row) == length
    assert any(env.step(away_from_goal(row))[2:4]), "one turn is all there is"


@pytest.mark.parametrize("wrong", [{"length": 1}, {"max_turns": 0}], ids=str)
def test_a_corridor_that_cannot_be_played_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(EnvError, match="length >= 2 and max_turns >= 1"):
        gem_core.make(ID, **wrong)


def test_random_moves_stay_inside_and_go_both_ways() -> None:
    moves: set[str] = set()
    for seed in SEEDS:
        env, _ = start(seed)
        over = False
        while not over:
            moves.add(action := env.sample_random_action())
            _, _, terminated, truncated, info = env.step(action)
            assert "invalid_action" not in info
            over = terminated or truncated
    assert moves == {"<", ">"}


def test_every_episode_has_all_its_turns() -> None:
    env, _ = start(0)
    for _ in range(3):
        env.reset(seed=0)
        assert [env.step("no move")[3] for _ in range(8)] == [False] * 7 + [True]
