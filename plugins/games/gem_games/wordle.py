"""Wordle: find a hidden word from the letters that guesses have in common with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from gem_games._candidates import most_telling
from gem_games._game import GOES_ON, INVALID, SOLVED, Game, Move, boxed, to_be_drawn
from gem_games._words import check_limits, other_word, require, words_of


class Wordle(Game):
    """An everyday word of `word_length` letters, to be found within `max_turns` guesses.

    Action: the last `\\boxed{WORD}` in the text, upper or lower case; blanks between the letters do not count. Any
    letters of the right number are a guess, a word or not.

    | guess | reward | episode |
    | --- | --- | --- |
    | the word | 0.5 / length for each letter found now, + 0.5; 1 in all | terminated |
    | another | 0.5 / length for each letter that stands in its place for the first time | continues |
    | of another length, or made before | 0 | continues; the turn is used up |
    | no letters in a box | -0.1 | terminated (and truncated, if it was the last turn) |
    | any but the word on the last turn | as above | terminated and truncated |

    Args:
        word_length, max_turns: the word and the limit; both `None` draws 3 to 5 letters and 5 turns for each of them
            anew for each episode.

    Raises:
        EnvError: a length without words, fewer than one turn, or only one of the two given.
        MissingExtraError: the package with the words is not installed.
    """

    ACTION = re.compile(r"\\boxed\{([a-zA-Z]+(?:\s+[a-zA-Z]+)*)\}")
    FORM = boxed("WORD")
    instead_of: ClassVar[Mapping[str, str]] = {
        **Game.instead_of,
        "only_real_words": "Leave it out: the hidden word is always a real one",
    }

    def __init__(self, word_length: int | None = 5, max_turns: int | None = 20) -> None:
        self._drawn = to_be_drawn(word_length=word_length, max_turns=max_turns)
        if word_length is not None and max_turns is not None:
            check_limits(word_length, max_turns, hardcore=False)
            self.word_length, self.max_turns = word_length, max_turns
        require(hardcore=False)

    def deal(self) -> None:
        """Draw a word, and its length if none was given."""
        if self._drawn:
            self.word_length = self.rng.randint(3, 5)
            self.max_turns = 5 * self.word_length
        self.secret = self.rng.choice(words_of(self.word_length))
        self.guesses: set[str] = set()
        self.found: set[int] = set()

    def rules(self) -> str:
        """Length, limit, marks and form."""
        example = other_word(self.secret, words_of(self.word_length), self.rng)
        return (
            f"Wordle: find my word of {self.word_length} letters in {self.max_turns} guesses. "
            "I mark each letter of a guess: G stands where it belongs, Y belongs to another place, X is not in the "
            f"word (or not that often). Put your guess in a box, for example {boxed(example)}.\n"
        )

    def play(self, move: re.Match[str]) -> Move:
        """Make a guess."""
        guess = move[1].upper().replace(" ", "")
        if len(guess) != self.word_length:
            return f"My word has {self.word_length} letters, and your guess {len(guess)}.\n", 0.0, INVALID
        if guess in self.guesses:
            return f"{guess} was guessed before.\n", 0.0, INVALID
        shown = marks(guess, self.secret)
        found = {place for place, mark in enumerate(shown) if mark == "G"} if "G" in shown else set[int]()
        reward = 0.5 * len(found - self.found) / self.word_length
        self.found |= found
        if guess == self.secret:
            return f"{guess} is my word.\n", reward + 0.5, SOLVED
        self.guesses.add(guess)
        return f"{guess}\n{shown}\n", reward, GOES_ON

    def farewell(self, observation: str) -> str:
        """The word."""
        return f"No turns are left. My word was {self.secret}.\n"

    def sample_random_action(self) -> str:
        """A word that was not guessed before."""
        words = words_of(self.word_length)
        while (word := self.rng.choice(words)) in self.guesses:  # the secret is never among them
            pass
        return boxed(word)

    def expert_action(self) -> str:
        """A word that the marks so far allow, and whose marks leave the fewest others on average.

        This reads the marks of each guess, and not the word.
        """
        seen = {guess: marks(guess, self.secret) for guess in self.guesses}
        words = words_of(self.word_length)
        possible = [word for word in words if all(marks(guess, word) == shown for guess, shown in seen.items())]
        return boxed(most_telling(possible, possible, marks))

    def render(self) -> str:
        """Guesses and turns so far."""
        return f"{self.word_length} letters, guesses {sorted(self.guesses)}, turn {self.turn}/{self.max_turns}"


def marks(guess: str, secret: str) -> str:
    """`G`, `Y` or `X` for each letter of a guess; letters in place use up theirs first, then from left to right."""
    pairs = [*zip(secret, guess, strict=True)]
    left = [letter for letter, tried in pairs if letter != tried]
    shown = ""
    for letter, tried in pairs:
        if letter == tried:
            shown += "G"
        elif tried in left:
            left.remove(tried)
            shown += "Y"
        else:
            shown += "X"
    return shown
