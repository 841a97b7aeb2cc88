"""A tiny policy that is ready for reinforcement learning."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from gem_core.env import Env
from gem_tiny.model import tiny_model
from gem_tiny.tokenizer import tiny_tokenizer
from gem_tiny.warm_start import warm_start


def tiny_policy(
    env_ids: str | Sequence[str],
    *,
    wrappers: Sequence[Callable[[Env], Env]] = (),
    warm_start_steps: int = 800,
    warm_start_episodes: int | None = None,
    seed: int = 0,
) -> tuple[Qwen3ForCausalLM, PreTrainedTokenizerFast]:
    """A tiny model and its tokenizer, warm-started on random valid play.

    Args:
        env_ids: the environment, or environments, whose words and action formats it learns.
        wrappers: as for `make_vec`.
        warm_start_steps: see `warm_start`; 0 leaves the weights random.
        warm_start_episodes: see `warm_start`.
        seed: of the weights and the play.
    """
    env_ids = [env_ids] if isinstance(env_ids, str) else [*env_ids]
    tokenizer = tiny_tokenizer(env_ids, wrappers=wrappers)
    model = tiny_model(tokenizer, seed=seed)
    if warm_start_steps:
        warm_start(
            model,
            tokenizer,
            env_ids,
            wrappers=wrappers,
            steps=warm_start_steps,
            episodes=warm_start_episodes,
            seed=seed,
        )
    return model, tokenizer
