"""A randomly initialized model of a current architecture, small enough for one CPU core."""

from __future__ import annotations

from typing import Any

import torch
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM


def tiny_model(
    tokenizer: PreTrainedTokenizerFast, *, hidden: int = 64, layers: int = 2, context: int = 1024, seed: int = 0
) -> Qwen3ForCausalLM:
    """A Qwen3 with random weights.

    Args:
        tokenizer: gives the vocabulary and the end-of-turn token.
        hidden: width, a multiple of 64 (heads of 32, two heads per 64).
        layers: number of layers.
        context: longest sequence.
        seed: seed of the weights.
    """
    torch.manual_seed(seed)
    special: dict[str, Any] = {
        "pad_token_id": tokenizer.pad_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "bos_token_id": None,
    }
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        intermediate_size=3 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 32,
        num_key_value_heads=hidden // 64,
        head_dim=32,  # the minimum of vLLM's CPU kernels
        max_position_embeddings=context,
        initializer_range=0.1,  # the usual 0.02 suits widths of thousands; at 64 it slows the first steps tenfold
        tie_word_embeddings=True,
        **special,
    )
    return Qwen3ForCausalLM(config)
