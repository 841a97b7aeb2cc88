"""verl with vLLM sampling on the CPU, by hand (`nox -s verl_vllm`): the trained ids are the ids that vLLM sampled."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from pathlib import Path

from gem_cpu import verl as cpu
from gem_cpu.verl import vllm

os.environ.update(cpu.environment())

from runs import train, trained_responses
from transformers import Qwen3Config, Qwen3ForCausalLM

from gem_support.byte_level import byte_level_bpe


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="verl_vllm"))
    tokenizer = byte_level_bpe()
    # vLLM's CPU kernels need heads of at least 32 dimensions, and an embedding for exactly the tokenizer's tokens.
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,
        max_position_embeddings=1024,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    Qwen3ForCausalLM(config).float().save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    flags = [
        *vllm.overrides(512),
        "gem.env=test:Babble-v0",
        "gem.max_response_tokens=6",
        "gem.truncated_is_invalid=False",
        "data.max_prompt_length=256",
        "data.max_response_length=256",
        "data.train_batch_size=16",
        "actor_rollout_ref.actor.ppo_mini_batch_size=16",
        "actor_rollout_ref.actor.optim.lr=1e-3",
        "trainer.total_training_steps=3",
    ]
    run = train(folder, folder / "model", flags, environment=vllm.environment(folder / "vllm"))
    assert run.code == 0, run.output  # the cause is often far from the end
    sampled = Counter((tuple(one["prompt"]), tuple(one["ids"])) for one in run.sampled)
    trained = Counter((one.before, one.ids) for batch in run.batches for one in trained_responses(batch))
    assert trained == sampled
    apart = max(line["training/rollout_probs_diff_max"] for line in run.metrics)
    assert apart < 1e-5, f"vLLM and the trainer are {apart:.2g} apart: its weights were not synchronised"
    print(
        f"{sum(trained.values())} responses, ids equal, largest probability difference of vLLM and trainer {apart:.2g}"
    )


if __name__ == "__main__":
    main()
