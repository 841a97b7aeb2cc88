"""One run of `curves.py` or `recipes.frameworks` in OpenRLHF, on the CPU; the settings come as JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

from gem_cpu import openrlhf as cpu


def main(settings: dict[str, Any]) -> None:
    values = {
        "--gem.env": settings["env"],
        "--gem.steps": settings["updates"],
        "--gem.advantage": settings["advantage"],
        "--gem.seed": settings["seed"],
        "--gem.report": settings["folder"],
        "--actor.model_name_or_path": settings["model"],
        "--actor.adam.lr": settings["learning_rate"],
        "--actor.lr_scheduler": "constant",
        "--actor.max_norm": settings["clip"],
        "--algo.advantage.gamma": settings["gamma"],
        "--algo.kl.init_coef": 0,
        "--rollout.batch_size": settings["episodes"],
        "--rollout.micro_batch_size": 8,
        "--rollout.max_new_tokens": settings["response_tokens"],
        "--data.max_len": 1024,
        "--train.batch_size": settings["episodes"],
        "--train.micro_batch_size": 8,
        "--train.seed": settings["seed"],
        "--ckpt.path": f"{settings['folder']}/ckpt",
        "--ckpt.output_dir": f"{settings['folder']}/model",
    }
    if rate := settings.get("critic_learning_rate"):
        values |= {
            "--critic.adam.lr": rate,
            "--critic.lr_scheduler": "constant",
            "--critic.max_norm": settings["clip"],
        }
    if prompt := settings.get("system_prompt"):
        values["--gem.system_prompt"] = prompt
    flags = [part for name, value in values.items() for part in (name, str(value))]
    if modules := settings.get("modules"):
        flags += ["--gem.modules", *modules]
    with cpu.on_cpu() as needed:
        from gem_openrlhf import launch

        launch(flags=[*needed, "--ckpt.disable_ds", "--actor.adam.betas", "0.9", "0.999", *flags])


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
