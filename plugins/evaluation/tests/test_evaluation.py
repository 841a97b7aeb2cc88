"""What is played, by whom, and what is said of it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import gem_core
from gem_core import Env
from gem_core.cli._app import app
from gem_evaluation import Entry, EvaluationError, FunctionModel, evaluate, load_model, read_saved
from gem_evaluation._conversation import Reply, ToolCall
from gem_evaluation._evaluation import evaluate_async
from gem_evaluation._progress import Progress
from gem_evaluation._store import Store, read_episodes, read_failures, read_identity
from gem_support.chat_server import ChatServer, guess
from gem_train.records import open_records

GAME = "game:GuessTheNumber-v0-easy"
COMMAND = [sys.executable, "-c", "from gem_core.cli import main; main()", "eval"]


def player(messages: Any) -> str:
    return guess({"messages": messages})


def test_task_i_is_the_same_at_any_concurrency_and_for_every_model(tmp_path: Path) -> None:
    seen: dict[str, set[Any]] = {}
    for name, model in {
        "one": FunctionModel(player, "one", most_at_once=1),
        "many": FunctionModel(lambda messages: "1", "many", most_at_once=50),
        "random": load_model("random"),
    }.items():
        evaluate([GAME, "math:Sample"], model, tasks=12, repeats=2, output=tmp_path / name)
        seen[name] = {
            (one.key, one.episode.seed, one.episode.data_index, one.episode.turns[0].observation)
            for one in read_episodes(tmp_path / name)
        }
    assert seen["one"] == seen["many"] == seen["random"]
    assert len(seen["one"]) == 48


def test_the_expert_plays_what_the_environment_says(tmp_path: Path) -> None:
    results = evaluate(GAME, load_model("expert"), tasks=10, output=tmp_path)
    assert results.together.success is not None
    assert results.together.success.value == 1
    texts = (tmp_path / "episodes.jsonl").read_text()
    assert "\\boxed{5}" in texts  # the middle of 1 to 10


def test_an_environment_without_an_expert_says_so(tmp_path: Path) -> None:
    gem_core.register("demo-eval:Broken-v0", Broken)
    results = evaluate("demo-eval:Broken-v0", load_model("expert"), tasks=2, output=tmp_path)
    assert results.together.episodes.failed == 2
    assert "has no expert" in (tmp_path / "failures.jsonl").read_text()


def test_repeats_of_random_play_differ_and_are_the_same_again(tmp_path: Path) -> None:
    for name in ("a", "b"):
        evaluate(GAME, load_model("random"), tasks=10, repeats=4, output=tmp_path / name)
    actions = [
        {one.key: [turn.action for turn in one.episode.turns] for one in read_episodes(tmp_path / name)}
        for name in ("a", "b")
    ]
    assert actions[0] == actions[1]
    alike = sum(len({str(played) for key, played in actions[0].items() if key.task_id == n}) == 1 for n in range(10))
    assert alike < 5
    assert not any(one.episode.summary().invalid for one in read_episodes(tmp_path / "a"))


def test_records_of_an_evaluation(tmp_path: Path) -> None:
    results = evaluate(GAME, load_model("random"), tasks=5, output=tmp_path)
    records = open_records(tmp_path)
    assert (records.kind, records.gaps, len(records.summaries)) == ("evaluation", [], 5)
    assert (records.settings["seed"], {one.split for one in records.summaries}) == (0, {"eval"})
    assert sum(one.summary.success for one in records.summaries) == round(results.together.success.value * 5)
    (tmp_path / "run.json").write_text("{")
    damaged = open_records(tmp_path)
    assert len(damaged.summaries) == 5
    assert "run.json cannot be read" in damaged.gaps[0]


def test_records_say_which_entry_an_episode_belongs_to(tmp_path: Path) -> None:
    corridor = {size: {"name": f"length {size}", "env_kwargs": {"length": size}} for size in (3, 5)}
    entries = [Entry(id="game:Corridor-v0", tasks=2, **settings) for settings in corridor.values()]
    evaluate(entries, load_model("random"), output=tmp_path)
    assert sorted(one.entry for one in open_records(tmp_path).summaries) == ["length 3"] * 2 + ["length 5"] * 2
    lines = (tmp_path / "episodes.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "episodes.jsonl").write_text("".join([lines[0].replace('"key"', '"kee"', 1), *lines[1:]]))
    damaged = open_records(tmp_path)
    assert len(damaged.summaries) == 3
    assert "line 1" in damaged.gaps[0]


def test_all_rows_of_a_data_set_and_no_more() -> None:
    results = evaluate("qa:Sample", FunctionModel(lambda messages: "no", "no"))
    assert results["qa:Sample"].tasks == gem_core.make("qa:Sample").data_size == 40
    with pytest.raises(EvaluationError, match="qa:Sample has 40 tasks, and 41 were asked for"):
        evaluate("qa:Sample", FunctionModel(player, "player"), tasks=41)


def test_a_function_of_any_kind_is_a_model() -> None:
    async def coroutine(messages: Any) -> str:
        return player(messages)

    one, other, whole = (evaluate(GAME, each, tasks=8) for each in (player, coroutine, lambda m: Reply(player(m))))
    assert one.together.success == other.together.success == whole.together.success


def test_a_function_is_asked_by_as_many_episodes_at_a_time_as_it_allows() -> None:
    together = threading.Barrier(48, timeout=240)

    def answer(messages: Any) -> str:
        together.wait()
        return "no"

    results = evaluate("qa:Sample", FunctionModel(answer, "patient", most_at_once=48), tasks=24, repeats=2)
    assert results.together.episodes.finished == 48


def test_the_hash_of_prompts_says_whether_the_same_was_asked() -> None:
    plain = [evaluate(GAME, model, tasks=3).together.prompts for model in (player, load_model("random"))]
    other = evaluate(Entry(id=GAME, tasks=3, system_prompt="Be brief."), player).together.prompts
    assert plain[0] == plain[1] != other


class Half(Env):
    def reset(self, seed: int | None = None, **options: Any) -> Any:
        super().reset(seed=seed)
        return "say \ud800", {}

    def step(self, action: str) -> Any:
        return "", 1.0, True, False, {"success": True}

    def sample_random_action(self) -> str:
        return "go"


def test_an_observation_may_have_half_a_character(tmp_path: Path) -> None:
    gem_core.register("demo-eval:Half-v0", Half)
    results = evaluate("demo-eval:Half-v0", FunctionModel(lambda messages: "go", "go"), tasks=2, output=tmp_path)
    assert results.together.episodes.finished == 2


def test_it_can_be_awaited() -> None:
    assert asyncio.run(evaluate_async(GAME, player, tasks=3)).together.tasks == 3


class Broken(Env):
    """Fails in every third task."""

    def reset(self, seed: int | None = None, **options: Any) -> Any:
        super().reset(seed=seed)
        self.bad = self.rng.random() < 0.3
        return "say something", {}

    def step(self, action: str) -> Any:
        if self.bad:
            raise RuntimeError("no such level")
        return "", 1.0, True, False, {"success": True}

    def sample_random_action(self) -> str:
        return "go"


def test_what_a_policy_does_wrong_is_counted_as_its_own_fault(tmp_path: Path) -> None:
    ends = {
        0: Reply("", context_full=True),
        1: Reply("\\boxed{1", truncated=True),
        2: Reply(""),
        3: Reply("\\boxed{0}"),
    }
    seen: dict[str, int] = {}

    def answer(messages: Any) -> Reply:
        return ends[seen.setdefault(messages[0]["content"], len(seen))]

    results = evaluate("math:Sample", FunctionModel(answer, "clumsy", most_at_once=1), tasks=4, output=tmp_path)
    summary = results["math:Sample"]
    assert summary.policy_faults == {"context_full": 1, "cut_off": 1, "unusable": 1}
    assert (summary.episodes.finished, summary.episodes.failed, summary.success.value) == (4, 0, 0.0)
    assert read_saved(tmp_path).together.policy_faults == summary.policy_faults
    assert (
        "ended by the policy's own fault, and counted: 1 with a full context, 1 with a response that was cut off, "
        "1 with a response that the environment could not use"
    ) in (tmp_path / "report.md").read_text()


def test_failures_are_told_apart_and_in_the_range_of_success(tmp_path: Path) -> None:
    gem_core.register("demo-eval:Broken-v0", Broken)
    deaf = [True]

    def answer(messages: Any) -> str:
        if deaf[0] and len(messages) == 1 and messages[0]["content"].startswith("Guess"):
            raise ConnectionError("gone")
        return "1"

    entries = [Entry(id="demo-eval:Broken-v0", tasks=20), Entry(id=GAME, tasks=5)]
    results = evaluate(entries, FunctionModel(answer, "deaf"), output=tmp_path)
    broken, game = results["demo-eval:Broken-v0"], results[GAME]
    failed = broken.episodes.failed_environment
    assert 0 < failed < 20
    assert (broken.episodes.finished, broken.episodes.left, broken.success.value) == (20 - failed, 0, 1.0)
    assert broken.success.at_least.value == pytest.approx((20 - failed) / 20)
    assert (broken.success.at_most.value, broken.success.too_many) == (1.0, True)
    assert str(broken.success).startswith(f"{(20 - failed) / 20:.3f} to 1.000 with failed [")
    assert (game.episodes.failed_endpoint, game.success) == (5, None)
    assert {one.fault: one.error for one in read_failures(tmp_path)} == {
        "endpoint": "deaf raised ConnectionError: gone",
        "environment": "RuntimeError: no such level",
    }
    assert "no such level" in (tmp_path / "report.md").read_text()
    deaf[0] = False
    assert evaluate(entries, FunctionModel(answer, "deaf"), output=tmp_path)[GAME].episodes.failed == 5
    again = evaluate(entries, FunctionModel(answer, "deaf"), output=tmp_path, retry_failed=True)
    assert again[GAME].episodes.finished == 5
    assert again["demo-eval:Broken-v0"].episodes == broken.episodes


class Stuck(Broken):
    """Hangs in its first step."""

    entered, released = threading.Event(), threading.Event()

    def step(self, action: str) -> Any:
        self.entered.set()
        self.released.wait()
        return "", 1.0, True, False, {}


def test_an_environment_that_hangs_does_not_keep_an_evaluation_from_ending() -> None:
    gem_core.register("demo-eval:Stuck-v0", Stuck)

    async def cancelled() -> bool:
        running = asyncio.ensure_future(evaluate_async("demo-eval:Stuck-v0", player, tasks=1))
        await asyncio.to_thread(Stuck.entered.wait, 60)
        running.cancel()
        ended, _ = await asyncio.wait([running], timeout=240)
        Stuck.released.set()
        return bool(ended)

    assert asyncio.run(cancelled())


def test_errors_that_no_encoding_has_are_written_down(tmp_path: Path) -> None:
    def answer(messages: Any) -> str:
        raise ValueError("\ud800")

    evaluate(GAME, FunctionModel(answer, "half"), tasks=1, output=tmp_path)
    assert [one.error for one in read_failures(tmp_path)] == ["half raised ValueError: \\ud800"]


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal")
def test_a_person_sees_what_they_type_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, GAME, "--model", "human", "--tasks", "1", "--output", str(tmp_path / "run")],
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    shown = b""
    while not shown.endswith(b"> "):
        shown += os.read(ours, 1000)
    os.write(ours, b"\\boxed{")
    process.send_signal(signal.SIGINT)
    assert process.wait(120) == 130
    assert b"of 1 episodes" not in shown


def test_a_model_that_never_answers_stops_the_evaluation() -> None:
    def answer(messages: Any) -> str:
        raise ConnectionError("gone")

    with pytest.raises(EvaluationError, match=r"failed in 20 episodes in a row, the last time with: .*gone"):
        evaluate(GAME, FunctionModel(answer, "deaf"), tasks=100)


def called(*codes: str) -> Reply:
    return Reply("", tuple(ToolCall(f"c{n}", "python", json.dumps({"code": code})) for n, code in enumerate(codes)))


def test_function_calls_are_played_one_by_one_with_the_counters_of_training(tmp_path: Path) -> None:
    prompts: list[Any] = []
    replies = [called("print(1 + 1)", "print(2 + 2)"), Reply("\\boxed{4}")]

    async def answer(messages: Any) -> Reply:
        prompts.append([*messages])
        return replies[len(prompts) - 1]

    entry = Entry(id="math:Sample", tasks=1, tools=["python:Interpreter"], tool_form="native")
    summary = evaluate(entry, FunctionModel(answer, "caller"), output=tmp_path).together
    assert (summary.tool_calls, summary.tool_success_share, summary.turns) == (2.0, 1.0, 3.0)
    asked, first, second = prompts[1][1:]
    assert [one["id"] for one in asked["tool_calls"]] == ["c0", "c1"]
    assert (first["tool_call_id"], second["tool_call_id"]) == ("c0", "c1")
    assert "2" in first["content"]
    assert "4" in second["content"]
    [played] = read_episodes(tmp_path)
    assert [turn.info.get("tool_use_counter") for turn in played.episode.turns] == [1, 2, 2]


def test_calls_that_nobody_has_left_are_answered_and_not_carried_out() -> None:
    prompts: list[Any] = []
    replies = [called("print(1)", "print(2)", "print(3)"), Reply("\\boxed{4}")]

    async def answer(messages: Any) -> Reply:
        prompts.append([*messages])
        return replies[len(prompts) - 1]

    entry = Entry(id="math:Sample", tasks=1, tools=["python:Interpreter"], tool_form="native", max_tool_uses=1)
    assert evaluate(entry, FunctionModel(answer, "caller")).together.tool_calls == 1.0
    answers = [one["content"] for one in prompts[1] if one["role"] == "tool"]
    assert len(answers) == 3
    assert all("was not carried out" in one for one in answers[1:])


@pytest.mark.parametrize(
    "arguments", ["{", "[1]", "null", "", '{"code": 5}', "Infinity", '{"c": 1}', "\ud800", "[" * 10**6]
)
def test_malformed_arguments_are_a_failed_call(arguments: str) -> None:
    replies = iter([Reply("", (ToolCall("c", "python", arguments),)), Reply("\\boxed{4}")])

    async def answer(messages: Any) -> Reply:
        return next(replies)

    entry = Entry(id="math:Sample", tasks=1, tools=["python:Interpreter"], tool_form="native")
    summary = evaluate(entry, FunctionModel(answer, "caller")).together
    assert (summary.tool_calls, summary.tool_success_share, summary.turns) == (1.0, 0.0, 2.0)


def test_calls_in_the_text_are_played_as_in_training() -> None:
    replies = iter(["<python>print(6 * 7)</python>", "\\boxed{42}"])
    seen: list[Any] = []

    async def answer(messages: Any) -> str:
        seen.append(messages)
        return next(replies)

    entry = Entry(id="math:Sample", tasks=1, tools=["python:Interpreter"])
    assert evaluate(entry, FunctionModel(answer, "caller")).together.tool_calls == 1.0
    assert "<python>" in seen[0][0]["content"]
    assert (seen[1][-1]["role"], "42" in seen[1][-1]["content"]) == ("user", True)


def test_a_short_history_shows_the_last_observations_only() -> None:
    lengths: set[int] = set()

    def answer(messages: Any) -> str:
        lengths.add(len(messages))
        return player(messages)

    evaluate(Entry(id=GAME, tasks=6, history=2, system_prompt="Play."), FunctionModel(answer, "short"))
    assert lengths == {2, 4}


def test_a_suite_names_what_is_played(tmp_path: Path) -> None:
    from gem_evaluation._suites import load_suite, suite_names

    assert {"sample", "games"} <= {*suite_names()}
    for name in suite_names():
        assert all(gem_core.spec(entry.id) for entry in load_suite(name))
    path = tmp_path / "own.toml"
    path.write_text(
        'repeats = 2\n[[entries]]\nid = "qa:Sample"\ntasks = 3\n[[entries]]\nid = "math:Sample"\ntasks = 2\n'
    )
    results = evaluate(load_suite(str(path)), FunctionModel(player, "player"))
    assert [(one.label, one.tasks, one.repeats) for one in results.environments] == [
        ("qa:Sample", 3, 2),
        ("math:Sample", 2, 2),
    ]
    path.write_text('[[entries]]\nid = "qa:Sample"\ntask = 3\n')
    with pytest.raises(EvaluationError, match=r"own.toml cannot be read: .*task"):
        load_suite(str(path))


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, cwd=folder, timeout=300)


def test_the_command_goes_on_in_the_same_folder(tmp_path: Path) -> None:
    arguments = [GAME, "--model", "random", "--tasks", "5"]
    first = run(*arguments, folder=tmp_path)
    assert first.returncode == 0, first.stderr
    assert GAME in first.stdout
    done = run(*arguments, "--repeats", "2", "--json", folder=tmp_path)
    [folder] = (tmp_path / "evals").iterdir()
    assert json.loads(done.stdout)["environments"][0]["episodes"]["finished"] == 10
    assert read_saved(folder).together.episodes.finished == 10


@pytest.mark.parametrize(("allowed", "status"), [("0.05", 1), ("0.25", 0)])
def test_the_exit_status_says_that_too_many_failed(tmp_path: Path, allowed: str, status: int) -> None:
    (tmp_path / "deaf.py").write_text(
        "count = 0\ndef answer(messages):\n    global count\n    count += 1\n"
        "    if count in (2, 5):\n        raise OSError('gone')\n    return 'what'\n"
    )
    done = run(GAME, "--model", "deaf:answer", "--tasks", "10", "--fail-on-error", allowed, folder=tmp_path)
    assert done.returncode == status, done.stderr
    assert "2 episodes failed. Success has a range that includes them" in done.stderr
    text = " ".join(done.stdout.split())
    assert "0.0 to 20.0 % with failed" in text
    assert ("0.0 %, 0.0 to" in text) is (status == 0)


def test_the_exit_status_says_that_nothing_could_be_finished(tmp_path: Path) -> None:
    (tmp_path / "deaf.py").write_text("def answer(messages):\n    raise OSError('gone')\n")
    done = run(GAME, "--model", "deaf:answer", "--tasks", "3", folder=tmp_path)
    assert done.returncode == 1
    why = "The most common error: deaf:answer raised OSError: gone"
    assert f"3 episodes failed. Success has a range that includes them; no other number does. {why}" in done.stderr


def test_the_endpoints_file_gives_model_url_and_prices(tmp_path: Path) -> None:
    with ChatServer(guess).running() as server:
        (tmp_path / "endpoints.toml").write_text(
            f'[near]\nmodel = "stub"\nbase_url = "{server.url}"\nprompt_price = 1000.0\n[near.options]\ntop_p = 0.5\n'
        )
        done = run(GAME, "--model", "near", "--tasks", "2", "--temperature", "0.1", "--json", folder=tmp_path)
        assert done.returncode == 0, done.stderr
        together = json.loads(done.stdout)["together"]
        assert together["cost"] == pytest.approx(together["prompt_tokens"] * 1e-3)
        assert {(one["top_p"], one["temperature"]) for one in server.requests} == {(0.5, 0.1)}


@pytest.mark.parametrize("repeats", ["1", "2"])
def test_a_seed_of_requests_makes_repeats_alike(tmp_path: Path, repeats: str) -> None:
    with ChatServer(guess).running() as server:
        (tmp_path / "endpoints.toml").write_text(
            f'[near]\nmodel = "stub"\nbase_url = "{server.url}"\n[near.options]\nseed = 1\n'
        )
        done = run(GAME, "--model", "near", "--tasks", "1", "--repeats", repeats, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert ("pass@k is pass@1" in " ".join(done.stderr.split())) is (repeats == "2")


def test_an_alias_with_another_url_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "endpoints.toml").write_text('[near]\nmodel = "stub"\nbase_url = "http://one/v1"\n')
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EvaluationError, match=r"'near' .* endpoints\.toml, and http://two/v1 was given as well"):
        load_model("near", base_url="http://two/v1")
    assert load_model("far", base_url="http://two/v1").identity["base_url"] == ["http://two/v1"]


def test_the_run_has_the_versions_of_what_could_change_a_number(tmp_path: Path) -> None:
    with ChatServer(guess).running() as server:
        evaluate(GAME, load_model("stub", base_url=server.url), tasks=1, output=tmp_path)
    identity = read_identity(tmp_path)
    assert identity["versions"]["numpy"] == version("numpy")


@pytest.mark.parametrize("suite", ["math", "qa"])
def test_a_suite_whose_data_cannot_be_loaded_says_so_in_a_line(suite: str, tmp_path: Path) -> None:
    pytest.importorskip("datasets")
    offline = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "cache")}
    arguments = [*COMMAND, "--suite", suite, "--model", "random"]
    done = subprocess.run(arguments, capture_output=True, text=True, cwd=tmp_path, timeout=300, env=offline)
    assert done.returncode == 1
    [error] = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert "could not be loaded from the Hugging Face hub or its cache" in error
    assert "load it once on a machine with network" in error
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "evals").exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("base_url = []", "base_url has no URL"),
        ("options = {stream = true}", "options cannot have stream"),
        ("options = {since = 2024-01-01}", "date is not JSON serializable"),
    ],
)
def test_an_endpoint_that_cannot_be_asked_is_refused(line: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(f'[near]\nmodel = "stub"\n{line}\n')
    with pytest.raises(EvaluationError, match=said):
        load_model("near", endpoints=path)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([GAME], "say which model: --model NAME"),
        (["--model", "random"], "nothing to evaluate"),
        (["game:Nothing-v0", "--model", "random"], "game:Nothing-v0"),
        ([GAME, GAME, "--model", "random"], "named twice"),
        ([GAME, "--model", "random", "--env-kwargs", "{"], "is no JSON"),
        ([GAME, "--model", "random", "--env-kwargs", '{"levels": 3}'], "levels"),
        ([GAME, "--model", "random", "--concurrency", "many"], "neither auto nor a number"),
        ([GAME, "--model", "no_such_module:play"], "cannot be imported"),
        ([GAME, "--model", "x", "--endpoints", "nowhere.toml"], "nowhere.toml cannot be read"),
        (["--suite", "sampel", "--model", "random"], "sample"),
        ([GAME, "--model", "random", "--tools", "no:tool"], "no:tool"),
        (["runn", GAME, "--model", "random"], "no command and no environment 'runn'. Did you mean 'run'?"),
        (["regrad", "evals/x"], "no command and no environment 'regrad'. Did you mean 'regrade'?"),
        ([GAME, "--model", "random", "--temperature", "0.5"], "random takes no options, so temperature=0.5"),
        ([GAME, "--model", "human", "--max-tokens", "9"], "human takes no options, so max_tokens=9"),
        ([GAME, "--model", "json:dumps", "--max-tokens", "9"], "json:dumps takes no options, so max_tokens=9"),
        ([GAME, "--model", "x", "--base-url", "http://x/v1", "--endpoints", "own.toml"], "Leave out --base-url"),
    ],
)
def test_wrong_use_is_answered_in_a_line(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["eval", *arguments])
    assert done.exit_code != 0
    assert isinstance(done.exception, SystemExit)  # otherwise the program would end with a traceback
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "evals").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([GAME], "say which model: --model NAME"),
        ([GAME, "--model", "no_such_module:play"], "cannot be imported"),
        (["runn", GAME, "--model", "random"], "no command and no environment 'runn'. Did you mean 'run'?"),
    ],
)
def test_wrong_use_of_the_program(arguments: list[str], said: str, tmp_path: Path) -> None:
    """A few of these in processes of their own."""
    done = run(*arguments, folder=tmp_path)
    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "evals").exists()


def rambling(messages: Any) -> Reply:
    return Reply("I think that it is", truncated=True)


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_score_without_a_success_is_explained(tmp_path: Path, form: str) -> None:
    options = ["--model", f"{__name__}:rambling", "--tasks", "2", "--output", str(tmp_path)]
    done = CliRunner().invoke(app, ["eval", GAME, "math:Sample", *options, *(["--json"] if form == "json" else [])])
    assert done.exit_code == 0, done.output
    report = (tmp_path / "report.md").read_text()
    warned = [line for line in done.stderr.splitlines() if line.startswith("Warning: ")]
    shown = open_records(tmp_path).warnings
    assert len(warned) == len(shown) == 2
    for line, text, env_id in zip(warned, shown, (GAME, "math:Sample"), strict=True):
        fact = f"{env_id}: all responses were cut off at "
        assert line.startswith(f"Warning: {fact}max_tokens; the first was 'I think that it is'. Next: raise max_tokens")
        assert f"**Warning:** {fact}max_tokens; the first was" in report
        assert text.startswith(f"{fact}the token limit of a response; the first was 'I think that it is'.")
    if form == "json":
        assert json.loads(done.stdout)["together"]["truncated_share"] == 1.0
    else:
        assert done.stdout.count("100 % of turns") == 6, "cut off and invalid, of each and of both"


def test_a_score_that_needs_no_explanation_has_none(tmp_path: Path) -> None:
    evaluate(GAME, load_model("random"), tasks=3, output=tmp_path)
    report = (tmp_path / "report.md").read_text()
    for word in ("Warning", "| cut off |", "| invalid |"):
        assert word not in report
    assert open_records(tmp_path).warnings == []


def test_the_progress_line_has_the_shares_of_turns_that_were_of_no_use(tmp_path: Path) -> None:
    model = FunctionModel(rambling, "rambling", most_at_once=1)
    evaluate(GAME, model, tasks=2, output=tmp_path)
    with Store(tmp_path, read_identity(tmp_path)) as store:
        line = Progress(store, model, {GAME: (2, 1)}).line()
    assert ", cut off 100 % of turns, invalid 100 % of turns" in line
