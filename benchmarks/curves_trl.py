"""One run of `curves.py` or `recipes.frameworks` in TRL; the settings come as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from gem_trl import ProgressCallback, TurnGRPOConfig, TurnGRPOTrainer


def main(settings: dict[str, Any]) -> None:
    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(settings["model"], dtype=torch.float32)
    train(model, AutoTokenizer.from_pretrained(settings["model"]), settings)


def train(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, settings: Mapping[str, Any], **more: Any
) -> list[dict[str, float]]:
    """Train with the settings, and `more` settings of `TurnGRPOConfig`. Returns the metrics of each update."""
    args = TurnGRPOConfig(
        settings["folder"],
        env=settings["env"],
        modules=settings.get("modules", []),
        advantage=settings["advantage"],
        gamma=settings["gamma"],
        system_prompt=settings.get("system_prompt"),
        per_device_train_batch_size=settings["episodes"],
        gradient_accumulation_steps=1,
        max_steps=settings["updates"],
        max_completion_length=settings["response_tokens"],
        learning_rate=settings["learning_rate"],
        lr_scheduler_type="constant",
        weight_decay=0.0,
        max_grad_norm=settings["clip"],
        seed=settings["seed"],
        logging_steps=1,
        report_to="none",
        save_strategy="no",
        **({"critic_learning_rate": rate} if (rate := settings.get("critic_learning_rate")) else {}),
        **more,
    )
    progress = ProgressCallback(settings["env"])
    trainer = TurnGRPOTrainer(model, args, tokenizer, callbacks=[progress])
    trainer.train()
    if settings.get("save"):
        trainer.save_model()
    return progress.report.history


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
