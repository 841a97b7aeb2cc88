"""An evaluation of the model from its folder: prompts, ends and texts."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import gem_core
from gem_core.cli._app import app
from gem_evaluation._store import read_episodes
from gem_support.hard_texts import PLAIN, HardTexts, hostile
from gem_support.rendered_prompts import check_episode
from gem_train.records import open_records

SYSTEM = "Answer in one word. \u6f22\U0001f642"

gem_core.register("real:Asks-v0", partial(HardTexts, [*PLAIN, *hostile(["<|im_start|>", "<|im_end|>"])], turns=3))


@pytest.mark.parametrize("history", [None, 1])
def test_the_model_is_asked_in_the_templates_words(
    folder: Path, tokenizer: Any, tmp_path: Path, history: int | None
) -> None:
    options = ["--max-tokens", "6", "--temperature", "0", "--tasks", "3", "--system-prompt", SYSTEM]
    options += [] if history is None else ["--history", str(history)]
    done = CliRunner().invoke(
        app, ["eval", "real:Asks-v0", "--model", str(folder), *options, "--output", str(tmp_path)]
    )
    assert done.exit_code == 0, done.output
    found = [one.episode for one in read_episodes(tmp_path)]
    assert [len(one.turns) for one in found] == [3] * 3
    for episode in found:
        check_episode(tokenizer, episode, SYSTEM, history)
        for turn in episode.turns:
            ids = episode.response_ids(turn).tolist()
            assert turn.truncated == (ids[-1] != tokenizer.eos_token_id)
            assert tokenizer.eos_token_id not in ids[:-1]
            assert turn.response == tokenizer.decode(ids, skip_special_tokens=True)
    assert len({turn.response for one in found for turn in one.turns}) > 3
    records = open_records(tmp_path)
    assert (records.kind, records.gaps) == ("evaluation", [])
    assert records.episode(0).episode.turns[0].response == found[0].turns[0].response
