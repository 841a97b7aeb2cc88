"""Runners that all episodes of a process share: built once, closed whenever that is, and one error for everyone."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

import gem_core
from gem_core import Env
from gem_core.errors import ClosedError
from gem_train.rollout import EpisodeRunner, RolloutSettings
from gem_train.shared_runners import SharedRunners

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class Still(Env):
    """Ends at once."""

    def reset(self, seed: int | None = None, **options: Any) -> Any:
        super().reset(seed=seed)
        return "Hello.", {}

    def step(self, action: str) -> Any:
        return "", 0.0, True, False, {}

    def sample_random_action(self) -> str:
        return ""


class Build:
    """Builds runners, once it may."""

    def __init__(self, words: PreTrainedTokenizerFast) -> None:
        self.words = words
        self.may = threading.Event()
        self.built: list[EpisodeRunner] = []

    def __call__(self) -> EpisodeRunner:
        self.may.wait()
        self.built.append(EpisodeRunner("test:Still-v0", self.words, RolloutSettings(8, 64), seed=1))
        return self.built[-1]


@pytest.fixture
def build(words: PreTrainedTokenizerFast) -> Iterator[Build]:
    gem_core.register("test:Still-v0", Still)
    made = Build(words)
    yield made
    for runner in made.built:
        runner.close()


def closed(runner: EpisodeRunner) -> bool:
    async def no_policy(prompt: Any) -> Any:
        raise NotImplementedError

    try:
        asyncio.run(runner.run(no_policy, 0))
    except ClosedError:
        return True
    except NotImplementedError:
        return False
    raise AssertionError("an episode without a turn")


def test_everybody_gets_the_same_runner_and_one_who_gives_up_takes_it_from_nobody(build: Build) -> None:
    runners = SharedRunners()

    async def everybody() -> list[EpisodeRunner]:
        waiting = [asyncio.ensure_future(runners.runner("train", build)) for _ in range(5)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        build.may.set()
        assert len(await asyncio.gather(waiting[0], return_exceptions=True)) == 1
        return [*await asyncio.gather(*waiting[1:]), await runners.runner("eval", build)]

    found = asyncio.run(everybody())
    assert found[:4] == build.built[:1] * 4
    assert found[4] is build.built[1]
    assert len(runners) == 2
    runners.close()
    runners.close()
    assert len(runners) == 0
    assert all(map(closed, build.built))
    asyncio.run(runners.runner("train", build))
    assert len(build.built) == 3
    runners.close()


def test_an_error_is_everybodys_and_nothing_is_built_twice() -> None:
    runners, calls = SharedRunners(), [0]

    def fail() -> EpisodeRunner:
        calls[0] += 1
        raise OSError("no such licence")

    async def everybody() -> list[Any]:
        return await asyncio.gather(*[runners.runner("train", fail) for _ in range(5)], return_exceptions=True)

    assert [str(error) for error in asyncio.run(everybody())] == ["no such licence"] * 5
    assert calls == [1]
    runners.close()


def test_a_runner_that_is_still_being_built_is_closed_once_it_is_there(build: Build) -> None:
    runners = SharedRunners()

    async def give_up() -> EpisodeRunner:
        waiting = asyncio.ensure_future(runners.runner("train", build))
        await asyncio.sleep(0)
        runners.close()
        build.may.set()
        return await waiting

    runner = asyncio.run(give_up())
    deadline = time.monotonic() + 60
    while not closed(runner):
        assert time.monotonic() < deadline
