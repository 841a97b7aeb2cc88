"""One run of `curves.py` or `recipes.frameworks` in Oat, on the CPU; the settings come as JSON. The whole program in
Python 3.10, otherwise the lighter form."""

from __future__ import annotations

import json
import sys
from typing import Any

from gem_cpu import oat as cpu


def main(settings: dict[str, Any]) -> None:
    flags = cpu.prepare()
    from oat.args import get_default_args

    from gem_oat import GemOatArgs, run

    values = {
        "--env": settings["env"],
        "--max_train": settings["updates"] * settings["episodes"],
        "--advantage": settings["advantage"],
        "--seed": settings["seed"],
        "--report": settings["folder"],
        "--pretrain": settings["model"],
        "--learning_rate": settings["learning_rate"],
        "--adam_beta_2": 0.999,
        "--lr_scheduler": "constant",
        "--lr_warmup_ratio": 0,
        "--max_norm": settings["clip"],
        "--gamma": settings["gamma"],
        "--beta": 0,
        "--rollout_batch_size_per_device": settings["episodes"],
        "--train_batch_size": settings["episodes"],
        "--train_batch_size_per_device": 8,
        "--generate_max_length": settings["response_tokens"],
        "--max_model_len": 1024,
        "--eval_steps": -1,
        "--gpus": 1,
        "--save_path": f"{settings['folder']}/oat",
    }
    if settings.get("save"):
        values["--save_steps"] = settings["updates"]
    if prompt := settings.get("system_prompt"):
        values["--system_prompt"] = prompt
    if rate := settings.get("critic_learning_rate"):
        values["--critic_learning_rate"] = rate
    sys.argv[1:] = [*flags, "--collocate", *(str(part) for pair in values.items() for part in pair)]
    if modules := settings.get("modules"):
        sys.argv += ["--modules", *modules]
    run(get_default_args(GemOatArgs))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
