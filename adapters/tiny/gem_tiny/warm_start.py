"""Teaches a model an environment's words and action format, but no strategy."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import torch
from torch.nn.functional import cross_entropy
from transformers import DynamicCache, PreTrainedTokenizerFast

from gem_core.env import Env
from gem_tiny._play import RandomTurn, random_play
from gem_train.rollout import ChatTemplate, Conversation, end_token_ids
from gem_train.versions import cache_name

MAX_ROW_LENGTH = 512
"""Number of tokens of an episode that are trained on, from its start: attention costs the square of the length."""

TOKENS_OF_A_STEP = 4096
"""Token limit of a step, including padding: a step has fewer episodes if they are long."""

REMEMBERED = 4096
"""Number of actions whose ids are kept: random play repeats them, and encoding takes half as long as playing."""


def warm_start(
    model: Any,
    tokenizer: PreTrainedTokenizerFast,
    env_ids: Sequence[str],
    *,
    wrappers: Sequence[Callable[[Env], Env]] = (),
    env_kwargs: Mapping[str, Any] | None = None,
    system_prompt: str | None = None,
    steps: int = 800,
    episodes: int | None = None,
    batch: int = 32,
    learning_rate: float = 3e-3,
    seed: int = 0,
    on_step: Callable[[int, float], None] | None = None,
) -> None:
    """Next-token prediction on transcripts of random valid play.

    The loss covers everything after the first message: random valid actions, and the environment's answers. So the
    model learns the action format and which words belong together, but not which action is better.

    Args:
        model: a causal language model, such as a Qwen3 or a Llama; trained in place, on its own device.
        tokenizer: tokenizer of the model.
        env_ids: environments to play alternately, each episode for up to `MAX_PLAYED_TURNS` turns.
        wrappers, env_kwargs: as for `make_vec`.
        system_prompt: system message of every transcript; give that of the training.
        steps: number of optimizer steps.
        episodes: number of episodes to play and then repeat, for slow environments. By default every step has new
            episodes.
        batch: episodes per step; fewer if they are long, see `TOKENS_OF_A_STEP`.
        learning_rate: learning rate of AdamW, falling linearly to zero.
        seed: seed of the play.
        on_step: called with the step and the loss.

    Raises:
        EnvFailure: more than half of 40 episodes of an environment failed.
        NotFoundError, EnvKwargsError, MissingExtraError, EnvError: as `gem_core.make`.
    """
    template = ChatTemplate(tokenizer, system_prompt=system_prompt)
    optimiser = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(0.9, 0.95))
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.0, steps)
    pad_id: Any = tokenizer.pad_token_id
    encode = _encoder(tokenizer, template)
    model.train()
    with closing(random_play(env_ids, wrappers=wrappers, env_kwargs=env_kwargs, seed=seed)) as play:
        new = (_transcript(episode, template, encode) for episode in play)
        transcripts = new if episodes is None else itertools.cycle(itertools.islice(new, episodes))
        for step in range(steps):
            loss = _loss(model, _rows(transcripts, batch), pad_id)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            optimiser.zero_grad()
            schedule.step()
            if on_step is not None:
                on_step(step, loss.item())


def _encoder(tokenizer: PreTrainedTokenizerFast, template: ChatTemplate) -> Callable[[str], tuple[int, ...]]:
    """Encodes an action, with the token that ends a turn."""
    end = end_token_ids(template, tokenizer)[0]

    @functools.lru_cache(REMEMBERED)
    def encode(action: str) -> tuple[int, ...]:
        ids: Any = tokenizer.encode(action, add_special_tokens=False)
        return (*ids, end)

    return encode


def _transcript(
    episode: Sequence[RandomTurn], template: ChatTemplate, encode: Callable[[str], tuple[int, ...]]
) -> tuple[list[int], int]:
    """Token ids of an episode, and the length of its first prompt, of which a long one keeps its end only."""
    conversation = Conversation(template)
    opening = 0
    for turn in episode:
        conversation.observe(turn.observation, turn.info)
        opening = opening or len(conversation.prompt())
        if turn.action is not None:
            conversation.respond(encode(turn.action))
    # Otherwise a row would have nothing to learn, and the mean loss of nothing is no number.
    start = 0 if opening < MAX_ROW_LENGTH else opening - MAX_ROW_LENGTH // 2
    return conversation.prompt()[start : start + MAX_ROW_LENGTH].tolist(), opening - start


def _rows(transcripts: Iterator[tuple[list[int], int]], batch: int) -> list[tuple[list[int], int]]:
    """The rows of one step."""
    rows = [next(transcripts)]
    while len(rows) < batch and len(rows) * max(len(ids) for ids, _ in rows) < TOKENS_OF_A_STEP:
        rows.append(next(transcripts))
    return rows


def _loss(model: Any, rows: list[tuple[list[int], int]], pad_id: int) -> torch.Tensor:
    """The mean loss of all tokens after the first prompts. What all first prompts begin with is computed once."""
    shared = _shared(rows)
    width = max(len(ids) for ids, _ in rows)
    device = model.device
    ids = torch.tensor([[*one[shared:], *[pad_id] * (width - len(one))] for one, _ in rows], device=device)
    positions = torch.arange(shared, width, device=device)
    lengths = torch.tensor([[len(one)] for one, _ in rows], device=device)
    openings = torch.tensor([[opening] for _, opening in rows], device=device)
    predicted = ((positions < lengths) & (positions >= openings))[:, 1:]
    cache = DynamicCache()
    known: dict[str, Any] = {cache_name(): cache}
    if shared:
        model.model(input_ids=torch.tensor([rows[0][0][:shared]], device=device), **known)
        cache.batch_repeat_interleave(len(rows))
    # Padding is on the right, where no token sees it. So the model needs no mask.
    states = model.model(input_ids=ids, **known).last_hidden_state[:, :-1]
    return cross_entropy(model.lm_head(states[predicted]), ids[:, 1:][predicted])


def _shared(rows: list[tuple[list[int], int]]) -> int:
    """How many ids all rows begin with; 0 if there are so few that a pass of their own costs more than it saves.

    The last id of a first prompt is left out, as it predicts the first action.
    """
    columns = zip(*(ids[: opening - 1] for ids, opening in rows), strict=False)
    shared = sum(1 for _ in itertools.takewhile(lambda column: len({*column}) == 1, columns))
    return shared if 4 * shared >= max(len(ids) for ids, _ in rows) else 0
