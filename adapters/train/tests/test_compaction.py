"""Compaction: episodes outlast the context, and every trained id is one that was sampled after what the policy saw."""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gem_core
from gem_core import Env
from gem_core.episode import Episode, Logprobs, TokenIds, Turn, as_logprobs, as_token_ids
from gem_core.errors import PolicyError, SettingsError
from gem_core.vector import Transition
from gem_support.example_counts import examples
from gem_support.trained_rows import assert_trained_as_sampled
from gem_train.rollout import (
    BatchCollector,
    ChatTemplate,
    Completion,
    EpisodeBuilder,
    EpisodeRunner,
    RolloutSettings,
    StopReason,
    episode_metrics,
)
from gem_train.rollout._match import MatchBuilder
from gem_train.rollout.compaction import REQUEST
from gem_train.rollout.records import recorded, restored
from gem_train.rows import rows_of
from gem_train.settings import RunSettings

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

prop = settings(deadline=None, max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
WORDS = ("left", "right", "goal", "stop")


class Long(Env):
    """Lasts `turns` turns, and shows `words` words of two tokens each time, `last` in the last but one observation."""

    def __init__(self, turns: int = 90, words: int = 100, last: int = 100) -> None:
        self.turns, self.words, self.last = turns, words, last
        self.actions: list[str] = []

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.left = self.turns
        return self._text(self.words), {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.left -= 1
        words = self.last if self.left == 1 else self.words
        return self._text(words), 1.0, self.left == 0, False, {"told": action, "success": self.left == 0}

    def sample_random_action(self) -> str:
        return "left"

    def _text(self, words: int) -> str:
        return " ".join(self.rng.choices(WORDS, k=words))


@pytest.fixture(scope="module")
def long() -> str:
    gem_core.register("demo-compaction:Long-v0", Long)
    return "demo-compaction:Long-v0"


class Sampler:
    """Samples random ids with made-up log-probabilities, and keeps what it saw and said."""

    def __init__(self, tokens: int, vocabulary: int, limit: int) -> None:
        self.tokens, self.vocabulary, self.limit = tokens, vocabulary, limit
        self.said: list[tuple[TokenIds, TokenIds, Logprobs]] = []
        self._random = random.Random(0)

    def __call__(self, prompts: Sequence[TokenIds]) -> list[Completion]:
        return [self._sample(prompt) for prompt in prompts]

    async def one(self, prompt: TokenIds) -> Completion:
        await asyncio.sleep(0)
        return self._sample(prompt)

    def _sample(self, prompt: TokenIds) -> Completion:
        assert len(prompt) + self.tokens <= self.limit
        ids = [self._random.randrange(7, self.vocabulary) for _ in range(self.tokens)]
        logprobs = [-self._random.random() for _ in ids]
        self.said.append((prompt, as_token_ids(ids), as_logprobs(logprobs)))
        return Completion(ids, logprobs)


@pytest.mark.parametrize("driver", ["collector", "runner"])
def test_40_000_tokens_in_a_context_of_8_000(long: str, words: PreTrainedTokenizerFast, driver: str) -> None:
    sampler = Sampler(256, len(words), 8_000)
    chosen = RolloutSettings(max_response_tokens=256, max_context_tokens=8_000, compaction="policy")
    if driver == "collector":
        vec = gem_core.make_vec(long, 1, backend="sync", seed=0)
        collector = BatchCollector(vec, sampler, words, chosen)
        [episode] = collector.collect_round().episodes
        collector.close()
    else:
        runner = EpisodeRunner(long, words, chosen, seed=0, backend="sync")
        found = asyncio.run(runner.run(sampler.one, 0))
        runner.close()
        assert found is not None
        episode = found
    assert (episode.stop_reason, episode.success, episode.total_reward) == (StopReason.TERMINATED, True, 90.0)
    assert sum(len(sequence.ids) for sequence in episode.sequences) > 40_000
    assert max(len(sequence.ids) for sequence in episode.sequences) <= 8_000
    summaries = [turn for turn in episode.turns if turn.compaction]
    assert len(summaries) == len(episode.sequences) - 1 >= 5
    assert [turn.info["told"] for turn in episode.turns if not turn.compaction] == [
        turn.action for turn in episode.turns if not turn.compaction
    ]
    assert {(turn.reward, turn.action, turn.observation) for turn in summaries} == {(0.0, "", REQUEST)}
    assert_trained_as_sampled(episode, sampler.said)
    assert episode_metrics([episode.summary()])["episode/compactions"] == len(summaries)
    assert recorded(restored(recorded(episode))) == recorded(episode)


def test_several_environments_at_once_play_to_the_end(long: str, words: PreTrainedTokenizerFast) -> None:
    chosen = RolloutSettings(max_response_tokens=8, max_context_tokens=400, compaction="policy")
    lengths = {"turns": 20, "words": 8, "last": 8}
    vec = gem_core.make_vec(long, 3, backend="thread", seed=0, group_size=3, env_kwargs=lengths)
    collector = BatchCollector(vec, Sampler(8, len(words), 400), words, chosen, min_batch=1)
    for _ in range(2):
        batch = collector.collect_round()
        assert [one.stop_reason for one in batch.episodes] == [StopReason.TERMINATED] * 3
        assert all(one.summary().compactions for one in batch.episodes)
    collector.close()


def test_an_observation_that_fits_no_context_ends_its_episode_alone(long: str, words: PreTrainedTokenizerFast) -> None:
    chosen = RolloutSettings(max_response_tokens=8, max_context_tokens=400, compaction="policy")
    vec = gem_core.make_vec(long, 2, backend="sync", seed=0, env_kwargs={"turns": 4, "words": 8, "last": 400})
    sampler = Sampler(8, len(words), 400)
    collector = BatchCollector(vec, sampler, words, chosen)
    for number in range(2):
        episodes = collector.collect_round().episodes
        assert [(one.number, one.stop_reason) for one in episodes] == [(number, StopReason.CONTEXT_FULL)] * 2
        # The summary was sampled before the new sequence proved too short, and is trained on.
        assert [[turn.compaction for turn in one.turns] for one in episodes] == [[False, False, False, True]] * 2
        assert [len(rows_of(one, "episode")) for one in episodes] == [1, 1]
    assert len(sampler.said) == 16
    collector.close()


# -- one conversation --------------------------------------------------------------------------------------------------


def builder(tokenizer: PreTrainedTokenizerFast, observation: str, info: dict[str, Any] | None = None, **chosen: Any):
    made = RolloutSettings(**{"max_response_tokens": 8, "compaction": "policy", **chosen})
    return EpisodeBuilder(Episode("demo:A", 1), ChatTemplate(tokenizer), made, observation, info or {})


def go_on(observation: str = "on", **info: Any) -> Transition:
    return Transition(observation, 0.0, False, False, info)


def encode(tokenizer: PreTrainedTokenizerFast, text: str) -> list[int]:
    return list(tokenizer.encode(text, add_special_tokens=False))


def rendered(tokenizer: PreTrainedTokenizerFast, *messages: tuple[str, str]) -> list[int]:
    text = tokenizer.apply_chat_template(
        [{"role": role, "content": content} for role, content in messages], tokenize=False, add_generation_prompt=True
    )
    return encode(tokenizer, str(text))


def just_too_small(tokenizer: PreTrainedTokenizerFast, opening: str) -> int:
    """A context in which the response to the opening can be summarized, and that to the next one could not."""
    length = len(rendered(tokenizer, ("user", opening)))
    return length + 8 + len(ChatTemplate(tokenizer).bridge_tokens(REQUEST)) + 8 + 2


def test_a_new_sequence_has_the_first_message_the_summary_and_the_newest_message(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    made = builder(tokenizer, "go left", max_context_tokens=just_too_small(tokenizer, "go left"))
    end = tokenizer.eos_token_id
    opening = made.prompt.tolist()
    assert made.act(Completion([*encode(tokenizer, "left"), end])) == "left"
    made.record(go_on("go on and stop"))
    asked = made.prompt.tolist()
    assert asked == rendered(tokenizer, ("user", "go left"), ("assistant", "left"), ("user", REQUEST))
    assert asked[: len(opening)] == opening
    summary = [*encode(tokenizer, "left"), *encode(tokenizer, "right"), end]
    assert made.act(Completion(summary)) is None
    assert (made.action, made.over) == (None, False)
    # The ids of the summary are those that were sampled, whatever the tokenizer would make of their text.
    canonical = rendered(tokenizer, ("user", "go left"), ("assistant", "left"), ("user", "go on and stop"))
    answered = len(opening) + len(encode(tokenizer, "left")) + 1
    assert made.prompt.tolist() == [*opening, *summary, *canonical[answered:]]
    assert made.act(Completion([end])) == ""
    made.record(Transition("", 1.0, True, False, {"success": True}))
    turns = made.episode.turns
    assert [turn.compaction for turn in turns] == [False, True, False]
    assert [turn.sequence for turn in turns] == [0, 0, 1]
    assert [turn.observation for turn in turns] == ["go left", REQUEST, "go on and stop"]
    assert len(made.episode.sequences) == 2


@prop
@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 8), st.booleans()), min_size=1, max_size=12),
    st.integers(20, 700),
)
def test_no_prompt_exceeds_the_context_and_all_rows_are_what_was_sampled(
    words: PreTrainedTokenizerFast, drawn: list[tuple[int, int, bool]], limit: int
) -> None:
    said: list[tuple[TokenIds, TokenIds, Logprobs]] = []
    made = builder(words, "go", max_context_tokens=limit)
    actions = 0
    for number, (length, sampled, ended) in enumerate(drawn):
        action = None
        while action is None and not made.over:
            ids = [7 + (number + one) % 20 for one in range(sampled)]
            ids = [*ids[:-1], words.eos_token_id] if ended else ids
            logprobs = [-1.0 - number] * len(ids)
            assert len(made.prompt) + 8 <= limit
            said.append((made.prompt, as_token_ids(ids), as_logprobs(logprobs)))
            action = made.act(Completion(ids, logprobs))
        if made.over:
            break
        actions += 1
        made.record(go_on("go " * length))
    turns = made.episode.turns
    assert sum(not turn.compaction for turn in turns) == actions
    assert made.sampled == len(said) == len(turns)
    assert not made.over or made.episode.stop_reason is StopReason.CONTEXT_FULL
    assert_trained_as_sampled(made.episode, said)


def test_without_room_for_a_summary_an_episode_ends_as_without_compaction(words: PreTrainedTokenizerFast) -> None:
    ends: list[int] = []
    for compaction in ("policy", None):
        made = builder(words, "go", max_context_tokens=60, compaction=compaction)
        while not made.over:
            made.act(Completion([7, 8, 9]))
            made.record(go_on())
        assert made.episode.stop_reason is StopReason.CONTEXT_FULL
        ends.append(len(made.episode.turns))
    assert ends[0] == ends[1] > 2


def test_tools_that_come_with_the_withheld_message_are_shown_after_the_summary(chatml: PreTrainedTokenizerFast) -> None:
    chatml = copy.deepcopy(chatml)
    shown = "{% if tools %}{% for tool in tools %}[{{ tool.function.name }}]{% endfor %}{% endif %}"
    chatml.chat_template = shown + str(chatml.chat_template)
    look = {"type": "function", "function": {"name": "look", "parameters": {}}}
    made = builder(chatml, "go", max_context_tokens=just_too_small(chatml, "go"))
    made.act(Completion([7, 8]))
    made.record(go_on("on", tools=[look]))
    assert "[look]" not in chatml.decode(made.prompt.tolist())
    made.act(Completion([9, 10]))
    assert chatml.decode(made.prompt.tolist()).startswith("[look]<|im_start|>user\ngo<|im_end|>")
    assert len(made.episode.sequences) == 2


def test_each_agent_of_a_match_has_summaries_of_its_own(words: PreTrainedTokenizerFast) -> None:
    chosen = RolloutSettings(
        max_response_tokens=8, compaction="policy", max_context_tokens=just_too_small(words, "go") + 30
    )
    template = ChatTemplate(words)
    made = MatchBuilder(
        Episode("demo:A", 1),
        lambda episode, observation, info: EpisodeBuilder(episode, template, chosen, observation, info),
        "go",
        {"agent": "a"},
    )
    for number in range(30):
        while made.action is None:
            made.act(Completion([7, 8, 9]))
        other = "b" if number % 2 == 0 else "a"
        paid = {other: 2.0} if number else {}
        made.record(Transition("go on", 1.0, False, False, {"agent": other, "agent_rewards": paid}))
    for episode in made.episodes:
        assert len(episode.sequences) > 1
        assert {turn.reward for turn in episode.turns if turn.compaction} == {0.0}
        assert {turn.reward for turn in episode.turns[1:-1] if not turn.compaction} == {3.0}
        assert len([turn for turn in episode.turns if not turn.compaction]) == 15


def test_summaries_of_different_histories_are_different_states(words: PreTrainedTokenizerFast) -> None:
    def states(answer: int) -> list[int]:
        made = builder(words, "go", max_context_tokens=just_too_small(words, "go"))
        made.act(Completion([answer] * 4))
        made.record(go_on("go on"))
        made.act(Completion([9]))
        made.act(Completion([9]))
        made.record(go_on("on"))
        return [turn.state for row in rows_of(made.episode, "turn") for turn in row.turns]

    one, other, again = states(7), states(8), states(7)
    assert one == again
    assert [left == right for left, right in zip(one, other, strict=True)] == [True, False, True]


# -- rules -------------------------------------------------------------------------------------------------------------


def count_turns(turns: Sequence[Turn]) -> str:
    return f"{len(turns)} <|end|>"


def no_text(turns: Sequence[Turn]) -> int:
    return len(turns)


RULE = f"{__name__}:count_turns"


def test_a_rule_writes_the_summary_and_no_control_token(words: PreTrainedTokenizerFast) -> None:
    made = builder(words, "go", max_context_tokens=34, compaction=RULE)
    for _ in range(12):
        assert len(made.prompt) + 8 <= 34
        made.act(Completion([7, words.eos_token_id]))
        made.record(go_on())
    assert not made.over
    assert len(made.episode.sequences) > 2
    assert not any(turn.compaction for turn in made.episode.turns)
    first = made.episode.turns[[turn.sequence for turn in made.episode.turns].index(1)]
    prompt = made.episode.prompt_ids(first).tolist()
    glue = ChatTemplate(words).bridge_tokens("on")
    assert prompt[: len(rendered(words, ("user", "go")))] == rendered(words, ("user", "go"))
    assert prompt[-len(glue) :] == glue
    # The end of the first message, that of the summary, and that of the newest message.
    assert prompt.count(words.eos_token_id) == 3
    assert sum(row.mask.count(1) for row in rows_of(made.episode, "episode")) == 24


def test_a_rule_that_gives_no_text_says_so(words: PreTrainedTokenizerFast) -> None:
    made = builder(words, "go", max_context_tokens=24, compaction=f"{__name__}:no_text")
    made.act(Completion([7, 8]))
    made.record(go_on())
    made.act(Completion([7, 8]))
    with pytest.raises(PolicyError, match=r"no_text gave 2. The summary of an episode is a text"):
        made.record(go_on())


# -- settings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"compaction": "policy"}, "needs max_context_tokens"),
        ({"compaction": "policy", "max_context_tokens": 99, "history": 2}, "history=2 drops them. Use one of the two"),
        ({"compaction": "polcy", "max_context_tokens": 99}, "compaction must be None, 'policy' or .*not 'polcy'"),
        ({"compaction": "no_module:f", "max_context_tokens": 99}, "No module named 'no_module'"),
        ({"compaction": f"{__name__}:WORDS", "max_context_tokens": 99}, "is not a function that takes the turns"),
    ],
)
def test_settings_that_cannot_work_are_refused(chosen: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RolloutSettings(max_response_tokens=8, **chosen)


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"compaction": "policy", "history": 2, "row": "turn"}, "compaction=policy replaces .*history=2 drops them"),
        ({"compaction": "polcy"}, "compaction=polcy: compaction must be None, 'policy' or"),
    ],
)
def test_a_run_with_settings_that_cannot_work_is_refused(chosen: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        RunSettings(env=["demo:A-v0"], **chosen).check()


def test_a_run_passes_its_setting_to_the_rollout() -> None:
    run = RunSettings(env=["demo:A-v0"], compaction=RULE)
    run.check()
    assert run.rollout(8, 99).summary_rule is count_turns
    with pytest.raises(SettingsError, match="needs max_context_tokens"):
        run.rollout(8, None)
