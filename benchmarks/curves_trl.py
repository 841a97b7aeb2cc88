"""One run of `curves.py` in TRL; the settings come as JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from gem_trl import ProgressCallback, TurnGRPOConfig, TurnGRPOTrainer


def main(settings: dict[str, Any]) -> None:
    torch.set_num_threads(1)
    args = TurnGRPOConfig(
        settings["folder"],
        env=settings["env"],
        advantage=settings["advantage"],
        gamma=settings["gamma"],
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
    )
    model = AutoModelForCausalLM.from_pretrained(settings["model"], dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(settings["model"])
    TurnGRPOTrainer(model, args, tokenizer, callbacks=[ProgressCallback(settings["env"])]).train()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
