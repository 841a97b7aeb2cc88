"""Each setting of verl that touches what is trained has no effect, is refused, or stands in the first line of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hydra
import verl
from omegaconf import DictConfig, OmegaConf

from gem_support.framework_defaults import assert_complete, assert_kept, assert_refused, assert_shown
from gem_verl.checks import check

NAME = "gem_verl"
BY_ACCIDENT = (
    r"profiler|engine|fsdp|megatron|veomni|torchtitan|\.mtp\.|\.qat\.|\.lora\.|quantization|checkpoint|router|prometheus|\.trace\.|"
    r"\.optim\.|_per_gpu|\.ref\.|val_kwargs|multi_turn|reward\.reward_model\.rollout|reward\.(num_workers|reward_manager|"
    r"sandbox)|\.val_|data\.val|\.v1\.|distillation|teacher|transfer_queue|reward_fn_key|freeze|entropy_from|"
    r"entropy_checkpointing|calculate_entropy|pad_to_length|_workers|max_num_batched|critic_warmup_steps|tool|global_profiler|"
    r"gen_batch_size|nccl|model\.|ray_|log_prob|micro_batch|dataloader|async_rollout|sampler|\.agent\.|"
    r"custom_async|batch_size_per|capture|max_model_len|cudagraph"
)
"""Of devices, memory, evaluations, logs, and of modes that the adapter refuses as a whole."""


def leaves(node: DictConfig, above: str = "") -> Iterator[tuple[str, Any]]:
    """The settings of a configuration by their dotted names."""
    for name in node:
        value = OmegaConf.select(node, str(name), throw_on_missing=False)
        if isinstance(value, DictConfig) and len(value):
            yield from leaves(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", OmegaConf.to_container(value) if OmegaConf.is_config(value) else value


def test_the_table_has_every_setting_of_verl() -> None:
    folder = Path(next(iter(verl.__path__))) / "trainer/config"
    with hydra.initialize_config_dir(str(folder), version_base=None):
        found = dict(leaves(hydra.compose("ppo_trainer")))
    assert_complete(NAME, found, BY_ACCIDENT)


def test_every_line_is_true(configure: Callable[..., DictConfig]) -> None:
    plain = configure()
    assert_kept(NAME, lambda name: OmegaConf.select(plain, name))
    assert_refused(NAME, lambda name, value, text: check(configure(f"{name}={text}")))
    assert_shown(NAME)
