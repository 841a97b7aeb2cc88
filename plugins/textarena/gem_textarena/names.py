"""The ids of TextArena 0.7's one-player games, as data: importing TextArena takes a third of a second."""

from __future__ import annotations

from collections.abc import Mapping

IDS: Mapping[str, tuple[str, ...]] = {
    "2048": (
        *("ultra-easy", "mega-easy", "super-easy", "very-easy", "easy", "", "hard", "very-hard", "extreme"),
        *("3x3", "5x5", "6x6", "8x8", "10x10"),
    ),
    "Bandit": ("", "hard"),
    "Blackjack": ("", "long"),
    "Countdown": ("",),
    "Crosswords": ("", "hardcore"),
    "Cryptarithm": ("",),
    "FifteenPuzzle": ("",),
    "FrozenLake": ("", "random", "hardcore"),
    "GuessTheNumber": ("", "hardcore"),
    "LightsOut": ("",),
    "LogicPuzzle": ("", "hard"),
    "Mastermind": ("", "hard", "extreme"),
    "Minesweeper": ("", "small", "medium", "hard"),
    "PegJump": ("",),
    "RushHour": ("",),
    "Secretary": ("", "long"),
    "Set": ("",),
    "Slitherlink": ("",),
    "Sokoban": ("", "medium"),
    "Sudoku": ("very-easy", "easy", "", "medium", "hard"),
    "ThreeCardMonte": ("",),
    "TowerOfHanoi": ("", "medium", "hard", "hardcore", "extreme"),
}
"""What follows `-v0` in the ids of each game."""


def names() -> list[str]:
    """Every id in TextArena's own spelling, for example `FrozenLake-v0-random`."""
    return [f"{game}-v0{f'-{variant}' if variant else ''}" for game, variants in IDS.items() for variant in variants]


def game_of(name: str) -> str:
    """The game of an id: `FrozenLake` of `FrozenLake-v0-random`."""
    return name.partition("-v0")[0]
