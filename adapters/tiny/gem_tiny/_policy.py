"""A tiny policy, ready for reinforcement learning."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from gem_core.env import Env
from gem_tiny._model import tiny_model
from gem_tiny._tokenizer import tiny_tokenizer
from gem_tiny.warm_start import warm_start
from gem_train.models import model_folder
from gem_train.settings import RunSettings


def tiny_policy(
    env_ids: str | Sequence[str],
    *,
    wrappers: Sequence[Callable[[Env], Env]] = (),
    env_kwargs: Mapping[str, Any] | None = None,
    warm_start_steps: int = 800,
    warm_start_episodes: int | None = None,
    seed: int = 0,
) -> tuple[Qwen3ForCausalLM, PreTrainedTokenizerFast]:
    """A tiny model and its tokenizer, warm-started on random valid play.

    Sets torch to one thread in this process: with more threads, a model of this size takes several times the CPU time
    and is no faster.

    Args:
        env_ids: the environment or environments whose words and action formats the model learns.
        wrappers, env_kwargs: as for `make_vec`.
        warm_start_steps: see `warm_start`; 0 leaves the weights random.
        warm_start_episodes: see `warm_start`.
        seed: seed of the weights and the play.

    Raises:
        EnvFailure: more than half of 40 episodes of an environment failed.
        NotFoundError, EnvKwargsError, MissingExtraError, EnvError: as `gem_core.make`.
    """
    torch.set_num_threads(1)
    env_ids = [env_ids] if isinstance(env_ids, str) else [*env_ids]
    tokenizer = tiny_tokenizer(env_ids, wrappers=wrappers, env_kwargs=env_kwargs)
    model = tiny_model(tokenizer, seed=seed)
    if warm_start_steps:
        print(f"Warm start: {warm_start_steps} steps on random valid play, for words and format only.", flush=True)
        warm_start(
            model,
            tokenizer,
            env_ids,
            wrappers=wrappers,
            env_kwargs=env_kwargs,
            steps=warm_start_steps,
            episodes=warm_start_episodes,
            seed=seed,
        )
    return model, tokenizer


@contextmanager
def saved_tiny_policy(settings: RunSettings, *, warm_start_steps: int = 800) -> Iterator[str]:
    """`tiny_policy` in a temporary folder, for frameworks that load a model from its path.

    Args:
        settings: the settings of any adapter: environments of training and evaluation, and the seed.
        warm_start_steps: see `warm_start`; 0 leaves the weights random.

    Yields:
        The folder. It is removed at the end.

    Raises:
        SettingsError: a module or a wrapper that cannot be found.
        EnvFailure, NotFoundError, EnvKwargsError, MissingExtraError, EnvError: as `tiny_policy`.
    """
    settings.import_modules()
    policy = tiny_policy(
        [*dict.fromkeys([*settings.env, *settings.eval_env])],
        wrappers=settings.load_wrappers(),
        env_kwargs=settings.env_kwargs,
        warm_start_steps=warm_start_steps,
        seed=settings.seed,
    )
    with tempfile.TemporaryDirectory(prefix="tiny") as folder:
        for part in policy:
            part.save_pretrained(folder)
        yield folder


@contextmanager
def policy_folder(name: str, settings: RunSettings, *, warm_start_steps: int = 800) -> Iterator[str]:
    """The folder of the model that a user names: `tiny` is made as `saved_tiny_policy` does.

    Args:
        name: `tiny`, or as `gem_train.models.model_folder`.
        settings, warm_start_steps: as `saved_tiny_policy`.

    Yields:
        The folder, or the hub id.

    Raises:
        GemError: as `saved_tiny_policy` and `model_folder`.
    """
    if name == "tiny":
        with saved_tiny_policy(settings, warm_start_steps=warm_start_steps) as folder:
            yield folder
    else:
        yield model_folder(name)
