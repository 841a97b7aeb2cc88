"""Teaching a tiny model to speak: an environment's words and the form of an action, and nothing of its strategy."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch.nn.functional import pad
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from gem_core.env import Env
from gem_core.registry import build, spec
from gem_core.rollout import ChatTemplate, Conversation
from gem_core.seeding import derive_seed

_IGNORED = -100  # label that the loss of transformers leaves out


def warm_start(
    model: Qwen3ForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    env_ids: Sequence[str],
    *,
    wrappers: Sequence[Callable[[Env], Env]] = (),
    steps: int = 800,
    episodes: int | None = None,
    batch: int = 32,
    learning_rate: float = 3e-3,
    seed: int = 0,
    on_step: Callable[[int, float], None] | None = None,
) -> None:
    """Next-token prediction on transcripts of random valid play.

    The loss covers everything after the first message: the actions, drawn at random from the valid ones, and the
    environment's answers. So the model learns the action format and what the words go with, but no move is better
    than another in what it sees.

    Args:
        model: changed in place.
        tokenizer: its tokenizer.
        env_ids: environments to play in turn.
        wrappers: as for `make_vec`.
        steps: optimiser steps.
        episodes: how many are played, and then seen again and again, for environments that take their time; by default
            every step sees new ones.
        batch: episodes per step.
        learning_rate: of AdamW, falling linearly to zero.
        seed: of the play.
        on_step: hears the step and the loss.
    """
    template = ChatTemplate(tokenizer)
    optimiser = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(0.9, 0.95))
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.0, steps)
    pad_id: Any = tokenizer.pad_token_id
    model.train()
    with ExitStack() as stack:
        envs = [stack.enter_context(build(spec(env_id), {}, wrappers)) for env_id in env_ids]
        new = (
            _transcript(envs[number % len(envs)], template, tokenizer, derive_seed(seed, "warm-start", number))
            for number in itertools.count()
        )
        transcripts = new if episodes is None else itertools.cycle(itertools.islice(new, episodes))
        for step in range(steps):
            rows = [*itertools.islice(transcripts, batch)]
            loss = _loss(model, rows, pad_id)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            optimiser.zero_grad()
            schedule.step()
            if on_step is not None:
                on_step(step, loss.item())


def _transcript(
    env: Env, template: ChatTemplate, tokenizer: PreTrainedTokenizerFast, seed: int
) -> tuple[list[int], int]:
    """Token ids of an episode of random valid play, and the length of its first prompt."""
    conversation = Conversation(template)
    observation, info = env.reset(seed=seed)
    conversation.observe(observation, info)
    opening = len(conversation.prompt())
    done = False
    while not done:
        action = env.sample_random_action()
        ids = [*tokenizer.encode(action, add_special_tokens=False), tokenizer.eos_token_id]
        conversation.respond(ids)
        observation, _, terminated, truncated, info = env.step(action)
        done = terminated or truncated
        conversation.observe(observation, info)
    return conversation.prompt(), opening


def _loss(model: Qwen3ForCausalLM, rows: list[tuple[list[int], int]], pad_id: int) -> torch.Tensor:
    width = max(len(ids) for ids, _ in rows)
    ids = torch.stack([pad(torch.tensor(one), (0, width - len(one)), value=pad_id) for one, _ in rows])
    positions = torch.arange(width)
    lengths = torch.tensor([[len(one)] for one, _ in rows])
    openings = torch.tensor([[opening] for _, opening in rows])
    present = positions < lengths
    labels = ids.masked_fill(~present | (positions < openings), _IGNORED)
    return model(input_ids=ids, attention_mask=present.long(), labels=labels).loss
