"""Earlier thoughts in later prompts: kept as sampled, or dropped as the chat template drops them."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

import gem_core
from gem_core import Env
from gem_core.episode import Episode, TokenIds, as_logprobs, as_token_ids
from gem_core.errors import SettingsError
from gem_core.vector import Transition
from gem_support import chat_families
from gem_support.trained_rows import Said, assert_trained_as_sampled
from gem_train.rollout import (
    BatchCollector,
    ChatTemplate,
    Completion,
    Conversation,
    EpisodeBuilder,
    RolloutSettings,
    StopReason,
    Thoughts,
)
from gem_train.rollout._match import MatchBuilder
from gem_train.rollout.compaction import REQUEST
from gem_train.rows import rows_of
from gem_train.settings import RunSettings

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


def written(*, earlier: str = "", always: str = "", next: str = "", chained: bool = False, strip: bool = True) -> str:
    """A template that leaves the thoughts of earlier responses out.

    Args:
        earlier: stands in the place of a thought that is left out.
        always: stands before an earlier response without a thought.
        next: what the header of the next response ends with.
        chained: thoughts since the last message of the user stay.
        strip: line ends after a thought go with it.
    """
    speech = "m.content.split('</think>')[-1]" + (".lstrip('\\n')" if strip else "")
    return (
        "{%- set ns = namespace(asked=-1) -%}{%- for m in messages -%}"
        "{%- if m.role == 'user' -%}{%- set ns.asked = loop.index0 -%}{%- endif -%}{%- endfor -%}"
        "{%- for m in messages -%}"
        "{%- if m.role == 'tool' -%}{{- '<|im_start|>user\\n(' + m.content + ')<|im_end|>\\n' -}}"
        "{%- elif m.role == 'assistant' -%}{{- '<|im_start|>assistant\\n' -}}"
        f"{{%- if '</think>' not in m.content -%}}{{{{- {always!r} + m.content -}}}}"
        f"{{%- elif {chained} and loop.index0 > ns.asked -%}}{{{{- m.content -}}}}"
        f"{{%- else -%}}{{{{- {earlier!r} + {speech} -}}}}{{%- endif -%}}{{{{- '<|im_end|>\\n' -}}}}"
        "{%- else -%}{{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' -}}{%- endif -%}{%- endfor -%}"
        f"{{%- if add_generation_prompt -%}}{{{{- '<|im_start|>assistant\\n' + {next!r} -}}}}{{%- endif -%}}"
    )


KINDS = {
    "all go": written(strip=False),
    "those between tools stay": written(chained=True),
    "the header opens a thought": written(next="<think>\n", chained=True),
    "the header has an empty thought": written(next="<think>\n\n</think>\n\n"),
    "an empty thought stays": written(earlier="<think></think>\n", always="<think></think>\n"),
}
"""As the templates of families: DeepSeek R1; Qwen3 and GLM between tools; Qwen3.5; Qwen3 without thinking; Nemotron."""


def with_template(tokenizer: PreTrainedTokenizerFast, template: str, *, marks: bool = False) -> PreTrainedTokenizerFast:
    """The tokenizer with this template. `marks`: those of thoughts are one token each."""
    made = copy.deepcopy(tokenizer)
    if marks:
        made.add_tokens(["<think>", "</think>"])
    made.chat_template = template
    return made


def encode(tokenizer: PreTrainedTokenizerFast, text: str) -> list[int]:
    return list(tokenizer.encode(text, add_special_tokens=False))


def rendered(tokenizer: PreTrainedTokenizerFast, messages: Sequence[dict[str, str]]) -> str:
    return str(tokenizer.apply_chat_template([*messages], tokenize=False, add_generation_prompt=True))


def thinking(opening: str, number: int) -> tuple[str, str]:
    """A response, and the same as a chat client has it, with the mark that the prompt wrote."""
    response = f"<think>\nturn {number}, or {number + 1}\n</think>\n\ngo left {number}"
    return response.removeprefix(opening).removeprefix("\n" if opening else ""), response


@pytest.mark.parametrize("history", [None, 1, 2, 3])
@pytest.mark.parametrize("marks", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_prompts_are_those_of_the_template(
    chatml: PreTrainedTokenizerFast, kind: str, marks: bool, history: int | None
) -> None:
    tokenizer = with_template(chatml, KINDS[kind], marks=marks)
    template, chance = ChatTemplate(tokenizer, system_prompt="think"), random.Random(0)
    for length in (2, 3, 7):
        conversation = Conversation(template, history, "drop")
        messages: list[dict[str, str]] = []
        for number in range(length):
            tool = number > 0 and chance.random() < 0.6
            conversation.observe(f"turn {number}", {"use_tool": True} if tool else {})
            messages.append({"role": "tool" if tool else "user", "content": f"turn {number}"})
            window = messages if history is None else messages[-(2 * history - 1) :]
            whole = rendered(tokenizer, [{"role": "system", "content": "think"}, *window])
            if window[0]["role"] == "user":  # a template knows no chain without its beginning
                assert tokenizer.decode(conversation.prompt().tolist()) == whole
                assert conversation.prompt().tolist() == encode(tokenizer, whole)
            response, full = thinking(conversation.opening, number)
            if kind == "the header has an empty thought" or (not conversation.opening and chance.random() < 0.3):
                response = full = f"go left {number}"
            ended = [tokenizer.eos_token_id] if chance.random() < 0.7 else []
            conversation.respond(encode(tokenizer, response) + ended)
            messages.append({"role": "assistant", "content": full})


def test_a_template_that_shows_thoughts_gets_messages_without_them(chatml: PreTrainedTokenizerFast) -> None:
    tokenizer = with_template(chatml, written(chained=True).replace("'</think>' not in m.content", "true"))
    conversation = Conversation(ChatTemplate(tokenizer), thoughts="drop")
    messages: list[dict[str, str]] = []
    for number in range(5):
        conversation.observe(f"turn {number}", {"use_tool": number in (2, 3)})
        messages.append({"role": "tool" if number in (2, 3) else "user", "content": f"turn {number}"})
        assert conversation.prompt().tolist() == encode(tokenizer, rendered(tokenizer, messages))
        conversation.respond([*encode(tokenizer, thinking("", number)[0]), tokenizer.eos_token_id])
        messages.append({"role": "assistant", "content": f"go left {number}"})


def test_a_sequence_goes_on_as_long_as_its_ids_do(chatml: PreTrainedTokenizerFast) -> None:
    tokenizer = with_template(chatml, KINDS["those between tools stay"])
    conversation = Conversation(ChatTemplate(tokenizer), thoughts="drop")
    begun: list[int] = []
    for tool, thinks in [(False, False), (False, True), (True, True), (True, False), (False, False), (False, False)]:
        conversation.observe("go", {"use_tool": tool})
        begun.append(len(conversation.sequences))
        conversation.respond([*encode(tokenizer, thinking("", 1)[0] if thinks else "left"), tokenizer.eos_token_id])
    assert begun == [1, 1, 1, 1, 2, 2]


def test_without_thoughts_the_two_settings_are_the_same(tokenizer: PreTrainedTokenizerFast) -> None:
    found: list[Any] = []
    settings: tuple[Thoughts, Thoughts] = ("keep", "drop")
    for thoughts in settings:
        conversation = Conversation(ChatTemplate(tokenizer), thoughts=thoughts)
        for number in range(4):
            conversation.observe("go left", {"use_tool": number == 2})
            conversation.respond([7 + number, 9, tokenizer.eos_token_id])
        found.append([one.ids.tolist() for one in conversation.sequences])
    assert found[0] == found[1]
    assert len(found[0]) == 1


@pytest.mark.parametrize(
    ("pieces", "shown"),
    [
        (["<think>a</think>", "\n\n", "le", "ft", "<|im_end|>"], ["le", "ft", "<|im_end|>"]),
        (["<think>a</think", ">\n\nle", "ft", "<|im_end|>"], ["l", "e", "ft", "<|im_end|>"]),
        (["<think>a</think>", "\n\n", "<|im_end|>"], ["<|im_end|>"]),
        (["<think>a</think>", "\n\n"], ["<|im_end|>"]),
        (["<think>", "\u6f22"[:1], "</think>", "\n", "\u6f22", "ft"], ["\u6f22", "ft", "<|im_end|>"]),
    ],
)
def test_the_speech_keeps_its_ids_and_only_a_token_with_the_border_is_encoded_anew(
    chatml: PreTrainedTokenizerFast, pieces: list[str], shown: list[str]
) -> None:
    tokenizer = with_template(chatml, KINDS["those between tools stay"])
    tokenizer.add_tokens(["le", "ft", ">\n\nle"])

    def ids_of(texts: Sequence[str]) -> list[int]:
        # "l" and "e" in two tokens: no tokenizer would write what the policy sampled.
        return [one for text in texts for one in encode(tokenizer, text)]

    conversation = Conversation(ChatTemplate(tokenizer), thoughts="drop")
    conversation.observe("go", {})
    opening = conversation.prompt().tolist()
    conversation.respond(ids_of(pieces))
    conversation.observe("on", {})
    expected = [ids_of([one]) for one in shown]
    if shown[:2] == ["l", "e"]:
        expected[:2] = [encode(tokenizer, "le")]
    after = conversation.prompt().tolist()[len(opening) :]
    whole = [one for part in expected for one in part]
    assert after[: len(whole)] == whole
    assert tokenizer.decode(after[len(whole) :]) == "\n<|im_start|>user\non<|im_end|>\n<|im_start|>assistant\n"


def test_what_was_sampled_as_other_tokens_stays_so(chatml: PreTrainedTokenizerFast) -> None:
    tokenizer = with_template(chatml, KINDS["all go"])
    letters = [one for letter in "another" for one in encode(tokenizer, letter)]
    assert letters != encode(tokenizer, "another")
    conversation = Conversation(ChatTemplate(tokenizer), thoughts="drop")
    conversation.observe("go", {})
    opening = conversation.prompt().tolist()
    conversation.respond([*encode(tokenizer, "<think>one</think>"), *letters])
    conversation.observe("go", {})
    assert conversation.prompt().tolist()[len(opening) :][: len(letters)] == letters


@pytest.mark.parametrize(
    "thought",
    [
        "<|channel|>analysis<|message|>left {0}?<|end|><|start|>assistant",
        "<|channel|>analysis<|message|>left {0}?<|end|><|start|>assistant<|channel|>analysis<|message|>or<|end|>"
        "<|start|>assistant",
        "",
    ],
)
def test_a_message_to_the_user_follows_its_header_alone(thought: str) -> None:
    """Of a family whose thoughts are messages of their own: the header of what was said is the template's."""
    tokenizer = chat_families.channels()
    conversation = Conversation(ChatTemplate(tokenizer), thoughts="drop")
    messages: list[dict[str, str]] = []
    for number in range(4):
        conversation.observe(f"turn {number}", {})
        messages.append({"role": "user", "content": f"turn {number}"})
        assert conversation.prompt().tolist() == encode(tokenizer, rendered(tokenizer, messages))
        said = f"{thought}<|channel|>final<|message|>go left {number}<|return|>".format(number)
        conversation.respond(encode(tokenizer, said))
        messages.append({"role": "assistant", "content": f"go left {number}"})


def test_what_was_said_between_thoughts_is_put_together() -> None:
    tokenizer = chat_families.channels()
    conversation = Conversation(ChatTemplate(tokenizer), thoughts="drop")
    conversation.observe("go", {})
    parts = ["final<|message|>go on<|end|>", "analysis<|message|>left?<|end|>", "final<|message|>go left<|return|>"]
    conversation.respond(encode(tokenizer, "<|start|>assistant".join(f"<|channel|>{part}" for part in parts)))
    conversation.observe("on", {})
    talk = [("user", "go"), ("assistant", "go on\ngo left"), ("user", "on")]
    expected = rendered(tokenizer, [{"role": role, "content": content} for role, content in talk])
    assert conversation.prompt().tolist() == encode(tokenizer, expected)


@pytest.mark.parametrize(
    "marks", [("<|channel>thought\n", "<channel|>"), ("[THINK]", "[/THINK]"), ("◁think▷", "◁/think▷")]
)
def test_marks_of_other_families_that_are_special_tokens(
    chatml: PreTrainedTokenizerFast, marks: tuple[str, str]
) -> None:
    opening, closing = marks
    tokenizer = with_template(chatml, written(chained=True).replace("</think>", closing))
    tokenizer.add_special_tokens({"additional_special_tokens": [opening.removesuffix("thought\n"), closing]})
    conversation = Conversation(ChatTemplate(tokenizer), thoughts="drop")
    messages: list[dict[str, str]] = []
    for number, tool in enumerate((False, False, True, True, False)):
        conversation.observe(f"turn {number}", {"use_tool": tool})
        messages.append({"role": "tool" if tool else "user", "content": f"turn {number}"})
        assert conversation.prompt().tolist() == encode(tokenizer, rendered(tokenizer, messages))
        said = f"{opening}left {number}?{closing}go left {number}"
        assert conversation.respond([*encode(tokenizer, said), tokenizer.eos_token_id]) == said
        messages.append({"role": "assistant", "content": said})


def test_a_thought_that_the_token_limit_cut_off_is_dropped(chatml: PreTrainedTokenizerFast) -> None:
    for kind in ("all go", "the header opens a thought"):
        tokenizer = with_template(chatml, KINDS[kind])
        conversation = Conversation(ChatTemplate(tokenizer), thoughts="drop")
        conversation.observe("go", {})
        conversation.respond(encode(tokenizer, "<think>left or right"[len(conversation.opening) :]))
        conversation.observe("on", {})
        talk = [("user", "go"), ("assistant", ""), ("user", "on")]
        expected = rendered(tokenizer, [{"role": role, "content": content} for role, content in talk])
        assert conversation.prompt().tolist() == encode(tokenizer, expected)


# -- episodes ----------------------------------------------------------------------------------------------------------


class Thinker:
    """A policy that thinks before it speaks, with made-up log-probabilities; keeps what it saw and said."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, limit: int | None = None) -> None:
        self.tokenizer, self.limit = tokenizer, limit
        self.said: list[Said] = []
        self._chance = random.Random(0)

    def __call__(self, prompts: Sequence[TokenIds]) -> list[Completion]:
        return [self.sample(prompt) for prompt in prompts]

    def sample(self, prompt: TokenIds) -> Completion:
        assert self.limit is None or len(prompt) + 40 <= self.limit
        thought = "<think>" + "left or right " * self._chance.randint(0, 2) + "</think>"
        text = f"{thought if self._chance.random() < 0.8 else ''}\n\ngo {self._chance.randint(0, 9)}"
        ids = [*encode(self.tokenizer, text), self.tokenizer.eos_token_id]
        logprobs = [-self._chance.random() for _ in ids]
        self.said.append((prompt, as_token_ids(ids), as_logprobs(logprobs)))
        return Completion(ids, logprobs)


class Steps(Env):
    """Lasts 12 turns and pays 1 to 12; a tool answers in some of them. `info["told"]` is what it got."""

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.turn = 0
        return "go left", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.turn += 1
        info = {"told": action, "use_tool": self.turn % 4 in (1, 2)}
        return "on " * self.rng.randint(1, 6), float(self.turn), self.turn == 12, False, info

    def sample_random_action(self) -> str:
        return "go 1"


@pytest.fixture(scope="module")
def steps() -> str:
    gem_core.register("demo-thoughts:Steps-v0", Steps)
    return "demo-thoughts:Steps-v0"


@pytest.mark.parametrize("kind", ["all go", "those between tools stay", "an empty thought stays"])
@pytest.mark.parametrize(
    ("chosen", "limit"),
    [
        ({}, None),
        ({"history": 2}, None),
        ({"compaction": "policy"}, 470),
        ({"compaction": f"{__name__}:short"}, 250),
    ],
)
def test_every_sampled_token_is_trained_once_after_the_prompt_that_was_seen(
    chatml: PreTrainedTokenizerFast, steps: str, kind: str, chosen: dict[str, Any], limit: int | None
) -> None:
    tokenizer = with_template(chatml, KINDS[kind])
    thinker = Thinker(tokenizer, limit)
    settings = RolloutSettings(max_response_tokens=40, max_context_tokens=limit, thoughts="drop", **chosen)
    collector = BatchCollector(gem_core.make_vec(steps, 1, backend="sync", seed=0), thinker, tokenizer, settings)
    [episode] = collector.collect_round().episodes
    collector.close()
    assert (episode.stop_reason, len(episode.turns) >= 12) == (StopReason.TERMINATED, True)
    assert len(episode.sequences) > 3
    assert any(turn.compaction for turn in episode.turns) == (chosen.get("compaction") == "policy")
    prompts = [tokenizer.decode(prompt.tolist()) for prompt, _, _ in thinker.said]
    assert any("turns<|im_end|>" in prompt for prompt in prompts) == ("short" in str(chosen))
    assert_trained_as_sampled(episode, thinker.said)
    for turn in episode.turns:
        assert "think" not in turn.action
        assert turn.response.strip().endswith(turn.action.strip())


def short(turns: Sequence[Any]) -> str:
    """A rule."""
    return f"{len(turns)} turns"


def test_advantages_and_rows_of_kept_thoughts_are_one_sequence(chatml: PreTrainedTokenizerFast, steps: str) -> None:
    thinker = Thinker(chatml)
    settings = RolloutSettings(max_response_tokens=40)
    collector = BatchCollector(gem_core.make_vec(steps, 1, backend="sync", seed=0), thinker, chatml, settings)
    [episode] = collector.collect_round().episodes
    collector.close()
    assert len(episode.sequences) == 1
    assert_trained_as_sampled(episode, thinker.said)


# -- with everything else ----------------------------------------------------------------------------------------------


def builder(tokenizer: PreTrainedTokenizerFast, observation: str, **chosen: Any) -> EpisodeBuilder:
    made = RolloutSettings(**{"max_response_tokens": 20, "thoughts": "drop", **chosen})
    return EpisodeBuilder(Episode("demo:A", 1), ChatTemplate(tokenizer), made, observation, {})


def go_on(observation: str = "on", **info: Any) -> Transition:
    return Transition(observation, 0.0, False, False, info)


@pytest.mark.parametrize("thoughts", ["keep", "drop"])
def test_a_summary_is_what_was_said_of_it(chatml: PreTrainedTokenizerFast, thoughts: str) -> None:
    """With `keep` a summary is the whole response, as any earlier response; with `drop` its speech alone."""
    tokenizer = with_template(chatml, KINDS["those between tools stay"])
    opening = len(encode(tokenizer, rendered(tokenizer, [{"role": "user", "content": "go left"}])))
    bridge = len(ChatTemplate(tokenizer).bridge_tokens(REQUEST))
    limit = opening + 20 + bridge + 20 + 2
    made = builder(tokenizer, "go left", compaction="policy", max_context_tokens=limit, thoughts=thoughts)
    made.act(Completion([*encode(tokenizer, "left"), tokenizer.eos_token_id]))
    made.record(go_on("on"))
    assert made.prompt.tolist()[-bridge + 2 :] == ChatTemplate(tokenizer).bridge_tokens(REQUEST)[2:]
    summary = "<think>what?</think>\n\nleft"
    assert made.act(Completion([*encode(tokenizer, summary), tokenizer.eos_token_id])) is None
    shown = "left" if thoughts == "drop" else summary
    expected = [("user", "go left"), ("assistant", shown), ("user", "on")]
    lines = "".join(f"<|im_start|>{role}\n{content}<|im_end|>\n" for role, content in expected)
    assert tokenizer.decode(made.prompt.tolist()) == f"{lines}<|im_start|>assistant\n"


@pytest.mark.parametrize("kind", KINDS)
def test_the_summary_of_a_rule_is_all_speech(chatml: PreTrainedTokenizerFast, kind: str) -> None:
    tokenizer = with_template(chatml, KINDS[kind])
    opening = len(encode(tokenizer, rendered(tokenizer, [{"role": "user", "content": "go left"}])))
    made = builder(tokenizer, "go left", compaction=f"{__name__}:short", max_context_tokens=opening + 40)
    made.act(Completion([*encode(tokenizer, "<think>what?</think>left"), tokenizer.eos_token_id]))
    made.record(go_on("go on and on and on"))
    talk = [("user", "go left"), ("assistant", "1 turns"), ("user", "go on and on and on")]
    expected = rendered(tokenizer, [{"role": role, "content": content} for role, content in talk])
    assert tokenizer.decode(made.prompt.tolist()) == expected


def test_a_summary_is_asked_for_where_its_prompt_without_thoughts_has_room(chatml: PreTrainedTokenizerFast) -> None:
    tokenizer = with_template(chatml, KINDS["all go"])
    opening = len(encode(tokenizer, rendered(tokenizer, [{"role": "user", "content": "go left"}])))
    limit = opening + 120 + len(ChatTemplate(tokenizer).bridge_tokens(REQUEST)) + 60
    thought = [*encode(tokenizer, "<think>" + "left " * 95 + "</think>left"), tokenizer.eos_token_id]
    assert opening + len(thought) + len(ChatTemplate(tokenizer).bridge_tokens(REQUEST)) + 120 > limit
    made = builder(tokenizer, "go left", compaction="policy", max_context_tokens=limit, max_response_tokens=120)
    made.act(Completion(thought))
    made.record(go_on("left or right " * 20))
    assert not made.over
    assert tokenizer.decode(made.prompt.tolist()).endswith(f"{REQUEST}<|im_end|>\n<|im_start|>assistant\n")
    assert len(made.prompt) + 120 <= limit
    made.act(Completion([*encode(tokenizer, "<think>so</think>left"), tokenizer.eos_token_id]))
    assert [turn.sequence for turn in made.episode.turns] == [0, 1]
    assert len(made.episode.sequences) == 3


def test_tools_that_change_are_shown_without_earlier_thoughts(chatml: PreTrainedTokenizerFast) -> None:
    listed = "{%- for tool in tools or [] -%}[{{ tool.function.name }}]{%- endfor -%}"
    tokenizer = with_template(chatml, listed + KINDS["those between tools stay"])
    look = {"type": "function", "function": {"name": "look", "parameters": {}}}
    made = builder(tokenizer, "go")
    for info in ({}, {"tools": [look]}, {"use_tool": True}, {}, {"tools": []}):
        made.act(Completion([*encode(tokenizer, "<think>so</think>left"), tokenizer.eos_token_id]))
        made.record(go_on("on", **info))
    texts = [tokenizer.decode(one.ids.tolist()) for one in made.episode.sequences]
    assert [text.startswith("[look]") for text in texts] == [False, False, True, True, False]
    assert [text.count("<think>") for text in texts] == [1, 1, 2, 1, 0]
    assert_trained_as_sampled_turns(made.episode)


def assert_trained_as_sampled_turns(episode: Episode) -> None:
    rows = rows_of(episode, "episode")
    assert [turn.position for row in rows for turn in row.turns] == [*range(len(episode.turns))]
    assert sum(sum(row.mask) for row in rows) == sum(turn.end - turn.start for turn in episode.turns)


def test_each_agent_of_a_match_drops_thoughts_of_its_own(chatml: PreTrainedTokenizerFast) -> None:
    tokenizer = with_template(chatml, KINDS["all go"])
    template, chosen = ChatTemplate(tokenizer), RolloutSettings(max_response_tokens=20, thoughts="drop")
    made = MatchBuilder(
        Episode("demo:A", 1),
        lambda episode, observation, info: EpisodeBuilder(episode, template, chosen, observation, info),
        "go",
        {"agent": "a"},
    )
    for number in range(6):
        assert "think" not in tokenizer.decode(made.prompt.tolist())
        made.act(Completion([*encode(tokenizer, f"<think>so</think>left {number}"), tokenizer.eos_token_id]))
        made.record(Transition("go on", 1.0, False, False, {"agent": "ab"[(number + 1) % 2]}))
    for episode, own in zip(made.episodes, ([0, 2, 4], [1, 3, 5]), strict=True):
        assert [turn.action for turn in episode.turns] == [f"left {number}" for number in own]
        assert_trained_as_sampled_turns(episode)


# -- what an environment gets ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("thoughts", ["keep", "drop"])
def test_an_action_is_what_is_spoken_and_the_response_stays_whole(
    chatml: PreTrainedTokenizerFast, thoughts: str
) -> None:
    made = builder(with_template(chatml, KINDS["all go"]), "go", thoughts=thoughts)
    text = "<think>\nleft or right?\n</think>\n\nleft"
    made.act(Completion([*encode(chatml, text), chatml.eos_token_id]))
    made.record(go_on())
    [turn] = made.episode.turns
    assert (turn.response, turn.action.strip()) == (text, "left")


def test_a_thought_that_the_prompt_opens_is_a_thought(chatml: PreTrainedTokenizerFast) -> None:
    tokenizer = with_template(chatml, KINDS["the header opens a thought"])
    made = builder(tokenizer, "go")
    said = made.act(Completion([*encode(tokenizer, "left?\n</think>\n\nright"), tokenizer.eos_token_id]))
    assert said is not None
    assert said.startswith("<think>")
    made.record(go_on())
    [turn] = made.episode.turns
    assert (turn.response, turn.action.strip()) == ("left?\n</think>\n\nright", "right")


def test_a_thought_without_an_end_is_no_action(chatml: PreTrainedTokenizerFast) -> None:
    tokenizer = with_template(chatml, KINDS["the header opens a thought"])
    for ended in ([], [tokenizer.eos_token_id]):
        made = builder(tokenizer, "go", truncated_is_invalid=False)
        made.act(Completion([*encode(tokenizer, "left? right?"), *ended], truncated=not ended))
        made.record(go_on())
        assert (made.episode.turns[0].response, made.episode.turns[0].action) == ("left? right?", "")


class Reader(Steps):
    """Reads thoughts."""

    reads_thoughts = True


@pytest.mark.parametrize(("kind", "whole"), [(Steps, False), (Reader, True)])
def test_an_environment_gets_the_speech_or_all_of_the_response(
    chatml: PreTrainedTokenizerFast, kind: type[Env], whole: bool
) -> None:
    gem_core.register("demo-thoughts:Any-v0", kind)
    tokenizer = with_template(chatml, KINDS["the header opens a thought"])
    text = "left?\n</think>\n\nright"

    def policy(prompts: Sequence[TokenIds]) -> list[Completion]:
        return [Completion([*encode(tokenizer, text), tokenizer.eos_token_id]) for _ in prompts]

    vec = gem_core.make_vec("demo-thoughts:Any-v0", 1, backend="sync", seed=0)
    collector = BatchCollector(vec, policy, tokenizer, RolloutSettings(max_response_tokens=40))
    [episode] = collector.collect_round().episodes
    collector.close()
    assert {turn.info["told"] for turn in episode.turns} == {f"<think>{text}" if whole else "right"}
    assert {turn.action for turn in episode.turns} == {"right"}


# -- settings ----------------------------------------------------------------------------------------------------------


def test_the_setting_reaches_the_rollout() -> None:
    assert RunSettings(env=["demo:A"]).rollout(8, None).thoughts == "keep"
    assert RunSettings(env=["demo:A"], thoughts="drop").rollout(8, None).thoughts == "drop"
    with pytest.raises(SettingsError, match=r"thoughts=dorp is not one of keep, drop\. Did you mean 'drop'"):
        RunSettings(env=["demo:A"], thoughts="dorp")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="thoughts must be one of keep, drop, not 'none'"):
        RolloutSettings(max_response_tokens=8, thoughts="none")  # pyright: ignore[reportArgumentType]
