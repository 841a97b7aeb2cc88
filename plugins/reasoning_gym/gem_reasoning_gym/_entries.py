"""Entries of reasoning-gym's data sets by number: endless, and the same in every process."""

from __future__ import annotations

import dataclasses
import functools
import pickle
import random
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy
from reasoning_gym import factory  # pyright: ignore[reportMissingTypeStubs]

from gem_core.errors import EnvError, EnvKwargsError, hint_for, near_matches
from gem_reasoning_gym._ordered import ORDERED

BLOCK = 500
"""Entries of a data set that makes all of them at once; reasoning-gym's own default."""
HIGHEST = 2**64
"""Numbers and seeds are below: clocks are common seeds."""
_DRAWN = 2**31
"""Numbers of entries that are drawn are below, of a data set that never ends."""
_NARROW = {"pool_matrix": 2**32}
"""Data sets that seed numpy's generator with the sum of seed and number, and what has to be above the sum."""
Entry: TypeAlias = dict[str, Any]
"""`question`, `answer` (`None` where many are right) and what the data set's scoring needs."""

DATASETS = cast("dict[str, tuple[Any, Any]]", factory.DATASETS)  # pyright: ignore[reportUnknownMemberType]
"""Class and class of the configuration, by name."""

_one_at_a_time = threading.Lock()
_OURS = ("seed", "size")
"""Fields of every configuration that are arguments of the environment, the first one by another name."""


@dataclass(frozen=True)
class Definition:
    """A data set and its settings, as plain data."""

    name: str
    settings: bytes
    """Pickled, in order, so that equal settings are equal here."""

    @classmethod
    def of(cls, name: str, settings: Mapping[str, Any]) -> Definition:
        """Check and keep the settings.

        Raises:
            EnvKwargsError: the data set has no such setting.
            EnvError: there is no such data set, or it refuses a value.
        """
        if name not in DATASETS:
            raise EnvError(f"reasoning-gym has no data set {name!r}.{near_matches(name, DATASETS)}")
        known = [field.name for field in dataclasses.fields(DATASETS[name][1]) if field.name not in _OURS]
        for key in settings:
            if key not in known:
                instead = hint_for(key, known, {"seed": "Use data_seed=..."})
                raise EnvKwargsError(
                    f"rg:{name} has no argument {key!r} (given {settings[key]!r}).{instead} "
                    f"It takes: {', '.join(['data_seed', 'size', 'published', *known])}"
                )
        definition = cls(name, pickle.dumps(sorted(settings.items())))
        definition.config(0)
        return definition

    def config(self, seed: int) -> Any:
        """The data set's configuration. Raises `EnvError` where the data set refuses it."""
        settings = dict(pickle.loads(self.settings))
        try:
            config = DATASETS[self.name][1](**settings, seed=seed, size=BLOCK)
            if hasattr(config, "validate"):
                config.validate()
        except Exception as error:
            raise EnvError(f"rg:{self.name} refuses {settings!r}: {type(error).__name__}: {error}") from error
        return config

    def build(self, seed: int) -> Any:
        """The data set."""
        with _randomness(seed):
            return ORDERED.get(self.name, DATASETS[self.name][0])(config=self.config(seed))


def entry(definition: Definition, data_seed: int, number: int) -> Entry:
    """Entry `number`, from 0: another one for each number, as far as the data set has others.

    Raises:
        EnvError: the number is out of range.
    """
    if not 0 <= number < HIGHEST:
        raise EnvError(f"rg:{definition.name} has no entry {number}: they are numbered from 0 to {HIGHEST - 1}")
    with _one_at_a_time:
        return _kept_entry(definition, data_seed, number)


def drawn(definition: Definition, data_seed: int, rng: random.Random) -> Entry:
    """An entry drawn from all, or from the first block of a data set that makes all of them at once."""
    seed, number = _fitting(definition, data_seed, rng.randrange(_DRAWN))
    with _one_at_a_time, _randomness(seed + number):
        block = _block(definition, seed)
        try:
            return block[number]
        except IndexError:
            return block[number % BLOCK]


@functools.lru_cache(maxsize=256)  # a group of episodes plays one entry, and some take seconds to make
def _kept_entry(definition: Definition, data_seed: int, number: int) -> Entry:
    seed, number = _fitting(definition, data_seed, number)
    with _randomness(seed + number):
        try:
            return _block(definition, seed)[number]
        except IndexError:  # it makes all of them at once
            block, row = divmod(number, BLOCK)
            return _block(definition, seed + block * BLOCK)[row]


def _fitting(definition: Definition, seed: int, number: int) -> tuple[int, int]:
    """A seed and a number that the data set takes. Where it takes theirs, they are it."""
    above = _NARROW.get(definition.name)
    return (seed, number) if above is None or seed + number < above else ((seed + number) % above, 0)


@functools.lru_cache(maxsize=32)
def _block(definition: Definition, seed: int) -> Any:
    return definition.build(seed)


@contextmanager
def _randomness(seed: int) -> Generator[None]:
    # Some data sets draw from the global generators, or seed them. They belong to the training run.
    states = random.getstate(), numpy.random.get_state()
    random.seed(seed)
    numpy.random.seed(seed % 2**32)
    try:
        yield
    finally:
        random.setstate(states[0])
        numpy.random.set_state(states[1])
