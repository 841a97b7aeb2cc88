"""A policy like a base model with a chat template, whose end of a turn is not its tokenizer's end of a text.

Its model answers with one word, and then ends the turn, or goes on as the next speaker, or ends the text. Unless an
engine stops it, it writes the next turns itself.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from gem_core.env import Env
from gem_core.hookspecs import hookimpl
from gem_core.plugins import manager
from gem_core.tools import FunctionTool, ToolEnv
from gem_support.babble import WORDS
from gem_tiny import tiny_model, tiny_tokenizer
from gem_train.rollout import Episode

ENV = "test:Babble-v0"
WORD = WORDS[0]
TEXT_END = "<|endoftext|>"
ENDS = ("<|end|>", "<|user|>", TEXT_END)
"""How the model ends a response, each about equally often."""
_NEXT = {"<|assistant|>": [WORD], WORD: [*ENDS], "<|end|>": ["<|user|>"], "<|user|>": [WORDS[1]], WORDS[1]: [WORDS[1]]}
_IMPOSSIBLE = -30.0
"""Logit of all other tokens."""


def native_tools(env: Env) -> Env:
    """A wrapper, whose tools the template of `base_tokenizer` does not show."""

    def look(where: str) -> str:
        """Look into a direction."""
        return where

    return ToolEnv(env, [FunctionTool(look)], form="native")


REFUSED: Sequence[tuple[str, Any, str]] = (
    ("wrappers", ["gem_support.base_model:native_tools"], "has native tools, and the chat template shows no tools"),
    ("system_prompt", " ".join(WORDS * 50), "so no prompt fits into"),
)
"""Settings that cannot work with this tokenizer in a context of 384 tokens at most, and what the error says."""


def base_tokenizer() -> PreTrainedTokenizerFast:
    """Of `ENV`, with the end of a text as padding, too."""
    tokenizer = tiny_tokenizer([ENV])
    tokenizer.add_special_tokens({"eos_token": TEXT_END, "pad_token": TEXT_END})
    return tokenizer


def base_model(tokenizer: PreTrainedTokenizerFast) -> Qwen3ForCausalLM:
    """Each token depends on the one before it alone."""
    config = copy.deepcopy(tiny_model(tokenizer).config)
    config.tie_word_embeddings = False
    model = Qwen3ForCausalLM(config)
    ids, width = tokenizer.get_vocab(), config.hidden_size
    logits = torch.full((len(ids), width), _IMPOSSIBLE)
    for before, after in _NEXT.items():
        logits[[ids[one] for one in after], ids[before]] = 0.0
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
        model.model.embed_tokens.weight.copy_(torch.eye(len(ids), width))
        model.lm_head.weight.copy_(logits / width**0.5)  # the norm before it makes a one of this size
    return model


def saved_base_model(folder: Path) -> Path:
    """The model and its tokenizer, in this folder."""
    tokenizer = base_tokenizer()
    tokenizer.save_pretrained(folder)
    base_model(tokenizer).save_pretrained(folder)
    return folder


@contextmanager
def played_episodes() -> Iterator[list[Episode]]:
    """The episodes that end in this process meanwhile, as copies."""

    class Listener:
        @hookimpl
        def gem_episode_end(self, episode: Episode) -> None:
            found.append(copy.deepcopy(episode))

    found: list[Episode] = []
    listener = Listener()
    manager.register(listener)
    try:
        yield found
    finally:
        manager.unregister(listener)


def assert_stops(stops: Collection[int], tokenizer: PreTrainedTokenizerFast) -> None:
    """Assert that an engine was told of every end, and of no word."""
    ids = tokenizer.get_vocab()
    assert {ids[one] for one in ENDS} <= {*stops}
    assert not {*stops} & {number for token, number in ids.items() if not token.startswith("<|")}


def assert_turns_ended(episodes: Sequence[Episode], tokenizer: PreTrainedTokenizerFast) -> None:
    """Assert that each response is a word and an end, is not truncated, and stands once in the next prompt."""
    ids = tokenizer.get_vocab()
    found = Counter[str]()
    for episode in episodes:
        for number, turn in enumerate(episode.turns):
            prompt, response = [*episode.prompt_ids(turn)], [*episode.response_ids(turn)]
            assert (turn.action, turn.truncated) == (WORD, False)
            end = next(one for one in ENDS if response == [ids[WORD], ids[one]])
            found[end] += 1
            if number + 1 < len(episode.turns):
                then = episode.turns[number + 1]
                text = f"<|end|><|user|>{then.observation}<|end|><|assistant|>"
                between = tokenizer.encode(text, add_special_tokens=False)
                rest = between[between.index(ids[end]) + 1 :] if ids[end] in between else between
                assert [*episode.prompt_ids(then)] == [*prompt, *response, *rest]
    assert {*found} == {*ENDS}
