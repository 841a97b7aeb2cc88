"""Groups without signal are replaced until the batch is full."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

import gem_core
from gem_core import Env, Match, MatchStep, make_vec
from gem_core.advantages import TurnBatch, compute_advantages
from gem_core.errors import AdvantageError, SettingsError
from gem_core.failures import ErrorAction, FailurePolicy
from gem_core.seeding import derive_seed
from gem_train.rollout import BatchCollector, Completion, Episode, GroupFilter, RolloutSettings, batch_metrics
from gem_train.settings import RunSettings

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

SEED = 11
SIZE = 3


class Guess(Env):
    """Solved if the action has an even number of letters. Without `shaped`, the only reward is for success."""

    def __init__(self, shaped: bool = False, hopeless: bool = False, fails: float = 0.0) -> None:
        self.shaped, self.hopeless, self.fails = shaped, hopeless, fails

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.left = self.rng.choice([1, 2, 4])
        self.threshold = self.rng.random()
        return f"go {self.rng.randint(0, 10**9)}", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if random.Random(action).random() < self.fails:
            raise OSError("gone")
        self.left -= 1
        success = not self.hopeless and random.Random(action).random() < self.threshold**2
        reward = float(success) if not self.shaped else float(success) - len(action) / 100
        return "on", reward, self.left == 0, False, {"success": success}

    def sample_random_action(self) -> str:
        return "go"


class OneSided(Match):
    """The first agent always wins. The second one wins by what it says."""

    agents = ("first", "second")

    def deal(self) -> Mapping[str, str]:
        return dict.fromkeys(self.agents, f"go {self.rng.randint(0, 10**9)}")

    def to_act(self) -> Sequence[str]:
        return self.agents

    def play(self, actions: Mapping[str, str]) -> MatchStep:
        won = {"first": True, "second": random.Random(actions["second"]).random() < 0.3}
        return MatchStep(
            rewards={agent: float(one) for agent, one in won.items()},
            terminated=dict.fromkeys(self.agents, True),
            infos={agent: {"success": one} for agent, one in won.items()},
        )

    def random_action(self, agent: str, rng: random.Random) -> str:
        return "go"


@pytest.fixture(autouse=True)
def _registered() -> None:
    gem_core.register("demo-filter:Guess-v0", Guess)
    gem_core.register("demo-filter:OneSided-v0", OneSided)


class Varied:
    """Samples by chance, each time something else, so that the episodes of a group differ."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens
        self.calls = 0

    def __call__(self, prompts: Sequence[Sequence[int]]) -> list[Completion]:
        return [self.complete(prompt) for prompt in prompts]

    def complete(self, prompt: Sequence[int]) -> Completion:
        self.calls += 1
        dice = random.Random(derive_seed(self.calls, len(prompt)))
        ids = [dice.randrange(self.tokens) for _ in range(4)]
        return Completion(ids, [-1.0] * 4)


@pytest.fixture
def collector(words: PreTrainedTokenizerFast) -> Iterator[Callable[..., BatchCollector]]:
    made: list[BatchCollector] = []

    def build(
        group_filter: GroupFilter | None,
        num_envs: int = 4 * SIZE,
        env_id: str = "demo-filter:Guess-v0",
        **arguments: Any,
    ) -> BatchCollector:
        arguments = {"seed": SEED, "group_size": SIZE, **arguments}
        vec = make_vec(env_id, num_envs, **arguments)
        settings = RolloutSettings(max_response_tokens=4)
        made.append(BatchCollector(vec, Varied(len(words)), words, settings, group_filter=group_filter))
        return made[-1]

    yield build
    for one in made:
        one.close()


def groups_of(episodes: Sequence[Episode]) -> dict[int, list[Episode]]:
    found: dict[int, list[Episode]] = {}
    for episode in episodes:
        found.setdefault(episode.task_id, []).append(episode)
    return found


class Seen:
    """Every episode that was played, kept or not, in the order of their ends."""

    def __init__(self) -> None:
        self.episodes: list[Episode] = []

    @gem_core.hookimpl
    def gem_episode_end(self, episode: Episode) -> None:
        self.episodes.append(episode)


@pytest.fixture
def seen() -> Iterator[Seen]:
    listener = Seen()
    gem_core.plugins.manager.register(listener)
    yield listener
    gem_core.plugins.manager.unregister(listener)


def number(judged_on: str, episode: Episode) -> float:
    return float(episode.success) if judged_on == "success" else sum(turn.reward for turn in episode.turns)


@pytest.mark.parametrize(("judged_on", "shaped"), [("success", False), ("success", True), ("return", False)])
def test_a_batch_has_the_first_group_with_signal_of_each_place(
    collector: Any, seen: Seen, judged_on: Any, shaped: bool
) -> None:
    made = collector(GroupFilter(judged_on, 100), env_kwargs={"shaped": shaped})
    batches = [made.collect_round() for _ in range(6)]
    by_group = groups_of(seen.episodes)
    informative = {name for name, group in by_group.items() if len({number(judged_on, one) for one in group}) > 1}
    assert 0 < len(informative) < len(by_group)
    # By brute force: the groups of each place in the order that they were played, without those that are all alike.
    for place in range(4):
        own = [name for name, group in by_group.items() if group[0].slot // SIZE == place]
        kept = sorted((name for name in own if name in informative), key=lambda name: by_group[name][0].number)
        got = [next(one.group_id for one in batch.episodes if one.slot // SIZE == place) for batch in batches]
        assert got == kept[: len(got)] == kept
    for batch in batches:
        assert len(batch.episodes) == 4 * SIZE
        assert all(len(group) == SIZE for group in groups_of(batch.episodes).values())
    assert sum(batch.filtered for batch in batches) == len(by_group) - len(informative)
    assert batch_metrics(batches[0])["rollout/filtered"] == batches[0].filtered


def test_no_group_of_a_full_batch_has_only_zeros(collector: Any) -> None:
    """The inputs of the estimator: every group has an advantage other than 0; without the filter many have none."""

    def empty_groups(group_filter: GroupFilter | None) -> int:
        batch = collector(group_filter, num_envs=20 * SIZE).collect_round()
        rewards = [[turn.reward for turn in episode.turns] for episode in batch.episodes]
        names = [episode.group_id for episode in batch.episodes]
        # On the return of an episode, as one turn.
        found, _ = compute_advantages("grpo", TurnBatch.from_rewards([[sum(one)] for one in rewards], names))
        assert len(names) == 20 * SIZE
        return sum(not any(one for one, other in zip(found, names, strict=True) if other == name) for name in {*names})

    assert empty_groups(GroupFilter("return", 100)) == 0
    assert empty_groups(None) > 3


def test_shaped_rewards_differ_where_nobody_succeeds(collector: Any) -> None:
    hopeless = {"env_kwargs": {"shaped": True, "hopeless": True}}
    assert len(collector(GroupFilter("return", 2), **hopeless).collect_round().episodes) == 4 * SIZE
    with pytest.raises(AdvantageError):
        collector(GroupFilter("success", 2), **hopeless).collect_round()


def test_a_run_that_finds_no_signal_ends_with_one_line(collector: Any) -> None:
    made = collector(GroupFilter("success", 3), env_kwargs={"hopeless": True})
    with pytest.raises(AdvantageError) as caught:
        made.collect_round()
    assert str(caught.value) == (
        "10 groups without signal in success were played for a batch of 4, more than the limit of 3 groups for each "
        "one allows: the tasks are too easy or too hard for this policy. Use other tasks, raise the limit, or train "
        "without the filter."
    )


def test_groups_that_lose_members_are_judged_by_the_rest(collector: Any) -> None:
    lenient = FailurePolicy(then=ErrorAction.DROP, max_failure_share=None)
    made = collector(GroupFilter("success", 100), env_kwargs={"fails": 0.1}, failures=lenient)
    batches = [made.collect_round() for _ in range(4)]
    assert sum(batch.dropped for batch in batches) > 0
    for batch in batches:
        groups = groups_of(batch.episodes)
        assert len(groups) == 4
        assert all({one.success for one in group} == {False, True} for group in groups.values())


@pytest.mark.parametrize("count", [SIZE, 2 * SIZE])
def test_batches_with_carried_episodes_are_filtered_too(collector: Any, count: int) -> None:
    made = collector(GroupFilter("success", 100))
    for _ in range(5):
        batch = made.collect_episodes(count)
        assert len(batch.episodes) == count
        assert all({one.success for one in group} == {False, True} for group in groups_of(batch.episodes).values())


def test_a_filter_needs_groups(collector: Any) -> None:
    with pytest.raises(ValueError, match="needs groups"):
        collector(GroupFilter("success"), group_size=1)
    with pytest.raises(ValueError, match="at least 1, not 0"):
        GroupFilter("success", 0)


def test_settings_make_the_filter() -> None:
    assert RunSettings(env=["a:b"]).group_filter is None
    made = RunSettings(env=["a:b"], filter_groups="return", filter_limit=3, advantage="grpo")
    assert made.group_filter == GroupFilter("return", 3)
    made.check_groups(2, "group_size=2")
    with pytest.raises(SettingsError, match=r"filter_groups=return needs groups.*advantage=rebn"):
        RunSettings(env=["a:b"], filter_groups="return", advantage="rebn").check_groups(4, "group_size=4")


@pytest.mark.parametrize("judged_on", ["success", "return"])
def test_agents_of_a_match_are_judged_apart(collector: Any, seen: Seen, judged_on: Any) -> None:
    """The agents differ in every match. That is no signal; a difference between matches for one agent is."""
    batch = collector(GroupFilter(judged_on, 100), env_id="demo-filter:OneSided-v0").collect_round()

    def differ(episodes: Sequence[Episode]) -> bool:
        return len({episode.success for episode in episodes if episode.agent == "second"}) > 1

    played, kept = groups_of(seen.episodes), groups_of(batch.episodes)
    assert all(len({episode.success for episode in group}) == 2 for group in kept.values())
    assert len(kept) == 4
    assert all(differ(group) and len(group) == 2 * SIZE for group in kept.values())
    left_out = [group for name, group in played.items() if name not in kept]
    assert len(left_out) == batch.filtered > 0
    assert not any(map(differ, left_out))
    assert any(len({episode.success for episode in group}) == 2 for group in left_out), "first won, and second lost"
