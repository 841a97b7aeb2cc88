"""A run that cannot learn says why, once; a run that can is left alone."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from gem_core.advantages import TurnBatch, advantages_and_returns
from gem_core.episode import Episode, StopReason, Turn
from gem_train.metrics import rollout_metrics
from gem_train.records import RunRecorder, open_records
from gem_train.report import RunReport
from gem_train.rollout import Reporter, StallDetector, StallWords, stalls
from gem_train.rollout._stalls import MIN_EPISODES

WORDS = StallWords("max_completion_length", "eval_length", "system_prompt")
ENV, OTHER = "demo:A-v0", "demo:B-v0"


def episode(
    response: str = "7.",
    *,
    env_id: str = ENV,
    invalid: bool = False,
    truncated: bool = False,
    reward: float = 0.0,
    success: bool = False,
    **fields: Any,
) -> Episode:
    """An episode of two turns with the same response of eight tokens."""
    info = {"invalid_action": True} if invalid else {}
    turn = Turn(0, 0, 8, "?", response, response, truncated, info=info)
    turns = [turn, msgspec.structs.replace(turn, reward=reward)]
    return Episode(env_id, 0, turns=turns, stop_reason=StopReason.TERMINATED, success=success, **fields)


def update(episodes: Sequence[Episode], advantage: str = "rebn", dropped: int = 0) -> dict[str, float]:
    """The metrics of an update, as adapters have them."""
    turns = [
        (turn.reward, row, at, one.task_id) for row, one in enumerate(episodes) for at, turn in enumerate(one.turns)
    ]
    rewards, rows, positions, groups = np.array(turns, dtype=np.float64).reshape(-1, 4).T
    batch = TurnBatch(rewards, *(one.astype(np.int64) for one in (rows, positions, groups)))
    _, _, metrics = advantages_and_returns(advantage, batch, gamma=1.0, lam=1.0)
    return {**rollout_metrics([one.summary() for one in episodes], dropped), **metrics}


def evaluation(episodes: Sequence[Episode]) -> dict[str, float]:
    return {f"eval_{name}": value for name, value in rollout_metrics([one.summary() for one in episodes], 0).items()}


def said(metrics: dict[str, float], example: str | None = None) -> list[str]:
    return [one.text(WORDS, example) for one in stalls(metrics)]


def no_room() -> Episode:
    return Episode(ENV, 0, stop_reason=StopReason.CONTEXT_FULL)


def failed() -> Episode:
    return msgspec.structs.replace(episode(), stop_reason=StopReason.ENV_ERROR, error="a\nOSError: no disk")


@pytest.mark.parametrize(
    ("episodes", "example", "text"),
    [
        (
            [episode(truncated=True, invalid=True)],
            "A long\x1b story",
            "All responses were cut off at max_completion_length, after 8 tokens on average; the first was "
            "'A long\\x1b story'. Next: raise max_completion_length, or ask for short answers in system_prompt.",
        ),
        (
            [episode(invalid=True), episode(truncated=True, invalid=True)],
            "",
            "No response had the form that the environment reads (50 % were cut off); the first was empty. Next: "
            "compare it with what the first observation asks for; say the form in system_prompt, or begin with a "
            "model that knows it.",
        ),
        (
            [episode(reward=0.5), episode(reward=0.5)],
            None,
            "All advantages are 0, so nothing was learned from rewards: equal returns, 0.5 in every turn. Next: an "
            "easier task, more episodes in a batch or group, or a reward for a part of the task.",
        ),
        (
            [failed()],
            "OSError: no disk",
            "The environment failed in every episode: 'OSError: no disk'. Next: play the environment by hand, with "
            "`gem-core play`.",
        ),
        (
            [no_room()],
            None,
            "No episode has a response: the first prompt leaves no room for it. Next: lower max_completion_length, "
            "shorten the first prompt, or allow a longer context.",
        ),
    ],
)
def test_each_kind_is_said(episodes: list[Episode], example: str | None, text: str):
    assert said(update(episodes), example) == [text]


def test_dropped_episodes_failed_too():
    assert said(update([], dropped=3)) == said(update([failed()]))


def test_groups_may_have_equal_returns_each_at_another_level():
    grouped = [episode(reward=float(task), task_id=task) for task in (0, 0, 1, 1)]
    assert "equal returns, within each group" in said(update(grouped, "grpo"))[0]
    assert said(update(grouped, "rebn")) == []


@pytest.mark.parametrize(
    "batch",
    [
        [episode(invalid=True, reward=0.0), episode(reward=0.1)],
        [episode(truncated=True), episode(reward=0.1)],
        # What the environment could use was cut off on purpose, and some of it was right.
        [episode(truncated=True, success=True, reward=1.0), episode(truncated=True)],
        # Nothing is left to learn.
        [episode(success=True, reward=1.0)] * 4,
        [failed(), episode(reward=1.0)],
    ],
)
def test_a_batch_that_can_teach_is_left_alone(batch: list[Episode]):
    assert stalls(update(batch)) == []


def test_an_environment_of_a_mixture_is_named():
    mixed = [episode(invalid=True), episode(invalid=True), episode(env_id=OTHER, reward=1.0)]
    (text,) = said(update(mixed))
    assert text.startswith(f"{ENV}: no response had the form")
    both = [episode(invalid=True), episode(env_id=OTHER, truncated=True)]
    assert [text.partition(": ")[0] for text in said(update(both))] == [ENV, OTHER]


def test_it_is_said_once_and_with_enough_episodes():
    detector = StallDetector()
    batch = update([episode(invalid=True)] * (MIN_EPISODES // 4))
    found = [detector.add(step, batch) for step in range(1, 8)]
    assert [len(one) for one in found] == [0, 0, 0, 1, 0, 0, 0]
    assert "No response of updates 1 to 4 had" in found[3][0].text(WORDS)
    assert detector.end() == []


def test_a_single_batch_may_be_enough():
    (stall,) = StallDetector().add(3, update([episode(truncated=True)] * MIN_EPISODES))
    assert "All responses of update 3 were" in stall.text(WORDS)


def test_what_worked_once_begins_anew():
    detector = StallDetector()
    bad, good = update([episode(invalid=True)] * (MIN_EPISODES - 1)), update([episode(reward=1.0), episode()])
    assert not [found for step, one in enumerate([bad, good] * 4, 1) for found in detector.add(step, one)]
    assert detector.end() == []


def test_a_short_run_is_judged_at_its_end():
    detector = StallDetector()
    for step in (1, 2):
        assert detector.add(step, update([episode(truncated=True, invalid=True)] * 4)) == []
    assert [(one.kind, one.first, one.last) for one in detector.end()] == [("cut_off", 1, 2)]
    assert detector.end() == []
    few = StallDetector()
    few.add(1, update([episode()] * 4))
    assert few.end() == [], "equal returns of a few episodes may be chance"


def test_what_comes_and_goes_does_not_hide_what_lasts():
    """A real run: in most updates all responses were cut off, at all of them none was of use."""
    detector = StallDetector()
    cut = [episode(truncated=True, invalid=True)] * 24
    batches = [cut, cut, [*cut[1:], episode(invalid=True)], cut, [*cut[1:], episode(invalid=True)], cut]
    found = [one for step, batch in enumerate(batches, 1) for one in detector.add(step, update(batch))]
    assert [(one.kind, one.first, one.last) for one in found] == [("unread", 1, 6)]
    assert detector.end() == []


def test_the_cause_is_said_and_not_what_follows():
    detector = StallDetector()
    batch = update([episode(truncated=True, invalid=True)] * MIN_EPISODES)
    assert [one.kind for step in range(1, 9) for one in detector.add(step, batch)] == ["cut_off"]
    assert batch["advantage/zero"] == batch["turn/invalid"] == 1.0


def test_an_evaluation_has_its_own_limit_and_is_given_a_chance():
    detector = StallDetector()
    silent = evaluation([episode(truncated=True)] * MIN_EPISODES)
    assert detector.add(0, silent) == [], "before it could learn"
    (stall,) = detector.add(5, silent)
    assert "All responses of the evaluations after updates 0 to 5 were cut off at eval_length" in stall.text(WORDS)
    assert detector.add(5, silent) == detector.add(10, silent) == []


def test_runs_that_learn_are_left_alone():
    """A tenth of the responses can be used, and a tenth of these are right: as weak as a run that learns may begin."""
    numbers = random.Random(0)
    for run in range(12):
        detector = StallDetector()
        for step in range(1, 21):
            used = [numbers.random() < 0.1 for _ in range(32)]
            right = [one and numbers.random() < 0.1 + step / 20 for one in used]
            batch = [
                episode(invalid=not one, success=good, reward=one * 0.1 + good)
                for one, good in zip(used, right, strict=True)
            ]
            assert detector.add(step, update(batch)) == [], (run, step)
        assert detector.end() == []


# -- the report --------------------------------------------------------------------------------------------------------


def play(report: RunReport, step: int, episodes: Sequence[Episode]) -> None:
    """As an adapter does it."""
    report.see(one.summary() for one in episodes)
    report.update(step, update(episodes))


def test_the_line_has_shares_that_are_not_0(capsys: pytest.CaptureFixture[str]):
    report = RunReport(20, "test")
    play(report, 1, [episode(reward=1.0), episode()])
    play(report, 2, [episode(invalid=True), episode(truncated=True), episode(truncated=True), episode(reward=1.0)])
    assert capsys.readouterr().out.splitlines() == [
        "update    1/20  success 0.00  return 0.50  turns 2.00",
        "update    2/20  success 0.00  return 0.25  turns 2.00  cut off 0.50  invalid 0.25",
    ]


@pytest.mark.parametrize("live", [True, False])
def test_the_report_warns_after_the_line_and_quotes(live: bool, capsys: pytest.CaptureFixture[str]):
    report = RunReport(2, "test", live=live, words=WORDS)
    play(report, 1, [episode("I think that", invalid=True)] * MIN_EPISODES)
    play(report, 2, [episode("later", invalid=True)] * MIN_EPISODES)
    report.save()
    (warning,) = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("update")]
    assert warning.startswith(
        "Warning: No response of update 1 had the form that the environment reads; the first was 'I"
    )
    assert warning.endswith('See "A run that does not learn" in adapters/train/README.md.')


def test_the_quote_is_of_the_stall(capsys: pytest.CaptureFixture[str]):
    report = RunReport(3, "test", live=False, words=WORDS)
    play(report, 1, [episode("by chance", invalid=True), episode(reward=1.0)])
    play(report, 2, [episode("collapsed", invalid=True)] * MIN_EPISODES)
    assert "the first was 'collapsed'" in capsys.readouterr().out


def test_the_last_line_of_an_error_is_quoted(capsys: pytest.CaptureFixture[str]):
    report = RunReport(3, "test", live=False, words=WORDS)
    play(report, 1, [failed()] * MIN_EPISODES)
    assert "in every episode of update 1: 'OSError: no disk'." in capsys.readouterr().out


def test_other_processes_say_nothing(capsys: pytest.CaptureFixture[str]):
    report = RunReport(1, "test", live=False)
    play(report, 1, [episode(invalid=True)] * MIN_EPISODES)
    report.save()
    assert capsys.readouterr().out == ""


def test_a_resumed_run_says_nothing_again_and_counts_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    half = [episode(invalid=True)] * (MIN_EPISODES // 2)
    report = RunReport(9, "test", live=False, folder=tmp_path, words=WORDS)
    play(report, 1, half)
    play(report, 2, half)
    assert capsys.readouterr().out.count("Warning") == 1
    for done, warnings in ((2, 0), (1, 1)):
        resumed = RunReport(9, "test", done=done, live=False, folder=tmp_path, words=WORDS)
        play(resumed, done + 1, half)
        assert capsys.readouterr().out.count("Warning: No response of updates 1 to") == warnings


def test_a_long_response_is_quoted_by_its_ends():
    assert episode("a" * 300 + "b" * 300, invalid=True).summary().unread == "a" * 100 + " ... " + "b" * 100
    assert episode("a", invalid=False).summary().unread is None


# -- records -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("detail", ["full", "summary"])
def test_records_have_the_warnings(tmp_path: Path, detail: Any):
    recorder = RunRecorder(tmp_path, detail=detail)
    played = [episode("secret", invalid=True, number=number) for number in range(4)]
    source = Reporter("training", "test").source
    for one in played:
        recorder.gem_episode_end(one)
    recorder.gem_metrics(source, 1, update(played))
    recorder.close()
    (warning,) = open_records(tmp_path).warnings
    assert warning.startswith("No response of update 1 had the form that the environment reads")
    assert ("'secret'" in warning) == (detail == "full")
    assert (b"secret" in next(tmp_path.glob("*.gemrec")).read_bytes()) == (detail == "full")


def test_an_old_line_of_metrics_says_nothing(tmp_path: Path):
    recorder = RunRecorder(tmp_path)
    recorder.close()
    (tmp_path / "metrics.jsonl").write_text(json.dumps({"step": 1.0, "turn/invalid": 1.0, "episode/success": 0.0}))
    assert open_records(tmp_path).warnings == []
