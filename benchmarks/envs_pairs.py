"""The same game on both sides: ours and upstream's in the same hidden state, with moves that are valid in it.

The code that copies states is in tests/parity/games. Upstream's word games get our words, through NLTK's own reader of
word lists, because their corpus would need a download.
"""

from __future__ import annotations

import copy
import importlib
import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import gem
import nltk
from gem.envs.game_env.guess_the_number import GuessTheNumberEnv
from gem.envs.registration import ENV_REGISTRY
from nltk.corpus.reader import WordListCorpusReader

from gem_core.env import Env
from gem_games._words import word_list
from gem_games.game_2048 import Game2048
from gem_games.guess_the_number import GuessTheNumber
from gem_games.minesweeper import Minesweeper
from gem_games.plugin import gem_envs

TESTS = Path(__file__).parents[1] / "tests" / "parity"
EVERYDAY_WORDS = 850
"""The length of upstream's word list for its easy games."""
IDS = sorted(name for name in ENV_REGISTRY if name.startswith("game:"))
"""Every game that upstream registers."""

_OURS = {spec.id: spec for spec in gem_envs()}
_Both = tuple[Env, Any]

sys.path[:0] = [str(TESTS), str(TESTS / "games")]
side_by_side = importlib.import_module("side_by_side")
_tests = {
    name: importlib.import_module(f"test_{name}")
    for name in (
        *("crosswords", "fifteen_puzzle", "game_2048", "hangman", "mastermind", "minesweeper"),
        *("sokoban", "sudoku", "tower_of_hanoi", "word_search", "wordle"),
    )
}


@dataclass(frozen=True)
class Pair:
    """A game that is ready to be played on both sides."""

    ours: Env
    theirs: Any
    actions: list[str]
    """A random player's moves, until the game ends."""


def ours(env_id: str) -> Any:
    """Our game of this id."""
    spec = _OURS[env_id]
    return spec.resolve()(**spec.kwargs)


def upstreams(env_id: str) -> Any:
    """Upstream's game of this id."""
    return gem.make(env_id)


def pairs(env_id: str, count: int) -> list[Pair]:
    """Games of one id with different states. Checks that both sides answer the moves alike."""
    family, variant = env_id.removeprefix("game:").split("-v0-")
    made: list[Pair] = []
    for seed, _ in side_by_side.seeds(count):
        mine, theirs = _BUILD[family](variant, _size(env_id, seed), seed)
        pair = Pair(mine, theirs, _moves(mine, theirs))
        turns = side_by_side.play(copy.deepcopy(mine), copy.deepcopy(theirs), pair.actions)
        assert turns == len(pair.actions), f"{env_id}: upstream ends after {turns} moves, not {len(pair.actions)}"
        made.append(pair)
    return made


def give_words(folder: Path) -> None:
    """Let upstream's word games and crosswords use our words and clues, and download nothing."""
    everyday = word_list(hardcore=False)
    lists = {"en": word_list(hardcore=True), "en-basic": everyday[:: len(everyday) // EVERYDAY_WORDS][:EVERYDAY_WORDS]}
    for name, words in lists.items():
        (folder / name).write_text("\n".join(words).lower())
    nltk.download = lambda *_: True
    for name in ("wordle", "hangman", "word_search"):
        _tests[name].upstream.words = WordListCorpusReader(str(folder), list(lists))
    crosswords = _tests["crosswords"].upstream
    crosswords.CrosswordsEnv._load_words = _tests["crosswords"].load_words
    sys.modules[crosswords.__name__] = crosswords  # the test imports it without pandas, and then removes it


def _size(env_id: str, seed: int) -> dict[str, Any]:
    """The parameters of an id, drawn if the id draws them."""
    env = ours(env_id)
    env.reset(seed=seed)
    return {name: getattr(env, name) for name in _OURS[env_id].kwargs}


def _moves(mine: Any, theirs: Any) -> list[str]:
    """A random player's moves in our game. Both sides then replay what our game drew on the way."""
    env = copy.deepcopy(mine)
    moves: list[str] = []
    boards: list[Any] = []
    ended = False
    while not ended:
        moves.append(env.sample_random_action())
        ended = any(env.step(moves[-1])[2:4])
        if isinstance(env, _Tiles):
            boards.append(env.tiles)
    if isinstance(env, _Tiles):
        mine.coming = boards[::-1]
        theirs.coming = [[[*row] for row in board] for board in boards[::-1]]
    elif isinstance(env, _Mines) and env.mines:
        mine.laid = env.mines
        theirs.lay(env.mines)
    return moves


# -- games that draw while they are played: both sides draw, and then use the recorded draws -------------------------


class _Tiles(Game2048):
    coming: Any = ()

    def _add_tile(self) -> None:
        super()._add_tile()
        if self.coming:
            self.tiles = self.coming.pop()


class _TheirTiles(_tests["game_2048"].upstream.Game2048Env):
    coming: Any = ()

    def _add_random_tile(self) -> None:
        super()._add_random_tile()
        if self.coming:
            self.board = self.coming.pop()


class _Mines(Minesweeper):
    laid: frozenset[int] = frozenset()

    def lay_mines(self, first: int) -> frozenset[int]:
        drawn = super().lay_mines(first)
        return self.laid or drawn


class _TheirMines(_tests["minesweeper"].upstream.MinesweeperEnv):
    laid: Any = ()

    def _setup_mines(self, row: int, col: int) -> None:
        super()._setup_mines(row, col)
        if self.laid:
            self.grid = self.laid

    def lay(self, mines: frozenset[int]) -> None:
        empty = [[*row] for row in self.grid]
        for cell in mines:
            self.grid[cell // self.cols][cell % self.cols] = -1
        self._calculate_adjacent_numbers()
        self.laid, self.grid = self.grid, empty


# -- both sides of each family: the variant, its parameters and a seed are given ------------------------------------


def _guess_the_number(_: str, size: dict[str, Any], seed: int) -> _Both:
    mine, theirs = GuessTheNumber(**size), GuessTheNumberEnv(**size)
    mine.reset(seed=seed)
    theirs.game_number = mine.target
    return mine, theirs


def _minesweeper(_: str, size: dict[str, Any], seed: int) -> _Both:
    mine = _Mines(**size)
    mine.reset(seed=seed)
    return mine, _TheirMines(**size)


def _game_2048(_: str, size: dict[str, Any], seed: int) -> _Both:
    mine, theirs = _Tiles(**size), _TheirTiles(**size)
    mine.reset(seed=seed)
    theirs.board = [[*row] for row in mine.tiles]
    theirs.max_tile_achieved = theirs.init_max_tile_achieved = mine.first
    return mine, theirs


def _sokoban(_: str, size: dict[str, Any], seed: int) -> _Both:
    test = _tests["sokoban"]

    def theirs_in(room: Any, size: dict[str, Any]) -> Any:
        with patch.object(test.upstream, "generate_room", lambda **_: test.arrays(room)):
            return test.upstream.SokobanEnv(**size)

    return test.pair(seed, size, theirs_in)[:2]


def _crosswords(variant: str, _: dict[str, Any], seed: int) -> _Both:
    return next(itertools.islice(_tests["crosswords"].pairs(variant, seed + 1), seed, None))[:2]


def _word_search(variant: str, _: dict[str, Any], seed: int) -> _Both:
    mine, theirs = _tests["word_search"].pair(variant, seed)
    theirs.word_list = ()  # large, and unused once the words are placed
    return mine, theirs


def _by_size(name: str) -> Callable[[str, dict[str, Any], int], _Both]:
    return lambda _, size, seed: _tests[name].pair(seed, size)


def _by_variant(name: str) -> Callable[[str, dict[str, Any], int], _Both]:
    return lambda variant, _, seed: _tests[name].pair(variant, seed)


_BUILD: dict[str, Callable[[str, dict[str, Any], int], _Both]] = {
    "GuessTheNumber": _guess_the_number,
    "Mastermind": _by_size("mastermind"),
    "Minesweeper": _minesweeper,
    "Wordle": _by_variant("wordle"),
    "FifteenPuzzle": _by_size("fifteen_puzzle"),
    "Hangman": _by_variant("hangman"),
    "Sudoku": _by_size("sudoku"),
    "TowerofHanoi": _by_size("tower_of_hanoi"),
    "Game2048": _game_2048,
    "Sokoban": _sokoban,
    "Crosswords": _crosswords,
    "WordSearch": _word_search,
}
