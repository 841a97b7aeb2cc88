"""Settings that cannot work, or would silently change the algorithm, say so."""

from __future__ import annotations

import importlib.metadata

import pytest

import gem_trl
from gem_core.errors import (
    EnvKwargsError,
    FrameworkVersionError,
    NotFoundError,
    PluginError,
    SettingsError,
    TemplateError,
)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"loss_type": "grpo"}, "silently change"),
        ({"loss_type": "bnpo"}, "dr_grpo"),
        ({"mask_truncated_completions": True}, "invalid actions"),
        ({"importance_sampling_level": "sequence"}, "view='turn'"),
        ({"vllm_importance_sampling_mode": "sequence_mask"}, "view='turn'"),
        ({"off_policy_mask_threshold": 0.5}, "view='turn'"),
        ({"view": "turn", "beta": 0.1}, "view='episode'"),
        ({"view": "turn", "log_completions": True}, "view='episode'"),
        ({"advantage": "grpo", "scale_rewards": "none"}, "drgrpo"),
        ({"history": 1}, "view='turn'"),
        ({"advantage": "grpo", "num_generations": 1}, "at least 2"),
        ({"advantage": "grpo", "num_generations": 3}, "groups of num_generations=3"),
        ({"max_steps": -1}, "no epochs"),
        ({"gamma": 1.5}, "between 0 and 1"),
        ({"env": []}, "no environment"),
        ({"env_weights": [1.0, 2.0]}, "2 env_weights for 1 environments"),
        ({"min_generation_batch": 0}, "min_generation_batch=0"),
        ({"env_timeout": 0}, "timeout must be None or above 0"),
        ({"env_retries": -1}, "env_retries"),
        ({"env_failure": "retry"}, "would never end"),
    ],
)
def test_refused(settings, changes, words):
    with pytest.raises(SettingsError, match=words):
        settings(**changes)


def test_num_generations_is_irrelevant_without_groups(settings):
    assert settings(advantage="rebn", num_generations=7).group_size == 1
    assert settings(advantage="rebn", per_device_train_batch_size=5, gradient_accumulation_steps=1).group_size == 1


def test_environment_arguments_as_text_reach_the_environment(trainer):
    run = trainer(env="game:Corridor-v0", env_kwargs='{"max_turns": 2}', max_completion_length=1)
    run.train()
    assert run.state.log_history[0]["episode/turns"] <= 2
    with pytest.raises(EnvKwargsError, match="Did you mean 'max_turns'"):
        trainer(env="game:Corridor-v0", env_kwargs='{"max_turn": 2}')


def test_every_environment_gets_a_turn(trainer):
    with pytest.raises(SettingsError, match="3 environment ids for 2 places"):
        trainer(
            env=["test:Babble-v0", "game:Corridor-v0", "test:Fragile-v0"],
            per_device_train_batch_size=2,
            gradient_accumulation_steps=1,
        ).train()


def test_weights_share_the_places_of_all_processes(trainer):
    run = trainer(env=["test:Babble-v0", "game:Corridor-v0"], env_weights=[3.0, 1.0])
    run.train()
    logged = run.state.log_history[0]
    assert (logged["env/test:Babble-v0/episodes"], logged["env/game:Corridor-v0/episodes"]) == (6.0, 2.0)
    assert logged["env/game:Corridor-v0/turns"] > 0


def test_response_limit_must_fit_the_context(trainer):
    with pytest.raises(SettingsError, match="no room for a prompt"):
        trainer(max_completion_length=5000)


def test_unknown_plugin(trainer):
    with pytest.raises(PluginError, match="no plugin named 'nobody'"):
        trainer(plugins=["nobody"])


def test_gae_needs_a_critic(trainer):
    with pytest.raises(SettingsError, match="value_function"):
        trainer(advantage="gae")
    with pytest.raises(SettingsError, match="does not use values"):
        trainer(extra={"value_function": lambda episodes: []})


def test_unknown_estimator_names_the_near_match(settings):
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
    with pytest.raises(FrameworkVersionError, match=rf"supports trl>=1.16,<2, but {version}.*gem-core\[trl\]"):
        _ = gem_trl.TurnGRPOTrainer


def test_trl_missing(monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(FrameworkVersionError, match="not installed"):
        _ = gem_trl.TurnGRPOConfig
