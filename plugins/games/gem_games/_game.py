"""The base of the games: a box with the move, a turn limit, and the ends of an episode."""

from __future__ import annotations

import re
from abc import abstractmethod
from enum import Enum, auto
from typing import Any, ClassVar, TypeAlias

from gem_core.env import Env, Info, ResetResult, StepResult
from gem_core.errors import EnvError
from gem_core.responses import boxes

FORMAT_ERROR_REWARD = -0.1
"""Reward of an action that has no box of the game's form; it ends the episode."""


class MoveEffect(Enum):
    """The effect of a move on the game."""

    GOES_ON = auto()
    INVALID = auto()
    """The move has the right form and is not allowed now. It uses up the turn and changes nothing."""
    SOLVED = auto()
    LOST = auto()


Move: TypeAlias = tuple[str, float, MoveEffect]
"""The observation, the reward and the outcome."""

GOES_ON, INVALID, SOLVED, LOST = MoveEffect


class Game(Env):
    """A game whose moves stand in `\\boxed{...}`; the last box of the right form counts.

    | move | reward | episode |
    | --- | --- | --- |
    | no box of the right form | -0.1 | terminated (and truncated, if it was the last turn) |
    | not allowed now | 0 | continues; the turn is used up |
    | allowed | the game's | continues; terminated if solved or lost |
    | on the last turn, neither solved nor lost | as above, plus the game's consolation | terminated and truncated |

    The first observation is the rules; the present board is `info["suffix"]`, so that histories do not repeat it.
    """

    ACTION: ClassVar[re.Pattern[str]]
    """The form of a move, box included as in `-v0`; `play` reads its groups."""
    FORM: ClassVar[str]
    """The same for a reader, for example `\\boxed{row column}`."""
    max_turns: int
    turn: int = 0

    @abstractmethod
    def deal(self) -> None:
        """Draw a new game from `self.rng`."""

    @abstractmethod
    def rules(self) -> str:
        """The first observation; shows the form of a move in an example."""

    @abstractmethod
    def play(self, move: re.Match[str]) -> Move | None:
        """Make the move. `None` means that it does not have the right form; then nothing changes."""

    def board(self) -> str | None:
        """The text that shows the present state; `None` if the observations already contain it."""
        return None

    def consolation(self) -> float:
        """Reward for partial success when the turns are used up."""
        return 0.0

    def farewell(self, observation: str) -> str:
        """The last observation if the turns are used up; it replaces that of the last move."""
        return f"{observation} No turns are left."

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Start a new game."""
        super().reset(seed=seed)
        self.turn = 0
        self.deal()
        board = self.board()
        return self.rules(), {} if board is None else {"suffix": board}

    def step(self, action: str) -> StepResult:
        """Make a move."""
        self.turn += 1
        last = self.turn >= self.max_turns
        found = self.find(action)
        move = self.play(found) if found else None
        if move is None:
            return self._no_move(last)
        observation, reward, outcome = move
        info: Info = {"success": outcome is SOLVED}
        if (board := self.board()) is not None:
            info["suffix"] = board
        if outcome is INVALID:
            info["invalid_action"] = True
        elif outcome is not GOES_ON:
            return observation, reward, True, False, info
        if last:
            return self.farewell(observation), reward + self.consolation(), True, True, info
        return observation, reward, False, False, info

    def find(self, action: str) -> re.Match[str] | None:
        """The last move in the text."""
        matches = [*self.ACTION.finditer(action)]
        return matches[-1] if matches else None

    def render(self) -> str:
        """The board and the turns so far, for a person."""
        return f"{self.board() or ''}\nturn {self.turn} of {self.max_turns}".strip("\n")

    def _no_move(self, last: bool) -> StepResult:
        info: Info = {"success": False, "invalid_action": True}
        if (board := self.board()) is not None:
            info["suffix"] = board
        return f"There is no move of the form {self.FORM}.", FORMAT_ERROR_REWARD, True, last, info


class BoxedGame(Game):
    """A game that reads boxes as the rest of this project does: `ACTION` is the form of what stands in one."""

    def find(self, action: str) -> re.Match[str] | None:
        """The move in the last box that has the form of one."""
        contents = reversed(boxes(action))
        return next((move for content in contents if (move := self.ACTION.fullmatch(content))), None)


def to_be_drawn(**parameters: object) -> bool:
    """Whether each episode draws the parameters of the game: true if all of them are `None`.

    Raises:
        EnvError: some are `None` and some are not.
    """
    missing = [value is None for value in parameters.values()]
    if any(missing) and not all(missing):
        *names, last = parameters
        count = {2: "both", 3: "all three", 4: "all four"}[len(parameters)]
        raise EnvError(f"give {', '.join(names)} and {last}, or None for {count} to draw them")
    return all(missing)


def boxed(content: object) -> str:
    """`\\boxed{content}`."""
    return f"\\boxed{{{content}}}"
