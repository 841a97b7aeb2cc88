"""Each flag of OpenRLHF that touches the training has no effect, is refused, or stands in the first line of a run."""

from __future__ import annotations

import runpy
import sys
from operator import attrgetter
from typing import Any
from unittest.mock import patch

import pytest
from openrlhf.utils import config

from gem_openrlhf._checks import check, make_neutral
from gem_openrlhf.settings import parse
from gem_support.framework_defaults import assert_complete, assert_kept, assert_refused, assert_shown

NAME = "gem_openrlhf"
BY_ACCIDENT = (
    r"\.(betas|lr_warmup_ratio|vllm_generate_batch_size|max_tokens_per_gpu|micro_batch_size|ema_beta|num_gpus_per_node|"
    r"num_nodes|offload|colocate_critic_reward|load_in_4bit)$|^(eval|ckpt|logger|reward\.num|reward\.offload)|muon|adam"
)
"""Of optimizers, devices, memory, evaluations and logs."""


def test_the_table_has_every_flag_of_openrlhf() -> None:
    found: dict[str, Any] = {}

    def catch(flat: Any) -> None:
        found.update(vars(flat))
        raise StopIteration

    argv = ["train", "--actor.model_name_or_path=model"]
    with patch.object(config, "hierarchize", catch), patch.object(sys, "argv", argv), pytest.raises(StopIteration):
        runpy.run_module("openrlhf.cli.train_ppo_ray", run_name="__main__", alter_sys=True)
    assert_complete(NAME, found, BY_ACCIDENT)


def test_every_line_is_true(arguments) -> None:
    settings, _ = parse(["--gem.env", "test:Babble-v0", "--gem.steps", "2"])
    plain = arguments()
    make_neutral(plain, [])
    assert_kept(NAME, lambda name: attrgetter(name)(plain))

    def checked(name: str, value: Any, text: str) -> None:
        args = arguments()
        group, _, last = name.rpartition(".")
        setattr(attrgetter(group)(args), last, value)
        check(settings, args)

    assert_refused(NAME, checked)
    assert_shown(NAME)


def test_rewards_are_clipped_only_where_the_flag_is_given(arguments) -> None:
    for flags, clipped in (([], None), (["--reward.clip_range", "-5", "5"], [-5.0, 5.0])):
        args = arguments(*flags)
        make_neutral(args, flags)
        assert args.reward.clip_range == clipped
