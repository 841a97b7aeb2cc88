"""Thoughts, apart from what was said: in the conversation, the tokens and the group."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up import Plan, Vocabulary, episode
from showing import exported

from gem_core.episode import Episode, Run, as_logprobs, as_token_ids
from gem_core.responses import speech_of
from gem_train.records import RunRecorder
from gem_train.rollout._recorder import encoded
from gem_train.rollout.records import recorded

WORDS = ["<think>", "</think>", "\n", " perhaps", " left", " or", " right", " then"]
THOUGHT = ["<think>", " perhaps", " left", " or", " right", "</think>"]


def thinking(slot: int, vocabulary: Vocabulary) -> Episode:
    """An episode whose first response is a thought and a word, and whose last one is only a thought."""
    plan = Plan(turns=(3, 3), vocabulary=vocabulary)
    chance = np.random.default_rng(slot)
    made = episode("demo:A-v0", 0, slot, 0, run="run", plan=plan, chance=chance, solved=True)
    sequence, first, last = made.sequences[0], made.turns[0], made.turns[-1]
    for turn, words in ((first, [*THOUGHT, "\n", " left"]), (last, THOUGHT)):
        size = turn.end - turn.start
        ids = [*map(vocabulary.texts.index, words), *[1] * size][:size]
        sequence.ids[turn.start : turn.end] = as_token_ids(ids)
        sequence.logprobs[turn.start : turn.end] = as_logprobs([-0.5] * size)
        turn.response = "".join(words[:size])
        turn.action = speech_of(turn.response)
        turn.info = {}
    made.turns[1].reasoning = f"It may be {slot} <b>times</b>."
    return made


@pytest.fixture
def run(tmp_path: Path) -> Path:
    vocabulary = Vocabulary(200, extra=WORDS)
    recorder = RunRecorder(tmp_path / "run", tokenizer=vocabulary, detail="full")
    recorder.gem_rollout_start(Run("run", ["demo:A-v0"], {}, {}, "train"))
    for slot in range(3):
        recorder.gem_episode_end(thinking(slot, vocabulary))
    recorder.close()
    return tmp_path / "run"


def test_a_thought_is_folded_before_the_speech(open_page: Any, run: Path, tmp_path: Path) -> None:
    with open_page(exported(run, tmp_path / "page.html"), "#episode") as tab:
        tab.wait(".chat")
        said = tab.page.locator("#turn-0 .message.policy")
        assert said.locator(":scope > .text").text_content().strip() == "left"
        thought = said.locator("details.thought")
        assert thought.get_attribute("open") is None
        assert thought.locator("summary").text_content().startswith("Thought: <think> perhaps left or right")
        assert "the environment got" not in said.text_content()
        apart = tab.page.locator("#turn-1 .message.policy details.thought .text")
        assert apart.text_content() == "It may be 0 <b>times</b>."
        only = tab.page.locator("#turn-2 .message.policy")
        assert "only thought" in only.locator(".badge").first.text_content()
        assert only.locator(":scope > p").text_content() == "(empty)"
        tab.screenshot("thoughts")
        tab.press("x")
        tab.wait("details.thought[open]")
        tab.screenshot("thoughts_unfolded")


def test_the_tokens_of_a_thought_are_dimmed(open_page: Any, run: Path, tmp_path: Path) -> None:
    with open_page(exported(run, tmp_path / "page.html"), "#episode") as tab:
        tab.wait(".chat")
        tab.press("t")
        tab.wait(".token-body")
        dimmed = tab.page.locator("#tokens-0 [data-thought]").all_text_contents()
        assert dimmed == [*THOUGHT, "↵\n"]
        assert tab.page.locator("#tokens-1 [data-thought]").count() == 0
        tab.screenshot("thoughts_tokens")


def test_a_group_parts_by_what_was_said_not_thought(open_page: Any, run: Path, tmp_path: Path) -> None:
    with open_page(exported(run, tmp_path / "page.html"), "#episode") as tab:
        tab.wait(".chat")
        tab.press("g")
        tab.wait(".side-by-side details.thought")
        first = tab.page.locator(".side-by-side tbody tr").first
        assert {*first.locator(".branch").all_text_contents()} == {"A"}
        assert {one.strip() for one in first.locator(".said").all_text_contents()} == {"left"}
        tab.screenshot("thoughts_group")


def test_an_evaluation_shows_the_reasoning_of_its_endpoint(open_page: Any, tmp_path: Path) -> None:
    made = thinking(0, Vocabulary(200, extra=WORDS))
    made.sequences = []
    for turn in made.turns:
        turn.sequence = turn.start = turn.end = 0
    (tmp_path / "episodes.jsonl").write_bytes(encoded(recorded(made), made) + b"\n")
    page = exported(tmp_path / "episodes.jsonl", tmp_path / "page.html")
    with open_page(page, "#episode") as tab:
        tab.wait(".chat")
        assert tab.page.locator("details.thought").count() == 3
        tab.page.evaluate("location.hash = '#episodes?text=It+may+be+0'")
        tab.wait(".count", "1 episode")
