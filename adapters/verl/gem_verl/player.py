"""The environments of an agent worker, which all its episodes share."""

from __future__ import annotations

import asyncio
import math
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf
from transformers import AutoConfig
from verl.utils.fs import copy_to_local
from verl.utils.model import get_generation_config

from gem_core.plugins import manager
from gem_core.training.playing import build_runner
from gem_core.training.settings import Split
from gem_verl.settings import GemSettings


class Player:
    """Environments for training or for validation.

    Args:
        config: verl's whole configuration.
        split: `train` or `eval`.
        tokenizer: the policy's.

    Raises:
        NotFoundError, EnvKwargsError, MissingExtraError, EnvError, SettingsError: as `gem_core.make_vec`.
        TemplateError: the tokenizer cannot carry a conversation.
    """

    def __init__(self, config: DictConfig, split: Split, tokenizer: Any) -> None:
        self.settings = settings = GemSettings.of(config.gem)
        self.ends = _end_tokens(config, tokenizer)
        self.runner = build_runner(
            settings,
            split,
            tokenizer,
            settings.rollout(settings.max_response_tokens, _context_limit(config)),
            settings.concurrent(split, _share_of_batch(config, settings, split)),
        )


_players: dict[str, asyncio.Future[Player]] = {}


async def player(config: DictConfig, split: Split, tokenizer: Any) -> Player:
    """The one of this process, built on first use; raises as `Player`."""
    if not _players:
        manager.configure(cast("dict[str, Any]", OmegaConf.to_container(config, resolve=True)))
    if split not in _players:
        # Building environments may take a while, and blocks.
        _players[split] = asyncio.get_running_loop().run_in_executor(None, Player, config, split, tokenizer)
    return await asyncio.shield(_players[split])


def close_players() -> None:
    """Close the environments of this process. Safe to call twice."""
    for built in _players.values():
        if built.done() and not built.cancelled() and built.exception() is None:
            built.result().runner.close()
    _players.clear()


def _share_of_batch(config: DictConfig, settings: GemSettings, split: Split) -> int:
    rollout = config.actor_rollout_ref.rollout
    tasks, episodes = (
        (config.data.train_batch_size, rollout.n)
        if split == "train"
        else (settings.eval_episodes, rollout.val_kwargs.n)
    )
    # verl hands out tasks, each with all its episodes.
    return math.ceil(tasks / rollout.agent.num_workers) * episodes


def _context_limit(config: DictConfig) -> int:
    """Tokens of a prompt and its response that the engine takes at most."""
    model = AutoConfig.from_pretrained(
        copy_to_local(config.actor_rollout_ref.model.path),
        trust_remote_code=config.actor_rollout_ref.model.trust_remote_code,
    )
    limits = [
        config.data.max_prompt_length + config.data.max_response_length,
        config.actor_rollout_ref.rollout.max_model_len,
        getattr(model.get_text_config(), "max_position_embeddings", None),
    ]
    return min(limit for limit in limits if limit)


def _end_tokens(config: DictConfig, tokenizer: Any) -> set[int]:
    """What the inference engines stop at."""
    generation = get_generation_config(copy_to_local(config.actor_rollout_ref.model.path))
    ends = getattr(generation, "eos_token_id", None)
    return {tokenizer.eos_token_id, *(ends if isinstance(ends, list) else [ends])} - {None}
