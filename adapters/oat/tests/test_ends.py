"""Where a response ends: with a model whose chat template ends turns with another token than its tokenizer's."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from runs import arguments, train
from transformers import AutoTokenizer

import gem_oat
from gem_core.errors import GemError
from gem_cpu.oat import engine
from gem_oat._checks import check_model, prepare
from gem_support.base_model import ENV, REFUSED, assert_stops, assert_turns_ended, saved_base_model

EPISODES = 24


def test_the_engine_stops_where_the_template_ends_a_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    told: set[tuple[int, ...]] = set()
    generate = engine.LLM.generate

    def watched(self: engine.LLM, *, sampling_params: engine.SamplingParams, **rest: object) -> object:
        told.add((*(sampling_params.stop_token_ids or ()),))
        return generate(self, sampling_params=sampling_params, **rest)

    monkeypatch.setattr(engine.LLM, "generate", watched)
    model = saved_base_model(tmp_path)
    sizes = {"rollout_batch_size_per_device": EPISODES, "train_batch_size": EPISODES, "max_train": EPISODES}
    run = train(arguments(model, env=[ENV], eval_steps=1, truncated_is_invalid=True, ignore_no_eos=True, **sizes))
    tokenizer = AutoTokenizer.from_pretrained(model)
    assert run.learner.evaluations
    [stops] = told  # the same in training and in evaluation
    assert_stops(stops, tokenizer)
    assert_turns_ended(run.training_episodes, tokenizer)
    # No response counts as one without an end, so every one is trained on.
    said = [(one.prompt_ids(turn), one.response_ids(turn)) for one in run.training_episodes for turn in one.turns]
    assert Counter((one.before, one.ids) for one in run.batches[0]) == Counter((*map(tuple, pair),) for pair in said)


@pytest.mark.parametrize(("setting", "value", "message"), REFUSED)
def test_what_the_template_cannot_carry_is_refused_before_anything_starts(
    tmp_path: Path, setting: str, value: Any, message: str
):
    model = saved_base_model(tmp_path)
    check_model(prepare(arguments(model, env=[ENV])))
    with pytest.raises(GemError, match=message):
        gem_oat.run(arguments(model, env=[ENV], **{setting: value}))
