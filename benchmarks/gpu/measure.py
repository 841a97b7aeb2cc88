"""TRL on one GPU in a few minutes: is what trains what was sampled, does a real model learn, where do the seconds go?

    bash benchmarks/gpu/run.sh                              # on the machine with the GPU; it needs no network
    bash benchmarks/gpu/run.sh --device cpu --minutes 2     # a rehearsal with smaller numbers

Three phases, each with a share of the time:

- `truth`: ids in TRL's loss are the ids sampled, and ReBN in the loss is the formula's, with SmolLM2 in the corridor.
- `learning`: SmolLM2 learns to guess a number in plain words, with LoRA.
- `size`: a model of Qwen3-0.6B's size with random weights plays the corridor, whose end it never reaches, so that all
  episodes are long.

Prints a line per update, and for each phase the shares of generation, environment, adapter and update, and tokens a
second. `results.json` has all of it after each phase. An interrupt ends the run after the report of its phase.
"""

from __future__ import annotations

import gc
import json
import platform
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import torch
import tyro
from peft import LoraConfig
from spy import SpyTrainer
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PrinterCallback,
    Qwen3Config,
    Qwen3ForCausalLM,
    TrainerCallback,
)

from gem_support.byte_level import byte_level_bpe
from gem_tiny import warm_start
from gem_train.models import model_folder
from gem_trl import TurnGRPOConfig, TurnGRPOTrainer

Numbers = dict[str, Any]
TOLERANCE = 1e-5
"""Of an advantage."""
SAMPLING = ("generation", "environment", "adapter")
"""The parts of an update before the loss, in its metrics."""


@dataclass
class Options:
    minutes: float = 6.0
    """For all phases together, without the imports and the conversion of SmolLM2."""
    device: Literal["cuda", "cpu"] = "cuda" if torch.cuda.is_available() else "cpu"
    phases: tuple[str, ...] = ("truth", "learning", "size")
    model: str = "smollm2"
    """Name or folder; `random` gives `truth` the model of `size`, and `learning` makes no sense then."""
    output: Path = Path("runs/gpu")
    """Folder for results.json, and the metrics and curve of each phase."""


@dataclass(frozen=True)
class Scale:
    """Sizes for a device."""

    dtype: torch.dtype
    truth_episodes: int
    learning_episodes: int
    learning_micro_batch: int
    learning_updates: int
    size_episodes: int
    size_micro_batch: int
    size_tokens: int
    """Token limit of a response of the model with random weights, which ends none itself."""
    shape: Mapping[str, int]


QWEN3_06B = {
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
}
SCALES = {
    "cuda": Scale(
        dtype=torch.bfloat16,
        truth_episodes=32,
        learning_episodes=128,
        learning_micro_batch=64,
        learning_updates=60,
        size_episodes=64,
        size_micro_batch=16,
        size_tokens=64,
        shape=QWEN3_06B,
    ),
    "cpu": Scale(
        dtype=torch.float32,
        truth_episodes=2,
        learning_episodes=4,
        learning_micro_batch=4,
        learning_updates=60,
        size_episodes=4,
        size_micro_batch=2,
        size_tokens=4,
        shape={**QWEN3_06B, "hidden_size": 64, "num_hidden_layers": 2},
    ),
}


@dataclass(eq=False)
class Stopwatch(TrainerCallback):
    """Times updates, prints a line for each, and ends the run before an update that would not end in time.

    Args:
        deadline: of `time.monotonic()`.
    """

    deadline: float
    device: str
    lines: list[Numbers] = field(default_factory=list[Numbers])
    _began: float = 0.0
    _seconds: float = 0.0
    _trained: int = 0

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self._began = self._now()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        now = self._now()
        self._seconds = now - self._began
        control.should_training_stop |= now + self._seconds > self.deadline

    def on_log(self, args: Any, state: Any, control: Any, logs: Numbers | None = None, **_: Any) -> None:
        if not logs or "episode/return" not in logs:
            return
        parts = {name: logs[f"time/{name}"] for name in SAMPLING}
        line = {
            "seconds": self._seconds,
            **parts,
            "update": self._seconds - sum(parts.values()),
            "sampled": logs["episode/response_tokens"] * args.episodes_per_process,
            "trained": self._trained,
            **{name: logs[f"episode/{name}"] for name in ("return", "success", "turns")},
        }
        self._trained = 0
        self.lines.append(line)
        shown = "  ".join(f"{name} {value:.3g}" for name, value in line.items())
        print(f"  {state.global_step:3d}  {shown}", flush=True)

    def count(self, inputs: Mapping[str, torch.Tensor]) -> None:
        """Count the tokens of a micro-batch, prompts and environments' included, paddings not."""
        self._trained += int(inputs["prompt_mask"].sum() + inputs["completion_mask"].sum())

    def _now(self) -> float:
        # The optimizer's kernels would otherwise count for the next update's generation.
        if self.device == "cuda":
            torch.cuda.synchronize()
        return time.monotonic()


class TimedTrainer(TurnGRPOTrainer):
    """Has a stopwatch."""

    def __init__(self, watch: Stopwatch, *args: Any, **kwargs: Any) -> None:
        self.watch = watch
        super().__init__(*args, callbacks=[watch], **kwargs)

    def compute_loss(self, model: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        self.watch.count(inputs)
        return super().compute_loss(model, inputs, *args, **kwargs)


def main(options: Options) -> int:
    options.output.mkdir(parents=True, exist_ok=True)
    results: dict[str, Numbers] = {"machine": machine(options.device)}
    report(results["machine"])
    if options.model != RANDOM:
        print(f"model: {model_folder(options.model)}", flush=True)  # SmolLM2 is made first
    left = {name: PHASES[name] for name in options.phases}
    until, interrupted = time.monotonic() + 60 * options.minutes, False
    while left and not interrupted:
        began, shares = time.monotonic(), sum(share for share, _ in left.values())
        name, (share, phase) = next(iter(left.items()))
        seconds = max(0.0, until - began) * share / shares
        print(f"\n{name}: up to {seconds:.0f} s", flush=True)
        found = results[name] = Numbers()
        try:
            phase(options, SCALES[options.device], began + seconds, found)
        except KeyboardInterrupt:
            interrupted = found["interrupted"] = True
        except Exception as error:  # whatever it is, the other phases may still work
            traceback.print_exc()
            found["wrong"] = f"{type(error).__name__}: {error}"
        del left[name]
        report(found)
        (options.output / "results.json").write_text(json.dumps(results, indent=1))
        free(options.device)
    wrong = [name for name, found in results.items() if "wrong" in found]
    missing = [name for name in options.phases if name not in results]
    print(f"\nwrong: {', '.join(wrong) or 'nothing'}; not begun: {', '.join(missing) or 'nothing'}")
    return len(wrong) + len(missing)


def truth(options: Options, scale: Scale, deadline: float, found: Numbers) -> None:
    """Two updates for each kind of row: the responses in the loss against those sampled, and against the formula."""
    for row in ("episode", "turn"):
        model, tokenizer = policy(options, scale)
        # Every return to go differs here, whatever the model says.
        settings = arguments(options, f"truth-{row}", LONG)
        args = TurnGRPOConfig(**settings, row=row, per_device_train_batch_size=scale.truth_episodes, max_steps=2)
        trainer = SpyTrainer(model, args, tokenizer)
        trainer.remove_callback(PrinterCallback)
        trainer.train()
        numbers = found[f"row={row}"] = compared(trainer, tokenizer)
        if not numbers["ids trained = ids sampled"]:
            found["wrong"] = "ids were trained that were not sampled"
        elif not numbers["largest difference from the formula"] <= TOLERANCE:
            found["wrong"] = "advantages in the loss are not the formula's"
        elif not numbers["advantages that are not 0"]:
            found["wrong"] = "all returns were equal, so nothing was compared"
        if time.monotonic() > deadline:
            return


def compared(trainer: SpyTrainer, tokenizer: Any) -> Numbers:
    """Trained ids and advantages, compared with the sampled ids and the formula."""
    trained, wanted = sorted(trainer.trained_responses()), sorted(trainer.expected_responses("rebn", GAMMA))
    pairs = zip(trained, wanted, strict=True)
    again = [tokenizer.encode(tokenizer.decode(one.ids), add_special_tokens=False) for one in trained]
    return {
        "responses": len(trained),
        "of which encode to other ids": sum([*one.ids] != ids for one, ids in zip(trained, again, strict=True)),
        "ids trained = ids sampled": sorted((one.before, one.ids) for one in trained) == sorted(trainer.sampled),
        "advantages that are not 0": sum(one.advantage != 0 for one in trained),
        "largest difference from the formula": max(abs(got.advantage - want.advantage) for got, want in pairs),
    }


def learning(options: Options, scale: Scale, deadline: float, found: Numbers) -> None:
    """The model with LoRA, and its success in held-out games before and after."""
    model, tokenizer = policy(options, scale)
    settings = arguments(options, "learning", GUESSING)
    args = TurnGRPOConfig(
        **settings,
        report=settings["output_dir"],
        eval_env=[f"{GUESSING}-test"],
        eval_episodes=scale.learning_episodes,
        per_device_eval_batch_size=scale.learning_episodes,
        per_device_train_batch_size=scale.learning_micro_batch,
        gradient_accumulation_steps=scale.learning_episodes // scale.learning_micro_batch,
        max_steps=scale.learning_updates,
    )
    lora = LoraConfig(r=16, lora_alpha=32, lora_dropout=0.0, target_modules="all-linear")
    watch = Stopwatch(deadline, options.device)
    trainer = TimedTrainer(watch, model, args, tokenizer, peft_config=lora)
    found["success in held-out games, before"] = trainer.evaluate()["eval_episode/success"]
    reading: Numbers = {"batch": 24, "learning_rate": args.learning_rate, "seed": 0}
    warm_start(trainer.model.get_base_model(), tokenizer, [GUESSING], steps=6, **reading)
    found["success in held-out games, after the warm start"] = trainer.evaluate()["eval_episode/success"]
    timed(trainer, found)
    found["success in held-out games, after"] = trainer.evaluate()["eval_episode/success"]


def size(options: Options, scale: Scale, deadline: float, found: Numbers) -> None:
    """The whole of a larger model trains."""
    model, tokenizer = random_policy(options, scale)
    settings = {**arguments(options, "size", LONG), "max_completion_length": scale.size_tokens, "learning_rate": 1e-6}
    args = TurnGRPOConfig(
        **settings,
        report=settings["output_dir"],
        per_device_train_batch_size=scale.size_micro_batch,
        gradient_accumulation_steps=scale.size_episodes // scale.size_micro_batch,
        max_steps=1000,
    )
    watch = Stopwatch(deadline, options.device)
    timed(TimedTrainer(watch, model, args, tokenizer), found)


PHASES: dict[str, tuple[float, Callable[[Options, Scale, float, Numbers], None]]] = {
    "truth": (0.15, truth),
    "learning": (0.45, learning),
    "size": (0.4, size),
}
"""Their shares of the time."""
GUESSING, LONG = "game:PlainGuess-v0", "game:Corridor-v0"
RANDOM = "random"
GAMMA = 0.9


def policy(options: Options, scale: Scale) -> tuple[Any, Any]:
    """The model of the options and its tokenizer."""
    if options.model == RANDOM:
        return random_policy(options, scale)
    folder = model_folder(options.model)
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=scale.dtype)
    return model.to(options.device), AutoTokenizer.from_pretrained(folder)


def random_policy(options: Options, scale: Scale) -> tuple[Any, Any]:
    """A model of Qwen3's architecture with random weights, and a byte-level tokenizer."""
    tokenizer = byte_level_bpe()
    config = Qwen3Config(
        **scale.shape,
        vocab_size=151_936,
        max_position_embeddings=40_960,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    torch.manual_seed(0)
    with torch.device(options.device):
        return Qwen3ForCausalLM(config).to(scale.dtype), tokenizer


def arguments(options: Options, phase: str, env: str) -> Numbers:
    """Settings of `TurnGRPOConfig` that the phases share: those of `examples/trl_smollm2.py` where it has them."""
    return {
        "output_dir": str(options.output / phase),
        "env": env,
        "system_prompt": "You guess numbers.",
        "advantage": "rebn",
        "gamma": GAMMA,
        "vector_backend": "sync",
        "max_completion_length": 6,
        "learning_rate": 4e-4,
        "adam_beta2": 0.95,
        "max_grad_norm": 0.5,
        "gradient_checkpointing": False,
        "bf16": options.device == "cuda",
        "use_cpu": options.device == "cpu",
        "logging_steps": 1,
        "report_to": "none",
        "save_strategy": "no",
        "disable_tqdm": True,
        "seed": 0,
    }


def timed(trainer: TimedTrainer, found: Numbers) -> None:
    """Train, and find where the time went, also if the training did not end."""
    found["parameters"] = parameters(trainer.model)
    try:
        trainer.train()
    finally:
        if trainer.watch.lines:
            found |= speed(trainer.watch.lines)
        if trainer.watch.device == "cuda":
            found["peak memory, GiB"] = torch.cuda.max_memory_allocated() / 2**30


def speed(lines: Sequence[Numbers]) -> Numbers:
    """Means over the updates without the first, which warms up, unless it is the only one; and success of each."""
    counted = lines[1:] or lines
    mean = {name: statistics.fmean(line[name] for line in counted) for name in lines[0]}
    return {
        "updates": len(lines),
        "seconds of an update": mean["seconds"],
        **{f"{name}, share": mean[name] / mean["seconds"] for name in (*SAMPLING, "update")},
        "tokens sampled a second": mean["sampled"] / mean["seconds"],
        "... of the generation": mean["sampled"] / mean["generation"],
        "tokens trained a second of the update": mean["trained"] / mean["update"],
        "turns of an episode": mean["turns"],
        "success": [line["success"] for line in lines],
    }


def parameters(model: torch.nn.Module) -> str:
    """How many there are, and how many of them train."""
    sizes = [(one.numel(), one.requires_grad) for one in model.parameters()]
    return f"{sum(size for size, _ in sizes):,}, of which {sum(size for size, trains in sizes if trains):,} train"


def free(device: str) -> None:
    """Give back the memory of a phase."""
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def machine(device: str) -> Numbers:
    """The hardware and the versions."""
    name = torch.cuda.get_device_name() if device == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    packages = ("gem-core", "torch", "transformers", "trl", "accelerate", "peft", "datasets", "numpy")
    return {"device": name, "python": platform.python_version(), **{one: version(one) for one in packages}}


def report(numbers: Numbers, indent: str = "") -> None:
    """Print a table."""
    for name, value in numbers.items():
        if isinstance(value, dict):
            print(f"{indent}{name}")
            report(value, f"{indent}  ")
        elif isinstance(value, list):
            print(f"{indent}{name}: {' '.join(f'{one:.2f}' for one in value)}")
        else:
            shown = f"{value:.4g}" if isinstance(value, float) else value
            print(f"{indent}{name:40} {shown}", flush=True)


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Options)))
