"""Hangman: open a hidden word letter by letter, or name it."""

from __future__ import annotations

import re

from gem_games._candidates import most_telling
from gem_games._game import GOES_ON, INVALID, SOLVED, BoxedGame, Game, Move, boxed, to_be_drawn
from gem_games._words import check_limits, other_word, require, words_of

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_DRAWN = ((3, 10), (5, 15), (7, 20))
"""Lengths and limits to draw from if none are given."""
_HIDDEN = "_"


class Hangman(Game):
    """A word of `word_length` letters, to be named within `max_turns` guesses of letters and words.

    Action: the last `\\boxed{E}` or `\\boxed{WORD}` in the text, upper or lower case, without white space.

    | guess | reward | episode |
    | --- | --- | --- |
    | the word | 0.5 + 0.5 * hidden letters / length; 1 in all | terminated |
    | another word of its length | 0 | continues |
    | a letter that is in the word | 0.5 * places / length | continues, even if all letters are open |
    | a letter that is not | 0 | continues |
    | a letter again, or a word of another length | 0 | continues; the turn is used up |
    | no letter or word in a box | -0.1 | terminated (and truncated, if it was the last turn) |
    | any but the word on the last turn | as above | terminated and truncated |

    Args:
        word_length, max_turns: the word and the limit; both `None` draws one of 3 letters and 10 turns, 5 and 15, 7 and
            20 for each episode.
        hardcore: words of the large list, not of the everyday one.

    Raises:
        EnvError: a length without words, fewer than one turn, or only one of the first two given.
        MissingExtraError: the package with the words is not installed.
    """

    # Ignoring case also accepts the long s and the Kelvin sign, as upstream does.
    ACTION = re.compile(r"\\boxed\{([a-z]+)\}", re.IGNORECASE)
    FORM = f"{boxed('E')} or {boxed('WORD')}"

    def __init__(self, word_length: int | None = 5, max_turns: int | None = 20, hardcore: bool = False) -> None:
        self._drawn = to_be_drawn(word_length=word_length, max_turns=max_turns)
        self.hardcore = hardcore
        if word_length is not None and max_turns is not None:
            check_limits(word_length, max_turns, hardcore=hardcore)
            self.word_length, self.max_turns = word_length, max_turns
        require(hardcore=hardcore)

    def deal(self) -> None:
        """Draw a word, and its length if none was given."""
        if self._drawn:
            self.word_length, self.max_turns = self.rng.choice(_DRAWN)
        self.secret = self.rng.choice(self._words())
        self.letters: set[str] = set()
        self.open = _HIDDEN * self.word_length

    def rules(self) -> str:
        """Length, limit and both forms."""
        letter, word = self.rng.choice(_ALPHABET), other_word(self.secret, self._words(), self.rng)
        return (
            f"Hangman: find my word of {self.word_length} letters in {self.max_turns} guesses. {self.ending()} "
            f"Put a letter in a box, for example {boxed(letter)}, or a whole word, for example {boxed(word)}.\n"
        )

    def ending(self) -> str:
        """The winning condition, for the rules."""
        return "A letter opens its places; to win, name the word."

    def board(self) -> str:
        """Open letters, and `_` for each hidden one."""
        return f"Word: {' '.join(self.open)}"

    def play(self, move: re.Match[str]) -> Move:
        """Guess a letter or the word."""
        guess = move[1].upper()
        return self.play_letter(guess) if len(guess) == 1 else self.play_word(guess)

    def play_word(self, word: str) -> Move:
        """Guess the word."""
        if word == self.secret:
            reward = 0.5 + 0.5 * self.open.count(_HIDDEN) / self.word_length
            self.open = word
            return f"{word} is my word.\n", reward, SOLVED
        if len(word) != self.word_length:
            return f"My word has {self.word_length} letters, and your guess {len(word)}.\n", 0.0, INVALID
        return f"{word} is not my word.\n", 0.0, GOES_ON

    def play_letter(self, letter: str) -> Move:
        """Guess a letter."""
        if letter in self.letters:
            return f"{letter} was guessed before.\n", 0.0, INVALID
        self.letters.add(letter)
        count = self.secret.count(letter)
        if not count:
            return f"{letter} is not in my word.\n", 0.0, GOES_ON
        self.open = "".join(
            secret if secret == letter else shown for secret, shown in zip(self.secret, self.open, strict=True)
        )
        return f"{letter} is in my word.\n", 0.5 * count / self.word_length, GOES_ON

    def farewell(self, observation: str) -> str:
        """The word."""
        return f"No turns are left. My word was {self.secret}.\n"

    def sample_random_action(self) -> str:
        """A letter that was not guessed before, or a word."""
        letters = [letter for letter in _ALPHABET if letter not in self.letters]
        if letters and self.rng.random() < 0.5:
            return boxed(self.rng.choice(letters))
        return boxed(self.random_word())

    def expert_action(self) -> str:
        """The letter that tells most about the words that are still possible, or the word if there is one only.

        This reads the open letters and those that were tried, and not the word.
        """
        possible = self.possible_words()
        letters = sorted({letter for word in possible for letter in word} - self.letters)
        if len(possible) == 1 or not letters or self.turn + 1 >= self.max_turns:
            return boxed(possible[0])
        return boxed(most_telling(letters, possible, _places))

    def possible_words(self) -> list[str]:
        """The words that agree with the open letters and with those that were tried."""
        closed = {place for place, letter in enumerate(self.open) if letter == _HIDDEN}
        return [
            word
            for word in self._words()
            if all(
                letter not in self.letters if place in closed else letter == self.open[place]
                for place, letter in enumerate(word)
            )
        ]

    def random_word(self) -> str:
        """Any word of the right length."""
        return self.rng.choice(self._words())

    def _words(self) -> tuple[str, ...]:
        return words_of(self.word_length, hardcore=self.hardcore)


def _places(letter: str, word: str) -> tuple[int, ...]:
    return tuple(place for place, other in enumerate(word) if other == letter)


class HangmanV1(BoxedGame, Hangman):
    """The same, with four fixes.

    - The letter that opens the last place wins, and pays the 0.5 for naming the word. In `-v0-` the game continued
      until the player repeated the word, which was already open.
    - A wrong word that was guessed before is not allowed, just like a letter.
    - White space around the guess is accepted.
    - The board shows the letters that were tried.
    """

    ACTION = re.compile(r"([a-z]+)", re.IGNORECASE)

    def deal(self) -> None:
        """Draw a word; no word has been guessed yet."""
        super().deal()
        self.words: set[str] = set()

    def ending(self) -> str:
        """The winning condition."""
        return "A letter opens its places; to win, open them all or name the word."

    def board(self) -> str:
        """The word, and the letters tried that are not in it."""
        missed = " ".join(sorted(self.letters.difference(self.secret))) or "none"
        return f"{super().board()}\nNot in it: {missed}"

    def play_word(self, word: str) -> Move:
        """Guess the word, which can be wrong only once."""
        if word in self.words:
            return f"{word} was guessed before.\n", 0.0, INVALID
        observation, reward, outcome = super().play_word(word)
        if outcome is GOES_ON:
            self.words.add(word)
        return observation, reward, outcome

    def play_letter(self, letter: str) -> Move:
        """Guess a letter, which can be the last."""
        observation, reward, outcome = super().play_letter(letter)
        if outcome is GOES_ON and self.open == self.secret:
            return f"{letter} completes my word, {self.secret}.\n", reward + 0.5, SOLVED
        return observation, reward, outcome

    def possible_words(self) -> list[str]:
        """Also without the words that were tried."""
        return [word for word in super().possible_words() if word not in self.words]

    def random_word(self) -> str:
        """A word that was not guessed before."""
        while (word := super().random_word()) in self.words:  # the secret is never among them
            pass
        return word
