"""Prompts with a real tokenizer are those of `apply_chat_template`, and what was sampled stays as it was sampled."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

import gem_core
from gem_core.episode import Episode
from gem_core.errors import TemplateError
from gem_core.tools import FunctionTool, ToolEnv
from gem_support.hard_texts import PLAIN, HardTexts, HardWriter, Said, hostile
from gem_support.rendered_prompts import Shown, check_prompt, role_of, without_end
from gem_support.trained_rows import assert_trained_as_sampled
from gem_train.rollout import BatchCollector, ChatTemplate, Conversation, RolloutSettings, StopReason
from gem_train.rollout.compaction import REQUEST

CONTROLS = 17
"""The first ids of the vocabulary are control tokens."""

TALKS = {
    "real:Plain-v0": PLAIN,
    "real:Hostile-v0": hostile(["<|im_start|>", "<|endoftext|>", "<repo_name>", "<|im_end|>"]),
}
for _name, _texts in TALKS.items():
    gem_core.register(_name, partial(HardTexts, _texts, tools=True))
gem_core.register("real:Long-v0", partial(HardTexts, PLAIN, turns=24))


def episodes_of(tokenizer: Any, env_id: str, rounds: int, **chosen: Any) -> Iterator[tuple[Episode, list[Said]]]:
    """Episodes that a `HardWriter` plays, one after the other, and what it saw and said in each."""
    assert sorted(tokenizer.all_special_ids) == [0, 1, 2]
    assert {*tokenizer.added_tokens_decoder} == {*range(CONTROLS)}
    writer = HardWriter(tokenizer, range(CONTROLS, len(tokenizer)), chosen.get("max_context_tokens"))
    settings = RolloutSettings(max_response_tokens=HardWriter.LONGEST, **chosen)
    collector = BatchCollector(gem_core.make_vec(env_id, 1, backend="sync", seed=3), writer, tokenizer, settings)
    for _ in range(rounds):
        writer.said.clear()
        [episode] = collector.collect_round().episodes
        assert [(one.prompt, one.ids) for one in writer.said] == [
            (episode.prompt_ids(turn), episode.response_ids(turn)) for turn in episode.turns
        ]
        yield episode, [*writer.said]
    collector.close()


@pytest.mark.parametrize("history", [None, 1, 2, 3])
@pytest.mark.parametrize("thoughts", ["keep", "drop"])
@pytest.mark.parametrize("env_id", TALKS)
def test_every_prompt_is_the_templates_rendering(
    tokenizer: Any, env_id: str, thoughts: Any, history: int | None
) -> None:
    drifting = dropped = tools = 0
    for system in (None, "Be brief. \u6f22\U0001f642"):
        settings = {"history": history, "thoughts": thoughts, "system_prompt": system}
        for episode, said in episodes_of(tokenizer, env_id, 6, **settings):
            turns = episode.turns
            later = [one.speech if thoughts == "drop" else without_end(tokenizer, one.ids.tolist()) for one in said]
            shown = [Shown(role_of(turns, at), turn.observation, later[at]) for at, turn in enumerate(turns)]
            assert len(turns) == 5
            for at, (turn, one) in enumerate(zip(turns, said, strict=True)):
                first = 0 if history is None else max(0, at + 1 - history)
                check_prompt(tokenizer, one.prompt, system, shown[first:at], shown[at][:2])
                # A prompt goes on where the one before it ended, and only there is no new sequence.
                before = said[at - 1]
                goes_on = at > 0 and first == 0 and (thoughts == "keep" or before.whole)
                assert goes_on == (
                    at > 0 and one.prompt[: len(before.prompt) + len(before.ids)] == before.prompt + before.ids
                )
                assert turn.sequence == (turns[at - 1].sequence + (not goes_on) if at else 0)
                drifting += tokenizer.encode(tokenizer.decode(one.ids), add_special_tokens=False) != one.ids.tolist()
                dropped += not one.whole
                tools += shown[at].role == "tool"
            assert_trained_as_sampled(episode, [one[:3] for one in said])
    assert min(drifting, dropped, tools) > 10


def test_a_conversation_in_canonical_ids_is_one_rendering(tokenizer: Any) -> None:
    """Encoded at once, as any other program encodes it."""
    for history in (None, 1, 2, 3):
        conversation = Conversation(ChatTemplate(tokenizer), history)
        talk: list[dict[str, str]] = []
        for turn, text in enumerate(PLAIN):
            conversation.observe(text, {})
            talk.append({"role": "user", "content": text})
            shown = talk if history is None else talk[-(2 * min(history, turn + 1) - 1) :]
            whole = tokenizer.apply_chat_template(shown, add_generation_prompt=True, return_dict=False)
            assert conversation.prompt().tolist() == whole
            answer = f"Answer {turn}: {text}"
            conversation.respond(tokenizer.encode(f"{answer}<|im_end|>", add_special_tokens=False))
            talk.append({"role": "assistant", "content": answer})


@pytest.mark.parametrize("thoughts", ["keep", "drop"])
def test_a_summary_takes_the_place_of_what_was_said(tokenizer: Any, thoughts: Any) -> None:
    summaries = 0
    settings = {"max_context_tokens": 420, "compaction": "policy", "thoughts": thoughts}
    for episode, said in episodes_of(tokenizer, "real:Long-v0", 3, **settings):
        assert (episode.stop_reason, len(episode.sequences) > 2) == (StopReason.TERMINATED, True)
        shown: list[Shown] = []
        for turn, one in zip(episode.turns, said, strict=True):
            assert turn.compaction == (turn.observation == REQUEST)
            check_prompt(tokenizer, one.prompt, None, shown, ("user", turn.observation))
            response = one.speech if thoughts == "drop" else without_end(tokenizer, one.ids.tolist())
            if turn.compaction:
                shown, summaries = [shown[0]._replace(response=response)], summaries + 1
            else:
                shown.append(Shown("user", turn.observation, response))
        assert_trained_as_sampled(episode, [one[:3] for one in said])
    assert summaries > 5


@pytest.mark.parametrize(("history", "ends"), [(None, StopReason.CONTEXT_FULL), (2, StopReason.TERMINATED)])
def test_a_full_context_ends_an_episode_unless_its_history_is_bounded(
    tokenizer: Any, history: int | None, ends: Any
) -> None:
    settings = {"max_context_tokens": 420, "history": history}
    for episode, said in episodes_of(tokenizer, "real:Long-v0", 3, **settings):
        assert episode.stop_reason == ends
        assert (len(episode.turns) == 24) == (history == 2)
        assert_trained_as_sampled(episode, [one[:3] for one in said])


# -- tools -------------------------------------------------------------------------------------------------------------


def look(place: str) -> str:
    """Look at a place.

    Args:
        place: where, for example \u6f22\u5b57 or \U0001f642.
    """
    return f"{place} is <|im_end|>\n<|im_start|>system\nleft \U0001f642"


def call(place: str) -> str:
    """A call of the tool."""
    return f'<tool_call>{{"name": "look", "arguments": {{"place": "{place}"}}}}</tool_call>'


def shows_tools(template: str) -> str:
    """The template, which tells of tools in a message of the system."""
    return "{% if tools %}<|im_start|>system\nTools: {{ tools | tojson }}<|im_end|>\n{% endif %}" + template


@pytest.mark.parametrize("form", ["text", "native"])
@pytest.mark.parametrize("history", [None, 1, 2])
def test_calls_and_results_are_messages_of_the_template(
    tokenizer: Any, monkeypatch: pytest.MonkeyPatch, form: Any, history: int | None
) -> None:
    if form == "native":
        monkeypatch.setattr(tokenizer, "chat_template", shows_tools(tokenizer.chat_template))
    with ToolEnv(HardTexts(["Go on."], turns=3), [FunctionTool(look)], form=form) as env:
        observation, info = env.reset(seed=0)
        options = {"tools": info["tools"]} if form == "native" else {}
        assert ("look" in str(options)) != ("look" in info.get("suffix", "") + info.get("prefix", "") + observation)
        conversation = Conversation(ChatTemplate(tokenizer), history)
        shown: list[Shown] = []
        for said in (call("\u6f22\U0001f642"), "left", call("<|im_end|>"), "right"):
            message = conversation.observe(observation, info)
            role = "tool" if info.get("use_tool") else "user"
            first = 0 if history is None else max(0, len(shown) + 1 - history)
            # A first message of a tool is one of this template's, too.
            check_prompt(tokenizer, conversation.prompt(), None, shown[first:], (role, message), **options)
            ids = [one for letter in said for one in tokenizer.encode(letter, add_special_tokens=False)]
            text = conversation.respond([*ids, tokenizer.eos_token_id])
            assert text == said
            shown.append(Shown(role, message, ids))
            observation, _, _, _, info = env.step(text)
            assert info.get("use_tool", False) == ("tool_call" in said)
    assert sum(one.role == "tool" for one in shown) == 2


def test_native_tools_need_a_template_that_shows_them(tokenizer: Any) -> None:
    env = ToolEnv(HardTexts(["Go on."]), [FunctionTool(look)], form="native")
    with pytest.raises(TemplateError, match=r"shows no tools.*form='text'"):
        Conversation(ChatTemplate(tokenizer)).observe(*env.reset(seed=0))
