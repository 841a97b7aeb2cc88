"""Two evaluations are compared task by task, and only if their tasks are the same."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from scipy import stats
from typer.testing import CliRunner

import gem_core
from gem_core import Env
from gem_evaluation import Entry, EvaluationError, FunctionModel, evaluate, read_saved
from gem_evaluation._statistics import success_difference
from gem_evaluation._store import EPISODES, RUN, read_episodes, read_results
from gem_evaluation.commands import app
from gem_evaluation.comparing import MAX_FLIPPED, compare
from gem_evaluation.regrading import regrade

FIRST, SECOND = "comparing:Sides-v0", "comparing:Sides-v1"


class Sides(Env):
    """Asks for a number below `sides`, which the seed decides."""

    def __init__(self, sides: int = 3) -> None:
        self.sides = sides

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.number = self.rng.randrange(self.sides)
        return "Which number?", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        hit = action == str(self.number)
        return "", 2.0 * hit - 0.5, True, False, {"success": hit}

    def sample_random_action(self) -> str:
        return str(self.rng.randrange(self.sides))


@pytest.fixture(autouse=True)
def registered() -> None:
    gem_core.register(FIRST, Sides)
    gem_core.register(SECOND, Sides)


class Cycling:
    """Says these answers in turn. It plays one episode at a time, so that repeats of a task differ in a known way."""

    def __init__(self, answers: Sequence[str]) -> None:
        self.answers, self.count = answers, 0

    def __call__(self, messages: Any) -> str:
        self.count += 1
        return self.answers[self.count % len(self.answers)]


def played(
    folder: Path, answers: str, entries: str | Sequence[str | Entry] = FIRST, tasks: int = 12, **settings: Any
) -> Path:
    evaluate(entries, FunctionModel(Cycling(answers), answers, 1), tasks=tasks, output=folder, **settings)
    return folder


def outcomes(folder: Path, label: str) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for one in read_results(folder):
        if one.key.entry == label:
            found.setdefault(one.key.task_id, []).append(one)
    return found


def test_numbers_are_those_by_brute_force(tmp_path: Path) -> None:
    a = played(tmp_path / "a", "0", [FIRST, SECOND], repeats=2)
    b = played(tmp_path / "b", "0112", [FIRST, SECOND], repeats=3)
    found = compare(a, b)
    every: list[tuple[list[bool], list[bool]]] = []
    for one, label in zip(found.environments, (FIRST, SECOND), strict=True):
        before, after = outcomes(a, label), outcomes(b, label)
        pairs = [([r.success for r in before[task]], [r.success for r in after[task]]) for task in range(12)]
        means = [(fmean(first), fmean(second)) for first, second in pairs]
        assert (one.label, one.tasks) == (label, 12)
        assert one.first == pytest.approx(fmean(first for first, _ in means))
        assert one.second == pytest.approx(fmean(second for _, second in means))
        assert one.success == success_difference(*zip(*pairs, strict=True))
        assert one.success.value == pytest.approx(one.second - one.first)
        assert one.better == sum(second > first for first, second in means) > 0
        assert one.worse == sum(second < first for first, second in means) > 0
        reference = stats.ttest_rel(  # the return is 1.5 with success and -0.5 without
            [2 * second - 0.5 for _, second in means], [2 * first - 0.5 for first, _ in means]
        ).confidence_interval(0.95)
        assert (one.total_reward.low, one.total_reward.high) == pytest.approx((reference.low, reference.high))
        every += pairs
    assert found.together.success == success_difference(*zip(*every, strict=True))
    assert found.together.tasks == 24


def test_failed_episodes_are_in_the_ranges(tmp_path: Path) -> None:
    class Deaf(Cycling):
        def __call__(self, messages: Any) -> str:
            said = super().__call__(messages)
            if self.count % 4 == 0:
                raise ConnectionError("gone")
            return said

    a = played(tmp_path / "a", "0")
    evaluate(FIRST, FunctionModel(Deaf("0112"), "deaf", 1), tasks=12, output=(b := tmp_path / "b"))
    found = compare(a, b).together
    whole, part = read_saved(a).together.success, read_saved(b).together.success
    assert whole is not None
    assert part is not None
    assert found.failed == (0, 3)
    assert found.first_range == (whole.value, whole.value)
    assert found.second_range == (part.at_least.value, part.at_most.value)
    assert part.at_most.value - part.at_least.value == pytest.approx(3 / 12)
    assert found.difference_range == pytest.approx(
        (part.at_least.value - whole.value, part.at_most.value - whole.value)
    )
    shown = CliRunner().invoke(app, ["compare", str(a), str(b)]).stdout
    assert "with failed" in " ".join(shown.split())


def test_tasks_that_differ_most_come_first(tmp_path: Path) -> None:
    a = played(tmp_path / "a", "0", tasks=60, repeats=2)
    b = played(tmp_path / "b", "0112", tasks=60, repeats=2)
    found = compare(a, b)
    before, after = outcomes(a, FIRST), outcomes(b, FIRST)
    gaps = {task: fmean(r.success for r in after[task]) - fmean(r.success for r in before[task]) for task in range(60)}
    expected = sorted((task for task in gaps if gaps[task]), key=lambda task: (-abs(gaps[task]), task))
    assert len(expected) > MAX_FLIPPED
    assert [one.task_id for one in found.flipped] == expected[:MAX_FLIPPED]
    assert [one.second - one.first for one in found.flipped] == [gaps[one.task_id] for one in found.flipped]


def test_an_evaluation_does_not_differ_from_itself(tmp_path: Path) -> None:
    a = played(tmp_path / "a", "012", repeats=2)
    found = compare(a, a)
    assert (found.flipped, found.settings, found.warnings) == ([], [], [])
    assert (found.together.better, found.together.worse, found.together.success.value) == (0, 0, 0.0)


def test_how_an_environment_is_played_may_differ(tmp_path: Path) -> None:
    a = played(tmp_path / "a", "0", [Entry(id=FIRST, tasks=5, name="sides")])
    b = played(tmp_path / "b", "1", [Entry(id=FIRST, tasks=5, name="sides", system_prompt="Be quick.")])
    assert [(one.setting, one.first, one.second) for one in compare(a, b).settings] == [
        ("environments.sides.system_prompt", None, "Be quick."),
        ("model.name", "0", "1"),
    ]


def test_only_what_both_have_is_compared(tmp_path: Path) -> None:
    a = played(tmp_path / "a", "0", [FIRST, SECOND], tasks=5)
    b = played(tmp_path / "b", "1", [SECOND], tasks=7)
    found = compare(a, b)
    assert [(one.label, one.tasks) for one in found.environments] == [(SECOND, 5)]
    assert found.warnings == [
        f"only A has {FIRST}; not compared",
        f"{SECOND}: 2 tasks have a finished episode in one evaluation only; not compared",
    ]
    assert [one.setting for one in found.settings] == ["model.name"]


def test_other_tasks_are_not_paired(tmp_path: Path) -> None:
    a = played(tmp_path / "a", "0", [Entry(id=FIRST, tasks=2, name="sides")])
    others: list[tuple[dict[str, Any], int, str]] = [
        ({}, 7, "seed: 0 in A, 7 in B"),
        ({"env_kwargs": {"sides": 6}}, 0, "environments.sides.env_kwargs.sides: None in A, 6 in B"),
        ({"id": SECOND}, 0, f"environments.sides.id: '{FIRST}' in A, '{SECOND}' in B"),
    ]
    for number, (settings, seed, message) in enumerate(others):
        entry = Entry(**{"id": FIRST, "tasks": 2, "name": "sides", **settings})
        b = played(tmp_path / f"b{number}", "0", [entry], seed=seed)
        with pytest.raises(EvaluationError, match="do not have the same tasks") as error:
            compare(a, b)
        assert message in str(error.value)


def test_other_releases(tmp_path: Path) -> None:
    a, b = played(tmp_path / "a", "0", tasks=2), played(tmp_path / "b", "0", tasks=2)
    document = json.loads((b / RUN).read_text())
    document["identity"]["versions"]["python"] = "3.9.0"
    (b / RUN).write_text(json.dumps(document))
    (warning,) = compare(a, b).warnings
    assert warning.startswith("python is 3.")
    assert warning.endswith("and 3.9.0 in B, so tasks may differ")
    document["identity"]["environments"][FIRST]["provenance"] = "other 1.0 (plugin 'comparing')"
    (b / RUN).write_text(json.dumps(document))
    with pytest.raises(EvaluationError, match=r"provenance: .* in A, .*other 1.0"):
        compare(a, b)


def test_nothing_to_compare(tmp_path: Path) -> None:
    a, b = played(tmp_path / "a", "0", [FIRST], tasks=1), played(tmp_path / "b", "0", [SECOND], tasks=1)
    with pytest.raises(EvaluationError, match=f"no environment in common: {FIRST} in A, {SECOND} in B"):
        compare(a, b)
    with pytest.raises(EvaluationError, match="is no folder of an evaluation"):
        compare(a, tmp_path)
    (tmp_path / "a" / "episodes.jsonl").unlink()
    with pytest.raises(EvaluationError, match="no task with a finished episode in both"):
        compare(a, a)


def test_the_command(tmp_path: Path) -> None:
    a, b = played(tmp_path / "a", "0", tasks=6), played(tmp_path / "b", "1", tasks=8)
    shown = CliRunner().invoke(app, ["compare", str(a), str(b)])
    assert shown.exit_code == 0, shown.output
    found = compare(a, b)
    (line,) = (line for line in shown.stdout.splitlines() if line.startswith(FIRST) and "[" in line)
    assert f"{100 * found.together.success.value:+.1f} [{100 * found.together.success.low:+.1f}, " in line
    assert "2 tasks have a finished episode in one evaluation only" in shown.stderr
    assert f"Tasks with another success: {len(found.flipped)}" in shown.stdout
    assert "model.name" in shown.stdout
    document = json.loads(CliRunner().invoke(app, ["compare", str(a), str(b), "--json"]).stdout)
    assert document["together"]["success"]["value"] == found.together.success.value
    assert document["warnings"] == found.warnings


def test_results_of_one_task_can_be_read_again(tmp_path: Path) -> None:
    saved = read_saved(played(tmp_path / "a", "0", tasks=1)).together.total_reward
    assert saved is not None
    assert (saved.low, saved.high) == (-math.inf, math.inf)


DEEP: list[Any] = []
for _ in range(200):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("file", "place", "value"),
    [
        (RUN, ["identity"], None),
        (RUN, ["identity", "seed"], "x"),
        (RUN, ["identity", "versions"], 1),
        (RUN, ["identity", "model"], {"deep": DEEP}),
        (RUN, ["identity", "environments"], [FIRST]),
        (RUN, ["identity", "environments", FIRST], {"id": FIRST}),
        (EPISODES, ["result", "key", "entry"], "another"),
        (EPISODES, ["result", "key", "task_id"], 10**12),
        (EPISODES, ["result", "key", "task_id"], -1),
        (EPISODES, ["result", "key", "repeat"], 2**31 - 1),
        (EPISODES, ["result", "prompt_tokens"], 2**63),
        (EPISODES, ["result", "opening"], "\N{LATIN SMALL LETTER E WITH ACUTE}"),
        (EPISODES, ["episode"], []),
        (EPISODES, ["episode", "turns", 0, "info"], {"partner_replies": 5}),
    ],
)
def test_what_a_folder_says_is_checked(file: str, place: list[Any], value: Any, tmp_path: Path) -> None:
    for name in ("a", "b"):
        evaluate(FIRST, FunctionModel(lambda messages: "1", "one"), tasks=2, output=tmp_path / name)
    text = (tmp_path / "a" / file).read_text()
    first, *rest = text.splitlines() if file == EPISODES else [text]
    document = json.loads(first)
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    (tmp_path / "a" / file).write_text("\n".join([json.dumps(document), *rest, ""]))
    refused = 0
    for use in (
        lambda: compare(tmp_path / "a", tmp_path / "b"),
        lambda: [*read_episodes(tmp_path / "a")],
        lambda: regrade(tmp_path / "a"),
        lambda: evaluate(FIRST, FunctionModel(lambda messages: "1", "one"), tasks=2, output=tmp_path / "a"),
    ):
        try:
            use()
        except EvaluationError:
            refused += 1
    assert refused or "info" in place


@pytest.mark.parametrize("file", [RUN, EPISODES])
def test_bytes_that_are_no_text_are_damage(file: str, tmp_path: Path) -> None:
    for name in ("a", "b"):
        evaluate(FIRST, FunctionModel(lambda messages: "1", "one"), tasks=1, output=tmp_path / name)
    (tmp_path / "a" / file).write_bytes(b'{"version": "\xff"}\n')
    with pytest.raises(EvaluationError, match=f"{file}.* (damaged|cannot be read)"):
        compare(tmp_path / "a", tmp_path / "b")
