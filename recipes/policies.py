"""The model that a run begins with."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from gem_core import make
from gem_core.env import Env
from gem_tiny import MAX_PLAYED_TURNS, tiny_model, tiny_tokenizer, warm_start
from gem_train.models import model_folder
from gem_train.settings import RunSettings
from recipes.results import RecipeError
from recipes.source import commit
from recipes.study import WarmStart

CHECKED = 200
"""Episodes of random play of each environment that are checked for knowledge."""
DEVIATIONS = 4
"""Standard errors above chance at which play counts as knowing something."""
_ADAPTERS: Mapping[str, Any] = {"r": 16, "lora_alpha": 32, "target_modules": "all-linear", "task_type": "CAUSAL_LM"}
_READING: Mapping[str, Any] = {"batch": 24, "learning_rate": 3e-4}
"""Of a warm start of a named model, as in `examples/trl_smollm2.py`."""


def policy(model: WarmStart, seed: int, cache: Path) -> tuple[Any, Any, float]:
    """A model, its tokenizer, and the success of the random play that it read.

    Raises:
        RecipeError: the random play succeeds more often than `model.chance`.
    """
    folder, success = saved(model, seed, cache)
    weights = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return weights, AutoTokenizer.from_pretrained(folder), success


def saved(model: WarmStart, seed: int, cache: Path) -> tuple[Path, float]:
    """The folder of a model and its tokenizer, and the success of the random play that it read.

    Warm starts are kept in `cache`, by their settings and the commit that made them.

    Raises:
        RecipeError: the random play succeeds more often than `model.chance`.
    """
    torch.set_num_threads(1)
    key = hashlib.sha256(json.dumps([asdict(model), seed, commit()]).encode()).hexdigest()[:16]
    folder = cache / key
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as draft:
            (Path(draft) / "play.json").write_text(json.dumps(checked(model)))
            _build(model, seed, Path(draft) / "weights")
            _publish(Path(draft), folder)
    return folder / "weights", json.loads((folder / "play.json").read_text())


def checked(model: WarmStart) -> float:
    """The share of episodes of random play that succeed.

    Raises:
        RecipeError: the share is more than `DEVIATIONS` standard errors above `model.chance`.
    """
    success = _success(model, CHECKED)
    variance = max(model.chance * (1 - model.chance), 1 / CHECKED)
    error = (variance / (CHECKED * len(model.env))) ** 0.5
    if success > model.chance + DEVIATIONS * error:
        raise RecipeError(
            f"random play of {', '.join(model.env)} succeeds in {success:.2f} of its episodes, and play without "
            f"knowledge in {model.chance:.2f}: the warm start would teach answers. Next: add "
            "recipes.actions:OtherAnswers to the wrappers of the warm start"
        )
    return success


def _publish(draft: Path, folder: Path) -> None:
    """Give a finished folder its name, unless another process was first; nobody reads half of a folder."""
    whole = draft / "whole"
    whole.mkdir()
    for name in ("play.json", "weights"):
        (draft / name).rename(whole / name)
    with suppress(OSError):
        whole.rename(folder)


def _build(model: WarmStart, seed: int, folder: Path) -> None:
    options: dict[str, Any] = {"wrappers": _wrappers(model), "env_kwargs": dict(model.env_kwargs), "seed": seed}
    for part in _based(model, options) if model.base else _tiny(model, options):
        part.save_pretrained(folder)


def _based(model: WarmStart, options: dict[str, Any]) -> tuple[Any, Any]:
    from peft import LoraConfig, get_peft_model

    source = model_folder(str(model.base))
    weights: Any = AutoModelForCausalLM.from_pretrained(source, torch_dtype=torch.float32)
    tokenizer: Any = AutoTokenizer.from_pretrained(source)
    torch.manual_seed(options["seed"])
    adapted: Any = get_peft_model(weights, LoraConfig(**_ADAPTERS))
    reading = {**_READING, **options, "system_prompt": model.system_prompt}
    warm_start(weights, tokenizer, model.env, steps=model.steps, episodes=model.episodes, **reading)
    return adapted.merge_and_unload(), tokenizer


def _tiny(model: WarmStart, options: dict[str, Any]) -> tuple[Any, Any]:
    seed = options["seed"]
    tokenizer = tiny_tokenizer(model.env, digits=model.digits, **options)
    weights = tiny_model(tokenizer, hidden=model.hidden, seed=seed)
    if model.steps:
        warm_start(weights, tokenizer, model.env, steps=model.steps, episodes=model.episodes, **options)
    return weights, tokenizer


def _wrappers(model: WarmStart) -> list[Any]:
    return RunSettings(env=list(model.env), wrappers=list(model.wrappers)).load_wrappers()


def _success(model: WarmStart, episodes: int) -> float:
    wins = 0
    for env_id in model.env:
        env = make(env_id, **model.env_kwargs)
        for wrapper in _wrappers(model):
            env = wrapper(env)
        with closing(env):
            wins += sum(_wins(env, seed) for seed in range(episodes))
    return wins / (episodes * len(model.env))


def _wins(env: Env, seed: int) -> bool:
    env.reset(seed=seed)
    for _ in range(MAX_PLAYED_TURNS):
        _, _, terminated, truncated, info = env.step(env.sample_random_action())
        if terminated or truncated:
            return bool(info.get("success"))
    return False
