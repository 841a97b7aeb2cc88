"""A real model and its tokenizer in TRL's own loop: what is trained is what was sampled.

`nox -s real` runs it. The file is not named `test_`, because `nox -s trl` has no real model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from peft import LoraConfig
from spy import SpyTrainer, assert_same
from transformers import AutoModelForCausalLM, LogitsProcessor, LogitsProcessorList

import gem_core
from gem_core.tools import FunctionTool, ToolEnv
from gem_support.hard_texts import PLAIN, HardTexts
from gem_support.rendered_prompts import check_episode
from gem_support.smollm2 import folder, tokenizer
from gem_tiny import tiny_model
from gem_train import recording
from gem_train.records import open_records
from gem_train.rollout import Batch
from gem_trl import TurnGRPOConfig
from gem_viewer._page import write_page

__all__ = ["folder", "tokenizer"]  # fixtures

gem_core.register("real:Talk-v0", partial(HardTexts, PLAIN, turns=3))
gem_core.register("real:Short-v0", partial(HardTexts, PLAIN, turns=8))


@pytest.fixture(autouse=True)
def _end_of_recording() -> Iterator[None]:
    yield
    recording.stop_recording()


def encode(tokenizer: Any, text: str) -> list[int]:
    return [*tokenizer.encode(text, add_special_tokens=False)]


class Script(LogitsProcessor):
    """Forces the ids of responses; every other prompt of a call is left to the model.

    Args:
        responses: ids, one after the other for the prompts.
        end: what follows them.
    """

    def __init__(self, responses: Sequence[Sequence[int]], end: int) -> None:
        self.said: list[list[int]] = []
        self._responses, self._end = responses, end
        self._chosen: list[list[int]] = []
        self._width = 0

    def begin(self, rows: int, width: int) -> None:
        """Prepare a call with this many prompts of this padded width."""
        self._width = width
        taken = [len(self.said) + place for place in range((rows + 1) // 2)]
        self._chosen = [[*self._responses[number % len(self._responses)]] for number in taken]
        self.said += self._chosen

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        forced = torch.full_like(scores, -torch.inf)
        step = input_ids.shape[1] - self._width
        for place, ids in enumerate(self._chosen):
            forced[2 * place, ids[step] if step < len(ids) else self._end] = 0.0
        forced[1::2] = scores[1::2]
        return forced

    @contextmanager
    def of(self, model: Any) -> Iterator[None]:
        """Within this block, `model.generate` keeps to the script."""
        original = model.generate

        def generate(input_ids: torch.Tensor, **others: Any) -> Any:
            self.begin(*input_ids.shape)
            return original(input_ids, logits_processor=LogitsProcessorList([self]), **others)

        model.generate = generate
        try:
            yield
        finally:
            del model.generate


def drifting(tokenizer: Any, ids: Sequence[int]) -> bool:
    """The tokenizer would write the text of these ids in other ids."""
    return encode(tokenizer, tokenizer.decode([*ids])) != [*ids]


def assert_trained_as_sampled(run: SpyTrainer) -> None:
    """Every response is in the loss once, after the prompt that was seen, with the advantage of its turn."""
    trained = run.trained_responses()
    assert sorted((one.before, one.ids) for one in trained) == sorted(run.sampled)
    assert_same(trained, run.expected_responses("rebn", 0.9))


def assert_prompts_go_on(batches: Sequence[Batch]) -> None:
    """Within a sequence, a prompt continues the prompt and the response before it."""
    for episode in (one for batch in batches for one in batch.episodes):
        for before, turn in zip(episode.turns, episode.turns[1:], strict=False):
            whole = episode.prompt_ids(before) + episode.response_ids(before)
            assert (episode.prompt_ids(turn)[: len(whole)] == whole) == (turn.sequence == before.sequence)


# -- the tokenizer with a tiny model: each way to make rows ------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"row": "turn"},
        {"history": 1, "row": "turn"},
        {"history": 2, "row": "turn"},
        {"thoughts": "drop"},
        {"thoughts": "drop", "history": 2, "row": "turn"},
        {"env": "real:Short-v0", "compaction": "policy", "max_context_tokens": 240},
        {"env": "real:Short-v0", "compaction": "policy", "max_context_tokens": 240, "thoughts": "drop"},
        {"env": "real:Short-v0", "max_context_tokens": 200},
    ],
    ids=str,
)
def test_what_is_trained_is_what_was_sampled(tokenizer: Any, settings: Any, changes: dict[str, Any]) -> None:
    chosen = {"env": "real:Talk-v0", "per_device_train_batch_size": 2, "max_completion_length": 20, **changes}
    run = SpyTrainer(tiny_model(tokenizer, seed=0), settings(system_prompt="Be brief.", **chosen), tokenizer)
    thought = [*encode(tokenizer, "<think>"), *spelled(tokenizer, "12 \u6f22"), *encode(tokenizer, "</think>")]
    speeches = [spelled(tokenizer, one) for one in ("go", "e\u0301 7")]
    script = Script([[*thought, *speeches[0]], spelled(tokenizer, "caf\u00e9"), [*thought, *speeches[1]]], 2)
    with script.of(run.model):
        run.train()
    sampled = [list(ids) for _, ids in run.sampled]
    assert all(f"{[*ids, 2]}" in map(str, sampled) for ids in script.said)
    assert sum(drifting(tokenizer, ids) for ids in sampled) > len(sampled) / 2
    assert_trained_as_sampled(run)
    assert_prompts_go_on(run.batches)
    episodes = [one for batch in run.batches for one in batch.episodes]
    for one in episodes if not {"thoughts", "compaction"} & {*changes} else []:
        check_episode(tokenizer, one, "Be brief.", changes.get("history"))
    limit = changes.get("max_context_tokens")
    assert limit is None or max(len(prompt) + 20 for prompt, _ in run.sampled) <= limit
    assert any(one.summary().compactions for one in episodes) == ("compaction" in changes)
    several = {"history", "compaction"} & {*changes} or changes.get("thoughts") == "drop"
    assert any(len(one.sequences) > 1 for one in episodes) == bool(several)


def spelled(tokenizer: Any, text: str) -> list[int]:
    """The ids of a text, each character by itself."""
    return [one for letter in text for one in encode(tokenizer, letter)]


def look() -> str:
    """Look around."""
    return f"<|im_end|> {PLAIN[14]}"


@pytest.mark.parametrize("form", ["text", "native"])
def test_calls_are_trained_as_they_were_sampled(
    tokenizer: Any, settings: Any, monkeypatch: pytest.MonkeyPatch, form: Any
) -> None:
    if form == "native":
        shown = "{% if tools %}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{% endif %}"
        monkeypatch.setattr(tokenizer, "chat_template", shown + tokenizer.chat_template)
    args = settings(env="real:Talk-v0", max_completion_length=32)
    wrap = partial(ToolEnv, tools=[FunctionTool(look)], form=form)
    run = SpyTrainer(tiny_model(tokenizer, seed=0), args, tokenizer, wrappers=[wrap])
    call = '<tool_call>{"name": "look", "arguments": {}}</tool_call>'
    script = Script([encode(tokenizer, call[:20]) + encode(tokenizer, call[20:]), encode(tokenizer, "left")], 2)
    assert drifting(tokenizer, [*encode(tokenizer, call[:20]), *encode(tokenizer, call[20:])])
    with script.of(run.model):
        run.train()
    episodes = [one for batch in run.batches for one in batch.episodes]
    calls = [turn.response for one in episodes for turn in one.turns if turn.tool_call]
    assert len(calls) > 2
    assert {*calls} == {call}
    for episode in episodes:
        for turn, later in zip(episode.turns, episode.turns[1:], strict=False):
            if turn.tool_call:
                result = episode.prompt_ids(later)[turn.end :].tolist()
                text = tokenizer.decode(result)
                assert text.startswith(f"\n<|im_start|>tool\n{look()}"), "and what the environment adds to it"
                assert text.endswith("<|im_end|>\n<|im_start|>assistant\n")
                assert [one for one in result if one in tokenizer.added_tokens_decoder] == [1, 2, 1]
    assert_trained_as_sampled(run)


# -- the model ---------------------------------------------------------------------------------------------------------


HARD = "\u6f22\u5b57 7 \U0001f642"


@pytest.fixture(scope="module")
def learned(folder: Path, tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[SpyTrainer, Script, Path]:
    """Two updates of the model with LoRA, its script, and the folder of records."""
    path = tmp_path_factory.mktemp("run")
    args = TurnGRPOConfig(
        str(path / "output"),
        env="real:Talk-v0",
        gamma=0.9,
        per_device_train_batch_size=4,
        max_completion_length=10,
        max_steps=2,
        learning_rate=1e-3,
        lr_scheduler_type="constant",
        record="full",
        record_folder=str(path),
        report_to="none",
        save_strategy="no",
        disable_tqdm=True,
        seed=0,
    )
    lora = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], layers_to_transform=[28, 29])
    run = SpyTrainer(str(folder), args, tokenizer, peft_config=lora)
    script = Script([spelled(tokenizer, "so it is"), encode(tokenizer, HARD), spelled(tokenizer, "12345678901")], 2)
    before = [one.detach().clone() for one in run.model.parameters() if one.requires_grad]
    with script.of(run.model):
        run.train()
    recording.stop_recording()
    after = [one for one in run.model.parameters() if one.requires_grad]
    assert any(not torch.equal(one, other) for one, other in zip(before, after, strict=True))
    return run, script, path


def test_two_updates_train_what_the_model_said(learned: tuple[SpyTrainer, Script, Path], tokenizer: Any) -> None:
    run, script, _ = learned
    assert run.model.dtype == torch.float32
    assert (run.state.global_step, len(run.batches)) == (2, 2)
    sampled = [list(ids) for _, ids in run.sampled]
    for ids in script.said:
        assert ([*ids, 2] if len(ids) < 10 else ids[:10]) in sampled
    free = [ids for ids in sampled if [one for one in ids if one != 2] not in [ids[:10] for ids in script.said]]
    assert len(free) > 4, "the model says something itself"
    assert_trained_as_sampled(run)
    assert_prompts_go_on(run.batches)
    for episode in (one for batch in run.batches for one in batch.episodes):
        check_episode(tokenizer, episode)


@torch.no_grad()
def test_recorded_logprobs_are_the_models(learned: tuple[SpyTrainer, Script, Path], folder: Path) -> None:
    """Those of the first update, from the weights in the folder, one turn at a time and without padding."""
    _, _, path = learned
    records = open_records(path)
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    turns = 0
    for index, summary in enumerate(records.summaries):
        if summary.update != 1 or index % 2:
            continue
        one = records.episode(index)
        assert one.trained is not None
        [sequence] = one.episode.sequences
        logits = model(torch.tensor([sequence.ids.tolist()])).logits[0, :-1]
        ids = torch.tensor(sequence.ids.tolist()[1:])[:, None]
        logprobs = logits.log_softmax(-1).gather(1, ids)[:, 0].numpy()
        for turn, found in zip(one.episode.turns, one.trained.logprobs, strict=True):
            np.testing.assert_allclose(found, logprobs[turn.start - 1 : turn.end - 1], rtol=0, atol=2e-3)
            turns += 1
    assert turns > 4


def test_records_and_page_have_whole_characters(
    learned: tuple[SpyTrainer, Script, Path], tokenizer: Any, tmp_path: Path
) -> None:
    _, _, path = learned
    records = open_records(path)
    assert records.gaps == []
    for index in range(len(records.summaries)):
        episode = records.episode(index).episode
        for turn in episode.turns:
            ids = episode.response_ids(turn).tolist()
            pieces = records.token_texts(ids)
            assert "".join(pieces) == tokenizer.decode(ids)
            for size in range(len(ids)):
                whole = tokenizer.decode(ids[: size + 1])
                assert whole.endswith("\ufffd") or "".join(pieces[: size + 1]) == whole
        for sequence in episode.sequences:
            assert "".join(records.token_texts(sequence.ids)) == tokenizer.decode(sequence.ids.tolist())
    texts = [turn.response for index in range(len(records.summaries)) for turn in records.episode(index).episode.turns]
    assert HARD in texts
    write_page([records], tmp_path / "page.html", done=lambda _: None)
    page = (tmp_path / "page.html").read_text("utf-8")
    found = re.search(r'<script type="application/json" id="tables">(.*?)</script>', page, re.DOTALL)
    assert found
    [table] = json.loads(found[1])
    known = dict(zip(table["ids"], table["texts"], strict=True))
    parts = [known[one] for one in encode(tokenizer, HARD) if isinstance(known[one], list)]
    assert len(parts) > 2
    signs = {one for one, text in known.items() if isinstance(text, str) and "\ufffd" in text}
    assert signs <= {*encode(tokenizer, "\ufffd"), *encode(tokenizer, " \ufffd")}
