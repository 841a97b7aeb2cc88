"""Settings that are refused before anything starts, and settings derived from the section `gem`, without ROLL."""

from __future__ import annotations

import copy
import runpy
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf
from recorded import AGGREGATIONS, DEFAULTS, GENERATING

from gem_core.errors import EnvKwargsError, GemError, NotFoundError, SettingsError
from gem_roll._completion import completed
from gem_roll.checks import check, check_apart, check_devices, check_keys
from gem_roll.launch import compose
from gem_roll.settings import ROLLSettings

EXAMPLES = Path(__file__).parents[3] / "examples"
YAML = EXAMPLES / "roll_guess_the_number_gpu.yaml"
CONFIG = runpy.run_path(str(EXAMPLES / "roll_guess_the_number.py"))["CONFIG"]


def configuration(*flags: str) -> dict[str, Any]:
    config = OmegaConf.to_container(compose(CONFIG, ["pretrain=none", *flags]), resolve=True)
    assert isinstance(config, dict)
    return config


WHOLE = configuration()


def changed(name: str, value: Any) -> dict[str, Any]:
    config = copy.deepcopy(WHOLE)
    *path, last = name.split(".")
    section = config
    for part in path:
        section = section.setdefault(part, {})
    section[last] = value
    return config


def refusal(name: str, value: Any) -> str:
    with pytest.raises(GemError) as caught:
        check(changed(name, value))
    assert isinstance(caught.value, SettingsError)
    return str(caught.value)


@pytest.mark.parametrize("given", [YAML, CONFIG], ids=["gpu", "cpu"])
def test_the_examples_pass(given: Any):
    config = OmegaConf.to_container(compose(given, ["pretrain=none"]), resolve=True)
    assert isinstance(config, dict)
    settings = check(config)
    assert settings.env == ["game:GuessTheNumber-v0-easy"]
    assert settings.advantage == "rebn"


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("adv_estimator", "grpo", "gem.advantage"),
        ("adv_estimator", "step_reinforce", "gem.advantage"),
        ("reward_normalization.method", "mean_std", "gem.advantage"),
        ("reward_normalization.norm_mean_type", "group", "gem.advantage"),
        ("whiten_advantages", True, "weights turns by their number of tokens"),
        ("whiten_rewards", True, "weights turns by their number of tokens"),
        ("advantage_clip", 0.2, "gem.advantage"),
        ("gamma", 0.99, "per token"),
        ("loss_agg_mode", "seq-mean-token-mean", "long answers would count less"),
        ("batch_adjust_mode", "delete", "remove turns from"),
        ("batch_adjust_mode", "random_sample", "remove turns from"),
        ("batch_adjust_mode", "auto", "remove turns from"),
        ("init_kl_coef", 0.2, "use_kl_loss"),
        ("add_token_level_kl", True, "use_kl_loss"),
        ("use_opd", True, "distillation"),
        ("custom_envs", {"FrozenLake": {}}, "gem.env sets the environments"),
        ("train_env_manager.tags", ["FrozenLake"], "gem.env sets the environments"),
        ("train_env_manager.group_size_redundancy", 2, "favors short episodes"),
        ("train_env_manager.llm_proxy.proxy_type", "openai", "sampled ids"),
        ("train_env_manager.generating_args.top_p", 0.7, "another policy"),
        ("train_env_manager.generating_args.temperature", 0.95, "another policy"),
        ("train_env_manager.generating_args.top_k", 50, "another policy"),
        ("train_env_manager.generating_args.num_beams", 2, "does not sample"),
        ("actor_infer.generating_args", {"max_new_tokens": 8}, "replace the settings of the evaluation"),
        ("actor_train.training_args.gradient_accumulation_steps", 64, "gem.updates"),
        ("actor_train.strategy_args.strategy_name", "megatron_train", "Megatron"),
        ("actor_train.use_dynamic_batching_in_train", True, "changes the number of updates"),
        ("actor_train.apply_loss_scale", False, "micro-batches"),
        ("critic_warmup", 5, "not trained on"),
        ("val_batch_size", 128, "gem.eval_episodes"),
        ("train_env_manager.num_env_groups", 100, "slowest episodes"),
        ("val_env_manager.num_env_groups", 100, "gem.eval_episodes=128"),
        ("rollout_batch_size", 0, "at least 1"),
        ("rollout_batch_size", -1, "at least 1"),
        ("max_steps", -1, "at least 1"),
        ("step_reward_gamma", 1.5, "step_reward_gamma=1.5: Expected `float` <= 1.0"),
        ("sequence_length", 4, "leaves no room"),
        ("gem", {"env": "test:Babble-v0", "max_staleness": 3, "updates": 4}, "gem.max_staleness=3 is less than the 4"),
        ("gem.updates", 0, "gem.updates=0: Expected `int` >= 1"),
        ("ppo_epochs", 0, "at least 1"),
        ("force_disable_old_logprobs_recompute", True, "enable_old_logprobs_recompute"),
        ("actor_train.model_update_frequency", 10, "older weights"),
        ("async_generation_ratio", 1, "older weights"),
        ("actor_train.strategy_args.strategy_config.param_dtype", "bf16", "loses most updates"),
        ("train_env_manager.generating_args.logprobs", None, "one log-probability per token is needed"),
        ("train_env_manager.generating_args.top_p", None, "top_p=0.7 samples from another policy"),
        ("train_env_manager.generating_args.repetition_penalty", 1.2, "another policy"),
        ("whiten_advantages", None, "weights turns by their number of tokens"),
        (
            "val_env_manager.generating_args.max_new_tokens",
            8192,
            "val_env_manager.generating_args.max_new_tokens=8192 with sequence_length",
        ),
        ("pretrain", "???", "pretrain is not set"),
        ("pg_clip_high", 0.28, "has no effect without use_pg_clip_range"),
        ("kl_loss_coef", 0.1, "has no effect without use_kl_loss"),
        ("use_kl_loss", True, "has no effect without kl_loss_coef"),
        ("response_length", 512, "has no effect in ROLL's agentic pipeline"),
        ("gem.advantage", "gae", "critic"),
        ("gem.advantage", "grpo", "group_size=1"),
        ("gem.hystory", 2, "there is no setting gem.hystory. Did you mean 'gem.history'"),
        ("gem.row", "turns", "gem.row=turns is not one of episode, turn. Did you mean 'turn'"),
        ("gem.gamma", 0.9, "gem.gamma cannot be set here. Use step_reward_gamma"),
        ("gem.env", None, "gem-core list"),
        ("gem.history", 2, "gem.row=turn"),
        ("gem.env", "visual:Count-v0-easy", "shows images, and this adapter passes no images to ROLL"),
        ("gem.modules", ["no_such_module"], "gem.modules"),
    ],
)
def test_settings_that_change_the_algorithm_or_do_nothing_are_refused(name: str, value: Any, reason: str):
    assert reason in refusal(name, value)


def test_settings_that_are_refused_in_combination():
    tokens = changed("loss_agg_mode", "token-mean")
    tokens["entropy_loss_coef"] = 0
    check(tokens)
    with pytest.raises(SettingsError, match="tokens of prompts"):
        check({**tokens, "use_kl_loss": True, "kl_loss_coef": 0.1})
    weights = changed("train_infer_correction", {"is_weight": {"enabled": True, "weight_type": "sequence"}})
    with pytest.raises(SettingsError, match="all turns of a row as one response"):
        check(weights)
    weights["gem"]["row"] = "turn"
    check(weights)
    filters = changed("train_infer_correction", {"filters": [{"enabled": True, "agg_type": "geometric"}]})
    with pytest.raises(SettingsError, match="all turns of a row as one response"):
        check(filters)
    filters["gem"]["row"] = "turn"
    check(filters)


def test_training_and_sampling_at_the_same_time_need_different_gpus():
    ahead = ROLLSettings(env=["game:Corridor-v0"], max_staleness=1)
    check_apart(ahead, [0, 1], [2, 3])
    check_apart(ROLLSettings(env=["game:Corridor-v0"]), [0, 1], [0, 1])
    with pytest.raises(SettingsError, match=r"gem.max_staleness=1 samples while .* have the GPUs \[1\]"):
        check_apart(ahead, [0, 1], [1, 2])


def test_devices_must_be_set():
    with pytest.raises(SettingsError, match=r"actor_train\.device_mapping is not set"):
        check_devices(WHOLE)
    train_only = changed("actor_train.device_mapping", "list(range(0,1))")
    with pytest.raises(SettingsError, match=r"actor_infer\.device_mapping is not set"):
        check_devices(train_only)


def test_a_misspelled_key_is_refused_and_a_key_for_interpolation_is_not():
    known = [*DEFAULTS, "max_steps"]
    check_keys({"loss_agg_mode": 1, "max_steps": 1, "my_batch": 8}, known)
    with pytest.raises(SettingsError, match=r"no setting loss_agg_modee .* Did you mean 'loss_agg_mode'"):
        check_keys({"loss_agg_modee": 1}, known)


def test_numbers_without_a_useful_default_must_be_set():
    for name in ("max_steps", "rollout_batch_size", "sequence_length"):
        config = copy.deepcopy(WHOLE)
        del config[name]
        with pytest.raises(SettingsError, match=f"{name} is not set"):
            check(config)


def test_environments_are_built_before_the_model():
    with pytest.raises(NotFoundError, match="Did you mean"):
        check(changed("gem.env", "game:GuessTheNumber-v0-eazy"))
    with pytest.raises(EnvKwargsError):
        check(changed("gem.env_kwargs", {"no_such": 1}))


def test_missing_settings_are_completed():
    whole = completed(WHOLE, check(WHOLE))
    assert whole["adv_estimator"] == "reinforce"
    assert whole["batch_adjust_mode"] == "copy"
    train, val = whole["train_env_manager"], whole["val_env_manager"]
    assert (train["num_env_groups"], train["group_size"], train["num_groups_partition"]) == (128, 1, [128])
    # ROLL prepares an evaluation even without one.
    assert (val["num_env_groups"], whole["val_batch_size"]) == (1, 1)
    assert train["generating_args"] == {"max_new_tokens": 4, "temperature": 1.0, "top_p": 1.0, "top_k": -1}
    assert whole["actor_train"]["training_args"]["gradient_accumulation_steps"] == 1
    assert whole["enable_old_logprobs_recompute"] is True
    assert whole["gem"]["report"] == str(Path("runs/roll_guess_the_number").resolve())
    assert whole["gem"]["gamma"] == whole["step_reward_gamma"] == WHOLE["step_reward_gamma"]
    assert "adv_estimator" not in WHOLE  # the given configuration does not change


def test_there_is_no_evaluation_by_default():
    """By default, ROLL evaluates every ten steps."""
    config = copy.deepcopy(WHOLE)
    del config["eval_steps"]
    assert completed(config, check(config))["eval_steps"] == 0
    assert DEFAULTS["eval_steps"] > 0


def test_an_evaluation_has_its_own_sampling():
    config = changed("val_env_manager", {"group_size": 2, "generating_args": {"temperature": 0.2}})
    config |= {"eval_steps": 5, "gem": {**config["gem"], "eval_episodes": 16, "updates": 2}}
    whole = completed(config, check(config))
    assert whole["val_batch_size"] == 32
    assert whole["val_env_manager"]["num_env_groups"] == 16
    assert whole["val_env_manager"]["generating_args"]["temperature"] == 0.2
    assert whole["val_env_manager"]["generating_args"]["max_new_tokens"] == 4
    assert whole["train_env_manager"]["generating_args"]["temperature"] == 1.0


def test_every_refused_default_of_roll_is_replaced():
    """ROLL's defaults average rows by their length, truncate the sampled distribution, and need a critic."""
    whole = completed(WHOLE, check(WHOLE))
    for name in ("loss_agg_mode", "adv_estimator", "init_kl_coef"):
        assert whole[name] != DEFAULTS[name]
    for name in ("temperature", "top_p", "top_k"):
        assert whole["train_env_manager"]["generating_args"][name] != GENERATING[name]
    assert whole["loss_agg_mode"] in AGGREGATIONS
