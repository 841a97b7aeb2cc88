"""The numbers of each sampled token: what a run recorded, and what its loss got."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from gem_train.records import RecordedEpisode, Records

Key = tuple[tuple[int, ...], tuple[int, ...]]
"""The ids before a response, and its ids."""


class Turn(NamedTuple):
    """A turn that was trained on."""

    key: Key
    numbers: tuple[tuple[float, float], ...]
    """Advantage and log-probability of each sampled token."""


def write_rows(path: Path, ids: Iterable[Any], masks: Iterable[Any], *numbers: Iterable[Any]) -> None:
    """Append rows as the loss got them; a spy calls it in the process that trains.

    Args:
        path: of a file of this process.
        ids, masks: for each row, its ids, and 1 for each id that is trained on.
        numbers: the advantages, the log-probabilities that the loss got, and those that it computed; one for each id.
    """
    rows = zip(ids, masks, *numbers, strict=True)
    lines = [json.dumps([torch.as_tensor(column).tolist() for column in row]) + "\n" for row in rows]
    with path.open("a") as file:
        file.writelines(lines)


def turns_in_loss(folder: Path, *, computed: bool = False) -> list[Turn]:
    """The turns in the files of `write_rows` in a folder, with the log-probabilities that the loss got or computed."""
    rows = [json.loads(line) for path in folder.glob("loss-*.jsonl") for line in path.open()]
    return [
        turn
        for ids, mask, advantages, got, own in rows
        for turn in _turns(ids, mask, [*zip(advantages, own if computed else got, strict=True)])
    ]


def _turns(ids: Sequence[int], mask: Sequence[float], numbers: Sequence[tuple[float, float]]) -> Iterator[Turn]:
    start = 0
    while start < len(ids):
        # A turn ends where the mask changes; there is always template text between two responses.
        end = next((at for at in range(start, len(ids)) if bool(mask[at]) != bool(mask[start])), len(ids))
        if mask[start]:
            yield Turn((tuple(ids[:start]), tuple(ids[start:end])), tuple(numbers[start:end]))
        start = end


def turns_in_record(one: RecordedEpisode) -> list[Turn]:
    """The turns of a recorded episode that was trained on."""
    assert one.trained is not None
    rows = zip(one.episode.turns, one.trained.advantages, one.trained.logprobs, strict=True)
    found: list[Turn] = []
    for turn, advantage, logprobs in rows:
        assert advantage is not None
        assert logprobs is not None
        key = tuple(one.episode.prompt_ids(turn)), tuple(one.episode.response_ids(turn))
        assert len(logprobs) == len(key[1])
        found.append(Turn(key, tuple((advantage, number) for number in logprobs)))
    return found


def assert_whole_run(records: Records, framework: str, updates: int) -> list[RecordedEpisode]:
    """Assert that nothing is missing: episodes, settings, texts, numbers. Returns the episodes of the training."""
    assert records.gaps == []
    assert records.kind == "training"
    assert records.settings[framework]
    episodes = [records.episode(index) for index in range(len(records.summaries))]
    assert all(token in records.texts for one in episodes for part in one.episode.sequences for token in part.ids)
    trained = [one for one in episodes if one.summary.split == "train"]
    assert all(one.summary.update is None for one in episodes if one.summary.split == "eval")
    assert {one.summary.split for one in episodes} <= {"train", "eval"}
    assert {one.summary.update for one in trained} == {*range(1, updates + 1)}
    for one in trained:
        assert one.trained is not None
        sampled = [one.episode.response_logprobs(turn) for turn in one.episode.turns]
        assert all(part is not None for part in sampled), "the sampler's"
        assert all(part is not None for part in one.trained.entropies)
    return trained


def assert_same_numbers(recorded: Iterable[Turn], seen: Iterable[Turn], *, passes: int = 1, within: float) -> None:
    """Assert that both have the same turns with the same numbers.

    Args:
        recorded: the turns in the records.
        seen: the turns in the loss.
        passes: how often the loss saw each turn.
        within: the largest difference of two numbers.
    """
    groups = _grouped(seen)
    wanted = _grouped(recorded)
    assert {key: len(turns) for key, turns in groups.items()} == {key: passes * len(w) for key, w in wanted.items()}
    for key, turns in wanted.items():
        for numbers in turns:
            # Several episodes may have the same tokens.
            assert any(np.allclose(numbers, other, rtol=0, atol=within) for other in groups[key]), (
                numbers,
                groups[key],
            )


def _grouped(turns: Iterable[Turn]) -> dict[Key, list[tuple[tuple[float, float], ...]]]:
    groups: dict[Key, list[tuple[tuple[float, float], ...]]] = defaultdict(list)
    for turn in turns:
        groups[turn.key].append(turn.numbers)
    return groups
