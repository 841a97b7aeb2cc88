"""What keeping keys and values between turns saves in TRL: CPU seconds of sampling and of all, with and without.

    OMP_NUM_THREADS=1 python benchmarks/trl_prefixes.py

Both runs have the same seed. The script fails if their returns differ.
"""

import tempfile
import time
from dataclasses import dataclass
from typing import Any

from transformers import PrinterCallback

from gem_tiny import tiny_policy
from gem_trl import TurnGRPOConfig, TurnGRPOTrainer


@dataclass
class Options:
    env: str = "game:GuessTheNumber-v0-easy"
    updates: int = 15
    episodes: int = 128
    warm_start_steps: int = 100  # enough for episodes of several turns
    response_tokens: int = 4
    env_kwargs: str = "{}"  # JSON, for example '{"max_turns": 20}'


class TimedTrainer(TurnGRPOTrainer):
    """Measures the CPU time of sampling."""

    sampling = 0.0

    def _generate_single_turn(self, *args: Any, **kwargs: Any) -> Any:
        started = time.process_time()
        found = super()._generate_single_turn(*args, **kwargs)
        self.sampling += time.process_time() - started
        return found


def main(options: Options) -> None:
    curves = [run(options, keep) for keep in (False, True)]
    if curves[0] != curves[1]:
        raise SystemExit(f"the curves differ: {curves}")
    print(f"the same {len(curves[0])} returns, {curves[0][0]:.4f} to {curves[0][-1]:.4f}")


def run(options: Options, keep: bool) -> list[float]:
    model, tokenizer = tiny_policy(options.env, warm_start_steps=options.warm_start_steps)
    with tempfile.TemporaryDirectory() as folder:
        args = TurnGRPOConfig(
            folder,
            env=[options.env],
            env_kwargs=options.env_kwargs,
            gamma=0.95,
            keep_prefixes=keep,
            per_device_train_batch_size=options.episodes,
            max_steps=options.updates,
            max_completion_length=options.response_tokens,
            learning_rate=1e-3,
            entropy_coef=0.04,
            adam_beta2=0.95,
            max_grad_norm=0.5,
            seed=0,
            logging_steps=1,
            report_to="none",
            save_strategy="no",
            disable_tqdm=True,
        )
        trainer = TimedTrainer(model, args, tokenizer)
        trainer.remove_callback(PrinterCallback)
        started = time.process_time()
        trainer.train()
        whole = time.process_time() - started
    print(f"keep_prefixes={keep}: sampling {trainer.sampling:.2f} s, training {whole:.2f} s", flush=True)
    return [line["episode/return"] for line in trainer.state.log_history if "episode/return" in line]


if __name__ == "__main__":
    import tyro

    main(tyro.cli(Options))
