"""One run of `curves.py` or `recipes.frameworks` in verl, on the CPU; the settings come as JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

from gem_cpu import verl as cpu


def main(settings: dict[str, Any]) -> None:
    flags = [
        f"gem.env={settings['env']}",
        f"gem.modules={json.dumps(settings.get('modules', []))}",
        f"gem.max_response_tokens={settings['response_tokens']}",
        f"gem.system_prompt={json.dumps(settings.get('system_prompt'))}",
        f"gem.report={settings['folder']}",
        f"gem.seed={settings['seed']}",
        f"algorithm.adv_estimator={settings['advantage']}",
        f"algorithm.gamma={settings['gamma']}",
        f"data.train_batch_size={settings['episodes']}",
        f"actor_rollout_ref.model.path={settings['model']}",
        f"actor_rollout_ref.rollout.seed={settings['seed']}",
        f"actor_rollout_ref.actor.ppo_mini_batch_size={settings['episodes']}",
        f"actor_rollout_ref.actor.optim.lr={settings['learning_rate']}",
        f"actor_rollout_ref.actor.optim.clip_grad={settings['clip']}",
        "actor_rollout_ref.actor.optim.weight_decay=0",
        f"trainer.total_training_steps={settings['updates']}",
        "trainer.val_before_train=False",
    ]
    if settings.get("save"):
        flags += [
            f"trainer.save_freq={settings['updates']}",
            f"trainer.default_local_dir={settings['folder']}/checkpoints",
            "actor_rollout_ref.actor.checkpoint.save_contents=[hf_model]",
        ]
    if rate := settings.get("critic_learning_rate"):
        flags += [
            f"critic.model.path={settings['model']}",
            f"critic.model.tokenizer_path={settings['model']}",
            f"critic.optim.lr={rate}",
            f"critic.optim.clip_grad={settings['clip']}",
            "critic.optim.weight_decay=0",
        ]
    with cpu.on_cpu() as needed:
        from gem_verl import compose, train

        train(compose([*needed, *flags]))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
