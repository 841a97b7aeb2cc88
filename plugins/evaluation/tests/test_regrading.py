"""Grading again: what is the same, what has changed, and what cannot be said."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from typer.testing import CliRunner

import gem_core
from gem_core import Env
from gem_core.cli._app import app
from gem_evaluation import Entry, EvaluationError, FunctionModel, Reply, ToolCall, evaluate, load_model
from gem_evaluation._regraded import REGRADED, Regrading
from gem_evaluation.regrading import regrade

DETERMINISTIC = [
    "game:GuessTheNumber-v0-easy",
    "game:Minesweeper-v1-easy",
    "game:Wordle-v0-easy",
    "game:Sokoban-v0-easy",
    "math:Sample",
    "qa:Sample",
    "rg:maze",
    "rg:letter_counting",
]
DEMO = "demo-regrade:Counting-v0"


class Counting(Env):
    """Pays for each of a number of turns; what a class attribute says can change between two runs."""

    reward: ClassVar[float] = 1.0
    turns: ClassVar[int] = 3
    needed: ClassVar[int] = 2
    word: ClassVar[str] = "turn"
    last_words: ClassVar[str] = "over"
    breaks: ClassVar[bool] = False
    numbers: ClassVar[Iterator[int] | None] = None

    def __init__(self, pay: float = 1.0) -> None:
        self.pay = pay

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.played = 0
        self.name = self.rng.randrange(1000)
        return self._shown(), {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self.breaks:
            raise OSError("no space left")
        self.played += 1
        over = self.played >= self.turns
        shown = self.last_words if over else self._shown()
        reward = self.reward * self.pay if action == "yes" else 0.0
        return shown, reward, over, False, {"success": over and self.played >= self.needed}

    def _shown(self) -> str:
        number = self.played if self.numbers is None else next(self.numbers)
        return f"{self.name}: {self.word} {number}"

    def sample_random_action(self) -> str:
        return self.rng.choice(["yes", "no"])


@pytest.fixture(autouse=True)
def _demo() -> None:
    gem_core.register(DEMO, Counting)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four episodes of the demo environment, in three turns each."""
    evaluate(DEMO, lambda _: "yes", tasks=2, repeats=2, output=tmp_path / "run")
    return tmp_path / "run"


def outcomes(found: Regrading) -> set[tuple[str, str]]:
    return {(one.outcome, one.reason) for one in found.episodes}


def test_shipped_environments_give_the_same_grades(tmp_path: Path) -> None:
    entries = [Entry(id=one, tasks=2, repeats=2) for one in DETERMINISTIC]
    entries.append(Entry(id="math:Sample", name="with Python", tasks=2, tools=["python:Interpreter"]))
    evaluate(entries, load_model("random"), output=tmp_path)
    found = regrade(tmp_path)
    assert outcomes(found) == {("same", "")}
    assert [one.label for one in found.environments] == [entry.label for entry in entries]
    assert {one.same for one in found.environments[:-1]} == {4}
    assert found.same


def test_responses_with_several_native_calls_are_replayed(tmp_path: Path) -> None:
    calls = tuple(ToolCall(f"c{n}", "python", json.dumps({"code": f"print({n})"})) for n in range(3))
    answers = itertools.cycle([Reply("let me see", calls), Reply("\\boxed{4}")])
    model = FunctionModel(lambda _: next(answers), "native", most_at_once=1)
    entry = Entry(id="math:Sample", tasks=1, tools=["python:Interpreter"], tool_form="native", max_tool_uses=2)
    evaluate(entry, model, output=tmp_path)
    [episode] = regrade(tmp_path).episodes
    assert episode.outcome == "same"
    assert len(episode.before.rewards) == 3


def test_a_changed_grader_gives_new_rewards(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    episodes = (folder / "episodes.jsonl").read_bytes()
    monkeypatch.setattr(Counting, "reward", 0.5)
    monkeypatch.setattr(Counting, "needed", 4)
    found = regrade(folder)
    assert outcomes(found) == {("changed", "the reward of turns 1, 2, 3, success")}
    first = found.episodes[0]
    assert first.now is not None
    assert (first.before.total_reward, first.now.total_reward) == (3.0, 1.5)
    [compared] = found.environments
    assert (compared.episodes, compared.same, compared.changed, compared.not_graded) == (4, 0, 4, 0)
    assert compared.before.success is not None
    assert compared.now.success is not None
    assert (compared.before.success.value, compared.now.success.value) == (1.0, 0.0)
    assert not found.same
    assert (folder / "episodes.jsonl").read_bytes() == episodes


def test_the_file_has_the_results(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counting, "reward", 0.5)
    regrade(folder)
    document = json.loads((folder / REGRADED).read_bytes())
    assert document["version"] == 2
    assert document["identity"] == json.loads((folder / "run.json").read_bytes())["identity"]
    assert document["environments"][0]["now"]["total_reward"]["value"] == 1.5
    assert [one["key"]["task_id"] for one in document["episodes"]] == [0, 0, 1, 1]
    assert document["episodes"][0]["now"]["rewards"] == [0.5, 0.5, 0.5]


def test_an_earlier_end_counts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # All that the model saw is the same, so it would have acted alike.
    monkeypatch.setattr(Counting, "turns", 2)
    found = regrade(folder)
    assert outcomes(found) == {("changed", "the episode ends after 2 turns instead of 3")}
    assert found.episodes[0].now is not None
    assert found.episodes[0].now.total_reward == 2.0


def test_other_last_words_are_a_change_without_another_reward(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counting, "last_words", "the end")
    assert outcomes(regrade(folder)) == {("changed", "the last observation")}


def test_after_another_observation_nothing_is_graded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate(DEMO, lambda _: "yes", tasks=50, output=tmp_path)
    monkeypatch.setattr(Counting, "word", "round")
    found = regrade(tmp_path)
    assert outcomes(found) == {("diverged", "the observation of turn 1 differs")}
    assert {one.now for one in found.episodes} == {None}
    assert found.environments[0].not_graded == 50
    assert found.environments[0].now.success is None


def test_a_later_end_cannot_be_graded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counting, "turns", 4)
    assert outcomes(regrade(folder)) == {("diverged", "the episode continues after its last action, that of turn 3")}


def test_an_environment_that_is_not_deterministic_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counting, "numbers", itertools.count())
    evaluate(DEMO, lambda _: "yes", tasks=2, output=tmp_path)
    reason = "two replays differ; in the first one, the observation of turn 1 differs"
    assert outcomes(regrade(tmp_path)) == {("not_deterministic", reason)}


def test_an_environment_that_fails_is_named_for_each_episode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate(DEMO, lambda _: "yes", tasks=50, output=tmp_path)
    monkeypatch.setattr(Counting, "breaks", True)
    found = regrade(tmp_path)
    assert len(found.episodes) == 50
    assert {one.outcome for one in found.episodes} == {"failed"}
    assert "OSError: no space left" in found.episodes[0].reason


def test_an_unknown_id_is_named_and_others_are_graded(tmp_path: Path) -> None:
    gem_core.register("demo-regrade:Other-v0", Counting)
    evaluate([DEMO, "demo-regrade:Other-v0"], lambda _: "yes", tasks=2, output=tmp_path)
    run = json.loads((tmp_path / "run.json").read_bytes())
    run["identity"]["environments"]["demo-regrade:Other-v0"]["id"] = "demo-regrade:Gone-v0"
    (tmp_path / "run.json").write_text(json.dumps(run))
    found = regrade(tmp_path, trust=True)
    assert {one.key.entry: one.outcome for one in found.episodes} == {
        DEMO: "same",
        "demo-regrade:Other-v0": "not_built",
    }
    assert "no environment 'demo-regrade:Gone-v0'" in found.episodes[-1].reason
    assert [one.provenance_now == "" for one in found.environments] == [False, True]


def test_a_missing_extra_is_named(folder: Path) -> None:
    def without() -> Env:
        raise ModuleNotFoundError("No module named 'nowhere'", name="nowhere")

    gem_core.register(DEMO, without)
    [(outcome, reason)] = outcomes(regrade(folder))
    assert outcome == "not_built"
    assert "nowhere" in reason


def test_a_refused_argument_is_named(tmp_path: Path) -> None:
    class Without(Counting):
        def __init__(self) -> None:
            super().__init__()

    evaluate(Entry(id=DEMO, tasks=2, env_kwargs={"pay": 2.0}), lambda _: "yes", output=tmp_path)
    assert outcomes(regrade(tmp_path)) == {("same", "")}
    gem_core.register(DEMO, Without)
    [(outcome, reason)] = outcomes(regrade(tmp_path))
    assert outcome == "not_built"
    assert "has no argument 'pay'" in reason


@pytest.mark.parametrize("turns", [0, 1])
def test_a_full_context_ends_the_replay_as_well(tmp_path: Path, turns: int) -> None:
    def answer(messages: Any) -> Reply:
        return Reply("", context_full=True) if len(messages) > 2 * turns else Reply("yes")

    evaluate(DEMO, FunctionModel(answer, "short"), tasks=2, output=tmp_path)
    found = regrade(tmp_path)
    assert outcomes(found) == {("same", "")}
    assert found.episodes[0].before.stop_reason.value == "context_full"
    assert found.episodes[0].before.rewards == [1.0] * turns


def test_a_response_that_was_cut_off_is_replayed(tmp_path: Path) -> None:
    evaluate(DEMO, FunctionModel(lambda _: Reply("yes", truncated=True), "long"), tasks=2, output=tmp_path)
    found = regrade(tmp_path)
    assert outcomes(found) == {("same", "")}
    assert found.environments[0].now.truncated_share == 1.0


def test_a_folder_without_an_evaluation_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match="no folder of an evaluation"):
        regrade(tmp_path)


def test_a_folder_without_a_finished_episode_is_named(tmp_path: Path) -> None:
    evaluate("qa:Sample", FunctionModel(lambda messages: str(1 / 0), "broken"), tasks=2, output=tmp_path)
    done = CliRunner().invoke(app, ["eval", "regrade", str(tmp_path)])
    assert done.exit_code == 1
    assert "has no finished episode, so nothing was graded again" in done.output


def test_the_command_says_what_changed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = CliRunner()
    unchanged = run.invoke(app, ["eval", "regrade", str(folder)])
    assert unchanged.exit_code == 0
    assert "Changed episodes" not in unchanged.stdout
    monkeypatch.setattr(Counting, "reward", 0.5)
    changed = run.invoke(app, ["eval", "regrade", str(folder)])
    assert changed.exit_code == 1
    assert "3 -> 1.5" in changed.stdout
    assert "yes -> yes" in changed.stdout
    monkeypatch.setattr(Counting, "word", "round")
    diverged = run.invoke(app, ["eval", "regrade", str(folder)])
    assert diverged.exit_code == 1
    assert "the observation of turn 1 differs" in diverged.stdout
    as_json = run.invoke(app, ["eval", "regrade", str(folder), "--json"])
    assert as_json.exit_code == 1
    assert json.loads(as_json.stdout) == json.loads((folder / REGRADED).read_bytes())


# -- folders of others -------------------------------------------------------------------------------------------


def rewrite(folder: Path, **changes: Any) -> None:
    """Change the only environment in a `run.json`."""
    run = json.loads((folder / "run.json").read_bytes())
    run["identity"]["environments"][DEMO].update(changes)
    (folder / "run.json").write_text(json.dumps(run))


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that a module and a clone of tau-bench write when they are loaded."""
    made, code = tmp_path / "mark", f"open({str(tmp_path / 'mark')!r}, 'w').close()"
    (tmp_path / "a_guest.py").write_text(code)
    retail = tmp_path / "clone" / "tau_bench" / "envs" / "retail"
    retail.mkdir(parents=True)
    for package in (retail, retail.parent, retail.parent.parent):
        (package / "__init__.py").write_text("")
    (retail / "tools").mkdir()
    for module in ("data.py", "tasks_test.py", "tools/__init__.py"):
        (retail / module).write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return made


CHOICES: list[tuple[str, dict[str, Any]]] = [
    ("desk:TauBench", {"home": "clone"}),
    ("desk:Retail-v0", {"customer": "model:a_guest:say"}),
    ("gym:a_guest:Maze-v0", {}),
    ("verifiers:a_guest", {}),
    ("qa:Sample", {"grader": "a_guest:grade"}),
    ("code:Sample", {"grader": "a_guest:grade"}),
    ("math:Sample", {"dataset": "package:a_guest/sample.jsonl"}),
    ("match:TicTacToe-v0", {"opponents": {"player 0": "model:a_guest:say"}}),
    ("remote:a:B", {"url": "ws://127.0.0.1:9"}),
    ("remote:a:B", {}),
    ("openenv:http://127.0.0.1:9", {}),
    ("game:WikiGame-v0-easy", {"pages": "http://127.0.0.1:9"}),
    ("terminal:Tasks-v0", {"backend": "docker"}),
    ("terminal:Folder", {"tasks": "."}),
    ("rg:basic_arithmetic", {"operators": ["a text that the library evaluates"]}),
    (DEMO, {"pay": "text"}),
]


@pytest.mark.parametrize(("env_id", "kwargs"), CHOICES, ids=range(len(CHOICES)))
def test_what_a_folder_chooses_is_not_loaded(folder: Path, mark: Path, env_id: str, kwargs: dict[str, Any]) -> None:
    rewrite(folder, id=env_id, env_kwargs=kwargs)
    [(outcome, reason)] = outcomes(regrade(folder))
    assert outcome == "not_built"
    assert "not loaded. If you trust its author, use --trust" in reason
    assert not mark.exists()


def test_the_command_says_what_it_would_load(folder: Path, mark: Path) -> None:
    rewrite(folder, id="desk:TauBench", env_kwargs={"home": "clone"})
    run = CliRunner()
    done = run.invoke(app, ["eval", "regrade", str(folder)])
    assert done.exit_code == 1
    assert f"would load, for {DEMO}: home='clone'" in done.output
    assert not mark.exists()
    done = run.invoke(app, ["eval", "regrade", str(folder), "--trust"])
    assert f"loads, for {DEMO}: home='clone'" in done.output
    assert mark.exists()


@pytest.mark.parametrize(
    "identity",
    [
        None,
        [],
        {},
        {"seed": 0},
        {"seed": "0", "environments": {}},
        {"seed": 0, "environments": [DEMO]},
        {"seed": 0, "environments": {DEMO: 5}},
        {"seed": 0, "environments": {DEMO: {}}},
        {"seed": 0, "environments": {DEMO: {"id": DEMO, "surprise": 1}}},
        {"seed": 0, "environments": {DEMO: {"id": DEMO, "env_kwargs": 5}}},
    ],
    ids=range(10),
)
def test_a_run_of_another_shape_is_named(folder: Path, identity: Any) -> None:
    (folder / "run.json").write_text(json.dumps({"version": 2, "identity": identity}))
    with pytest.raises(EvaluationError, match="cannot be read"):
        regrade(folder)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("result", "key", "task_id"), -1),
        (("result", "turns"), 2**31),
        (("result", "prompt_tokens"), 2**63),
        (("usage", 0, "requests"), 2**40),
        (("usage", 0), None),
        (("usage",), {}),
        (("episode",), 5),
        (("result",), []),
    ],
)
def test_a_number_that_cannot_be_is_named(folder: Path, place: tuple[Any, ...], value: Any) -> None:
    lines = (folder / "episodes.jsonl").read_text().splitlines()
    record = json.loads(lines[0])
    part = record
    for name in place[:-1]:
        part = part[name]
    part[place[-1]] = value
    (folder / "episodes.jsonl").write_text("\n".join([json.dumps(record), *lines[1:], ""]))
    with pytest.raises(EvaluationError):
        regrade(folder)


@pytest.mark.parametrize("replies", [None, 5, "text", [5, None], {"a": 1}])
def test_replies_of_partners_that_are_none_end_nothing(folder: Path, replies: Any) -> None:
    lines = [json.loads(line) for line in (folder / "episodes.jsonl").read_text().splitlines()]
    for record in lines:
        record["episode"]["turns"][0]["info"]["partner_replies"] = replies
    (folder / "episodes.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in lines))
    assert outcomes(regrade(folder)) == {("same", "")}


@pytest.mark.parametrize(("field", "value"), [("history", -1), ("history", 2**63), ("max_tool_uses", -1)])
def test_settings_that_cannot_be_are_named(folder: Path, field: str, value: int) -> None:
    rewrite(folder, **{field: value})
    with pytest.raises(EvaluationError, match=f"{field} must be at least"):
        regrade(folder)


def test_a_link_in_the_folder_is_not_written_through(folder: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    for name in (REGRADED, f"{REGRADED}.partial"):
        (folder / name).symlink_to(precious)
    assert regrade(folder).same
    assert precious.read_text() == "mine"
    assert not (folder / REGRADED).is_symlink()


def test_an_environment_that_the_run_does_not_have_is_named(folder: Path) -> None:
    empty = {"seed": 0, "model": {}, "environments": {}, "versions": {}}
    (folder / "run.json").write_text(json.dumps({"version": 2, "identity": empty}))
    with pytest.raises(EvaluationError, match=f"{DEMO}, which is not in run.json"):
        regrade(folder)
