"""The same weights, sampled with transformers and with vLLM on the CPU, both in this process: `nox -s eval_vllm`.

    vllm_engine.py [FOLDER]

FOLDER has a model that some training saved; without it, a tiny one is made.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer
from vllm_server import ENVIRONMENT, GAME, OPTIONS, overlap

from gem_evaluation import Entry, Results, evaluate, load_model
from gem_evaluation._engines import EngineName
from gem_evaluation._store import read_episodes


def played(folder: str, output: Path, engine: EngineName | None, temperature: float, entry: Entry) -> Results:
    """An evaluation in a folder of its own."""
    model = load_model(folder, options={**OPTIONS, "temperature": temperature}, engine=engine)
    return evaluate(entry, model, output=output)


def first_responses(output: Path) -> dict[int, str]:
    """By task. Later ones depend on all before, so one rounding would change them."""
    return {one.key.task_id: one.episode.turns[0].response for one in read_episodes(output)}


def saved_adapter(base: str, folder: Path) -> str:
    """A LoRA adapter of a model, with random weights."""
    torch.manual_seed(0)
    config = LoraConfig(r=12, target_modules="all-linear", task_type="CAUSAL_LM", init_lora_weights=False)
    get_peft_model(AutoModelForCausalLM.from_pretrained(base), config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(base).save_pretrained(folder)
    return str(folder)


def main(scratch: str, folder: str | None = None) -> None:
    """Evaluate twice and compare."""
    if folder is None:
        from gem_tiny import tiny_policy

        folder = f"{scratch}/model"
        for part in tiny_policy(GAME, warm_start_steps=200, seed=0):
            part.save_pretrained(folder)
    runs = Path(scratch)
    entry = Entry(id=GAME, tasks=100, repeats=2)
    here = played(folder, runs / "here", "transformers", 1.0, entry)
    print("transformers:", here.together.success, flush=True)
    there = played(folder, runs / "there", None, 1.0, entry)
    print("vLLM:", there.together.success, there.identity["model"]["versions"], flush=True)
    assert there.identity["model"]["engine"] == "vllm", "the default where it is installed"
    assert there.together.episodes.finished == here.together.episodes.finished == 200
    assert overlap(here.together, there.together)
    greedy = Entry(id=GAME, tasks=20)
    for name in ("transformers", "vllm"):
        played(folder, runs / f"greedy-{name}", name, 0.0, greedy)
    same = first_responses(runs / "greedy-transformers")
    assert first_responses(runs / "greedy-vllm") == same
    print("at temperature 0, the same first responses:", len(same))
    adapter = saved_adapter(folder, runs / "adapter")
    for name in ("transformers", "vllm"):
        played(adapter, runs / f"adapter-{name}", name, 0.0, greedy)
    adapted = first_responses(runs / "adapter-transformers")
    assert first_responses(runs / "adapter-vllm") == adapted != same
    print("with an adapter, the same first responses:", len(adapted))
    full = played(folder, runs / "full", "vllm", 1.0, Entry(id=GAME, tasks=2, system_prompt="1 " * 5000)).together
    assert full.stop_reasons == {"context_full": 2}, full
    print("a prompt that is too long:", full.stop_reasons)


if __name__ == "__main__":
    os.environ.update({name: value for name, value in ENVIRONMENT.items() if name not in os.environ})
    with tempfile.TemporaryDirectory() as scratch:
        main(scratch, *sys.argv[1:])
