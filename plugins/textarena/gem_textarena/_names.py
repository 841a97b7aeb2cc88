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


MATCHES: Mapping[str, tuple[str, ...]] = {
    "Alquerque": ("",),
    "Battleship": ("", "standard", "large", "extreme"),
    "Breakthrough": ("tiny", "small", "", "large", "blind", "long"),
    "Briscola": ("",),
    "Chopsticks": ("", "medium", "long"),
    "ColonelBlotto": ("small", "", "large", "extreme"),
    "ConnectFour": ("", "blind", "large"),
    "Crusade": ("",),
    "GameOfPureStrategy": ("",),
    "GermanWhist": ("",),
    "Golf": ("", "medium"),
    "HighSociety": ("",),
    "IndianPoker": ("short", "", "medium", "long", "extreme"),
    "IteratedMatchingPennies": ("",),
    "IteratedRockPaperScissors": ("",),
    "IteratedTwoThirdsAverage": ("",),
    "KuhnPoker": ("", "short", "medium", "long", "extreme"),
    "LiarsDice": ("small", "", "large"),
    "LinesOfAction": ("",),
    "MemoryGame": ("", "medium", "hard"),
    "Nim": ("", "medium", "large"),
    "Othello": ("tiny", "small", "", "big", "huge", "hard"),
    "PigDice": ("", "short", "long", "50", "100", "150", "200", "250", "300", "350", "400", "450", "500"),
    "QuantumTicTacToe": ("",),
    "SimpleTak": ("", "medium", "large", "extreme"),
    "TicTacToe": ("",),
    "UltimateTicTacToe": ("",),
    "WildTicTacToe": ("",),
}
"""The same for games of two players."""


def names() -> list[str]:
    """Every id of a game for one player in TextArena's own spelling, for example `FrozenLake-v0-random`."""
    return _spelled(IDS)


def match_names() -> list[str]:
    """Every id of a game for two players in TextArena's own spelling."""
    return _spelled(MATCHES)


def _spelled(games: Mapping[str, tuple[str, ...]]) -> list[str]:
    return [f"{game}-v0{f'-{variant}' if variant else ''}" for game, variants in games.items() for variant in variants]


def game_of(name: str) -> str:
    """The game of an id: `FrozenLake` of `FrozenLake-v0-random`."""
    return name.partition("-v0")[0]


_ABSENT = {
    "needs NLTK's word lists, which are a download; `gem-core list game:` shows word games that need none": (
        "Codenames DontSayIt Hangman LetterAuction SpellingBee WordChains WordLadder WordSearch Wordle"
    ),
    "asks a hosted model": "Debate GuessWho ScenarioPlanning TwentyQuestions",
    "needs packages that TextArena does not install": "BabyAiText",
    "needs files that TextArena does not install": "ScorableGames UsedCar UsedCarNegotiation",
    "cannot be imported from TextArena 0.7.4, whose source of it has a syntax error": "Klondike",
    "has a source that needs Python 3.12, and ids are the same on every Python": (
        "Checkers Chess IteratedStagHunt ReverseTicTacToe UltimateTexasHoldem"
    ),
    "is for three players or more": (
        "CharacterConclave SecretMafia SettlersOfCatan Taboo ThreePlayerGOPS ThreePlayerIPD ThreePlayerTicTacToe"
    ),
    "is played by talking, and of an action here only the move reaches the other player": (
        "IteratedPrisonersDilemma IteratedUltimatumGame MarketEntryGame NewRecruit PublicGoodsGame SimpleBlindAuction "
        "SimpleNegotiation TruthAndDeception TwoDollar"
    ),
    "shows each player the pieces of the other": "Stratego",
    "has no end, or a wrong one, after a second invalid move": "Poker SantoriniBaseFixed",
    "does not say which moves are invalid": "Snake Surround",
    "has moves that are no line of printable ASCII or contain brackets": "SpiteAndMalice Tak",
}
ABSENT: Mapping[str, str] = {game: reason for reason, games in _ABSENT.items() for game in games.split()}
"""Why a game of TextArena is not here, as the end of a sentence."""
