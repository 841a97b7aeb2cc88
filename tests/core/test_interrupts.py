"""Ctrl-C comes when it does no harm, and a rollout goes on as if it had never come."""

from __future__ import annotations

import os
import random
import signal
import statistics
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

import gem_core
from gem_core import Env, make_vec
from gem_core.episode import Episode
from gem_core.interrupts import uninterrupted
from gem_core.seeding import derive_seed
from gem_core.vector import VectorEnv
from gem_train.rollout import Batch, BatchCollector, Completion, RolloutSettings

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

SEED = 3


def test_ctrl_c_waits_for_the_end_of_the_block() -> None:
    seen: list[str] = []

    def block() -> None:
        with uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
            seen.append("done")

    with pytest.raises(KeyboardInterrupt):
        block()
    assert seen == ["done"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_elsewhere_than_in_the_main_thread_it_changes_nothing() -> None:
    handlers: list[Any] = []

    def look() -> None:
        with uninterrupted():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert handlers == [signal.default_int_handler]


class Steps(Env):
    """One to six turns; every turn shows the generator's numbers and how many turns were played."""

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.turn, self.last = 0, self.rng.randint(1, 6)
        return f"go {self.rng.randint(0, 10**6)}", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.turn += 1
        over = self.turn == self.last
        return f"on {self.rng.randint(0, 10**6)}", self.rng.random(), over, False, {"turn": self.turn}

    def sample_random_action(self) -> str:
        return ""


def collector_of(words: PreTrainedTokenizerFast, vec: VectorEnv) -> BatchCollector:
    def policy(prompts: Sequence[list[int]]) -> list[Completion]:
        return [Completion([2 + derive_seed(*prompt) % (len(words) - 2), words.eos_token_id]) for prompt in prompts]

    return BatchCollector(vec, policy, words, RolloutSettings(max_response_tokens=8), min_batch=2)


def interrupted(collector: BatchCollector, after: float) -> Batch | None:
    """A round with Ctrl-C after so many seconds; `None` where that came before its end."""
    alarm = threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT))
    batch = None
    try:
        alarm.start()
        batch = collector.collect_round()
        alarm.join()
        time.sleep(0.01)
    except KeyboardInterrupt:
        alarm.join()
    return batch


def _encoded(episode: Episode) -> bytes:
    return msgspec.json.encode(msgspec.structs.replace(episode, run=""), enc_hook=repr)


def by_episode(batches: Sequence[Batch]) -> dict[tuple[int, int], bytes]:
    episodes = [episode for batch in batches for episode in batch.episodes]
    lines = {(one.slot, one.number): _encoded(one) for one in episodes}
    assert len(lines) == len(episodes)
    return lines


@pytest.mark.parametrize("backend", ["thread", "process"])
def test_a_collector_interrupted_at_any_moment_collects_the_same(words: PreTrainedTokenizerFast, backend: Any) -> None:
    gem_core.register("demo-interrupts:Steps-v0", Steps)
    dice = random.Random(backend)
    with make_vec("demo-interrupts:Steps-v0", 6, backend=backend, workers=2, seed=SEED) as vec:
        collector = collector_of(words, vec)
        results: list[Batch | None] = []
        times: list[float] = []
        for _ in range(10):
            started = time.perf_counter()
            results.append(collector.collect_round())
            times.append(time.perf_counter() - started)
        usual = statistics.median(times)  # the first also waits for the workers to start
        # A busy machine may be late with Ctrl-C, so it comes until enough rounds were interrupted.
        while len(results) < 70 or results.count(None) < 11:
            results.append(interrupted(collector, dice.uniform(0.0, 1.5 * usual)))
        results.append(collector.collect_round())
    with make_vec("demo-interrupts:Steps-v0", 6, seed=SEED) as vec:
        collector = collector_of(words, vec)
        expected = by_episode([collector.collect_round() for _ in results])
    found = by_episode([batch for batch in results if batch is not None])
    assert len(found) > 5
    assert found == {key: expected[key] for key in found}
