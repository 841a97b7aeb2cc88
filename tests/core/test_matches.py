"""Matches: the contract, the environment of text, and the episodes of their agents."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

import gem_core
from gem_core import Match, MatchStep
from gem_core._match_env import MatchEnv
from gem_core.episode import Completion, Episode, StopReason
from gem_core.errors import (
    AgentError,
    EnvError,
    EnvFailure,
    EnvKwargsError,
    FailureKind,
    ResetNeededError,
    ToolError,
)
from gem_core.tools import FunctionTool, ToolEnv
from gem_core.vector import Transition, make_vec
from gem_core.vector._failures import cut_off
from gem_core.wrappers import ObservationHistory, TurnLimit
from gem_testing import check_env
from gem_train.rollout import (
    BatchCollector,
    ChatTemplate,
    EpisodeBuilder,
    EpisodeRunner,
    RolloutSettings,
    episode_metrics,
)
from gem_train.rollout._match import MatchBuilder
from gem_train.rollout.records import recorded, restored


class Count(Match):
    """Three agents count down in turns. `c` leaves after its first turn; a reward for `a` comes with every turn."""

    agents = ("a", "b", "c")
    scripts = ("loud",)

    def __init__(self, turns: int = 7) -> None:
        self.turns = turns

    def deal(self) -> Mapping[str, str]:
        self.secret = {agent: self.rng.randrange(1000) for agent in self.agents}
        self.said: list[str] = []
        self.order = ["a", "b", "c"]
        return {agent: f"secret of {agent} {self.secret[agent]}" for agent in self.agents}

    def to_act(self) -> Sequence[str]:
        return (self.order[0],)

    def play(self, actions: Mapping[str, str]) -> MatchStep:
        [(agent, action)] = actions.items()
        text = action.encode("utf-8", "replace").decode()
        self.said.append(text)
        self.order = [*self.order[1:], agent]
        over = len(self.said) == self.turns
        leaves = agent == "c" and not over
        if leaves:
            self.order.remove("c")
        present = [*self.order, *(["c"] if leaves else [])]
        return MatchStep(
            observations={one: f"{agent} said {text}" for one in present if one != agent or over or leaves},
            rewards={"a": 1.0, **({agent: 10.0} if agent != "a" else {})},
            terminated={one: over or one == "c" for one in present} if over or leaves else {},
            truncated={"b": True} if over else {},
            infos={agent: {"turn": len(self.said)}, **({"a": {"success": True}} if over else {})},
        )

    def random_action(self, agent: str, rng: random.Random) -> str:
        return str(rng.randrange(100))

    def scripted_action(self, script: str, agent: str, rng: random.Random) -> str:
        return script.upper()


class Together(Match):
    """Two agents act at the same time, twice."""

    agents = ("left", "right")

    def deal(self) -> Mapping[str, str]:
        self.rounds = 0
        return dict.fromkeys(self.agents, "Say 1 or 22.")

    def to_act(self) -> Sequence[str]:
        return self.agents

    def play(self, actions: Mapping[str, str]) -> MatchStep:
        self.rounds += 1
        over = self.rounds == 2
        said = {agent: text.encode("utf-8", "replace").decode() for agent, text in actions.items()}
        return MatchStep(
            observations={"left": f"right: {said['right']}", "right": f"left: {said['left']}"},
            rewards={"left": float(len(actions["left"])), "right": float(len(actions["right"]))},
            terminated=dict.fromkeys(self.agents, over),
            infos={agent: {"success": over, "invalid_action": actions[agent] == "x"} for agent in self.agents},
        )

    def random_action(self, agent: str, rng: random.Random) -> str:
        return rng.choice(["1", "22"])


def clock() -> str:
    """Tells the time."""
    return "noon"


class Broken(Together):
    """Names somebody that does not exist, where its test says so."""

    fault = ""

    def to_act(self) -> Sequence[str]:
        return ("nobody",) if self.fault == "to_act" else self.agents

    def play(self, actions: Mapping[str, str]) -> MatchStep:
        if self.fault == "reward":
            return MatchStep(rewards={"left": float("nan")})
        if self.fault == "name":
            return MatchStep(observations={"nobody": "x"})
        return super().play(actions)


@pytest.fixture(autouse=True)
def ids():
    gem_core.register("test:Count-v0", Count)
    gem_core.register("test:Together-v0", Together)


def numbered(prompts: Sequence[Any]) -> list[Completion]:
    """A policy whose answer depends on its prompt alone."""
    return [Completion([5 + sum(prompt) % 40], [-0.5]) for prompt in prompts]


def collector(words: Any, env_id: str, slots: int = 4, *, seed: int = 3, group_size: int = 1, **kwargs: Any):
    vec = make_vec(env_id, slots, backend="sync", seed=seed, group_size=group_size, env_kwargs=kwargs)
    return BatchCollector(vec, numbered, words, RolloutSettings(max_response_tokens=4))


@pytest.fixture
def words() -> Any:
    pytest.importorskip("tokenizers")
    from gem_support.chat_families import chatml

    return chatml()


# -- the contract -----------------------------------------------------------------------------------------------------


def test_only_those_whose_turn_it_is_may_act() -> None:
    match = Count()
    with pytest.raises(ResetNeededError, match="without a match under way"):
        match.step({"a": "1"})
    match.reset(seed=1)
    for wrong in ({"b": "1"}, {"a": "1", "b": "1"}, {}):
        with pytest.raises(AgentError, match="it is the turn of a"):
            match.step(wrong)
    match.step({"a": "1"})
    assert match.acting == ("b",)


def test_an_agent_that_left_is_out() -> None:
    match = Count()
    match.reset(seed=1)
    for agent in "abc":
        step = match.step({agent: agent})
    assert step.ended("c")
    assert not match.over
    assert [match.acting[0] for _ in range(3) if match.step({match.acting[0]: "x"})] == ["b", "a", "b"]
    match.step({match.acting[0]: "x"})
    assert match.over
    assert match.acting == ()


@pytest.mark.parametrize("fault", ["to_act", "reward", "name"])
def test_a_match_that_breaks_the_contract_is_told(fault: str) -> None:
    match = Broken()
    match.fault = fault
    match.reset(seed=1)
    with pytest.raises(EnvError, match="Broken"):
        match.step(dict.fromkeys(match.agents, "1"))


# -- the environment --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("opponents", [{}, {"a": "random"}, {"b": "loud", "c": "random"}])
def test_a_match_keeps_the_contract_of_environments(opponents: dict[str, str]) -> None:
    check_env("test:Count-v0", opponents=opponents)
    if not opponents:
        check_env("test:Together-v0")
        check_env("test:Together-v0", opponents={"left": "random"})


def test_what_comes_while_others_act_is_shown_with_the_next_turn() -> None:
    env = gem_core.make("test:Count-v0", turns=5, opponents={"b": "loud"})
    shown, info = env.reset(seed=1)
    assert info["agent"] == "a"
    assert shown.startswith("secret of a")
    shown, reward, *_, info = env.step("7")
    assert shown.splitlines()[1:] == ["a said 7", "b said LOUD"]
    assert (reward, info["agent"]) == (2.0, "c"), "the opponent acted within the step"
    assert info["agent_rewards"] == {}
    shown, reward, terminated, truncated, info = env.step("8")
    assert (reward, info["agent"], terminated, truncated) == (10.0, "a", False, False)
    assert info["agent_rewards"] == {"a": 1.0}
    assert info["agent_ends"] == {"c": "terminated"}
    assert info["agent_seen"] == {"c": "c said 8"}
    assert shown == "b said LOUD\nc said 8"


def test_nobody_sees_anything_until_all_have_acted() -> None:
    env = gem_core.make("test:Together-v0")
    env.reset(seed=1)
    shown, reward, *_, info = env.step("22")
    assert (shown, reward, info["agent"], info["agent_rewards"]) == ("Say 1 or 22.", 0.0, "right", {})
    shown, reward, *_, info = env.step("x")
    assert (shown, reward, info["agent"]) == ("right: x", 1.0, "left")
    assert info["agent_rewards"] == {"left": 2.0}
    assert info["invalid_action"], "the info of the one that acted"
    assert info["agent_infos"] == {"left": {"success": False, "invalid_action": False}}


@pytest.mark.parametrize(
    ("opponents", "message"),
    [
        (["b"], "is no dict"),
        ("random", "is no dict"),
        ({"d": "random"}, "no agent 'd'"),
        ({"b": "randm"}, "Did you mean 'random'"),
        ({"b": None}, "cannot be played by None"),
        ({"a": "random", "b": "random", "c": "random"}, "leaves no agent to play"),
    ],
)
def test_opponents_are_checked(opponents: Any, message: str) -> None:
    with pytest.raises(EnvKwargsError, match=message):
        gem_core.make("test:Count-v0", opponents=opponents)


def test_an_argument_of_no_match_is_refused() -> None:
    with pytest.raises(EnvKwargsError, match="turns, opponents"):
        gem_core.make("test:Count-v0", rounds=3)


def test_opponents_repeat_under_one_seed() -> None:
    def played(seed: int) -> list[str]:
        with gem_core.make("test:Count-v0", opponents={"a": "random", "b": "random"}) as env:
            return [env.reset(seed=seed)[0]]

    assert played(1) == played(1) != played(2)


def test_what_shows_one_conversation_is_refused_for_several_agents() -> None:
    alone = {"b": "random", "c": "loud"}
    for wrap, error, words in (
        (ObservationHistory, ValueError, "a, b, c, and one history would show each of them what only another may see"),
        (lambda env: ToolEnv(env, [FunctionTool(clock)]), ToolError, "a, b, c, and tools are for one"),
    ):
        with pytest.raises(error, match=words):
            wrap(gem_core.make("test:Count-v0"))
        with pytest.raises((EnvError, ToolError), match=words):
            make_vec("test:Count-v0", 1, backend="sync", wrappers=[wrap])
        with make_vec("test:Count-v0", 1, backend="sync", wrappers=[wrap], env_kwargs={"opponents": alone}) as vec:
            vec.reset()
            *_, (info,) = vec.step({0: "1"})
            assert "error" not in info


# -- episodes ---------------------------------------------------------------------------------------------------------


def test_each_agent_has_an_episode_with_its_own_turns_and_rewards(words: Any) -> None:
    batch = collector(words, "test:Count-v0", 2).collect_round()
    assert [episode.agent for episode in batch.episodes] == ["a", "b", "c"] * 2
    assert [len(episode.turns) for episode in batch.episodes] == [3, 3, 1] * 2
    a, b, c = batch.episodes[:3]
    # Counted by hand: every turn of anybody pays `a` 1, for the last turn of `a` before it.
    assert [turn.reward for turn in a.turns] == [3.0, 2.0, 2.0]
    assert [turn.reward for turn in b.turns] == [10.0, 10.0, 10.0]
    assert [turn.reward for turn in c.turns] == [10.0]
    assert [one.stop_reason for one in (a, b, c)] == [
        StopReason.TERMINATED,
        StopReason.TRUNCATED,
        StopReason.TERMINATED,
    ]
    assert (a.success, b.success, c.success) == (True, False, False)
    assert len({episode.id for episode in batch.episodes}) == 6
    assert a.match == b.match == c.match != batch.episodes[3].match
    assert batch.matches == 2


def test_an_agent_never_reads_the_secret_of_another(words: Any) -> None:
    for episode in collector(words, "test:Count-v0", 3).collect_round().episodes:
        text = words.decode(episode.sequences[0].ids.tolist())
        assert f"secret of {episode.agent}" in text
        for other in {"a", "b", "c"} - {episode.agent}:
            assert f"secret of {other}" not in text


def test_every_prompt_continues_the_conversation_of_its_agent(words: Any) -> None:
    for episode in collector(words, "test:Together-v0", 2).collect_round().episodes:
        [sequence] = episode.sequences
        first, second = episode.turns
        assert sequence.ids[first.start : first.end].tolist() == numbered([episode.prompt_ids(first)])[0].ids
        assert sequence.ids[second.start : second.end].tolist() == numbered([episode.prompt_ids(second)])[0].ids
        assert episode.success


def test_agents_of_a_task_form_groups_of_their_own(words: Any) -> None:
    batch = collector(words, "test:Count-v0", 4, group_size=2).collect_round()
    for agent in "abc":
        own = [episode for episode in batch.episodes if episode.agent == agent]
        assert [one.group_key for one in own] == [own[0].group_key] * 2 + [own[2].group_key] * 2
        assert len({one.role for one in own}) == 1
    assert len({episode.group_key for episode in batch.episodes}) == 6
    assert [one.summary().group_key for one in batch.episodes] == [one.group_key for one in batch.episodes]


def test_a_count_of_episodes_counts_matches(words: Any) -> None:
    one = collector(words, "test:Count-v0", 6)
    batches = [one.collect_episodes(4) for _ in range(3)]
    assert [batch.matches for batch in batches] == [4, 4, 4]
    assert [len(batch.episodes) for batch in batches] == [12, 12, 12]
    ids = [episode.id for batch in batches for episode in batch.episodes]
    assert len({*ids}) == len(ids)


def test_the_runner_plays_what_the_collector_plays(words: Any) -> None:
    async def answer(prompt: Any) -> Completion:
        return numbered([prompt])[0]

    settings = RolloutSettings(max_response_tokens=4)
    runner = EpisodeRunner("test:Count-v0", words, settings, seed=3, max_concurrent=2, backend="sync")
    played = asyncio.run(runner.run_all(answer, range(4)))
    batch = collector(words, "test:Count-v0", 4).collect_round()
    assert [_contents(one) for one in played] == [_contents(one) for one in batch.episodes]
    with pytest.raises(EnvError, match="an episode for each of a, b, c"):
        asyncio.run(runner.run(answer, 0))
    runner.close()


def test_one_agent_against_opponents_is_one_episode(words: Any) -> None:
    opponents = {"b": "random", "c": "loud"}
    batch = collector(words, "test:Count-v0", 2, opponents=opponents).collect_round()
    assert [episode.agent for episode in batch.episodes] == ["a", "a"]
    assert [turn.reward for turn in batch.episodes[0].turns] == [3.0, 2.0, 2.0]


def full_soon(cutoff: Any) -> RolloutSettings:
    """Agent `a` of `Count` acts once, and its second prompt has no room."""
    return RolloutSettings(max_response_tokens=4, max_context_tokens=50, match_cutoff=cutoff)


def test_a_full_context_ends_the_match_for_all_and_its_agent_forfeits(words: Any) -> None:
    vec = make_vec("test:Count-v0", 1, backend="sync", seed=3)
    full = StopReason.CONTEXT_FULL
    a, b, c = BatchCollector(vec, numbered, words, full_soon("forfeit")).collect_round().episodes
    assert (a.stop_reason, b.stop_reason, c.stop_reason) == (full, full, StopReason.TERMINATED)
    assert a.turns[-1].reward == 3.0 - 1.0  # the last place
    assert b.turns[-1].reward == 10.0 + 1.0  # `c` had left
    assert (a.success, b.success) == (False, True)


def test_matches_that_were_cut_off_can_be_left_out_until_nothing_else_comes(words: Any) -> None:
    vec = make_vec("test:Count-v0", 1, backend="sync", seed=3)
    one = BatchCollector(vec, numbered, words, full_soon("drop"))
    batch = one.collect_round()
    assert (batch.episodes, batch.dropped) == ([], 1)
    with pytest.raises(EnvFailure, match=r"50 matches in a row.*match_cutoff='drop'.*context_full"):
        one.collect_episodes(1)


def test_the_runner_knows_what_becomes_of_a_match_that_was_cut_off(words: Any) -> None:
    async def answer(prompt: Any) -> Completion:
        return numbered([prompt])[0]

    def played(cutoff: Any) -> list[float]:
        runner = EpisodeRunner("test:Count-v0", words, full_soon(cutoff), seed=3, max_concurrent=1, backend="sync")
        episodes = asyncio.run(runner.play(answer, 0))
        runner.close()
        return [episode.turns[-1].reward for episode in episodes]

    assert played("forfeit")[:2] == [3.0 - 1.0, 10.0 + 1.0]
    assert played("drop") == []


@pytest.mark.parametrize(("kind", "lost"), [(FailureKind.TIMEOUT, 1.0), (FailureKind.LOST, 0.0)])
def test_an_agent_whose_action_takes_too_long_forfeits(words: Any, kind: FailureKind, lost: float) -> None:
    template, settings = ChatTemplate(words), RolloutSettings(max_response_tokens=4)
    forfeits = {"a": {"a": -1.0, "b": 1.0}, "b": {"a": 1.0, "b": -1.0}}
    match = MatchBuilder(
        Episode("test:Pair", 1),
        lambda episode, *opening: EpisodeBuilder(episode, template, settings, *opening),
        "go",
        {"agent": "b", "agent_forfeits": forfeits},
    )
    match.act(Completion([5]))
    match.record(Transition("go", 0.0, False, False, {"agent": "a", "agent_forfeits": forfeits}))
    match.act(Completion([5]))
    match.record(cut_off("it hangs", kind))
    b, a = match.episodes
    assert (a.turns[-1].reward, b.turns[-1].reward) == (-lost, lost)
    assert {a.stop_reason, b.stop_reason} == {StopReason.ENV_ERROR}


def test_when_turns_are_used_up_all_forfeit_that_are_still_in(words: Any) -> None:
    def limited(env: Any) -> Any:
        return TurnLimit(env, 4)

    vec = make_vec("test:Count-v0", 1, backend="sync", seed=3, wrappers=[limited])
    a, b, _ = BatchCollector(vec, numbered, words, RolloutSettings(max_response_tokens=4)).collect_round().episodes
    assert a.turns[-1].reward == 1.0 - 1.0
    assert b.turns[-1].reward == 10.0 - 1.0
    assert not a.success
    assert not b.success


def test_a_failure_ends_the_match_for_all(words: Any) -> None:
    class Fails(Count):
        def play(self, actions: Mapping[str, str]) -> MatchStep:
            if len(self.said) == 4:
                raise RuntimeError("over and out")
            return super().play(actions)

    gem_core.register("test:Fails-v0", Fails)
    for episode in collector(words, "test:Fails-v0", 1).collect_round().episodes[:2]:
        assert episode.stop_reason is StopReason.ENV_ERROR
        assert episode.error is not None
        assert "over and out" in episode.error


def test_rewards_that_a_wrapper_changes_count(words: Any) -> None:
    class Doubled(gem_core.Wrapper):
        def step(self, action: str) -> Any:
            observation, reward, *rest = self.env.step(action)
            return observation, 2 * reward, *rest

    vec = make_vec("test:Together-v0", 1, backend="sync", seed=3, wrappers=[Doubled])
    left, right = BatchCollector(vec, numbered, words, RolloutSettings(max_response_tokens=4)).collect_round().episodes
    assert left.total_reward == sum(len(turn.action) for turn in left.turns), "paid while the other one acted"
    assert right.total_reward == 2 * sum(len(turn.action) for turn in right.turns)


def test_metrics_are_told_for_each_agent(words: Any) -> None:
    batch = collector(words, "test:Count-v0", 2).collect_round()
    metrics = episode_metrics([episode.summary() for episode in batch.episodes])
    assert metrics["agent/a/return"] == 7.0
    assert metrics["agent/b/return"] == 30.0
    assert metrics["agent/c/turns"] == 1.0


def test_a_record_has_the_agent(words: Any) -> None:
    for episode in collector(words, "test:Count-v0", 1).collect_round().episodes:
        assert restored(recorded(episode)).agent == episode.agent
        assert restored(recorded(episode)).id == episode.id


def test_any_backend_plays_the_same(words: Any) -> None:
    played = []
    for backend in ("sync", "thread"):
        vec = make_vec("test:Count-v0", 3, backend=backend, seed=3)
        one = BatchCollector(vec, numbered, words, RolloutSettings(max_response_tokens=4))
        played.append([_contents(episode) for episode in one.collect_round().episodes])
        one.close()
    assert played[0] == played[1]


def test_a_match_env_needs_no_registry() -> None:
    env = MatchEnv(Together(), {"left": "random"})
    assert env.agents == ("right",)
    assert isinstance(env.match, Together)


def _contents(episode: Episode) -> tuple[Any, ...]:
    sequences = [sequence.ids.tolist() for sequence in episode.sequences]
    return episode.agent, episode.seed, sequences, [turn.reward for turn in episode.turns], episode.stop_reason
