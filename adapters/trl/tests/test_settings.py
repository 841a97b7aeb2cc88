"""Settings that cannot work, or would silently change the algorithm, are refused."""

from __future__ import annotations

import importlib.metadata
import textwrap

import pytest
import torch
from transformers import HfArgumentParser, TrainerCallback

import gem_trl
from gem_core.errors import (
    EnvKwargsError,
    FrameworkVersionError,
    NotFoundError,
    PluginError,
    SettingsError,
    TemplateError,
)
from gem_train.records import read_episodes
from gem_trl import _config

SEVERAL = {"gradient_accumulation_steps": 1, "steps_per_generation": 2}
SAVED = {"save_strategy": "steps", "max_steps": 6}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"loss_type": "grpo"}, "silently change"),
        ({"loss_type": "bnpo"}, "dr_grpo"),
        ({"mask_truncated_completions": True}, "invalid actions"),
        ({"importance_sampling_level": "sequence"}, "row='turn'"),
        ({"vllm_importance_sampling_mode": "sequence_mask"}, "row='turn'"),
        ({"off_policy_mask_threshold": 0.5}, "row='turn'"),
        ({"row": "turn", "beta": 0.1}, "row='episode'"),
        ({"row": "turn", "log_completions": True}, "row='episode'"),
        ({"advantage": "grpo", "scale_rewards": "none"}, "drgrpo"),
        ({"history": 1}, "row='turn'"),
        ({"advantage": "grpo", "num_generations": 1}, "at least 2"),
        ({"advantage": "grpo", "num_generations": 3}, "groups of num_generations=3"),
        ({"row": "turns", "beta": 0.1}, "row='turns' is not one of episode, turn. Did you mean 'turn'"),
        ({"row": "Episode", "history": 2}, "row='Episode' is not one of episode, turn. Did you mean 'episode'"),
        ({"env_kwargs": "raise_every=3"}, "env_kwargs='raise_every=3': .*not a JSON object"),
        ({"vector_workers": 0}, "vector_workers=0: Expected `int` >= 1"),
        ({"vector_backend": "sync", "vector_workers": 2}, "vector_workers=2 has no effect with vector_backend='sync'"),
        ({"eval_episodes": 0}, "eval_episodes=0: Expected `int` >= 1"),
        ({"env": ["a", "b"], "env_weights": [float("inf"), 1.0]}, "one weight above 0"),
        ({"max_concurrent": 3}, "max_concurrent cannot be set here. Use per_device_train_batch_size"),
        ({"lam": 1.5}, "lam=1.5"),
        ({"top_k": 50}, "top_k=50 samples from another policy.*silently change.*Use -1"),
        ({"top_p": 0.9}, "top_p=0.9 samples from another policy.*Use 1"),
        ({"min_p": 0.1}, "min_p=0.1 samples from another policy"),
        ({"repetition_penalty": 1.1}, "repetition_penalty=1.1 samples"),
        ({"temperature": 0.0}, "temperature has to be above 0"),
        ({"generation_kwargs": {"top_p": 0.5}}, "generation_kwargs={'top_p': 0.5} samples"),
        ({"generation_kwargs": {"temperature": 0.5}}, "Set temperature only"),
        ({"max_steps": -1}, "no epochs"),
        (
            {"num_iterations": 2},
            "max_steps=1 is not a multiple of 2, .*the rest of the last batch would not be trained",
        ),
        ({**SEVERAL, "max_steps": 3}, "max_steps=3 is not a multiple of 2"),
        ({**SEVERAL, "num_iterations": 2, "max_steps": 6}, "max_steps=6 is not a multiple of 4"),
        ({**SAVED, **SEVERAL, "save_steps": 1}, "save_steps=1 is not a multiple of 2, .*no checkpoint has the rest"),
        ({**SAVED, **SEVERAL, "save_steps": 0.1}, "save_steps=0.1 is not a multiple of 2"),
        ({**SAVED, "steps_per_generation": 3, "save_steps": 4}, "save_steps=4 is not a multiple of 3"),
        ({"gamma": 1.5}, "gamma=1.5: Expected `float` <= 1.0"),
        ({"env": []}, "no environment"),
        ({"env_weights": [1.0, 2.0]}, "env_weights=.*for env=.*give each environment one weight"),
        ({"min_generation_batch": 0}, "min_generation_batch=0"),
        ({"env_timeout": 0}, "env_timeout=0: Expected `float` > 0"),
        ({"env_timeout": "soon"}, "env_timeout='soon' is not a number, and not None"),
        ({"env_timeout": "-1"}, "env_timeout=-1.0: Expected `float` > 0"),
        ({"max_env_failure_share": 1.0}, "max_env_failure_share=1.0: Expected `float` < 1.0"),
        ({"env_retries": -1}, "env_retries"),
        ({"env_failure": "retry"}, "env_failure='retry' is not one of truncate, drop, raise"),
    ],
)
def test_refused(settings, changes, words):
    with pytest.raises(SettingsError, match=words):
        settings(**changes)


@pytest.mark.parametrize(
    ("changes", "multiple"),
    [
        ({**SEVERAL, "num_iterations": 2}, 4),
        ({"steps_per_generation": 3}, 3),
        # An epoch of TRL's sampler has 3 x 3 micro-batches, so its last update is one of 1.
        ({"steps_per_generation": 3, "advantage": "grpo", "num_generations": 3}, 5),
    ],
)
def test_batches_are_trained_on_whole_after_a_multiple(trainer, changes, multiple):
    updates = 2 * multiple
    whole: set[int] = set()

    class Watch(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            if run._step % (args.steps_per_generation * args.num_iterations) == 0:  # TRL asks for the next batch
                whole.add(state.global_step)

    run = trainer(max_steps=updates, extra={"callbacks": [Watch()]}, **changes)
    run.train()
    fitting = [one for one in range(1, updates) if {*range(one, updates + 1, one)} <= whole]
    assert run.args.whole_batches == min(fitting) == multiple


def test_checkpoints_are_where_batches_are_whole(settings):
    settings(**SAVED, **SEVERAL, save_steps=2)
    settings(**SAVED, **SEVERAL, save_steps=1 / 3)
    settings(**SAVED, **SEVERAL, save_steps=501)  # never
    settings(save_strategy="no", **SEVERAL, save_steps=1, max_steps=4)


def test_a_checkpoint_between_the_updates_of_a_batch_is_refused(trainer, tmp_path):
    trainer(**{**SAVED, "max_steps": 2}, save_steps=1).train()
    again = trainer(**SAVED, **SEVERAL, save_steps=2)
    with pytest.raises(SettingsError, match=r"the checkpoint of update 1 is between .* a multiple of 2 updates"):
        again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-1"))
    again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    assert again.state.global_step == 6


def test_num_generations_is_irrelevant_without_groups(settings):
    assert settings(advantage="rebn", num_generations=7).group_size == 1
    assert settings(advantage="rebn", per_device_train_batch_size=5, gradient_accumulation_steps=1).group_size == 1


def test_environment_arguments_as_text_reach_the_environment(trainer):
    run = trainer(env="game:Corridor-v0", env_kwargs='{"max_turns": 2}', max_completion_length=1)
    run.train()
    assert run.state.log_history[0]["episode/turns"] <= 2
    with pytest.raises(EnvKwargsError, match="Did you mean 'max_turns'"):
        trainer(env="game:Corridor-v0", env_kwargs='{"max_turn": 2}')


def test_every_environment_is_played(trainer):
    with pytest.raises(SettingsError, match="3 environment ids for 2 slots"):
        trainer(
            env=["test:Babble-v0", "game:Corridor-v0", "test:Fragile-v0"],
            per_device_train_batch_size=2,
            gradient_accumulation_steps=1,
        ).train()


def test_weights_share_the_slots_of_all_processes(trainer):
    run = trainer(env=["test:Babble-v0", "game:Corridor-v0"], env_weights=[3.0, 1.0])
    run.train()
    logged = run.state.log_history[0]
    assert (logged["env/test:Babble-v0/episodes"], logged["env/game:Corridor-v0/episodes"]) == (6.0, 2.0)
    assert logged["env/game:Corridor-v0/turns"] > 0


def test_response_limit_must_fit_the_context(trainer):
    with pytest.raises(SettingsError, match="no room for a prompt"):
        trainer(max_completion_length=5000)


def test_command_line_strings_become_values(tmp_path):
    """As `HfArgumentParser`, with which TRL's own scripts read a command line."""
    line = (
        f'--output_dir {tmp_path} --env a b --env_weights 1 3 --env_kwargs {{"max_turns":3}} --row turn --history 2 '
        "--env_failure drop --no_truncated_is_invalid --max_steps 1"
    )
    (args,) = HfArgumentParser(gem_trl.TurnGRPOConfig).parse_args_into_dataclasses(line.split())
    assert (args.output_dir, args.env, args.env_weights, args.env_kwargs) == (
        str(tmp_path), ["a", "b"], [1.0, 3.0], {"max_turns": 3}
    )  # fmt: skip
    assert (args.row, args.history, args.env_failure, args.truncated_is_invalid) == ("turn", 2, "drop", False)
    assert (args.seed, args.gamma, args.chat_template_kwargs) == (42, 1.0, {})


@pytest.mark.parametrize(("text", "value"), [("None", None), ("none", None), ("0.25", 0.25)])
def test_no_limit_on_a_command_line(tmp_path, text, value):
    line = f"--output_dir {tmp_path} --env a --max_steps 1 --env_timeout {text} --max_env_failure_share {text}"
    (args,) = HfArgumentParser(gem_trl.TurnGRPOConfig).parse_args_into_dataclasses(line.split())
    assert (args.env_timeout, args.max_env_failure_share) == (value, value)
    assert (args.failures.timeout, args.failures.max_failure_share) == (value, value)


def test_modules_and_wrappers_are_loaded(trainer, tmp_path, monkeypatch):
    module = """
        import gem_core
        from gem_games.corridor import Corridor
        gem_core.register("test:Imported-v0", Corridor)
        def shout(env):
            env.shouting = True
            return env
    """
    (tmp_path / "brings_an_environment.py").write_text(textwrap.dedent(module))
    monkeypatch.syspath_prepend(tmp_path)
    run = trainer(env="test:Imported-v0", modules="brings_an_environment", wrappers="brings_an_environment:shout")
    run.train()
    assert run.state.log_history[0]["rollout/episodes"] == 8.0
    with pytest.raises(SettingsError, match="cannot import 'no_such_module'"):
        trainer(modules="no_such_module")


def test_report_and_records_are_written(trainer, tmp_path):
    trainer(report=str(tmp_path / "report"), record="full").train()
    assert {one.name for one in (tmp_path / "report").iterdir()} == {"metrics.jsonl", "curve.png", "records"}
    assert len([*read_episodes(tmp_path / "report")]) == 8


def test_records_need_a_folder(settings):
    with pytest.raises(SettingsError, match="record='full' has no folder: give record_folder or report"):
        settings(record="full")


def test_dropped_failures_are_counted_as_failures(trainer):
    """With `drop` as with `truncate`: the metric does not depend on how a failure is handled."""
    counts = {}
    for action in ("truncate", "drop"):
        run = trainer(
            env="test:Fragile-v0", env_failure=action, max_env_failure_share=None, per_device_train_batch_size=16
        )
        run.train()
        logged = run.state.log_history[0]
        counts[action] = logged["env/errors"]
        assert logged["stop/env_error"] == pytest.approx(logged["env/errors"] / 32)
    assert counts["drop"] == counts["truncate"] > 0


def test_unknown_plugin(trainer):
    with pytest.raises(PluginError, match="no plugin named 'nobody'"):
        trainer(plugins=["nobody"])


def test_values_without_gae_are_refused(trainer):
    with pytest.raises(SettingsError, match="does not use values"):
        trainer(extra={"value_function": lambda episodes: []})


def test_unknown_estimator_suggests_the_nearest_name(settings):
    with pytest.raises(NotFoundError, match="Did you mean 'rebn'"):
        settings(advantage="rebm")


def test_unknown_environment_and_argument(trainer, settings):
    from gem_tiny import tiny_model, tiny_tokenizer

    tokenizer = tiny_tokenizer(["game:Corridor-v0"])
    with pytest.raises(NotFoundError, match="GuessTheNumber-v0-easy"):
        gem_trl.TurnGRPOTrainer(tiny_model(tokenizer), settings(env="game:GuessTheNumber-v0-eazy"), tokenizer)
    with pytest.raises(EnvKwargsError, match="max_turns"):
        trainer(env="game:GuessTheNumber-v0-easy", env_kwargs={"max_turn": 3})


def test_tokenizer_without_chat_template(settings):
    from gem_tiny import tiny_model, tiny_tokenizer

    tokenizer = tiny_tokenizer(["game:Corridor-v0"])
    tokenizer.chat_template = None
    with pytest.raises(TemplateError, match="chat template"):
        gem_trl.TurnGRPOTrainer(tiny_model(tokenizer), settings(), tokenizer)


def test_evaluation_must_fill_batches(trainer):
    with pytest.raises(SettingsError, match="eval_episodes=10"):
        trainer(eval_episodes=10, per_device_eval_batch_size=4).evaluate()


@pytest.mark.parametrize("version", ["1.15.0", "2.0.0"])
def test_trl_out_of_range(monkeypatch, version):
    real = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: version if name == "trl" else real(name))
    with pytest.raises(FrameworkVersionError, match=rf"supports trl>=1.16,<2, but {version}.*\[trl\]"):
        _ = gem_trl.TurnGRPOTrainer


def test_trl_missing(monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(FrameworkVersionError, match="not installed"):
        _ = gem_trl.TurnGRPOConfig


@pytest.mark.skipif(torch.accelerator.is_available(), reason="of a machine without an accelerator")
def test_a_cpu_computes_in_float32_and_keeps_activations(settings, monkeypatch, caplog):
    monkeypatch.setattr(_config, "computes_bf16", lambda: False)
    args = settings()
    assert (args.bf16, args.gradient_checkpointing) == (False, False)
    assert not caplog.records
    assert settings(bf16=True).bf16
    assert "no bfloat16 arithmetic" in caplog.text
