"""TextArena's classes, with a generator of each game's own in place of the global one, and without their prints."""

from __future__ import annotations

import functools
import importlib
import inspect
import pickle
import random
import sys
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from gem_core.errors import EnvError, EnvKwargsError, near_matches

textarena: Any = importlib.import_module("textarena")  # untyped, and missing where types are checked


class _Playing(threading.local):
    generator: random.Random | None = None


_playing = _Playing()


class _Randomness:
    """Stands for the module `random` in TextArena's modules: the generator of the game that this thread plays.

    The global generator belongs to the training run. Swapping its state in and out would lose what other threads draw
    meanwhile.
    """

    def __getattr__(self, name: str) -> Any:
        generator = _playing.generator
        # A generator lacks what is not a draw, such as the class `Random`.
        return getattr(generator if hasattr(generator, name) else random, name)


_randomness = _Randomness()


@contextmanager
def drawing_from(generator: random.Random) -> Generator[None]:
    """Let TextArena's code draw from this generator, in this thread."""
    before, _playing.generator = _playing.generator, generator
    try:
        yield
    finally:
        _playing.generator = before


@functools.cache
def defaults(name: str) -> Mapping[str, Any]:
    """The arguments with which TextArena registers an id.

    Raises:
        EnvError: the installed release has no such id.
    """
    try:
        return textarena.envs.registration.ENV_REGISTRY[name].kwargs
    except KeyError:
        raise EnvError(
            f"TextArena {textarena.__version__} has no {name!r}. Next: pip install 'textarena>=0.7.4,<0.8'"
        ) from None


@functools.cache
def game_class(name: str) -> Any:
    """The class of an id, ready to be played. Raises `EnvError` as `defaults`."""
    defaults(name)
    module, _, attribute = textarena.envs.registration.ENV_REGISTRY[name].entry_point.partition(":")
    found = getattr(importlib.import_module(module), attribute)
    _prepare(module.rpartition(".")[0])
    return found


def start(name: str, settings: Mapping[str, Any], seed: int, players: int = 1) -> tuple[Any, random.Random]:
    """TextArena's object of a new episode, and the generator that it draws from."""
    kind = game_class(name)  # pickle would import the module unprepared
    # Sokoban keeps the room that it makes in variables of its module. And threads that want the same start wait for it.
    with _makers.setdefault(kind, threading.Lock()):
        started = _started(name, pickle.dumps(sorted(settings.items())), seed, players)
    return pickle.loads(started)


_makers: dict[Any, threading.Lock] = {}
"""By class; each is held while a game starts."""


@functools.lru_cache(maxsize=64)  # a group of episodes plays one start, and some take a tenth of a second to make
def _started(name: str, settings: bytes, seed: int, players: int) -> bytes:
    generator = random.Random(seed)
    with drawing_from(generator):
        game = game_class(name)(**dict(pickle.loads(settings)))
        game.reset(num_players=players, seed=seed)
    if players == 1:
        game.state.__class__ = State
    return pickle.dumps((game, generator))


def settings_of(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of an id's class: those given, and those that TextArena registers.

    Raises:
        EnvKwargsError: the class has no such argument; the message names the near match.
        EnvError: as `defaults`.
    """
    known = list(inspect.signature(game_class(name)).parameters)
    for key, value in given.items():
        if key not in known:
            raise EnvKwargsError(
                f"textarena:{name} has no argument {key!r} (given {value!r}).{near_matches(key, known)} "
                f"It takes: {', '.join(known) or 'none'}"
            )
    return {**defaults(name), **given}


def _prepare(package: str) -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith("textarena.") and vars(module).get("random") is random:
            vars(module)["random"] = _randomness
        if name.startswith(f"{package}."):
            vars(module)["print"] = _silent  # several games print what they do


def _silent(*_: object, **__: object) -> None:
    pass


class State(textarena.SinglePlayerState):
    """TextArena's state of a game for one player, where its games call it with the arguments that it takes."""

    def set_winners(self, player_ids: list[int], reason: str) -> None:
        """FifteenPuzzle ends a solved game with this method of games for several players."""
        self.set_outcome(reward=1.0, reason=reason)

    def set_invalid_move(self, reason: Any, reward: Any = -1.0) -> None:
        """Several games give the arguments in the other order."""
        swapped = not isinstance(reason, str)
        super().set_invalid_move(  # pyright: ignore[reportUnknownMemberType]
            reason=reward if swapped else reason, reward=reason if swapped else reward
        )

    def add_observation(self, message: Any, observation_type: Any, *where: Any, **named: Any) -> None:
        """Leave out the player's own actions; several games give the arguments of these in another order."""
        if isinstance(message, str) and observation_type is not textarena.ObservationType.PLAYER_ACTION:
            super().add_observation(message, observation_type, *where, **named)  # pyright: ignore[reportUnknownMemberType]
