"""Sampling ahead of the training: the bound holds, nothing is lost, and no thread is left."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

import gem_core
from gem_core import Env, make_vec
from gem_core.seeding import derive_seed
from gem_support.waiting import SECONDS, wait_until
from gem_train.ahead import SamplingStopped, SamplingThread, StalenessBound
from gem_train.rollout import Batch, BatchCollector, Completion, GroupFilter, RolloutSettings

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

SEED = 3
SETTINGS = RolloutSettings(max_response_tokens=2)
DICE = random.Random(0)


class Uneven(Env):
    """Lasts one turn or `longest`, as the seed says; success is a matter of chance."""

    def __init__(self, longest: int = 6) -> None:
        self.longest = longest

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.left = self.rng.choice([1, self.longest])
        return "go", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.left -= 1
        return "on", 0.0, self.left == 0, False, {"success": DICE.random() < 0.5}

    def sample_random_action(self) -> str:
        return "go"


class Gate(Env):
    """Answers only once `opened` is set."""

    opened = threading.Event()
    entered = threading.Event()

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        return "go", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.entered.set()
        self.opened.wait(SECONDS)
        return "on", 0.0, True, False, {}

    def sample_random_action(self) -> str:
        return "go"


@pytest.fixture(autouse=True)
def _registered() -> None:
    gem_core.register("demo-ahead:Uneven-v0", Uneven)
    gem_core.register("demo-ahead:Gate-v0", Gate)


class Stamping:
    """A policy that says the version of its weights; `before` is called before each call."""

    def __init__(self, token: int, before: Callable[[], None] = lambda: None) -> None:
        self.version = 0
        self._token = token
        self._before = before

    def __call__(self, prompts: Sequence[Any]) -> list[Completion]:
        self._before()
        return [Completion([self._token], [-0.5], versions=self.version) for _ in prompts]


@pytest.fixture
def collector(words: PreTrainedTokenizerFast) -> Iterator[Callable[..., BatchCollector]]:
    made: list[BatchCollector] = []

    def build(policy: Any, env_id: str = "Uneven-v0", num_envs: int = 3, **arguments: Any) -> BatchCollector:
        group_filter = arguments.pop("group_filter", None)
        vec = make_vec(f"demo-ahead:{env_id}", num_envs, seed=SEED, **arguments)
        made.append(BatchCollector(vec, policy, words, SETTINGS, min_batch=1, group_filter=group_filter))
        return made[-1]

    yield build
    for one in made:
        one.close()


class Simulation:
    """A training that takes chance time, in the thread of the sampler: it moves on when the policy is called or waits.

    Args:
        ahead, rounds: of the bound.
    """

    def __init__(self, token: int, ahead: int, rounds: int) -> None:
        self.dice = random.Random(ahead)
        self.policy = Stamping(token, self.maybe_train)
        self.bound = StalenessBound(ahead, rounds)
        self.collected = 0
        self.asked = 0
        self.pace_waited = 0
        self.train()

    def train(self) -> None:
        """Train on the batch that was asked for, and ask for the next one."""
        assert self.asked <= self.collected, "the training needs a batch that cannot come"
        self.policy.version = self.asked
        self.asked += 1
        self.bound.advance()

    def maybe_train(self) -> None:
        while self.asked <= self.collected and self.dice.random() < 0.2:
            self.train()

    def rounds(self) -> int:
        return self.bound.rounds()

    def wait(self, rounds: int) -> None:
        self.pace_waited += 1
        while self.bound.rounds() <= rounds:
            self.train()

    def run(self, collector: BatchCollector, rounds: int) -> list[Batch]:
        batches: list[Batch] = []
        for _ in range(rounds):
            batches.append(collector.collect_paced(self))
            self.collected += 1
        return batches


def staleness(batches: Sequence[Batch]) -> list[int]:
    """Of each batch: its number, which is the version that trains on it, minus its oldest version."""
    return [
        number - min(episode.version_counts()[0][0] for episode in batch.episodes)
        for number, batch in enumerate(batches)
    ]


@pytest.mark.parametrize(("ahead", "updates"), [(0, 50), (1, 200), (2, 1000), (4, 200)])
def test_the_bound_holds_and_is_reached(collector: Any, words: Any, ahead: int, updates: int) -> None:
    simulation = Simulation(words.eos_token_id, ahead, updates)
    batches = simulation.run(collector(simulation.policy), updates)
    assert max(staleness(batches)) == ahead
    # The same tasks in the same batches as without sampling ahead; every episode once.
    for number, batch in enumerate(batches):
        assert [one.seed for one in batch.episodes] == [derive_seed(SEED, number * 3 + slot) for slot in range(3)]
    assert batches[-1].in_flight == batches[-1].surplus == 0
    assert simulation.pace_waited > 0


def test_episodes_straddle_updates(collector: Any, words: Any) -> None:
    simulation = Simulation(words.eos_token_id, 4, 100)
    batches = simulation.run(collector(simulation.policy), 100)
    spans = [episode.version_counts() for batch in batches for episode in batch.episodes]
    assert max(len(span) for span in spans) > 1
    assert sum(batch.carried_turns for batch in batches) > 0


def test_the_bound_holds_where_groups_are_replaced(collector: Any, words: Any) -> None:
    DICE.seed(0)
    simulation = Simulation(words.eos_token_id, 2, 100)
    made = collector(simulation.policy, num_envs=4, group_size=2, group_filter=GroupFilter("success", 100))
    batches = simulation.run(made, 100)
    assert sum(batch.filtered for batch in batches) > 50
    assert max(staleness(batches)) == 2
    groups = [episode.task_id for batch in batches for episode in batch.episodes]
    assert all(groups.count(one) == 2 for one in set(groups))
    for batch in batches:
        assert len(batch.episodes) == 4
        for pair in (batch.episodes[:2], batch.episodes[2:]):
            assert {one.success for one in pair} == {False, True}
            assert len({one.task_id for one in pair}) == 1


def test_a_limit_of_an_environment_changes_no_batch(collector: Any, words: Any) -> None:
    simulation = Simulation(words.eos_token_id, 2, 30)
    batches = simulation.run(collector(simulation.policy, env_limits={"demo-ahead:Uneven-v0": 2}), 30)
    assert max(staleness(batches)) <= 2
    for number, batch in enumerate(batches):
        assert [one.seed for one in batch.episodes] == [derive_seed(SEED, number * 3 + slot) for slot in range(3)]


def threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name == "gem-sampling"]


@pytest.mark.parametrize("backend", ["sync", "thread"])
def test_a_thread_keeps_the_bound_and_ends_after_the_last_batch(collector: Any, words: Any, backend: str) -> None:
    policy = Stamping(words.eos_token_id)
    sampling = SamplingThread(collector(policy, backend=backend), ahead=2, rounds=50)
    batches: list[Batch] = []
    for number in range(50):
        policy.version = number
        batches.append(sampling.take())
    assert max(staleness(batches)) <= 2
    assert [one.seed for one in batches[9].episodes] == [derive_seed(SEED, 27 + slot) for slot in range(3)]
    wait_until(lambda: not threads(), "the thread is alive after the last batch")
    with pytest.raises(RuntimeError, match="all 50 batches of this training have been taken"):
        sampling.take()
    sampling.close()


def test_nothing_is_sampled_beyond_the_bound(collector: Any, words: Any) -> None:
    policy = Stamping(words.eos_token_id)
    made = collector(policy)
    sampling = SamplingThread(made, ahead=1, rounds=9)
    assert len(sampling.take().episodes) == 3
    # Rounds 0 and 1 are all that may be begun before the next call.
    wait_until(lambda: len(sampling._batches) == 1)
    sampling.close()
    assert made._ended == [2, 2, 2]


def test_an_error_of_the_thread_is_raised_where_the_batch_is_needed(collector: Any, words: Any) -> None:
    def fail() -> None:
        raise OSError("no such device")

    sampling = SamplingThread(collector(Stamping(words.eos_token_id, fail)), ahead=1, rounds=3)
    with pytest.raises(OSError, match="no such device"):
        sampling.take()
    sampling.close()
    assert not threads()


def test_closing_waits_for_no_environment(collector: Any, words: Any) -> None:
    Gate.opened.clear()
    Gate.entered.clear()
    sampling = SamplingThread(collector(Stamping(words.eos_token_id), "Gate-v0", backend="thread"), ahead=1, rounds=3)
    caught: list[RuntimeError] = []

    def take() -> None:
        try:
            sampling.take()
        except RuntimeError as error:
            caught.append(error)

    taking = threading.Thread(target=take, daemon=True)
    taking.start()
    assert Gate.entered.wait(SECONDS)
    sampling.close()
    taking.join(SECONDS)
    assert len(caught) == 1
    assert not threads()
    Gate.opened.set()


def test_closing_ends_a_wait_for_the_pace(collector: Any, words: Any) -> None:
    sampling = SamplingThread(collector(Stamping(words.eos_token_id)), ahead=1, rounds=3)
    sampling.close()
    assert not threads()
    with pytest.raises(SamplingStopped):
        sampling._bound.rounds()
