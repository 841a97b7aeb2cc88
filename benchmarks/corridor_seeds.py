"""How surely an agent learns the corridor: many runs in TRL, each with a seed of its own for tasks and sampling.

    python benchmarks/corridor_seeds.py --seeds 100 [--episodes 64] [--updates 30] [--learning-rate 5e-4] \\
        [--gamma 0.7] [--entropy-coef 0.02] [--warm-start-steps 100]

The defaults are the settings with which the tests of all adapters learn. All runs start from the same weights, which
know words and format only; `--warm-start-steps 0` is from random ones. Prints a line for each run, and how many ended
with a mean success above 0.9 over the last five updates.
"""

from __future__ import annotations

import copy
import statistics
import tempfile
from dataclasses import dataclass

import torch
import tyro
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from gem_tiny import tiny_policy
from gem_trl import ProgressCallback, TurnGRPOConfig, TurnGRPOTrainer

ENV = "game:Corridor-v0"


@dataclass(frozen=True)
class Options:
    """How many runs, and with which settings."""

    seeds: int = 20
    first_seed: int = 0
    episodes: int = 64
    updates: int = 30
    learning_rate: float = 5e-4
    gamma: float = 0.7
    entropy_coef: float = 0.02
    warm_start_steps: int = 100


def main(options: Options) -> None:
    torch.set_num_threads(1)
    model, tokenizer = tiny_policy(ENV, warm_start_steps=options.warm_start_steps, seed=0)
    ends: list[float] = []
    reached: list[int] = []
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        success = _run(options, seed, copy.deepcopy(model), tokenizer)
        fives = [statistics.fmean(success[at - 5 : at]) for at in range(5, len(success) + 1)]
        first = next((at for at, mean in enumerate(fives, start=5) if mean > 0.9), None)
        reached += [] if first is None else [first]
        ends.append(fives[-1])
        print(f"seed {seed}: above 0.9 after update {first}, {ends[-1]:.2f} at the end", flush=True)
    print(f"{sum(end > 0.9 for end in ends)} of {len(ends)} runs ended above 0.9, the lowest at {min(ends):.2f}")
    if reached:
        print(f"Above 0.9 after update: median {statistics.median(reached):.0f}, last {max(reached)}")


def _run(options: Options, seed: int, model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast) -> list[float]:
    """Success of each batch."""
    with tempfile.TemporaryDirectory() as folder:
        args = TurnGRPOConfig(
            folder,
            env=ENV,
            advantage="rebn",
            gamma=options.gamma,
            per_device_train_batch_size=options.episodes,
            gradient_accumulation_steps=1,
            max_steps=options.updates,
            max_completion_length=4,
            learning_rate=options.learning_rate,
            lr_scheduler_type="constant",
            weight_decay=0.0,
            adam_beta2=0.95,
            max_grad_norm=0.5,
            entropy_coef=options.entropy_coef,
            vector_backend="sync",
            seed=seed,
            logging_steps=1,
            report_to="none",
            save_strategy="no",
            disable_tqdm=True,
        )
        progress = ProgressCallback(ENV)
        TurnGRPOTrainer(model, args, tokenizer, callbacks=[progress]).train()
    return [line["episode/success"] for line in progress.report.history]


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
