"""A one-player game of TextArena."""

from __future__ import annotations

import random
import re
from typing import Any, NamedTuple

from gem_core.env import Env, Info, ResetResult, StepResult
from gem_core.errors import EnvError, described
from gem_textarena._games import RULES, Rules
from gem_textarena._library import drawing_from, game_class, settings_of, start, textarena
from gem_textarena._moves import read_move, tidy
from gem_textarena._names import game_of, names

_LIMIT = re.compile(r"limit|used all", re.IGNORECASE)
"""What TextArena says at the end of a game that its limit of turns ended, and at no other."""


class TextArena(Env):
    """Shows what the game says; the content of the last `[...]` of an action is the move.

    | move | reward | episode |
    | --- | --- | --- |
    | allowed | what it adds to the points, in games that have points; otherwise 0 | continues |
    | not allowed, or none | 0 | continues, `info["invalid_action"]`; terminated if it is the second in a row |
    | the last one | TextArena's reward, less what was paid before | terminated |
    | the last one that the game's limit of turns allows | the same | truncated |
    | not allowed, and ends the game | the same where it is below 0, otherwise 0 | terminated |

    So the rewards of an episode add up to TextArena's, unless an invalid action ends it: TextArena then pays for how
    close the game happens to be to its solution, in some games already at the start.

    An action without brackets is a move, as in TextArena. A move has at most 100 printable ASCII characters. The latest
    board is `info["suffix"]`, so histories do not repeat it. `info["success"]` says that the reward of an episode is 1,
    and that no limit and no invalid action ended it.

    - 2048, Blackjack, Crosswords, Minesweeper, PegJump, Set and Sudoku have points.
    - Bandit: the best button pays 1 and another one 0. TextArena pays the regret, so the best button pays least.
      The text says that a button stands in brackets.
    - Blackjack: success means more hands won than lost.
    - Crosswords, Minesweeper, Sudoku: a wrong guess is no invalid action. As in TextArena, two in a row end the game.
    - FifteenPuzzle: a solved puzzle pays 1. TextArena raises an error.
    - Set: a card counts once, and success means that every turn found a set. TextArena takes the same card three times
      for a set.

    Args:
        name: TextArena's id of the game.
        settings: arguments of the game's class in place of those that TextArena registers, for example `max_turns`.

    Raises:
        EnvKwargsError: the game has no such argument; the message names the near match.
        EnvError: it refuses a value, or the installed TextArena lacks the game.
    """

    def __init__(self, name: str, **settings: Any) -> None:
        if name not in names():
            raise EnvError(f"{name!r} is no game for one player: `gem-core list textarena:` shows those")
        self._name = name
        self._settings = settings_of(name, settings)
        self._draws = random.Random(0)
        self._paid = 0.0
        self._board = ""
        self._game: Any = None
        try:
            with drawing_from(self._draws):
                game_class(name)(**self._settings)
        except Exception as error:
            raise EnvError(f"textarena:{name} refuses {self._settings!r}: {described(error)}") from error

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Start a game.

        Raises:
            EnvError: TextArena could not make one with these settings.
        """
        super().reset(seed=seed)
        try:
            self._game, self._draws = start(self._name, self._settings, self.rng.getrandbits(32))
        except Exception as error:
            raise EnvError(
                f"textarena:{self._name} cannot start with {self._settings!r}: {described(error)}"
            ) from error
        self._paid = 0.0
        self._board = ""
        text, info = self._told(ended=False)
        return "\n".join(filter(None, [text, RULES[game_of(self._name)].form])), info

    def step(self, action: str) -> StepResult:
        """Make a move."""
        game_class(self._name)  # in a process that got this environment by pickle
        rules = RULES[game_of(self._name)]
        move = read_move(action)
        if rules.refuses(self._game, move):
            move = ""
        guess = rules.is_guess(self._game, move)
        with drawing_from(self._draws):
            ended, _ = self._game.step(f"[{move}]")
        text, info = self._told(ended)
        if move:
            info["parsed_action"] = f"[{move}]"
        invalid = self._was_invalid() and not guess
        if invalid:
            info["invalid_action"] = True
        if not ended:
            earned = rules.points(self._game) if rules.points and not invalid else self._paid
            return text, self._pay(earned), False, False, info
        end = self._end(rules, move)
        info["success"] = end.success
        earned = min(end.total, self._paid) if invalid else end.total
        return "\n".join(filter(None, [text, end.reason])), self._pay(earned), not end.limit, end.limit, info

    def sample_random_action(self) -> str:
        """A move that is allowed now; where the game asks for a guess, any."""
        return f"[{RULES[game_of(self._name)].draw(self._game, self.rng)}]"

    def render(self) -> str | None:
        """The latest board, in games that have one."""
        return self._board or None

    def _told(self, ended: bool) -> tuple[str, Info]:
        """What the game has said since the last turn, but for earlier boards."""
        _, messages = self._game.get_observation()
        board = textarena.ObservationType.GAME_BOARD
        boards = [tidy(text) for _, text, kind in messages if kind is board]
        texts = [tidy(text) for _, text, kind in messages if kind is not board]
        if boards:
            self._board = boards[-1]
        elif ended:
            self._board = ""  # it was before the last move
        return "\n".join(filter(None, texts)), {"suffix": self._board} if self._board else {}

    def _was_invalid(self) -> bool:
        return self._game.state.error_count > 0 or self._game.state.game_info[0]["invalid_move"]

    def _pay(self, total: float) -> float:
        reward, self._paid = total - self._paid, total
        return reward

    def _end(self, rules: Rules, move: str) -> _End:
        """How the game ended."""
        account, total = self._game.state.game_info[0], float(self._game.state.rewards[0])
        reason = tidy(account["reason"])
        limit = not account["invalid_move"] and _LIMIT.search(reason) is not None
        if limit or account["invalid_move"]:
            return _End(total, reason, False, limit)
        if rules.finish:
            total, reason = rules.finish(self._game, move)
        return _End(total, reason, rules.success(self._game) if rules.success else total >= 1.0, False)


class _End(NamedTuple):
    total: float
    """Reward of the whole episode."""
    reason: str
    """Last words of the game."""
    success: bool
    limit: bool
    """Its limit of turns ended the game."""
