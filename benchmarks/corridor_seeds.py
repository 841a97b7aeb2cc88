"""How reliably an agent learns the corridor: many runs in TRL, each with its own seed for tasks and sampling.

    python benchmarks/corridor_seeds.py --seeds 100 [--episodes 64] [--updates 28] [--learning-rate 5e-4] \\
        [--gamma 0.7] [--entropy-coef 0] [--weights-seed 0]

The defaults are those of `adapters/trl/tests/test_learning.py`, and the tests of the other adapters use the same
numbers. All runs start from the same warm-started weights. A run has learned if it meets the condition of the tests: a
mean success below 0.7 in the first three updates and above 0.9 in the last five. Prints a line for each run, the number
of runs that learned, and the first update above 0.9.
"""

from __future__ import annotations

import copy
import statistics
import tempfile
from dataclasses import dataclass

import torch
import tyro
from curves_trl import train
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from gem_tiny import tiny_policy

ENV = "game:Corridor-v0"


@dataclass(frozen=True)
class Options:
    """How many runs, and with which settings."""

    seeds: int = 20
    first_seed: int = 0
    episodes: int = 64
    updates: int = 28
    learning_rate: float = 5e-4
    gamma: float = 0.7
    entropy_coef: float = 0.0
    weights_seed: int = 0


def main(options: Options) -> None:
    if options.seeds < 1 or options.updates < 5:
        raise SystemExit(f"at least 1 seed and 5 updates are needed, not {options.seeds} and {options.updates}")
    torch.set_num_threads(1)
    model, tokenizer = tiny_policy(ENV, warm_start_steps=100, seed=options.weights_seed)
    starts: list[float] = []
    ends: list[float] = []
    reached: list[int] = []
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        success = _run(options, seed, copy.deepcopy(model), tokenizer)
        fives = [statistics.fmean(success[at - 5 : at]) for at in range(5, len(success) + 1)]
        first = next((at for at, mean in enumerate(fives, start=5) if mean > 0.9), None)
        reached += [] if first is None else [first]
        starts.append(statistics.fmean(success[:3]))
        ends.append(fives[-1])
        print(
            f"seed {seed}: {starts[-1]:.2f} at the start, above 0.9 after update {first}, {ends[-1]:.2f} at the end",
            flush=True,
        )
    learnt = sum(start < 0.7 and end > 0.9 for start, end in zip(starts, ends, strict=True))
    print(
        f"{learnt} of {len(ends)} runs learned; the highest start is {max(starts):.2f}, the lowest end {min(ends):.2f}"
    )
    if reached:
        print(f"Above 0.9 after update: median {statistics.median(reached):.0f}, last {max(reached)}")


def _run(options: Options, seed: int, model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast) -> list[float]:
    """Success rate of each batch."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "folder": folder,
            "env": ENV,
            "advantage": "rebn",
            "gamma": options.gamma,
            "episodes": options.episodes,
            "updates": options.updates,
            "response_tokens": 4,
            "learning_rate": options.learning_rate,
            "clip": 0.5,
            "seed": seed,
        }
        more = {"adam_beta2": 0.95, "entropy_coef": options.entropy_coef, "vector_backend": "sync"}
        metrics = train(model, tokenizer, settings, **more, disable_tqdm=True)
    return [line["episode/success"] for line in metrics]


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
