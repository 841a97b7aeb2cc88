"""Batches of whole episodes: nothing lost, nothing twice, nothing favoured, and the same ones everywhere."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

import gem_core
from gem_core import Env, make_vec
from gem_core.errors import ClosedError, EnvFailure, PolicyError, TemplateError
from gem_core.failures import FailurePolicy
from gem_core.hookspecs import hookimpl
from gem_core.plugins import PluginManager, manager
from gem_core.seeding import derive_seed
from gem_support.waiting import SECONDS
from gem_train.rollout import (
    Batch,
    BatchCollector,
    Completion,
    Episode,
    RolloutSettings,
    Run,
    StopReason,
    batch_metrics,
    episode_metrics,
)
from gem_train.rollout.records import recorded

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from gem_support.core_fixtures import Site

SEED = 5
SETTINGS = RolloutSettings(max_response_tokens=8)
SHORT = RolloutSettings(max_response_tokens=8, history=1)
LENIENT = FailurePolicy(max_failure_share=None)


class Stretch(Env):
    """Lasts one turn or `longest`, as the seed says."""

    def __init__(self, longest: int = 10) -> None:
        self.longest = longest

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.left = self.length = self.rng.choice([1, self.longest])
        return f"go {self.rng.randint(0, 10**9)}", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.left -= 1
        info = {"success": self.left == 0, "length": self.length}
        return f"on {self.rng.randint(0, 10**9)}", self.rng.random(), self.left == 0, False, info

    def sample_random_action(self) -> str:
        return "go"


class Fragile(Stretch):
    """Fails in the episodes with the seeds given."""

    def __init__(self, bad_seeds: Sequence[int] = (), how: str = "step", longest: int = 10) -> None:
        super().__init__(longest)
        self.bad_seeds, self.how = tuple(bad_seeds), how
        self.bad = False

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        self.bad = seed in self.bad_seeds
        if self.bad and self.how == "reset":
            raise OSError("no level")
        return super().reset(seed=seed)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self.bad:
            raise OSError("gone")
        return super().step(action)


class Never(Stretch):
    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        raise OSError("no server")


class Chance(Stretch):
    """Ends when the action has an even number of characters; the seed decides nothing but the words."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        done = len(action) % 2 == 0
        return f"on {self.rng.randint(0, 10**9)}", float(done), done, False, {"success": done}


@pytest.fixture(autouse=True)
def _registered() -> None:
    register()


def register() -> None:
    gem_core.register("demo-collector:Stretch-v0", Stretch)
    gem_core.register("demo-collector:Fragile-v0", Fragile)
    gem_core.register("demo-collector:Never-v0", Never)
    gem_core.register("demo-collector:Chance-v0", Chance)


class Babbler:
    """Samples any tokens at all, as a function of the prompt alone."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self.tokenizer = tokenizer
        self.calls: list[list[list[int]]] = []

    def __call__(self, prompts: Sequence[list[int]]) -> list[Completion]:
        self.calls.append([list(prompt) for prompt in prompts])
        return [self.complete(prompt) for prompt in prompts]

    def complete(self, prompt: list[int]) -> Completion:
        dice = random.Random(derive_seed(*prompt))
        ids = [dice.randrange(len(self.tokenizer)) for _ in range(dice.randint(1, 6))]
        ended = dice.random() < 0.7
        ids += [self.tokenizer.eos_token_id] if ended else []
        return Completion(ids, [-dice.random() for _ in ids], truncated=not ended)


@pytest.fixture
def collect(words: PreTrainedTokenizerFast) -> Iterator[Callable[..., BatchCollector]]:
    """Builds collectors over `Stretch`, closed at the end."""
    made: list[BatchCollector] = []

    def build(
        env_id: str = "Stretch-v0", num_envs: int = 4, settings: RolloutSettings = SETTINGS, **arguments: Any
    ) -> BatchCollector:
        policy = arguments.pop("policy", None) or Babbler(words)
        min_batch = arguments.pop("min_batch", None)
        vec = make_vec(f"demo-collector:{env_id}", num_envs, **{"seed": SEED, **arguments})
        made.append(BatchCollector(vec, policy, words, settings, min_batch=min_batch))
        return made[-1]

    yield build
    for collector in made:
        collector.close()


Collect = Callable[..., BatchCollector]


def keys(batch: Batch) -> list[tuple[int, int]]:
    return [(episode.slot, episode.number) for episode in batch.episodes]


def as_bytes(episodes: Sequence[Episode]) -> list[bytes]:
    """What two runs have in common where they went alike."""
    return [msgspec.json.encode(recorded(msgspec.structs.replace(episode, run=""))) for episode in episodes]


# -- rounds ------------------------------------------------------------------------------------------------------------


def test_a_round_is_one_episode_of_each_environment(collect: Collect) -> None:
    collector = collect(num_envs=6)
    for number in range(3):
        batch = collector.collect_round()
        assert keys(batch) == [(slot, number) for slot in range(6)]
        assert [one.seed for one in batch.episodes] == [derive_seed(SEED, number * 6 + slot) for slot in range(6)]
        assert all(one.stop_reason is StopReason.TERMINATED and one.success for one in batch.episodes)
        assert (batch.in_flight, batch.carried_turns, batch.dropped) == (0, 0, 0)
        assert {len(one.turns) for one in batch.episodes} <= {1, 10}


def test_every_turn_holds_the_prompt_and_the_ids_of_the_policy(collect: Collect, words: Any) -> None:
    policy = Babbler(words)
    batch = collect(policy=policy).collect_round()
    asked = [prompt for call in policy.calls for prompt in call]
    turns = [(episode, turn) for episode in batch.episodes for turn in episode.turns]
    assert sorted(episode.prompt_ids(turn).tolist() for episode, turn in turns) == sorted(asked)
    for episode, turn in turns:
        completion = policy.complete(episode.prompt_ids(turn))
        assert episode.response_ids(turn).tolist() == completion.ids
        assert episode.response_logprobs(turn) == array("f", completion.logprobs or [])
        assert turn.action == ("" if completion.truncated else turn.response)


def test_a_policy_may_append_to_its_prompts(collect: Collect, words: Any) -> None:
    class Appends(Babbler):
        def __call__(self, prompts: Sequence[list[int]]) -> list[Completion]:
            completions = super().__call__(prompts)
            for prompt, completion in zip(prompts, completions, strict=True):
                prompt.extend(completion.ids)
            return completions

    appended = collect(policy=Appends(words)).collect_round()
    assert as_bytes(appended.episodes) == as_bytes(collect().collect_round().episodes)


def test_what_is_sent_to_the_policy_shrinks_as_episodes_end(collect: Collect, words: Any) -> None:
    policy = Babbler(words)
    batch = collect(num_envs=8, policy=policy).collect_round()
    lengths = [len(episode.turns) for episode in batch.episodes]
    assert [len(call) for call in policy.calls] == [sum(length > turn for length in lengths) for turn in range(10)]


# -- turns -------------------------------------------------------------------------------------------------------------


def test_enough_turns_are_delivered_and_the_rest_goes_on(collect: Collect) -> None:
    collector = collect(num_envs=6)
    for _ in range(10):
        batch = collector.collect_turns(15)
        assert batch.turns >= 15
        assert 0 <= batch.in_flight <= 6


def test_nothing_is_lost_and_nothing_comes_twice(collect: Collect) -> None:
    collector = collect(num_envs=5, settings=SHORT)
    delivered: list[tuple[int, int]] = []
    for call in range(12):
        batch = collector.collect_turns(1 + 7 * (call % 3))
        assert keys(batch) == sorted(keys(batch))
        delivered += keys(batch)
    for slot in range(5):
        numbers = [number for one, number in delivered if one == slot]
        assert numbers == list(range(len(numbers)))


def test_carried_episodes_are_those_of_an_uninterrupted_run(collect: Collect) -> None:
    carried: list[Episode] = []
    collector = collect()
    while len(carried) < 30:
        carried += collector.collect_turns(3).episodes
    whole = collect().collect_turns(300).episodes
    expected = {(one.slot, one.number): one for one in whole}
    shared = [one for one in carried if (one.slot, one.number) in expected]
    assert len(shared) > 20
    assert as_bytes(shared) == as_bytes([expected[one.slot, one.number] for one in shared])


def test_carried_turns_are_those_sampled_by_earlier_calls(collect: Collect, words: Any) -> None:
    policy = Babbler(words)
    collector = collect(num_envs=3, policy=policy)
    sampled_in: dict[str, int] = {}
    carried_seen = 0
    for call in range(12):
        policy.calls.clear()
        batch = collector.collect_turns(4)
        for prompts in policy.calls:
            sampled_in.update({str(prompt): call for prompt in prompts})
        prompts = [episode.prompt_ids(turn).tolist() for episode in batch.episodes for turn in episode.turns]
        assert batch.carried_turns == sum(sampled_in[str(prompt)] < call for prompt in prompts)
        carried_seen += batch.carried_turns
    assert carried_seen > 0


def test_short_episodes_are_not_favoured(collect: Collect) -> None:
    # Small budgets, so that a collector which discards the unfinished would deliver hardly any of the long ones.
    collector = collect(num_envs=16, settings=SHORT)
    delivered: list[Episode] = []
    for _ in range(60):
        delivered += collector.collect_turns(32).episodes
    long = sum(len(episode.turns) == 10 for episode in delivered)
    assert len(delivered) > 300
    # Of episodes started, half are long; at most those in flight are missing at the end.
    started = [
        _length(derive_seed(SEED, number * 16 + slot))
        for slot in range(16)
        for number in range(1 + max(one.number for one in delivered if one.slot == slot))
    ]
    assert len(started) == len(delivered)
    assert long == started.count(10)
    assert abs(long / len(delivered) - 0.5) < 0.1


def _length(seed: int) -> int:
    env = Stretch()
    env.reset(seed=seed)
    return env.length


def test_rounds_and_turns_can_be_mixed(collect: Collect) -> None:
    collector = collect(num_envs=4)
    delivered = keys(collector.collect_turns(5))
    batch = collector.collect_round()
    assert {slot for slot, _ in keys(batch)} == set(range(4))
    assert batch.in_flight == 0
    delivered += keys(batch) + keys(collector.collect_turns(5))
    assert len(set(delivered)) == len(delivered)


@pytest.mark.parametrize("at_least", [0, -3])
def test_no_turns_are_no_batch(collect: Collect, at_least: int) -> None:
    with pytest.raises(ValueError, match="above 0"):
        collect().collect_turns(at_least)


# -- groups ------------------------------------------------------------------------------------------------------------


class Coin:
    """Ends episodes of `Chance` at random, whatever the prompt."""

    def __init__(self, words: PreTrainedTokenizerFast) -> None:
        self.dice = random.Random(0)
        self.even, self.odd = words.encode("ab", add_special_tokens=False), words.encode("a", add_special_tokens=False)

    def __call__(self, prompts: Sequence[list[int]]) -> list[Completion]:
        return [Completion([self.odd, self.even][self.dice.random() < 0.2] + [1]) for _ in prompts]


def test_groups_are_delivered_whole(collect: Collect, words: Any) -> None:
    assert words.eos_token_id == 1
    collector = collect("Chance-v0", 8, SHORT, group_size=4, policy=Coin(words))
    seen: set[int] = set()
    lengths: set[int] = set()
    for _ in range(15):
        batch = collector.collect_turns(20)
        groups = {episode.task_id for episode in batch.episodes}
        for group in groups:
            members = [episode for episode in batch.episodes if episode.task_id == group]
            assert [episode.slot % 4 for episode in members] == [0, 1, 2, 3]
            assert len({episode.seed for episode in members}) == 1
            assert len({episode.number for episode in members}) == 1
            lengths |= {len(episode.turns) for episode in members}
        assert not groups & seen
        seen |= groups
    assert len(lengths) > 2
    assert seen == set(range(len(seen))) or max(seen) < len(seen) + 8  # only groups under way are missing


def test_a_round_of_groups_is_whole(collect: Collect, words: Any) -> None:
    collector = collect("Chance-v0", 6, SHORT, group_size=3, policy=Coin(words))
    for number in range(3):
        batch = collector.collect_round()
        assert [episode.task_id for episode in batch.episodes] == [2 * number] * 3 + [2 * number + 1] * 3


# -- limits ------------------------------------------------------------------------------------------------------------


def test_a_full_context_ends_an_episode_and_the_environment_starts_the_next(collect: Collect) -> None:
    settings = RolloutSettings(max_response_tokens=8, max_context_tokens=60)
    collector = collect(num_envs=8, settings=settings)
    first, second = collector.collect_round(), collector.collect_round()
    assert keys(second) == [(slot, 1) for slot in range(8)]
    for batch in (first, second):
        reasons = {episode.stop_reason for episode in batch.episodes}
        assert reasons == {StopReason.CONTEXT_FULL, StopReason.TERMINATED}
        for episode in batch.episodes:
            assert all(turn.start + 8 <= 60 for turn in episode.turns)
            assert 1 <= len(episode.turns) <= 10
            assert episode.success == (episode.stop_reason is StopReason.TERMINATED)
            assert episode.final_observation


def repeatedly(collector: BatchCollector, how: str) -> None:
    for _ in range(10):
        collector.collect_round() if how == "round" else collector.collect_turns(1)


@pytest.mark.parametrize("group_size", [1, 2])
@pytest.mark.parametrize("how", ["round", "turns"])
def test_openings_that_never_fit_stop_the_run(collect: Collect, how: str, group_size: int) -> None:
    settings = RolloutSettings(max_response_tokens=8, max_context_tokens=9)
    collector = collect(settings=settings, group_size=group_size)
    with pytest.raises(EnvFailure, match="Allow longer contexts"):
        repeatedly(collector, how)


# -- failures ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["sync", "thread"])
@pytest.mark.parametrize("how", ["step", "reset"])
def test_a_failure_is_an_episode_with_its_error_and_the_others_are_unharmed(
    collect: Collect, backend: str, how: str
) -> None:
    bad = [derive_seed(SEED, 1), derive_seed(SEED, 1 * 4 + 2)]
    kwargs = {"bad_seeds": bad, "how": how}
    collector = collect("Fragile-v0", env_kwargs=kwargs, backend=backend)
    healthy = collect("Fragile-v0", env_kwargs={"bad_seeds": [], "how": how})
    for number in range(3):
        batch, expected = collector.collect_round(), healthy.collect_round()
        assert keys(batch) == keys(expected)
        for episode, other in zip(batch.episodes, expected.episodes, strict=True):
            if episode.seed in bad:
                assert episode.stop_reason is StopReason.ENV_ERROR
                assert episode.error == ("OSError: gone" if how == "step" else "OSError: no level")
                assert len(episode.turns) == (1 if how == "step" else 0)
                assert not episode.success
            else:
                assert as_bytes([episode]) == as_bytes([other])
        assert sum(episode.seed in bad for episode in batch.episodes) == (1 if number < 2 else 0)


@pytest.mark.parametrize("how", ["round", "turns"])
def test_an_environment_that_never_starts_stops_the_run(collect: Collect, how: str) -> None:
    collector = collect("Never-v0")
    with pytest.raises(EnvFailure, match=r"Never-v0 failed: 2\d times(?s:.*)OSError: no server"):
        repeatedly(collector, how)


def test_a_slot_that_fails_now_and_then_does_not(collect: Collect) -> None:
    bad = [derive_seed(SEED, number * 2) for number in range(12) if number % 4]
    collector = collect("Fragile-v0", 2, env_kwargs={"bad_seeds": bad, "how": "reset"})
    errors = [episode.error for _ in range(12) for episode in collector.collect_round().episodes if episode.slot == 0]
    assert [error is not None for error in errors] == [bool(number % 4) for number in range(12)]


DECIDER = """
from gem_core.failures import ErrorAction
asked, heard = [], []
@hookimpl
def gem_env_error(error, spec, episode, attempt):
    asked.append((spec.id, episode.slot, episode.number, attempt))
    return ErrorAction.{answer}
@hookimpl
def gem_episode_end(episode):
    heard.append((episode.slot, episode.number, episode.error))
"""


def test_a_plugin_can_drop_failed_episodes(site: Site, in_force: Callable[[], PluginManager], collect: Collect) -> None:
    module = site.add("decider", DECIDER.format(answer="DROP"))
    in_force().enable("decider")
    register()
    bad = [derive_seed(SEED, number * 2 + 1) for number in (0, 1, 3)]
    collector = collect("Fragile-v0", 2, env_kwargs={"bad_seeds": bad})
    batches = [collector.collect_round() for _ in range(4)]
    assert [keys(batch) for batch in batches] == [[(0, 0)], [(0, 1)], [(0, 2), (1, 2)], [(0, 3)]]
    assert [batch.dropped for batch in batches] == [1, 1, 0, 1]
    fragile = "demo-collector:Fragile-v0"
    assert site.module(module).asked == [(fragile, 1, 0, 1), (fragile, 1, 1, 1), (fragile, 1, 3, 1)]
    # Recorders hear of dropped episodes, too.
    assert (1, 0, "OSError: gone") in site.module(module).heard
    assert len(site.module(module).heard) == 8


def test_dropping_every_failure_of_an_environment_that_always_fails_stops_the_run(
    site: Site, in_force: Callable[[], PluginManager], collect: Collect
) -> None:
    site.add("decider", DECIDER.format(answer="DROP"))
    in_force().enable("decider")
    bad = [derive_seed(SEED, number) for number in range(100)]
    register()
    collector = collect("Fragile-v0", 2, env_kwargs={"bad_seeds": bad})
    with pytest.raises(EnvFailure, match=r"failed: 2\d times in its last 2\d episodes(?s:.*)1\. OSError: gone"):
        collector.collect_turns(1)


def test_a_group_with_a_dropped_member_is_delivered_without_it(
    site: Site, in_force: Callable[[], PluginManager], collect: Collect, words: Any
) -> None:
    class FailsInOddTurns(Chance):
        """Members of a group share a seed, so only what they are told can make one of them fail."""

        def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
            if len(action) % 2:
                raise OSError("odd")
            return super().step(action)

    site.add("decider", DECIDER.format(answer="DROP"))
    in_force().enable("decider")
    gem_core.register("demo-collector:FailsInOddTurns-v0", FailsInOddTurns)
    dice = random.Random(0)

    def policy(prompts: Sequence[list[int]]) -> list[Completion]:
        return [Completion([*words.encode("ab" if dice.random() < 0.5 else "a"), 1]) for _ in prompts]

    collector = collect("FailsInOddTurns-v0", 6, policy=policy, group_size=3, failures=LENIENT)
    sizes: set[int] = set()
    for number in range(20):
        batch = collector.collect_round()
        assert len(batch.episodes) + batch.dropped == 6
        groups = [episode.task_id for episode in batch.episodes]
        assert set(groups) <= {2 * number, 2 * number + 1}
        sizes |= {groups.count(2 * number), groups.count(2 * number + 1)}
    assert sizes == {0, 1, 2, 3}


def test_dropped_episodes_are_no_carried_turns(
    site: Site, in_force: Callable[[], PluginManager], collect: Collect
) -> None:
    class OneTurnOrFailure(Stretch):
        """What does not fail in its fourth turn ends in its first, so no turn is ever carried."""

        def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
            if self.length == 10 and self.left == 7:
                raise OSError("gone")
            return super().step(action)

    site.add("decider", DECIDER.format(answer="DROP"))
    in_force().enable("decider")
    gem_core.register("demo-collector:OneTurnOrFailure-v0", OneTurnOrFailure)
    collector = collect("OneTurnOrFailure-v0", 2, failures=LENIENT)
    batches = [collector.collect_turns(1) for _ in range(60)]
    assert sum(batch.dropped for batch in batches) > 5
    assert [batch.carried_turns for batch in batches] == [0] * 60


def test_a_plugin_can_stop_the_run(site: Site, in_force: Callable[[], PluginManager], collect: Collect) -> None:
    module = site.add("decider", DECIDER.format(answer="RAISE"))
    in_force().enable("decider")
    register()
    collector = collect("Fragile-v0", 3, env_kwargs={"bad_seeds": [derive_seed(SEED, 1)]})
    with pytest.raises(EnvFailure, match=rf"demo-collector:Fragile-v0 \(seed {derive_seed(SEED, 1)}\).*gone"):
        collector.collect_round()
    # The episode that stopped it is the one that recorders want most.
    assert (1, 0, "OSError: gone") in site.module(module).heard


# -- the policy's side of the contract ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("completions", "message"),
    [
        (lambda prompts: [Completion([1])] * (len(prompts) - 1), "3 completions for 4 prompts"),
        (lambda prompts: [Completion([1])] * (len(prompts) + 1), "5 completions for 4 prompts"),
        (lambda prompts: [Completion([])] * len(prompts), "without any token"),
        (lambda prompts: [Completion([1], [])] * len(prompts), "log-probabilities"),
    ],
)
def test_a_policy_that_breaks_its_contract_is_named(collect: Collect, completions: Any, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        collect(policy=completions).collect_round()


def test_what_the_policy_raises_passes_through_and_it_can_try_again(collect: Collect, words: Any) -> None:
    class Stumbles(Babbler):
        def __call__(self, prompts: Sequence[list[int]]) -> list[Completion]:
            completions = super().__call__(prompts)
            if len(self.calls) == 3:
                raise ConnectionError("engine away")
            return completions

    collector, other = collect(policy=Stumbles(words)), collect(policy=Stumbles(words))
    for collecting in (lambda: collector.collect_turns(100), other.collect_round):
        with pytest.raises(ConnectionError, match="engine away"):
            collecting()
    assert as_bytes(collector.collect_turns(100).episodes) == as_bytes(collect().collect_turns(100).episodes)
    assert as_bytes(other.collect_round().episodes) == as_bytes(collect().collect_round().episodes)


# -- the same everywhere -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", ["demo-collector:Stretch-v0", "game:GuessTheNumber-v0-random"])
@pytest.mark.parametrize("history", [None, 2])
def test_one_seed_gives_one_recording(chatml: PreTrainedTokenizerFast, env_id: str, history: int | None) -> None:
    recordings: list[list[bytes]] = []
    settings = RolloutSettings(max_response_tokens=8, history=history, system_prompt="play")
    for backend in ("sync", "thread", "process"):
        with make_vec(env_id, 5, backend=backend, seed=SEED) as vec:
            collector = BatchCollector(vec, Babbler(chatml), chatml, settings, min_batch=2)
            episodes = [episode for _ in range(3) for episode in collector.collect_round().episodes]
            recordings.append(as_bytes(episodes))
            collector.close()
    assert recordings[0] == recordings[1] == recordings[2]


def test_width_does_not_change_an_episode(collect: Collect) -> None:
    narrow, wide = collect(num_envs=2), collect(num_envs=10)
    one = [episode for _ in range(5) for episode in narrow.collect_round().episodes]
    other = wide.collect_round().episodes
    assert [episode.task_id for episode in one] == [episode.task_id for episode in other] == [*range(10)]
    assert [episode.turns for episode in one] == [episode.turns for episode in other]


# -- around it ---------------------------------------------------------------------------------------------------------


class Listener:
    def __init__(self) -> None:
        self.heard: list[tuple[str, Any]] = []

    @hookimpl
    def gem_rollout_start(self, run: Run) -> None:
        self.heard.append(("start", run))

    @hookimpl
    def gem_rollout_end(self, run: Run, error: BaseException | None) -> None:
        self.heard.append(("end", (run, error)))

    @hookimpl
    def gem_episode_end(self, episode: Episode) -> None:
        self.heard.append(("episode", episode))


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    manager.register(made)
    yield made
    manager.unregister(made)


def test_listeners_hear_the_run_its_episodes_and_its_end_once(collect: Collect, listener: Listener) -> None:
    collector = collect(num_envs=3)
    batch = collector.collect_round()
    error = RuntimeError("stopped")
    collector.close(error)
    collector.close()
    (first, run), *middle, (last, (ended, why)) = listener.heard
    assert (first, last, ended, why) == ("start", "end", run, error)
    assert run.env_ids == ["demo-collector:Stretch-v0"]
    assert "<in-process>" in run.provenance["demo-collector:Stretch-v0"]
    assert run.settings["max_response_tokens"] == 8
    assert {episode.run for episode in batch.episodes} == {run.id}
    assert sorted(as_bytes([episode for _, episode in middle])) == sorted(as_bytes(batch.episodes))


def test_a_closed_collector_plays_no_more(collect: Collect) -> None:
    collector = collect()
    collector.collect_round()
    collector.close()
    with pytest.raises(ClosedError):
        collector.collect_round()


def test_a_vector_without_autoreset_is_refused(collect: Collect) -> None:
    with pytest.raises(ValueError, match="same-step autoreset, not 'disabled'"):
        collect(autoreset="disabled")


def test_a_tokenizer_without_a_template_starts_no_run(words: PreTrainedTokenizerFast, listener: Listener) -> None:
    class Bare:
        chat_template = None

    with (
        make_vec("demo-collector:Stretch-v0", seed=SEED) as vec,
        pytest.raises(TemplateError, match="Bare has no chat template"),
    ):
        BatchCollector(vec, Babbler(words), Bare(), SETTINGS)  # type: ignore[arg-type]
    assert listener.heard == []


def test_metrics_by_hand(collect: Collect) -> None:
    batch = collect(num_envs=8).collect_round()
    metrics = batch_metrics(batch)
    turns = [turn for episode in batch.episodes for turn in episode.turns]
    assert metrics["rollout/episodes"] == 8.0
    assert metrics["rollout/turns"] == batch.turns == len(turns)
    assert metrics["episode/turns"] == len(turns) / 8
    assert metrics["episode/return"] == pytest.approx(sum(turn.reward for turn in turns) / 8)
    assert metrics["episode/success"] == metrics["stop/terminated"] == 1.0
    assert metrics["stop/env_error"] == metrics["env/errors"] == 0.0
    assert metrics["turn/truncated"] == sum(turn.truncated for turn in turns) / len(turns)
    assert metrics["time/generation"] > 0
    assert episode_metrics([]) == {}


def test_environments_are_restarted_together_and_the_time_is_booked(
    collect: Collect, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiving = threading.Event()  # a machine that is busy between sending and receiving books that time nowhere

    class Slow(Stretch):
        def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
            assert receiving.wait(SECONDS)
            time.sleep(0.1)
            return super().reset(seed)

    gem_core.register("demo-collector:Slow-v0", Slow)
    settings = RolloutSettings(max_response_tokens=8, max_context_tokens=16)
    collector = collect("Slow-v0", 4, settings, env_kwargs={"longest": 1000}, backend="thread")
    asked: list[list[int]] = []
    reset, recv = collector._vec.send_reset, collector._vec.recv  # pyright: ignore[reportPrivateUsage]

    def spy(indices: Sequence[int]) -> None:
        asked.append(list(indices))
        receiving.clear()
        reset(indices)

    def receive(*arguments: Any) -> Any:
        receiving.set()
        return recv(*arguments)

    monkeypatch.setattr(collector._vec, "send_reset", spy)  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(collector._vec, "recv", receive)  # pyright: ignore[reportPrivateUsage]
    first = collector.collect_round()
    full = [episode.slot for episode in first.episodes if episode.stop_reason is StopReason.CONTEXT_FULL]
    assert len(full) > 1
    assert first.env_seconds >= 0.1
    second = collector.collect_round()
    assert asked == [[0, 1, 2, 3], full]
    assert second.env_seconds >= 0.1


@pytest.mark.parametrize("how", ["round", "turns", "episodes"])
@pytest.mark.parametrize("where", ["step", "reset", "policy"])
def test_an_interrupted_collector_goes_on_where_it_was(collect: Collect, words: Any, how: str, where: str) -> None:
    calls = Counter[str]()

    class Interrupted(Stretch):
        def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
            interrupt_at("reset", 9)
            return super().reset(seed)

        def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
            interrupt_at("step", 42)
            return super().step(action)

    class InterruptedPolicy(Babbler):
        def __call__(self, prompts: Sequence[list[int]]) -> list[Completion]:
            interrupt_at("policy", 12)
            return super().__call__(prompts)

    def interrupt_at(method: str, call: int) -> None:
        calls[method] += 1
        if where == method and calls[method] == call:
            raise KeyboardInterrupt

    def go(collector: BatchCollector) -> Batch:
        if how == "episodes":
            return collector.collect_episodes(6)
        return collector.collect_round() if how == "round" else collector.collect_turns(20)

    gem_core.register("demo-collector:Interrupted-v0", Interrupted)
    collector = collect("Interrupted-v0", 4, SHORT, group_size=2, policy=InterruptedPolicy(words))
    batches: list[Batch] = []
    interruptions = 0
    while len(batches) < 20:
        try:
            batches.append(go(collector))
        except KeyboardInterrupt:
            interruptions += 1
    assert interruptions == 1
    undisturbed = collect("Stretch-v0", 4, SHORT, group_size=2)
    expected = [go(undisturbed) for _ in batches]
    assert nameless(batches) == nameless(expected)


# -- nobody waits for the slowest --------------------------------------------------------------------------------------


class Uneven(Stretch):
    """Every third seed is slow."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self.rng.random() < 0.3:
            time.sleep(0.005)
        return super().step(action)


@pytest.mark.parametrize("how", ["round", "turns", "episodes"])
@pytest.mark.parametrize("min_batch", [1, 3, None])
def test_an_episode_does_not_depend_on_who_was_ready_when(collect: Collect, min_batch: int | None, how: str) -> None:
    gem_core.register("demo-collector:Uneven-v0", Uneven)
    collector = collect("Uneven-v0", 8, backend="thread", min_batch=min_batch)
    expected = {(one.slot, one.number): one for one in collect("Uneven-v0", 8).collect_turns(250).episodes}
    seen: list[Episode] = []
    for _ in range(5):
        match how:
            case "round":
                seen += collector.collect_round().episodes
            case "turns":
                seen += collector.collect_turns(20).episodes
            case _:
                seen += collector.collect_episodes(6).episodes
    shared = [one for one in seen if (one.slot, one.number) in expected]
    assert len(shared) > len(seen) / 2
    assert as_bytes(shared) == as_bytes([expected[one.slot, one.number] for one in shared])
    assert len({(one.slot, one.number) for one in seen}) == len(seen)


def test_generation_goes_on_while_one_environment_is_at_work(collect: Collect, words: Any) -> None:
    gate = threading.Event()

    class OneWaits(Stretch):
        def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
            if self.seed == derive_seed(SEED, 0):
                assert gate.wait(120)
            return super().step(action)

        def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
            self.seed = seed
            return super().reset(seed)

    gem_core.register("demo-collector:OneWaits-v0", OneWaits)
    policy = Babbler(words)
    collector = collect("OneWaits-v0", 4, backend="thread", policy=policy, min_batch=2)
    batch = collector.collect_episodes(12)
    slots = {one.slot for one in batch.episodes}
    assert slots <= {1, 2, 3}
    assert len(slots) >= 2, "a call asks for at least two"
    assert 1 <= batch.in_flight <= 4
    assert all(len(call) >= 2 for call in policy.calls)
    gate.set()
    assert 0 in {one.slot for one in collector.collect_episodes(40).episodes}


def test_a_minimum_batch_larger_than_what_can_be_ready_does_not_hang(collect: Collect) -> None:
    assert len(collect(num_envs=3, backend="thread", min_batch=50).collect_round().episodes) == 3


@pytest.mark.parametrize("min_batch", [0, -1])
def test_no_batch_is_no_minimum(collect: Collect, min_batch: int) -> None:
    with pytest.raises(ValueError, match="min_batch"):
        collect(min_batch=min_batch)


def test_over_sampling_is_counted_and_loses_nothing(collect: Collect) -> None:
    collector = collect(num_envs=12, settings=SHORT)
    batches = [collector.collect_episodes(8) for _ in range(40)]
    assert {len(batch.episodes) for batch in batches} == {8}
    assert all(batch.in_flight <= 12 for batch in batches)
    assert any(batch.surplus for batch in batches)
    delivered = [key for batch in batches for key in keys(batch)]
    assert len(set(delivered)) == len(delivered)
    for slot in range(12):
        numbers = sorted(number for one, number in delivered if one == slot)
        missing = set(range(max(numbers) + 1)) - set(numbers)
        assert len(missing) <= 1 + batches[-1].surplus
    long = sum(len(one.turns) == 10 for batch in batches for one in batch.episodes)
    started = [_length(derive_seed(SEED, number * 12 + slot)) for slot, number in delivered]
    assert long == started.count(10)
    assert 0.35 < long / len(delivered) < 0.65


def test_over_sampling_keeps_groups_together(collect: Collect, words: Any) -> None:
    collector = collect("Chance-v0", 12, SHORT, group_size=4, policy=Coin(words))
    for _ in range(10):
        groups = Counter(one.task_id for one in collector.collect_episodes(8).episodes)
        assert set(groups.values()) == {4}
        assert len(groups) == 2
    with pytest.raises(ValueError, match="multiple of the group size 4"):
        collector.collect_episodes(6)


# -- failures on the way -----------------------------------------------------------------------------------------------


def test_a_retried_failure_leaves_no_trace(collect: Collect) -> None:
    tried = Counter[tuple[int, int]]()

    class FailsOnce(Stretch):
        def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
            self.seed = seed or 0
            return super().reset(seed)

        def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
            tried[self.seed, self.left] += 1
            if self.left == 3 and tried[self.seed, self.left] == 1:
                raise OSError("gone")
            return super().step(action)

    gem_core.register("demo-collector:FailsOnce-v0", FailsOnce)
    patient = collect("FailsOnce-v0", 4, failures=FailurePolicy(retries=1))
    batches = [patient.collect_round() for _ in range(3)]
    assert any(count > 1 for count in tried.values())
    healthy = collect("Stretch-v0", 4)
    expected = [healthy.collect_round() for _ in range(3)]
    assert nameless(batches) == nameless(expected)


def nameless(batches: Sequence[Batch]) -> list[bytes]:
    """What episodes of two environments have in common."""
    episodes = [episode for batch in batches for episode in batch.episodes]
    return as_bytes([msgspec.structs.replace(one, env_id="", provenance="") for one in episodes])


@pytest.mark.parametrize("how", ["step", "reset"])
def test_the_policy_s_last_word_holds_without_a_plugin(collect: Collect, how: str) -> None:
    bad = [derive_seed(SEED, 1)]
    arguments: dict[str, Any] = {"env_kwargs": {"bad_seeds": bad, "how": how}}
    dropping = collect("Fragile-v0", 3, failures=FailurePolicy(then="drop"), **arguments)  # type: ignore[arg-type]
    batch = dropping.collect_round()
    assert (keys(batch), batch.dropped) == ([(0, 0), (2, 0)], 1)
    raising = collect("Fragile-v0", 3, failures=FailurePolicy(then="raise"), **arguments)  # type: ignore[arg-type]
    with pytest.raises(EnvFailure, match=rf"seed {bad[0]}\) failed: OSError"):
        raising.collect_round()


def test_processes_give_the_same_recording_even_when_one_dies(chatml: PreTrainedTokenizerFast) -> None:
    gem_core.register("demo-collector:Mortal-v0", Mortal)
    recordings: list[list[bytes]] = []
    killed = [derive_seed(SEED, 1)]
    for backend, how in (("sync", "raise"), ("thread", "raise"), ("process", "raise"), ("process", "die")):
        workers = {"workers": 2} if backend == "process" else {}
        with make_vec(
            "demo-collector:Mortal-v0",
            6,
            backend=backend,
            seed=SEED,
            env_kwargs={"bad_seeds": killed, "how": how},
            **workers,  # type: ignore[arg-type]
        ) as vec:
            collector = BatchCollector(vec, Babbler(chatml), chatml, SETTINGS, min_batch=2)
            episodes = [episode for _ in range(2) for episode in collector.collect_round().episodes]
            recordings.append(as_bytes([one for one in episodes if one.seed not in killed]))
            [failed] = [one for one in episodes if one.seed in killed]
            assert failed.stop_reason is StopReason.ENV_ERROR
            assert len(failed.turns) == 1
            assert ("SIGKILL" if how == "die" else "OSError: gone") in (failed.error or "")
            collector.close()
    assert recordings[0] == recordings[1] == recordings[2] == recordings[3]
    assert len(recordings[0]) == 11


class Mortal(Fragile):
    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self.bad and self.how == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().step(action)
