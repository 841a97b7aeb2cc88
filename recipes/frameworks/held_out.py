"""The score of a saved model on tasks that no run trains on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gem_evaluation import Entry, evaluate, load_model
from recipes.results import RecipeError


def evaluation(folder: Path, settings: Mapping[str, Any]) -> dict[str, float]:
    """Play `eval_episodes` tasks of `eval_env`, the same for every model, at temperature 1.

    Args:
        folder: the model, as transformers saves it; the framework that trained it does not matter.
        settings: of the run.

    Returns:
        Success, return and turns, with the names that the metrics of a training have.

    Raises:
        RecipeError: an episode failed.
        GemError: the environment or the model cannot be loaded.
    """
    entry = Entry(id=settings["eval_env"], tasks=settings["eval_episodes"], system_prompt=settings.get("system_prompt"))
    model = load_model(str(folder.absolute()), options={"max_tokens": settings["response_tokens"]})
    summary = evaluate(entry, model)[entry.label]
    if summary.success is None or summary.total_reward is None or summary.tasks < settings["eval_episodes"]:
        raise RecipeError(f"{entry.id}: only {summary.tasks} of {settings['eval_episodes']} episodes were finished")
    return {
        "eval_episode/success": round(summary.success.value, 4),
        "eval_episode/return": round(summary.total_reward.value, 4),
        "eval_episode/turns": round(summary.turns, 4),
    }
