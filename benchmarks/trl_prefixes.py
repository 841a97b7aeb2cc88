r"""The time that `keep_prefixes` saves in TRL: CPU seconds of sampling and of the whole run, with and without it.

    OMP_NUM_THREADS=1 python benchmarks/trl_prefixes.py
    OMP_NUM_THREADS=1 python benchmarks/trl_prefixes.py --model smollm2 --lora 16 --env game:PlainGuess-v0 \
        --system-prompt "You guess numbers." --episodes 24 --response-tokens 6 --updates 2

Both runs have the same seed. The script fails if their first returns differ. Later ones may, as rounding differs.
"""

import itertools
import tempfile
import time
from dataclasses import dataclass
from typing import Any

from peft import LoraConfig
from transformers import PrinterCallback

from gem_tiny import tiny_policy
from gem_trl import TurnGRPOConfig, TurnGRPOTrainer


@dataclass
class Options:
    model: str = "tiny"
    lora: int = 0
    system_prompt: str | None = None
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
    if curves[0][0] != curves[1][0]:
        raise SystemExit(f"the curves differ: {curves}")
    same = [*itertools.takewhile(lambda pair: pair[0] == pair[1], zip(*curves, strict=True))]
    print(f"the same returns in {len(same)} of {len(curves[0])} updates")


def run(options: Options, keep: bool) -> list[float]:
    model, tokenizer = options.model, None
    if model == "tiny":
        model, tokenizer = tiny_policy(options.env, warm_start_steps=options.warm_start_steps)
    lora = LoraConfig(r=options.lora, lora_alpha=2 * options.lora, target_modules="all-linear")
    with tempfile.TemporaryDirectory() as folder:
        args = TurnGRPOConfig(
            folder,
            env=[options.env],
            env_kwargs=options.env_kwargs,
            gamma=0.95,
            keep_prefixes=keep,
            system_prompt=options.system_prompt,
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
        trainer = TimedTrainer(model, args, tokenizer, peft_config=lora if options.lora else None)
        trainer.remove_callback(PrinterCallback)
        started = time.process_time()
        trainer.train()
        whole = time.process_time() - started
    print(f"keep_prefixes={keep}: sampling {trainer.sampling:.2f} s, training {whole:.2f} s", flush=True)
    return [line["episode/return"] for line in trainer.state.log_history if "episode/return" in line]


if __name__ == "__main__":
    import tyro

    main(tyro.cli(Options))
