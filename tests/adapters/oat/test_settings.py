"""Flags: what they become, and what is refused with a reason."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from oat.algorithms.ppo import PPOArgs
from oat.args import get_default_args
from runs import arguments

from gem_core.adapters.settings import PlaySettings
from gem_core.errors import NotFoundError, SettingsError
from gem_oat import GemOatArgs
from gem_oat.args import GemSettings
from gem_oat.checks import FIXED, prepare


def test_flags_are_those_that_oats_users_expect():
    line = (
        '--env a:b c:d --num_env 4 --gamma 0.9 --env_kwargs {"max_turns":3} --env_timeout None --collocate --pretrain x'
    )
    with patch.object(sys, "argv", ["train", *line.split()]):
        args = get_default_args(GemOatArgs)
    settings = args.settings
    assert settings.env == ["a:b", "c:d"]
    assert settings.max_concurrent == 4
    assert settings.env_kwargs == {"max_turns": 3}
    assert settings.env_timeout is None
    assert settings.view == "turn"
    assert (args.gamma, args.collocate, args.pretrain) == (0.9, True, "x")


def test_defaults_are_those_of_the_other_adapters():
    ours, theirs = GemOatArgs(env=["a:b"]).settings, PlaySettings(env=["a:b"], seed=GemOatArgs().seed, view="turn")
    for name in PlaySettings.__struct_fields__:
        assert getattr(ours, name) == getattr(theirs, name), name


def test_every_flag_that_is_fixed_is_oats():
    names = {one.name for one in dataclasses.fields(PPOArgs)}
    assert {*FIXED} <= names
    defaults = GemOatArgs()
    for name, (needed, _) in FIXED.items():
        assert getattr(defaults, name) == needed


def test_what_follows_from_the_rest(model: Path):
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
        ({"critic_type": "ppo"}, "does not go with --advantage rebn"),
        ({"rollout_batch_size": 13}, "is not --rollout_batch_size_per_device 12 times 1 learners"),
        ({"train_batch_size": 8}, "are no multiple of --train_batch_size 8"),
        ({"train_batch_size": 6}, "is no multiple of --train_batch_size_per_device 4"),
        ({"group_size": 5}, "cannot be divided into groups of --group_size 5"),
        ({"advantage": "grpo"}, "--group_size 1 cannot work"),
        ({"max_train": 11}, "make no batch of 12"),
        ({"gamma": 1.5}, "--gamma 1.5 is not between 0 and 1"),
        ({"generate_max_length": 300}, "leaves no room for a prompt"),
        ({"env_kwargs": "[1]"}, "is no JSON object"),
        ({"env": []}, "--env has no environment id"),
        ({"num_env": 0}, "--num_env 0 is not at least 1"),
        ({"eval_episodes": 3, "gpus": 2, "train_batch_size": 24}, "cannot be shared evenly by 2 actors"),
        ({"gpus": 3, "collocate": False}, "use --collocate"),
        ({"wrappers": ["nowhere:x"]}, "--wrappers: cannot load"),
        ({"vector_backend": "sync", "vector_workers": 2}, "has no effect with --vector_backend sync"),
    ],
)
def test_what_cannot_work_is_refused(model: Path, changes: dict[str, Any], message: str):
    with pytest.raises(SettingsError, match=message):
        prepare(arguments(model, **changes))


def test_an_unknown_environment_is_named(model: Path):
    with pytest.raises(NotFoundError, match="Did you"):
        prepare(arguments(model, env=["game:Corrido-v0"]))


def test_flags_are_spelled_as_on_the_command_line():
    assert GemSettings.spelled("max_concurrent", 3) == "--num_env 3"
    assert "--num_env" not in inspect.getsource(PlaySettings)
