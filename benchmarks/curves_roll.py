"""One run of `curves.py` or `recipes.frameworks` in ROLL, on the CPU; the settings come as JSON.

`ROLL_HOME` is the clone of ROLL.
"""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

from gem_cpu import roll as cpu

CONFIG = runpy.run_path(str(Path(__file__).parents[1] / "examples/roll_guess_the_number.py"))["CONFIG"]


def main(settings: dict[str, Any]) -> None:
    values = {
        "gem.env": settings["env"],
        "+gem.modules": json.dumps(settings.get("modules", [])),
        "gem.advantage": settings["advantage"],
        "gem.system_prompt": json.dumps(settings.get("system_prompt")),
        "+gem.seed": settings["seed"],
        "gem.report": settings["folder"],
        "pretrain": settings["model"],
        "seed": settings["seed"],
        "max_steps": settings["updates"],
        "rollout_batch_size": settings["episodes"],
        "sequence_length": settings.get("context", 1024),  # every row is padded to it
        "step_reward_gamma": settings["gamma"],
        "max_grad_norm": settings["clip"],
        "entropy_loss_coef": 0,
        "train_env_manager.generating_args.max_new_tokens": settings["response_tokens"],
        "actor_train.training_args.learning_rate": settings["learning_rate"],
        "actor_train.training_args.lr_scheduler_type": "constant",
        "actor_train.training_args.per_device_train_batch_size": 8,
        "actor_train.infer_batch_size": 8,
        "output_dir": f"{settings['folder']}/output",
        "logging_dir": f"{settings['folder']}/logs",
        "checkpoint_config.output_dir": f"{settings['folder']}/checkpoints",
    }
    flags = [f"{name}={value}" for name, value in values.items()]
    with cpu.on_cpu() as needed:
        from gem_roll import compose, train

        train(compose(CONFIG, [*needed, *flags]))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
