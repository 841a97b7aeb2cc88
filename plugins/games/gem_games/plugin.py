"""What this package registers: ids, classes and parameters, as data.

Ids and the parameters of `-v0-` are those of gem-llm 0.1.0, so that published recipes carry over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gem_core.hookspecs import hookimpl
from gem_core.specs import EnvSpec

GEM_PLUGIN_API = ">=1,<2"
_TRUSTING = ("pages",)

_TAGS = ("game", "multi-turn")

_Variants = Mapping[str, Mapping[str, Any]]

_GUESS: _Variants = {
    "-easy": {"min_number": 1, "max_number": 10, "max_turns": 4},
    "-hard": {"min_number": 1, "max_number": 50, "max_turns": 7},
    "-random": {"min_number": None, "max_number": None, "max_turns": None},
}
_PAPER: _Variants = {  # ids of the paper (arXiv 2510.01051) that later releases of upstream dropped
    "": {"min_number": 1, "max_number": 20, "max_turns": 10},
    "-hard-no-max-turn": {"min_number": 1, "max_number": 50, "max_turns": 50},
}

_MINESWEEPER: _Variants = {
    "-easy": {"rows": 5, "cols": 5, "num_mines": 5, "max_turns": 25},
    "-hard": {"rows": 8, "cols": 8, "num_mines": 12, "max_turns": 64},
    "-random": {"rows": None, "cols": None, "num_mines": None, "max_turns": None},
}
_FIFTEEN: _Variants = {
    "-easy": {"num_rows": 2, "max_turns": 10},
    "-hard": {"num_rows": 4, "max_turns": 50},
    "-random": {"num_rows": None, "max_turns": None},
}
_SOKOBAN: _Variants = {
    "-easy": {"dim_room": (6, 6), "num_boxes": 2, "max_turns": 20},
    "-hard": {"dim_room": (8, 8), "num_boxes": 4, "max_turns": 50},
    "-random": {"dim_room": None, "num_boxes": None, "max_turns": None},
}
_HANGMAN: _Variants = {
    "-easy": {"word_length": 3, "max_turns": 10},
    "-hard": {"word_length": 7, "max_turns": 20},
    "-random": {"word_length": None, "max_turns": None},
}
_WORD_SEARCH: _Variants = {
    "-easy": {"num_words": 5, "max_turns": 20, "hardcore": False},
    "-hard": {"num_words": 5, "max_turns": 20, "hardcore": True},
    "-random": {"num_words": None, "max_turns": None, "hardcore": None},
}
_WIKI: _Variants = {
    "-easy": {"max_turns": 30, "variant": "noregrets"},
    "-hard": {"max_turns": 15, "variant": "noregrets"},
    # Upstream has these as arguments, not as ids.
    **{f"-hard-{variant}": {"max_turns": 15, "variant": variant} for variant in ("oneback", "freenav", "eidetic")},
}

_GAMES: tuple[tuple[str, str, _Variants], ...] = (
    ("GuessTheNumber-v0", "guess_the_number:GuessTheNumber", {**_GUESS, **_PAPER}),
    ("GuessTheNumber-v1", "guess_the_number:GuessTheNumberV1", _GUESS),
    (
        "Mastermind-v0",
        "mastermind:Mastermind",
        {
            "-easy": {"code_length": 2, "num_numbers": 6, "max_turns": 10},
            "-hard": {"code_length": 4, "num_numbers": 8, "max_turns": 30},
            "-random": {"code_length": None, "num_numbers": None, "max_turns": None},
        },
    ),
    ("Minesweeper-v0", "minesweeper:Minesweeper", _MINESWEEPER),
    ("Minesweeper-v1", "minesweeper:MinesweeperV1", _MINESWEEPER),
    (
        "Sudoku-v0",
        "sudoku:Sudoku",
        {
            "-easy": {"clues": 10, "max_turns": 15, "scale": 4},
            "-hard": {"clues": 50, "max_turns": 50, "scale": 9},
            "-random": {"clues": None, "max_turns": None, "scale": None},
        },
    ),
    (
        "Sudoku-v1",
        "sudoku:SudokuV1",
        {
            "-easy": {"clues": 7, "max_turns": 15, "scale": 4},
            "-hard": {"clues": 34, "max_turns": 50, "scale": 9},
            "-random": {"clues": None, "max_turns": None, "scale": None},
        },
    ),
    ("FifteenPuzzle-v0", "fifteen_puzzle:FifteenPuzzle", _FIFTEEN),
    ("FifteenPuzzle-v1", "fifteen_puzzle:FifteenPuzzleV1", _FIFTEEN),
    ("Sokoban-v0", "sokoban:Sokoban", _SOKOBAN),
    ("Sokoban-v1", "sokoban:SokobanV1", _SOKOBAN),
    (
        "TowerofHanoi-v0",
        "tower_of_hanoi:TowerofHanoi",
        {
            "-easy": {"num_disks": 3, "max_turns": 10},
            "-hard": {"num_disks": 5, "max_turns": 35},
            "-random": {"num_disks": None, "max_turns": None},
        },
    ),
    (
        "Game2048-v0",
        "game_2048:Game2048",
        {
            "-easy": {"target_tile": 64, "max_turns": 50},
            "-hard": {"target_tile": 512, "max_turns": 50},
            "-extreme-hard": {"target_tile": 2048, "max_turns": 100},
            "-random": {"target_tile": None, "max_turns": None},
        },
    ),
    (
        "Game2048-v1",
        "game_2048:Game2048V1",
        {
            "-easy": {"target_tile": 64, "max_turns": 50},
            "-hard": {"target_tile": 128, "max_turns": 90},
            "-extreme-hard": {"target_tile": 256, "max_turns": 170},
            "-random": {"target_tile": None, "max_turns": None},
        },
    ),
    (
        "Crosswords-v0",
        "crosswords:Crosswords",
        {
            "-easy": {"hardcore": False, "max_turns": 30, "num_words": 3},
            "-hard": {"hardcore": True, "max_turns": 40, "num_words": 3},
            "-random": {"hardcore": None, "max_turns": None, "num_words": None},
        },
    ),
    ("WikiGame-v0", "wiki_game:WikiGame", _WIKI),
)
_WORD_GAMES: tuple[tuple[str, str, _Variants], ...] = (
    (
        "Wordle-v0",
        "wordle:Wordle",
        {
            "-easy": {"word_length": 3, "max_turns": 15},
            "-hard": {"word_length": 5, "max_turns": 25},
            "-random": {"word_length": None, "max_turns": None},
        },
    ),
    ("Hangman-v0", "hangman:Hangman", _HANGMAN),
    ("Hangman-v1", "hangman:HangmanV1", _HANGMAN),
    ("WordSearch-v0", "word_search:WordSearch", _WORD_SEARCH),
    ("WordSearch-v1", "word_search:WordSearchV1", _WORD_SEARCH),
)


@hookimpl
def gem_envs() -> Iterable[EnvSpec]:
    """Every game of this package."""
    yield EnvSpec("game:Corridor-v0", "gem_games.corridor:Corridor", tags=(*_TAGS, "tiny", "bare"), trusting=_TRUSTING)
    for variant, split in (("", "train"), ("-test", "test")):
        yield EnvSpec(
            f"game:PlainGuess-v0{variant}",
            "gem_games.plain_guess:PlainGuess",
            {"split": split},
            _TAGS,
            trusting=_TRUSTING,
        )
    for games, tags, extra in ((_GAMES, _TAGS, None), (_WORD_GAMES, (*_TAGS, "words"), "games")):
        for stem, entry_point, variants in games:
            for variant, kwargs in variants.items():
                yield EnvSpec(
                    f"game:{stem}{variant}", f"gem_games.{entry_point}", kwargs, tags, extra, trusting=_TRUSTING
                )
