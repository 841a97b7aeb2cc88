"""A mixture of environments of every kind, with limits, for the training of any framework."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from brute_force import expected
from training_run import Response, TrainingRun

from gem_core.records import RecordedEpisode, read_episodes
from gem_tiny import tiny_model, tiny_tokenizer

LIMITS = {"match:KuhnPoker-v0": 0, "desk:Retail-v0": 1, "game:WikiGame-v0-easy": 0, "terminal:Text-v0": 1}
"""How many episodes of each are under way at once; 0 is no limit."""
ENVS, MOST = ",".join(LIMITS), ",".join(map(str, LIMITS.values()))
PROMPT, RESPONSE = 2560, 1024
"""Tokens. A desk's policy and its tools are longer than the context that a tiny model usually has."""
TURN = 4
GAMMA = 0.9


def save_model(folder: Path) -> Path:
    """Save a tiny model that knows the words of these environments."""
    tokenizer = tiny_tokenizer([*LIMITS], episodes=4)
    tokenizer.save_pretrained(folder)
    tiny_model(tokenizer, seed=0, context=PROMPT + RESPONSE).save_pretrained(folder)
    return folder


def assert_every_kind_was_trained(run: TrainingRun, batches: Sequence[Sequence[Response]]) -> None:
    """The run ended well, and trained on what was sampled with the advantages of the formula.

    Args:
        run: a finished run with the estimator `rebn` and `GAMMA`.
        batches: what each update trained on.
    """
    assert run.code == 0, run.output[-3000:]
    assert run.left == []
    trained = [[one[:3] for one in batch] for batch in batches]
    assert_trained([*read_episodes(run.folder / "records")], trained)
    sampled = [(tuple(one["prompt"]), tuple(one["ids"])) for one in run.sampled]
    assert_sampled(sampled, [one[:2] for batch in batches for one in batch])


Ids = tuple[int, ...]


def assert_sampled(sampled: Sequence[tuple[Ids, Ids]], trained: Sequence[tuple[Ids, Ids]]) -> None:
    """Each response was trained once, after the ids that it was sampled after."""
    assert Counter(trained) == Counter(sampled)


def assert_trained(records: Sequence[RecordedEpisode], batches: Sequence[Sequence[tuple[Ids, Ids, float]]]) -> None:
    """Every kind was played without an error, and advantages are those of the formula.

    Args:
        records: the episodes of a run.
        batches: each update's responses: the ids before one, its ids, its advantage.
    """
    turns = Counter[str]()
    for one in records:
        assert one.episode.error is None
        turns[one.episode.env_id] += len(one.episode.turns)
    print(dict(turns))
    assert {*turns} == {*LIMITS}
    assert all(turns.values())
    for update, batch in enumerate(batches, 1):
        episodes = [one.episode for one in records if one.summary.update == update and one.episode.turns]
        numbers = expected("rebn", [[turn.reward for turn in one.turns] for one in episodes], [], GAMMA)
        want = sorted(
            (tuple(episode.prompt_ids(turn)), tuple(episode.response_ids(turn)), number)
            for episode, row in zip(episodes, numbers, strict=True)
            for turn, number in zip(episode.turns, row, strict=True)
        )
        got = sorted(batch)
        assert [one[:2] for one in got] == [one[:2] for one in want]
        assert [one[2] for one in got] == pytest.approx([one[2] for one in want], abs=1e-5)
