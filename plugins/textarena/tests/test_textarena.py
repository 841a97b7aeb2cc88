"""TextArena's one-player games: ids, randomness, ends and rewards, and play in other threads and processes."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("textarena")

import gem_core
from gem_core.env import RESERVED, Env
from gem_core.errors import EnvError, EnvKwargsError, NotFoundError
from gem_core.vector import make_vec
from gem_testing import check_env
from gem_textarena import _library as library
from gem_textarena._names import ABSENT, IDS, MATCHES, game_of, match_names, names

ONE_EACH = [next(name for name in names() if game_of(name) == game) for game in IDS]
"""The first id of each game."""
TURNS = 12


def opened(name: str, /, **kwargs: Any) -> Env:
    return gem_core.make(f"textarena:{name}", **kwargs)


def game(env: Env) -> Any:
    return env.unwrapped._game  # pyright: ignore


def played(env: Env, seed: int, turns: int = TURNS) -> Iterator[tuple[Any, ...]]:
    """What random play shows."""
    yield env.reset(seed=seed)
    yield from continued(env, turns)


def continued(env: Env, turns: int = TURNS) -> Iterator[tuple[Any, ...]]:
    for _ in range(turns):
        turn = env.step(env.sample_random_action())
        yield turn
        if turn[2] or turn[3]:
            return


# -- ids ---------------------------------------------------------------------------------------------------------------


def test_every_id_of_textarena_is_here_or_has_a_reason_not_to_be() -> None:
    from textarena.envs.registration import ENV_REGISTRY

    plain = {name for name in ENV_REGISTRY if not name.endswith(("-raw", "-train"))}
    assert {name for name in plain if game_of(name) in IDS} == {*names()}
    assert {name for name in plain if game_of(name) in MATCHES} == {*match_names()}
    assert {game_of(name) for name in plain} == {*IDS, *MATCHES, *ABSENT}
    assert not (IDS.keys() | MATCHES.keys()) & ABSENT.keys()


def test_listing_the_ids_imports_no_textarena() -> None:
    source = (
        "import sys, gem_core\nfrom gem_core.plugins import manager\n"
        "print(len(manager.registrations('gem_envs', 'textarena')), 'textarena' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(len(names()) + len(match_names())), "False"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Taboo-v0", "three players or more"),
        ("Chess-v0-raw", "needs Python 3.12"),
        ("Wordle-v0-long", "NLTK"),
        ("TwentyQuestions-v0", "hosted model"),
        ("Klondike-v0", "cannot be imported"),
        ("FrozenLake-v0-train", "'textarena:FrozenLake-v0'"),
        ("FrozenLak-v0", "'textarena:FrozenLake-v0'"),
    ],
)
def test_an_id_that_is_not_here_is_answered_with_the_reason(name: str, words: str) -> None:
    with pytest.raises(NotFoundError, match=words):
        opened(name)


def test_the_version_of_textarena_is_recorded() -> None:
    assert f"textarena {version('textarena')}" in str(gem_core.registry.provenance("textarena:Set-v0"))


def test_the_constructor_says_what_it_does_not_take() -> None:
    with pytest.raises(EnvKwargsError, match="Did you mean 'size'"):
        opened("FrozenLake-v0", sice=5)
    with pytest.raises(EnvError, match="at least three cups"):
        opened("ThreeCardMonte-v0", num_cups=2)
    with pytest.raises(EnvError, match="gem-core list"):
        opened("Set-v0", name="TicTacToe-v0")
    with pytest.raises(EnvError, match="cannot start with"):
        opened("Mastermind-v0", code_length=7).reset(seed=0)
    assert game_size(opened("FrozenLake-v0", size=6)) == 6


def game_size(env: Env) -> int:
    env.reset(seed=0)
    return game(env).size


# -- the contract ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ONE_EACH)
def test_games_keep_the_contract(name: str) -> None:
    # The check plays some hundred episodes, of which some would have 200 turns.
    short = {"max_turns": 40} if library.settings_of(name, {}).get("max_turns", 0) > 40 else {}
    check_env(f"textarena:{name}", **short)


@pytest.mark.parametrize("name", names())
def test_random_play_is_never_invalid_and_nothing_is_printed(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    with opened(name) as env:
        for observation, *rest in played(env, seed=3, turns=40):
            assert not rest[-1].get("invalid_action")
            assert observation == observation.strip("\n")
    assert capfd.readouterr() == ("", "")


def test_worker_processes_play_what_one_process_plays() -> None:
    """Their hashes of strings differ, as does all that was played in them before."""
    envs = [opened(name) for name in ONE_EACH]
    seeds = [*range(len(envs))]
    ids = [f"textarena:{name}" for name in ONE_EACH]
    with make_vec(ids, backend="process", workers=2, autoreset="disabled") as vec:
        observations, infos = vec.reset(seed=seeds)
        for env, seed, observation, info in zip(envs, seeds, observations, infos, strict=True):
            own = {key: value for key, value in info.items() if key not in RESERVED}
            assert (observation, own) == env.reset(seed=seed)
        playing = seeds
        for _ in range(TURNS):
            actions = {slot: envs[slot].sample_random_action() for slot in playing}
            turns = [*zip(*vec.step(actions), strict=True)]
            assert turns == [envs[slot].step(action) for slot, action in actions.items()]
            playing = [slot for slot, turn in zip(playing, turns, strict=True) if not (turn[2] or turn[3])]


@pytest.mark.parametrize("name", ["2048-v0", "Blackjack-v0", "Minesweeper-v0", "Secretary-v0"])
def test_a_copy_plays_on_in_a_process_that_has_played_nothing(name: str, tmp_path: Path) -> None:
    env = opened(name)
    env.reset(seed=5)
    (tmp_path / "env").write_bytes(pickle.dumps(env))
    source = (
        "import pickle, random, sys, pathlib\nenv = pickle.loads(pathlib.Path(sys.argv[1]).read_bytes())\n"
        "random.seed(0)\nstate = random.getstate()\nturns = []\n"
        f"for _ in range({TURNS}):\n"
        "    turns.append(env.step(env.sample_random_action()))\n"
        "    if turns[-1][2] or turns[-1][3]: break\n"
        "assert random.getstate() == state\nprint(turns)"
    )
    done = subprocess.run(
        [sys.executable, "-c", source, str(tmp_path / "env")], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str([*continued(env)])


def test_threads_disturb_neither_each_other_nor_the_global_generator() -> None:
    chosen = ("2048-v0", "Blackjack-v0", "RushHour-v0", "Sokoban-v0", "Bandit-v0")
    alone = [[*played(opened(name), seed)] for seed, name in enumerate(chosen)]
    together: list[Any] = [None] * len(chosen)

    def play(seed: int, name: str) -> None:
        together[seed] = [*played(opened(name), seed)]

    library._started.cache_clear()  # pyright: ignore
    random.seed(11)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=play, args=each) for each in enumerate(chosen)]
    try:
        for thread in threads:
            thread.start()
        drawn = [random.random() for _ in range(5000)]
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert together == alone
    reference = random.Random(11)
    assert drawn == [reference.random() for _ in range(5000)]
    assert random.random() == reference.random()


def test_threads_that_want_the_same_start_make_it_once() -> None:
    library._started.cache_clear()  # pyright: ignore
    barrier = threading.Barrier(4)

    def begin(env: Env) -> None:
        barrier.wait()
        env.reset(seed=8)

    threads = [threading.Thread(target=begin, args=(opened("Sokoban-v0"),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert library._started.cache_info().misses == 1  # pyright: ignore


def test_textarena_itself_draws_from_the_global_generator_as_before() -> None:
    import textarena

    opened("GuessTheNumber-v0").reset(seed=1)
    plain: Any = textarena.make("GuessTheNumber-v0-raw")
    random.seed(3)
    plain.reset(num_players=1)
    assert plain.game_number == random.Random(3).randint(1, 20)


# -- moves -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "move"),
    [
        ("I think [up] is bad, so [down]", "[down]"),
        ("down", "[down]"),
        ("  [ down ] \n", "[down]"),
        ("[[down]", "[down]"),
        ("[]", None),
        ("[down", None),
        ("", None),
        (f"[{'d' * 101}]", None),
        ("[d\0wn]", None),
        ("[d\u00f6wn]", None),
    ],
)
def test_the_move_is_what_the_last_brackets_hold(action: str, move: str | None) -> None:
    env = opened("FrozenLake-v0")
    env.reset(seed=0)
    info = env.step(action)[4]
    assert info.get("parsed_action") == move
    assert bool(info.get("invalid_action")) == (move != "[down]")


def test_the_second_invalid_action_in_a_row_ends_the_game() -> None:
    env = opened("Slitherlink-v0")
    env.reset(seed=0)
    observation, *flags, info = env.step("[h 99 99]")
    assert "Edge outside board" in observation
    assert (flags, info["invalid_action"]) == ([0.0, False, False], True)
    assert not env.step("[h 0 0]")[4].get("invalid_action")
    env.step("no")
    observation, reward, *flags, info = env.step("no")
    assert observation == "Invalid Move: Bad action format. Use [h row col] or [v row col]."
    assert (flags, info["success"], info["invalid_action"]) == ([True, False], False, True)
    assert reward == 0.0 < game(env).state.rewards[0]


@pytest.mark.parametrize("name", ONE_EACH)
def test_invalid_actions_earn_nothing(name: str) -> None:
    env = opened(name)
    for seed in range(3):
        env.reset(seed=seed)
        first, last = env.step(""), env.step("[?]")
        assert (first[1:4], last[2:4]) == ((0.0, False, False), (True, False))
        assert last[1] == min(0.0, game(env).state.rewards[0])


@pytest.mark.parametrize("name", ["Sudoku-v0", "Crosswords-v0", "Minesweeper-v0"])
def test_a_wrong_guess_is_not_invalid_and_a_guess_at_what_is_known_is(name: str) -> None:
    env = opened(name)
    env.reset(seed=0)
    if name == "Minesweeper-v0":
        env.step("[0 0]")
    wrong, known = guesses(game(env))
    assert "invalid_action" not in env.step(f"[{wrong}]")[4]
    assert env.step(f"[{known}]")[4]["invalid_action"]


def guesses(played: Any) -> tuple[str, str]:
    """A wrong guess, and one that is against the rules."""
    cells = [(row, column) for row in range(8) for column in range(8)]
    if hasattr(played, "revealed"):
        mine = next((row, column) for row, column in cells if played.grid[row][column] == -1)
        return "{} {}".format(*mine), "0 0"
    board = played.state.game_state["board"]
    if hasattr(played, "full_grid"):
        row, column = next(cell for cell in cells if board[cell[0]][cell[1]] == 0)
        full = next(cell for cell in cells if board[cell[0]][cell[1]] != 0)
        digit = played.full_grid[row][column] % 9 + 1
        return f"{row + 1} {column + 1} {digit}", f"{full[0] + 1} {full[1] + 1} 1"
    row, column = next((row, cells.index("_")) for row, cells in enumerate(board) if "_" in cells)
    letter = "b" if played.state.game_state["solution"][row][column].lower() == "a" else "a"
    black = next((row, cells.index(".")) for row, cells in enumerate(board) if "." in cells)
    return f"{row} {column} {letter}", "{} {} a".format(*black)


# -- ends and rewards --------------------------------------------------------------------------------------------------

LIMITED = {
    "Countdown-v0": "max_turns",
    "Cryptarithm-v0": "max_turns",
    "FifteenPuzzle-v0": "max_turns",
    "GuessTheNumber-v0-hardcore": "max_turns",
    "LightsOut-v0": "max_turns",
    "LogicPuzzle-v0": "max_turns",
    "Mastermind-v0-extreme": "max_turns",
    "Slitherlink-v0": "max_turns",
    "Sokoban-v0": "max_turns",
    "TowerOfHanoi-v0": "max_turns",
}


@pytest.mark.parametrize("name", LIMITED)
def test_a_limit_of_turns_truncates(name: str) -> None:
    env = opened(name, max_turns=1)
    *_, last = played(env, seed=1)
    assert last[2:4] == (False, True)
    assert last[4]["success"] is False


def test_a_limit_of_turns_truncates_where_guesses_are_right() -> None:
    for name in ("Sudoku-v0-medium", "Crosswords-v0", "Minesweeper-v0-hard"):
        env = opened(name, max_turns=1)
        env.reset(seed=1)
        turns = [env.step(f"[{right_guess(game(env))}]") for _ in range(2)]
        assert [turn[2:4] for turn in turns] == [(False, False), (False, True)]
        assert sum(turn[1] for turn in turns) == pytest.approx(game(env)._get_percentage_completion())


def right_guess(played: Any) -> str:
    cells = [(row, column) for row in range(9) for column in range(9)]
    if hasattr(played, "revealed"):
        if played.first_move:
            return "5 5"
        free = (cell for cell in cells if not played.revealed[cell[0]][cell[1]] and played.grid[cell[0]][cell[1]] != -1)
        return "{} {}".format(*next(free))
    board = played.state.game_state["board"]
    if hasattr(played, "full_grid"):
        row, column = next(cell for cell in cells if board[cell[0]][cell[1]] == 0)
        return f"{row + 1} {column + 1} {played.full_grid[row][column]}"
    row, column = next((row, cells.index("_")) for row, cells in enumerate(board) if "_" in cells)
    return f"{row} {column} {played.state.game_state['solution'][row][column]}"


def test_the_limit_that_a_game_has_without_an_argument_truncates() -> None:
    env = opened("FrozenLake-v0", num_holes=0)
    env.reset(seed=0)
    turns = [env.step(move) for move in ("[right]", "[left]") * 50]
    assert not any(turn[2] or turn[3] for turn in turns)
    assert env.step("[right]")[1:4] == (pytest.approx(1 / 6), False, True)


def test_a_solved_fifteen_puzzle_pays() -> None:
    env = opened("FifteenPuzzle-v0")
    env.reset(seed=0)
    tiles: list[int | None] = [*range(1, 15), None, 15]
    game(env).board = [tiles[row : row + 4] for row in range(0, 16, 4)]
    observation, *end, info = env.step("[left]")
    assert (end, info["success"]) == ([1.0, True, False], True)
    assert "solved" in observation


@pytest.mark.parametrize("right", [True, False])
def test_the_best_button_of_bandit_pays_and_no_other(right: bool) -> None:
    env = opened("Bandit-v0", num_turns=2)
    env.reset(seed=0)
    chances = game(env).state.game_state["ground_truth"]
    best, worst = max(chances, key=chances.get), min(chances, key=chances.get)
    for _ in range(2):
        assert env.step(f"[{worst}]")[1:4] == (0.0, False, False)
    observation, *end, info = env.step(f"[{best if right else worst}]")
    assert (end, info["success"]) == ([float(right), True, False], right)
    assert best in observation


def test_a_set_pays_at_once_and_its_cards_count_once() -> None:
    from itertools import combinations

    from textarena.envs.Set.env import _is_set

    env = opened("Set-v0")
    env.reset(seed=0)
    board = game(env).state.game_state["board"]
    found = next(each for each in combinations(range(12), 3) if _is_set(tuple(board[index] for index in each)))
    assert env.step("[1, 1, 01]")[4]["invalid_action"]
    assert env.step(str([index + 1 for index in found]))[1] == 1.0
    assert sum(turn[1] for turn in continued(env, 30)) == game(env).state.rewards[0] - 1.0


@pytest.mark.parametrize("name", ["2048-v0-super-easy", "Blackjack-v0-long", "PegJump-v0", "FrozenLake-v0"])
def test_rewards_add_up_to_what_textarena_pays(name: str) -> None:
    env = opened(name)
    for seed in range(4):
        _, *turns = played(env, seed, turns=500)
        assert sum(turn[1] for turn in turns) == pytest.approx(game(env).state.rewards[0])
        assert any(turn[1] for turn in turns[:-1]) == (name != "FrozenLake-v0")


def test_boards_are_shown_apart_from_what_is_said() -> None:
    env = opened("2048-v0")
    observation, info = env.reset(seed=0)
    assert "Valid moves" in observation
    assert info["suffix"].startswith("Score: 0")
    observation, *_, later = env.step(env.sample_random_action())
    assert observation == ""
    assert later["suffix"] != info["suffix"]
    assert env.render() == later["suffix"]


# -- the page ----------------------------------------------------------------------------------------------------------


def test_the_example_of_the_page_runs() -> None:
    page = (Path(__file__).parents[1] / "README.md").read_text()
    shown: dict[str, Any] = {}
    exec(page.partition("```python\n")[2].partition("```")[0], shown)
    assert shown["info"]["parsed_action"] == "[right]"
    assert game_size(shown["wide"]) == 6
    assert f"22 games in {len(names())} ids" in page
    assert f"{len(MATCHES)} games in {len(match_names())} ids" in page
    assert len(IDS) == 22
