"""Settings that cannot work, or would silently change the algorithm, are refused before anything starts."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import gem_openrlhf
from gem_core.errors import EnvKwargsError, FrameworkVersionError, NotFoundError, PluginError, SettingsError
from gem_core.failures import ErrorAction
from gem_openrlhf._checks import OURS, check, check_flags
from gem_openrlhf._tasks import TaskLabel, write_tasks
from gem_openrlhf.settings import OpenRLHFSettings, parse, usage

ENV = ["--gem.env", "test:Babble-v0", "--gem.steps", "2"]
TWO = ["--gem.env", "test:Babble-v0", "game:Corridor-v0"]
TURN = ["--gem.row", "turn"]


@pytest.fixture
def checked(arguments: Callable[..., SimpleNamespace]) -> Callable[..., OpenRLHFSettings]:
    """A function that checks a command line."""

    def run(*flags: str) -> OpenRLHFSettings:
        settings, rest = parse([*ENV, *flags])
        check_flags(rest)
        return check(settings, arguments(*rest))

    return run


def test_accepted(checked):
    checked()
    checked(*TURN, "--gem.history", "1")
    checked("--rollout.temperature", "0.7")
    checked("--rollout.vllm_generate_batch_size", "8", "--reward.overlong_buffer_len", "4")
    checked("--gem.advantage", "grpo", "--rollout.n_samples_per_prompt", "2", "--train.batch_size", "16")
    settings = checked("--train.async_enable", "--gem.advantage", "gae", "--algo.advantage.lambd", "0.9")
    assert (settings.gamma, settings.lam) == (1.0, 0.9)
    assert checked("--gem.max_staleness", "3").max_staleness == 3
    checked("--gem.max_staleness", "3", "--train.async_enable", "--train.async_queue_size", "3")


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (
            ["--gem.max_staleness", "2", "--train.async_enable"],
            "--gem.max_staleness 2 lets 2 batches be ahead, but --train.async_queue_size is 1",
        ),
        (["--gem.max_staleness", "1", "--train.max_epochs", "2"], "--gem.max_staleness 1 is less than the 2 updates"),
        (["--gem.filter_groups", "success"], "Use --algo.dynamic_filtering_enable"),
        (["--gem.correction", "tis"], "Use --algo.advantage.is_correction_level"),
        # the run
        (["--gem.steps", "0"], "--gem.steps 0: Expected `int` >= 1"),
        (["--train.num_episodes", "2"], "same tasks again; use --gem.steps. Leave it out"),
        (["--data.max_samples", "100"], "environments never run out of tasks"),
        (["--rollout.batch_size", "9"], "9 episodes of a batch .* not a multiple of --train.batch_size 8"),
        (["--rollout.max_new_tokens", "0"], "--rollout.max_new_tokens 0: a whole number of at least 1"),
        (["--vllm.num_engines", "0"], "--vllm.num_engines 0"),
        (["--gem.eval_episodes", "0"], "--gem.eval_episodes 0"),
        (["--train.dynamic_batch_enable"], "drops the others"),
        (
            ["--rollout.batch_size", "64", "--train.batch_size", "64", "--train.micro_batch_size", "24"],
            "--train.batch_size 64 is not a multiple of --train.micro_batch_size 24 times 1 data-parallel GPUs",
        ),
        (["--actor.num_gpus_per_node", "3"], "micro_batch_size 1 times 3 data-parallel GPUs"),
        (
            ["--gem.advantage", "gae", "--critic.num_gpus_per_node", "3"],
            "micro_batch_size 1 times 3 data-parallel GPUs",
        ),
        (["--rollout.top_p", "0.9"], "--rollout.top_p 0.9 samples from another policy.*silently change.*Use 1"),
        (["--rollout.temperature", "0"], "--rollout.temperature 0.0: training samples"),
        (["--gem.hystory", "2"], "there is no setting --gem.hystory. Did you mean '--gem.history'"),
        (["--gem.gamma", "0.9"], "--gem.gamma cannot be set here. Use --algo.advantage.gamma"),
        # flags that this adapter sets
        *[([flag, "x"], f"{flag} cannot be used") for flag in OURS],
        (["--algo.advantage.estimator=gae"], "use --gem.advantage"),
        # our flags
        ([*TWO, "--gem.env_weights", "1"], "give each environment one weight above 0"),
        ([*TWO, "--gem.env_weights", "1", "0"], "one weight above 0"),
        (["--gem.env", "test:Babble-v0", "test:Babble-v0", "--gem.env_weights", "1", "2"], "name each once"),
        (["--gem.history", "1"], "drops .* Use --gem.row turn, or leave --gem.history out"),
        ([*TURN, "--gem.history", "0"], "--gem.history 0: Expected `int` >= 1"),
        (["--data.max_len", "8"], "leaves no room for a prompt"),
        (
            ["--gem.vector_backend", "sync", "--gem.env_timeout", "5"],
            "cannot enforce --gem.env_timeout 5.0; use --gem.vector_backend process",
        ),
        (["--gem.vector_backend", "sync", "--gem.vector_workers", "2"], "--gem.vector_workers 2 has no effect"),
        (["--gem.vector_workers", "0"], "--gem.vector_workers 0: Expected `int` >= 1"),
        (["--gem.max_concurrent", "0"], "--gem.max_concurrent 0: Expected `int` >= 1"),
        ([*TWO, "--gem.max_concurrent", "1"], "--gem.max_concurrent 1: 2 environment ids for 1 slots"),
        (
            [*TWO, "--gem.eval_episodes", "1", "--eval.steps", "1"],
            "--gem.eval_episodes 1: 2 environment ids for 1 slots",
        ),
        (["--gem.eval_env", "game:Corridor-v0"], "has no effect without evaluations, which --eval.steps"),
        (["--gem.env_timeout", "0"], "--gem.env_timeout 0.0: Expected `float` > 0"),
        (["--gem.env_retries", "-1"], "--gem.env_retries -1: Expected `int` >= 0"),
        (["--gem.max_env_failure_share", "1.5"], "--gem.max_env_failure_share 1.5: Expected `float` < 1.0"),
        (["--gem.modules", "no_such_module"], "cannot import 'no_such_module'"),
        (["--gem.wrappers", "json"], "'json'.*not 'package.module:name'"),
        (["--gem.wrappers", "json:nothing"], "cannot load 'json:nothing'"),
        # the algorithm
        (["--algo.advantage.gamma", "1.5"], "--algo.advantage.gamma 1.5: Expected `float` <= 1.0"),
        (["--algo.advantage.lambd", "-0.5"], "--algo.advantage.lambd -0.5: Expected `float` >= 0.0"),
        (["--gem.advantage", "grpo"], "n_samples_per_prompt 1 cannot work"),
        (["--algo.advantage.no_std_norm"], "the estimator decides the scale"),
        (["--actor.loss_agg_mode", "seq-mean-token-mean"], "long answers would count less"),
        (["--actor.policy_loss_type", "gspo"], "treats all tokens of a row as one.*silently change"),
        ([*TURN, "--actor.policy_loss_type", "gspo"], "treats all tokens of a row as one.*silently change"),
        (["--algo.advantage.is_correction_level", "seq"], "treats all tokens of a row as one.*silently change"),
        (["--rollout.vllm_generate_batch_size", "4"], "4 is not --rollout.batch_size 8.*Leave it out"),
        (["--critic.freezing_steps", "2"], "trained on all their batches at once"),
        (["--ds.lora.rank", "16"], "PEFT's names, which no model has"),
        (["--reward.overlong_buffer_len", "9"], "9.0 is above --rollout.max_new_tokens 8"),
        (["--reward.stop_properly_penalty_coef", "1.5"], "1.5 is above 1"),
        (["--eval.steps", "0"], "--eval.steps 0: use -1 for never"),
        (["--ckpt.save_steps", "0"], "--ckpt.save_steps 0: use -1 for never"),
        (["--logger.logging_steps", "0"], "--logger.logging_steps 0: use -1 for never"),
        (["--ckpt.path", "runs/a,b"], "--ckpt.path runs/a,b contains one of"),
        (["--algo.advantage.estim", "gae"], "--algo.advantage.estim cannot be used"),
        (["--reward.remote_url", "http://localhost"], "environments give the rewards"),
        (["--reward.model_name_or_path", "x"], "environments give the rewards"),
        (["--reward.normalize_enable"], "no reward model"),
        (["--gem.env", "visual:Count-v0-easy"], "shows images, and --data.max_images_per_prompt is 0"),
    ],
)
def test_refused(checked, flags, says):
    with pytest.raises(SettingsError, match=says):
        checked(*flags)


def test_unknown_names(checked):
    with pytest.raises(NotFoundError, match=r"game:Corrido-v0.*Did you mean"):
        checked("--gem.env", "game:Corrido-v0")
    with pytest.raises(NotFoundError, match="game:Corrido-v0"):
        checked("--gem.eval_env", "game:Corrido-v0", "--eval.steps", "1")
    with pytest.raises(NotFoundError, match="rebm"):
        checked("--gem.advantage", "rebm")
    with pytest.raises(EnvKwargsError, match="turns"):
        checked("--gem.env_kwargs", '{"turns": 3}')
    with pytest.raises(PluginError):
        checked("--gem.plugins", "nobody")


def test_errors_of_argparse(capsys: pytest.CaptureFixture[str]):
    for flags, says in (
        ([], "the following arguments are required: --gem.env, --gem.steps"),
        ([*ENV, "--gem.row", "step"], "invalid choice: 'step'"),
        ([*ENV, "--gem.seed", "one"], "invalid int value: 'one'"),
        ([*ENV, "--gem.env_timeout", "soon"], "invalid float value: 'soon'"),
        ([*ENV, "--gem.env_kwargs", "[1]"], r"is not a JSON object"),
        ([*ENV, "--gem.env_kwargs", "{"], r"is not a JSON object"),
    ):
        with pytest.raises(SystemExit):
            parse(flags)
        assert says in capsys.readouterr().err


def test_other_flags_are_passed_on(capsys: pytest.CaptureFixture[str], arguments):
    settings, rest = parse([*ENV, "--rollout.batchsize", "16"])
    assert settings == OpenRLHFSettings(env=["test:Babble-v0"], steps=2)
    assert rest == ["--rollout.batchsize", "16"]
    with pytest.raises(SystemExit):  # from OpenRLHF's own parser
        arguments(*rest)


def test_every_setting_has_a_flag():
    values: dict[str, Any] = {
        "env": ["a", "b"], "steps": 3, "env_weights": [1.0, 2.0], "env_limits": [0, 4],
        "env_kwargs": {"max_turns": 3}, "wrappers": ["a:b"],
        "modules": ["c"], "eval_env": ["d"], "eval_episodes": 5, "advantage": "grpo", "row": "turn", "history": 2,
        "compaction": "policy", "thoughts": "drop", "match_cutoff": "drop",
        "system_prompt": "Hi.", "truncated_is_invalid": False, "plugins": ["e"], "vector_backend": "process",
        "vector_workers": 2, "max_concurrent": 6, "env_timeout": None, "env_retries": 1, "env_failure": "drop",
        "max_env_failure_share": None, "seed": 9, "record": "full", "record_share": 0.5,
        "record_folder": "f", "report": "g", "track": ["h"], "max_staleness": 2,
        "chat_template_kwargs": {"enable_thinking": False},
    }  # fmt: skip
    assert {*values} == {*OpenRLHFSettings.offered()}
    flags: list[str] = []
    for name, value in values.items():
        texts = value if isinstance(value, list) else [json.dumps(value) if isinstance(value, dict) else value]
        flags += [f"--gem.{name}", *map(str, texts)] if value is not False else [f"--no-gem.{name}"]
        assert f"--gem.{name}" in usage()
    assert parse(flags) == (OpenRLHFSettings(**values), [])


def test_failures():
    policy = parse([*ENV, "--gem.env_timeout", "none", "--gem.env_failure", "drop", "--gem.env_retries", "2"])[
        0
    ].failures
    assert (policy.timeout, policy.retries, policy.then) == (None, 2, ErrorAction.DROP)


def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.12.0")
    with pytest.raises(FrameworkVersionError, match=r"supports openrlhf>=0\.11,<0\.12, but 0\.12\.0 is installed"):
        _ = gem_openrlhf.launch


def test_tasks_share_each_batch_and_count_their_own_rows(tmp_path: Path):
    settings = OpenRLHFSettings(env=["test:Babble-v0", "game:Corridor-v0"], env_weights=[1.0, 2.0], steps=4, seed=5)
    write_tasks(tmp_path / "new" / "tasks.jsonl", settings, "train", batch=3, count=12, concurrent=7)
    rows = [json.loads(line) for line in (tmp_path / "new" / "tasks.jsonl").open()]
    labels = [TaskLabel.decode(row["label"]) for row in rows]
    tasks = [label.task for label in labels]
    # Batch by batch, in random order within a batch, so that no engine gets all tasks of one environment.
    batches = [[task.task_id for task in tasks[start : start + 3]] for start in range(0, 12, 3)]
    assert [sorted(batch) for batch in batches] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]
    assert batches != [sorted(batch) for batch in batches]
    write_tasks(tmp_path / "again.jsonl", settings, "train", batch=3, count=12, concurrent=7)
    assert (tmp_path / "again.jsonl").read_text() == (tmp_path / "new" / "tasks.jsonl").read_text()
    assert len({row["prompt"] for row in rows}) == 12
    assert all(one.settings == settings and one.max_concurrent == 7 and one.split == "train" for one in labels)
    for start in range(0, 12, 3):
        assert sorted(task.env_id for task in tasks[start : start + 3]) == ["game:Corridor-v0"] * 2 + ["test:Babble-v0"]
    for env_id, count in (("game:Corridor-v0", 8), ("test:Babble-v0", 4)):
        assert sorted(task.data_index for task in tasks if task.env_id == env_id) == [*range(count)]
        assert {row["datasource"] for row, task in zip(rows, tasks, strict=True) if task.env_id == env_id} == {env_id}
