"""TRL's colocated vLLM on a CPU; run by `nox -s trl_vllm`, in a separate virtual environment.

Plain `linear` replaces vLLM's CPU kernels, which repack weights on loading, so that TRL's weight sync would find no
`weight_loader`. Everything else is the installed TRL and vLLM.
"""

from __future__ import annotations

import os
import tempfile

os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
os.environ.setdefault("RANK", "0")
os.environ.setdefault("LOCAL_RANK", "0")
os.environ.setdefault("WORLD_SIZE", "1")
os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "29511")

import torch
import vllm.model_executor.layers.utils as layers
from conftest import QUIET, SMALL
from spy import SpyTrainer, assert_same

from gem_tiny import tiny_model, tiny_tokenizer
from gem_trl import TurnGRPOConfig


def main(folder: str) -> None:
    def plain_linear(layer: torch.nn.Module, remove_weight: bool) -> None:
        layer.cpu_linear = torch.nn.functional.linear

    layers.dispatch_cpu_unquantized_gemm = plain_linear
    tokenizer = tiny_tokenizer(["test:Babble-v0"])
    tiny_model(tokenizer, seed=0).save_pretrained(f"{folder}/model")
    tokenizer.save_pretrained(f"{folder}/model")
    vllm = {"use_vllm": True, "vllm_mode": "colocate", "vllm_max_model_length": 512, "learning_rate": 1e-3}
    for row in ("episode", "turn"):
        args = TurnGRPOConfig(folder, **{**QUIET, **SMALL, **vllm, "row": row, "max_steps": 3})
        run = SpyTrainer(f"{folder}/model", args, tokenizer)
        run.train()
        assert sorted((one.before, one.ids) for one in run.trained_responses()) == sorted(run.sampled)
        assert_same(run.trained_responses(), run.expected_responses("rebn", 0.9))
        worst = max(line.get("sampling/sampling_logp_difference/max", 0.0) for line in run.state.log_history)
        assert 0.0 < worst < 0.1, f"vLLM and trainer disagree by {worst}: the weights were not synchronised"
        print(f"row={row}: {len(run.sampled)} responses, ids equal, largest log-probability difference {worst:.4f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        main(scratch)
