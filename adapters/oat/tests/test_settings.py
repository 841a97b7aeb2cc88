"""Flags: how they are read, and which are refused with a reason."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from oat.algorithms.ppo import PPOArgs
from oat.args import get_default_args
from runs import arguments

from gem_core.errors import NotFoundError, SettingsError
from gem_oat import GemOatArgs
from gem_oat._checks import CRITIC, FIXED, UNREAD, prepare
from gem_oat.settings import OatSettings


def test_flags_are_named_as_in_oat():
    line = '--env a:b c:d --max_concurrent 4 --gamma 0.9 --env_kwargs {"max_turns":3} --env_timeout None --collocate'
    with patch.object(sys, "argv", ["train", *line.split()]):
        args = get_default_args(GemOatArgs)
    assert args.env == ["a:b", "c:d"]
    assert args.max_concurrent == 4
    assert args.env_kwargs == {"max_turns": 3}
    assert args.env_timeout is None
    assert args.row == "turn"
    assert (args.gamma, args.collocate) == (0.9, True)


def test_defaults_are_those_of_the_other_adapters():
    """Except Oat's own flags of the same name."""
    ours, theirs, oats = GemOatArgs(env=["a:b"]), OatSettings(env=["a:b"]), PPOArgs()
    for name in OatSettings.declared():
        assert getattr(ours, name) == getattr(oats if hasattr(oats, name) else theirs, name), name


def test_each_flag_is_explained(capsys: pytest.CaptureFixture[str]):
    with patch.object(sys, "argv", ["train", "--help"]), pytest.raises(SystemExit):
        get_default_args(GemOatArgs)
    shown = "".join(capsys.readouterr().out.replace("│", "").split())
    for name, one in OatSettings.declared().items():
        assert f"--{name}".replace("_", "-") in shown
        if not hasattr(PPOArgs, name):  # Oat explains its own flags
            assert "".join(one.metadata["help"].split()) in shown, name


READ = """
    gpus num_gpus_per_actor group_rank num_groups master_addr master_port vllm_gpu_ratio max_model_len collocate
    enable_prefix_caching vllm_sleep shm_size_mb disable_cascade_attn pretrain ref_pretrain tokenizer
    sync_params_every beta use_fused_lm_head critic_type max_train generate_max_length temperature top_p top_k
    eval_generate_max_length eval_temperature eval_top_p eval_top_k eval_steps eval_query_interval save_path
    save_steps save_from save_ckpt max_save_num max_save_mem logging_steps train_batch_size
    train_batch_size_per_device rollout_batch_size rollout_batch_size_per_device max_epochs max_step_adjustment
    dump_replay_every max_norm adam_beta_1 adam_beta_2 l2 gradient_checkpointing
    gradient_checkpointing_use_reentrant seed disable_fast_tokenizer local_rank zero_stage bf16 fp16 ref_offload
    learning_rate lr_scheduler lr_warmup_ratio zpg model_offload adam_offload flash_attn grad_accum_dtype
    load_in_4bit lora_rank lora_alpha target_modules lora_dropout lora_sync_only debug use_wb wb_org wb_group
    wb_project wb_run_name num_ppo_epochs kl_penalty_coef non_stop_penalty non_stop_fixed_reward ignore_no_eos
    reward_scale tis_c cliprange gamma
"""
"""Flags of Oat that have the same meaning here, or the meaning in adapters/oat/README.md."""


def test_every_flag_of_oat_is_accounted_for():
    """So that flags of a new release are reviewed before they are accepted."""
    known = [*FIXED, *(name for names in UNREAD.values() for name in names), *CRITIC, *READ.split()]
    assert sorted(known) == sorted(one.name for one in dataclasses.fields(PPOArgs))
    defaults = GemOatArgs()
    for name, (needed, _) in FIXED.items():
        assert getattr(defaults, name) == needed


@pytest.mark.parametrize(
    ("visible", "message"),
    [("0,1", "Oat uses all visible GPUs"), ("", "needs GPU numbers"), ("GPU-8f2a", "needs GPU numbers")],
)
def test_visible_gpus_are_the_counted_gpus(model: Path, monkeypatch: pytest.MonkeyPatch, visible: str, message: str):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    with pytest.raises(SettingsError, match=message):
        prepare(arguments(model))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    prepare(arguments(model))


def test_every_unread_flag_is_refused_with_another_value(model: Path):
    stock = PPOArgs()
    for where, names in UNREAD.items():
        for name in names:
            value = getattr(stock, name)
            other = not value if isinstance(value, bool) else "x" if isinstance(value, str) else 7
            with pytest.raises(SettingsError, match=f"--{name} .* has no effect here, only {where}"):
                prepare(arguments(model, **{name: other}))


def test_preparing_twice_changes_nothing(model: Path):
    once = prepare(arguments(model, num_ppo_epochs=3, advantage="gae"))
    again = dataclasses.asdict(once)
    assert dataclasses.asdict(prepare(once)) == again


def test_derived_settings(model: Path):
    args = prepare(arguments(model, gpus=2, train_batch_size=24, advantage="gae", max_train=100))
    assert (args.learners, args.actors_per_group, args.rollout_batch_size) == (2, 2, 24)
    assert (args.batches, args.updates, args.critic_type) == (4, 1, "ppo")
    assert prepare(arguments(model, gpus=2, collocate=False)).learners == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_samples": 8}, "--num_samples 8 cannot be used.*--group_size"),
        ({"whiten_adv": True}, "--whiten_adv True cannot be used"),
        ({"reinforce_update": True}, "divides by zero"),
        ({"asynchronous": True}, "in the middle of an episode"),
        ({"critic_type": "ppo"}, "contradicts --advantage rebn"),
        ({"rollout_batch_size": 13}, "is not --rollout_batch_size_per_device 12 times 1 learners"),
        ({"train_batch_size": 8}, "is not a multiple of --train_batch_size 8"),
        ({"train_batch_size": 6}, "is not a multiple of --train_batch_size_per_device 4"),
        ({"group_size": 5}, "cannot be divided into groups of --group_size 5"),
        ({"advantage": "grpo"}, "--group_size 1 cannot work"),
        ({"max_train": 11}, "less than a batch of 12"),
        ({"max_queries": 12}, "a run ends after --max_train episodes"),
        ({"max_epochs": 2}, "--max_epochs 2 is not read by Oat's PPO. Use --num_ppo_epochs"),
        ({"temperature": 0.0}, "the temperature has to be above 0"),
        ({"temperature": 0.7}, "--temperature 0.7 with --tis_c 2.0.*Use --tis_c None"),
        ({"top_p": 0.9}, "--top_p 0.9 samples from another policy.*silently change"),
        ({"top_k": 20}, "--top_k 20 samples from another policy"),
        ({"resume_dir": "x"}, "plays the same tasks again"),
        ({"gamma": 1.5}, "--gamma 1.5: Expected `float` <= 1.0"),
        ({"generate_max_length": 300}, "leaves no room for a prompt"),
        ({"env_kwargs": "[1]"}, "is not a JSON object"),
        ({"env": []}, "--env has no environment id"),
        ({"max_concurrent": 0}, "--max_concurrent 0: Expected `int` >= 1"),
        ({"row": "episode"}, "--row episode is not one of turn"),
        ({"env_kwargs": "raise_every=3"}, "--env_kwargs raise_every=3: .* is not a JSON object"),
        ({"eval_episodes": 3, "gpus": 2, "train_batch_size": 24, "eval_steps": 2}, "shared evenly by 2 actors"),
        ({"eval_generate_max_length": 300, "eval_steps": 2}, "--eval_generate_max_length 300 with --max_model_len 256"),
        ({"sync_params_every": 2, "eval_steps": 2}, "--sync_params_every 2 with --eval_steps 2"),
        ({"rnd_seed": True}, "change --seed"),
        ({"lam": 0.5}, "has no effect here, only with a critic"),
        ({"num_gpus_per_actor": 3, "gpus": 3, "train_batch_size": 36}, "is not one of 1, 2, 4 and 8"),
        ({"num_groups": 2, "train_batch_size": 24}, "Give both, the same in all groups"),
        ({"group_rank": 1}, "--group_rank 1 is not from 0 to --num_groups 1 - 1"),
        ({"env": ["test:Babble-v0", "test:Fragile-v0"], "max_concurrent": 4}, "--max_concurrent 4 with several --env"),
        ({"gpus": 3, "collocate": False}, "use --collocate"),
        ({"wrappers": ["nowhere:x"]}, "--wrappers: cannot load"),
        ({"env": ["visual:Count-v0-easy"]}, "shows images, and Oat has no code for images. Train it with TRL"),
        ({"vector_backend": "sync", "vector_workers": 2}, "has no effect with --vector_backend sync"),
    ],
)
def test_refused(model: Path, changes: dict[str, Any], message: str):
    with pytest.raises(SettingsError, match=message):
        prepare(arguments(model, **changes))


def test_an_unknown_environment_is_named(model: Path):
    with pytest.raises(NotFoundError, match="Did you"):
        prepare(arguments(model, env=["game:Corrido-v0"]))
