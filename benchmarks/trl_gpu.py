"""The parts of a TRL step in seconds, with a model of Qwen3-0.6B's size and random weights on a GPU.

    python benchmarks/trl_gpu.py [--updates 5] [--episodes 64] [--response-tokens 128] [--json out.json]

Runs `examples/trl_guess_the_number.py` unchanged, on the corridor. A random model never reaches the end, so every
episode has its full eight turns. Prints seconds per step, split into generation, environment, adapter and update.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch
import tyro
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
import trl_guess_the_number as example

_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@dataclass
class Options:
    updates: int = 5
    """Updates; the first is left out of the average."""
    episodes: int = 64
    """Episodes per update."""
    response_tokens: int = 128
    """Token limit of one response."""
    json: Path | None = None
    """File for the figures."""


def main(options: Options) -> None:
    with tempfile.TemporaryDirectory() as folder:
        _random_model(f"{folder}/model")
        example.main(
            example.Options(
                model=f"{folder}/model",
                env="game:Corridor-v0",
                episodes=options.episodes,
                updates=options.updates,
                response_tokens=options.response_tokens,
                learning_rate=1e-6,
                output=f"{folder}/run",
            )
        )
        lines = [json.loads(line) for line in Path(f"{folder}/run/metrics.jsonl").read_text().splitlines()][1:]
    split = _split(lines)
    print(f"{_device()}, {options.episodes} episodes of {lines[-1]['episode/turns']:.1f} turns a step")
    for name, seconds in split.items():
        print(f"{name:12} {seconds:8.3f} s  {100 * seconds / split['step']:5.1f} %")
    if options.json:
        options.json.write_text(json.dumps({"device": _device(), "seconds": split, "steps": lines}, indent=1))


def _split(lines: list[dict[str, float]]) -> dict[str, float]:
    mean = {
        key: statistics.fmean(line[key] for line in lines)
        for key in ("step_time", "time/generation", "time/environment", "time/adapter")
    }
    parts = {key.partition("/")[2]: mean[key] for key in mean if "/" in key}
    return {**parts, "update": mean["step_time"] - sum(parts.values()), "step": mean["step_time"]}


def _device() -> str:
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"


def _random_model(folder: str) -> None:
    """Qwen3-0.6B's published architecture with random weights, and a byte-level tokenizer."""
    config = Qwen3Config(
        vocab_size=151_936,
        hidden_size=1024,
        intermediate_size=3072,
        num_hidden_layers=28,
        num_attention_heads=16,
        num_key_value_heads=8,
        head_dim=128,
        max_position_embeddings=40_960,
        tie_word_embeddings=True,
        eos_token_id=1,
        pad_token_id=0,
        bos_token_id=None,
    )
    torch.manual_seed(0)
    Qwen3ForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    special = ["<|endoftext|>", "<|im_end|>", "<|im_start|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    core = Tokenizer(models.BPE({token: at for at, token in enumerate([*special, *sorted(alphabet)])}, []))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token=special[0], eos_token=special[1], additional_special_tokens=special[2:]
    )
    tokenizer.chat_template = _TEMPLATE
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    main(tyro.cli(Options))
