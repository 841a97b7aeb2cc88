"""A two-player game of TextArena."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gem_core.errors import EnvError, described
from gem_core.match import Match, MatchStep
from gem_textarena._candidates import BLOCKING, CANDIDATES
from gem_textarena._library import drawing_from, game_class, settings_of, start, textarena
from gem_textarena._moves import read_move, tidy
from gem_textarena._names import game_of, match_names


class TextArenaMatch(Match):
    """Two players in turn; the content of the last `[...]` of an action is the move.

    | move | rewards | match |
    | --- | --- | --- |
    | allowed | 0 | continues |
    | not allowed, or none | 0 | the same player again, `info["invalid_action"]`; the second in a row loses |
    | the last one | 1 for the winner and -1 for the other, 0 for a draw | terminated |
    | leaves the other player no allowed move | 1, and -1 for the other | terminated |

    A player sees what the game tells it, and the latest board. `info["success"]` says who won.

    Args:
        name: TextArena's id of the game.
        settings: arguments of the game's class in place of those that TextArena registers.

    Raises:
        EnvKwargsError: the game has no such argument; the message names the near match.
        EnvError: it refuses a value, or the installed TextArena lacks the game.
    """

    agents = ("player 0", "player 1")

    def __init__(self, name: str, **settings: Any) -> None:
        if name not in match_names():
            raise EnvError(f"{name!r} is no game for two players: `gem-core list textarena:` shows those")
        self._name = name
        self._settings = settings_of(name, settings)
        self._draws = random.Random(0)
        self._game: Any = None

    def deal(self) -> Mapping[str, str]:
        """Start a game."""
        try:
            self._game, self._draws = start(self._name, self._settings, self.rng.getrandbits(32), players=2)
        except Exception as error:
            raise EnvError(
                f"textarena:{self._name} cannot start with {self._settings!r}: {described(error)}"
            ) from error
        return self._news()

    def to_act(self) -> Sequence[str]:
        """The player whose turn it is."""
        number: int = self._game.state.current_player_id
        return (self.agents[number],)

    def play(self, actions: Mapping[str, str]) -> MatchStep:
        """Make a move."""
        game_class(self._name)  # in a process that got this match by pickle
        [(agent, action)] = actions.items()
        move = read_move(action)
        with drawing_from(self._draws):
            ended, _ = self._game.step(f"[{move}]")
        info: dict[str, Any] = {"parsed_action": f"[{move}]"} if move else {}
        state, player = self._game.state, self.agents.index(agent)
        if _was_invalid(self._game, player, ended):
            info["invalid_action"] = True
        elif not ended and self._is_blocked():
            ended, loser = True, state.current_player_id
            state.set_winner(1 - loser, reason=f"Player {loser} has no allowed move.")
        news = self._news()
        if not ended:
            return MatchStep(observations=news, infos={agent: {"success": False, **info}})
        rewards = {each: float(state.rewards[number]) for number, each in enumerate(self.agents)}
        reason = tidy(state.game_info[player]["reason"])
        return MatchStep(
            observations={each: "\n".join(filter(None, [news.get(each, ""), reason])) for each in self.agents},
            rewards=rewards,
            terminated=dict.fromkeys(self.agents, True),
            infos={
                each: {**(info if each == agent else {}), "success": reward > 0} for each, reward in rewards.items()
            },
        )

    def random_action(self, agent: str, rng: random.Random) -> str:
        """A move that is allowed now."""
        game_class(self._name)  # in a process that got this match by pickle
        candidates = [*CANDIDATES[game_of(self._name)](self._game, rng)]
        allows = self._trial()
        while True:
            move = candidates.pop(rng.randrange(len(candidates)))
            if not candidates or allows(move):
                return f"[{move}]"

    def _is_blocked(self) -> bool:
        """Whether the next player could only lose by invalid moves."""
        if game_of(self._name) not in BLOCKING:
            return False
        candidates = CANDIDATES[game_of(self._name)](self._game, random.Random(0))
        return not any(map(self._trial(), candidates))

    def _trial(self) -> Callable[[str], bool]:
        """Says whether the game takes a move now; tries it on a copy."""
        now, draws = pickle.dumps(self._game), random.Random(0)
        return lambda move: _allows(pickle.loads(now), draws, move)

    def _news(self) -> dict[str, str]:
        """What the game has told each player since the last turn, but for earlier boards and players' own words."""
        self._game.state.logs.clear()  # all that was ever told, which nobody reads and every copy would contain
        return {each: self._told(self._game.state.observations, number) for number, each in enumerate(self.agents)}

    @staticmethod
    def _told(observations: dict[int, list[tuple[int, str, Any]]], player: int) -> str:
        messages, observations[player] = observations[player], []
        kinds = textarena.ObservationType
        boards = [text for _, text, kind in messages if kind is kinds.GAME_BOARD]
        texts = [text for _, text, kind in messages if kind not in (kinds.GAME_BOARD, kinds.PLAYER_ACTION)]
        return "\n".join(filter(None, map(tidy, [*texts, *boards[-1:]])))


def _allows(game: Any, draws: random.Random, move: str) -> bool:
    """Whether a copy of a game takes a move, whatever it draws after it."""
    player: int = game.state.current_player_id
    with drawing_from(draws):
        ended, _ = game.step(f"[{move}]")
    return not _was_invalid(game, player, ended)


def _was_invalid(game: Any, player: int, ended: bool) -> bool:
    """Whether a game refused the move that a player has just made."""
    return game.state.game_info[player]["invalid_move"] or (not ended and game.state.error_count > 0)
