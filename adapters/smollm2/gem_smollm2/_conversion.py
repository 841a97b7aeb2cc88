"""From the GGUF file to a folder that every framework loads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import torch
from tokenizers import pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig, LlamaForCausalLM

END = 2
"""The id of `<|im_end|>`, which ends a turn and pads."""
ROPE_THETA = 100_000.0
"""The base of the rotary positions, as the file says."""


def convert(gguf: Path, target: Path) -> None:
    """Write the model, in bfloat16, and its tokenizer as `save_pretrained` does.

    Args:
        gguf: the file of weights.
        target: the new folder.
    """
    _save_tokenizer(gguf, target)
    # `torch_dtype` is the one name of it that transformers 4.51 and 5 know.
    loaded: Any = cast("Any", AutoModelForCausalLM).from_pretrained(
        gguf.parent, gguf_file=gguf.name, torch_dtype=torch.float32
    )
    config = loaded.config
    # transformers 5 refuses to save what it has read from a quantized file; transformers 4 does not mark it.
    config.__dict__.pop("quantization_config", None)
    model: Any = LlamaForCausalLM(config)
    model.load_state_dict(loaded.state_dict())
    model.generation_config = GenerationConfig(bos_token_id=1, eos_token_id=END, pad_token_id=END)
    model.to(torch.bfloat16).save_pretrained(target)
    # transformers 5 writes the base of the rotary positions under a name that transformers 4 does not read: it would
    # take 10,000, and be another model.
    _change(target / "config.json", rope_theta=ROPE_THETA, torch_dtype="bfloat16")


def _save_tokenizer(gguf: Path, target: Path) -> None:
    tokenizer: Any = cast("Any", AutoTokenizer).from_pretrained(gguf.parent, gguf_file=gguf.name)
    # The file does not say that digits are tokens of their own, as in SmolLM2's own tokenizer.
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=True),
        ]
    )
    tokenizer.save_pretrained(target)
    # transformers 4 does not know the class that transformers 5 names.
    _change(target / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")


def _change(path: Path, **changes: Any) -> None:
    settings = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**settings, **changes}, indent=2), encoding="utf-8")
