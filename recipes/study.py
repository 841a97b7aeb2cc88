"""The declaration of a study: tasks and runs, in a profile for tiny models, for SmolLM2 or for GPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROFILES = ("cpu", "smollm2", "gpu")

PAPER: Mapping[str, Any] = {
    "per_device_train_batch_size": 1,
    "gradient_accumulation_steps": 16,  # on 8 GPUs: 128 episodes a batch
    "max_completion_length": 4096,
    "temperature": 1.0,
    "learning_rate": 1e-6,
    "lr_scheduler_type": "constant",
    "adam_beta1": 0.9,
    "adam_beta2": 0.95,
    "weight_decay": 0.0,
    "max_grad_norm": 1.0,
    "num_iterations": 2,
    "epsilon": 0.2,
    "beta": 0.0,
    "gamma": 0.9,
    "lam": 0.95,
    "max_steps": 500,
    "use_vllm": True,
    "bf16": True,
}
"""The hyper-parameters of GEM (arXiv 2510.01051), Table 3, as settings of `TurnGRPOConfig` on 8 GPUs."""

TINY: Mapping[str, Any] = {
    "per_device_train_batch_size": 64,
    "lr_scheduler_type": "constant",
    "adam_beta2": 0.95,
    "weight_decay": 0.0,
    "max_grad_norm": 0.5,
    "max_completion_length": 4,
    "vector_backend": "sync",
}
"""Settings of `TurnGRPOConfig` for tiny models on a CPU."""


SMOLLM2: Mapping[str, Any] = {
    "per_device_train_batch_size": 24,
    "max_steps": 12,
    "learning_rate": 4e-4,
    "lr_scheduler_type": "linear",  # at a constant rate, one run of six unlearned at the end
    "adam_beta2": 0.95,
    "weight_decay": 0.0,
    "max_grad_norm": 0.5,
    "bf16": False,
    "vector_backend": "sync",
}
"""Settings of `TurnGRPOConfig` for `Run(model="smollm2", lora=16)` on one core, in float32. A study adds the token
limit of a response: 6 to 24 for plain words."""

HELD_OUT: Mapping[str, Any] = {"eval_episodes": 72, "per_device_eval_batch_size": 24}
"""Settings of the evaluations before and after, with SmolLM2."""


@dataclass(frozen=True)
class WarmStart:
    """How a model gets its words and its action format before training."""

    env: tuple[str, ...]
    """Environments whose random play it reads."""
    steps: int
    """Steps of next-token prediction."""
    chance: float
    """The success that play without knowledge has. More in the play of the warm start refuses the run, because the
    model would then copy answers."""
    env_kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    wrappers: tuple[str, ...] = ()
    """`package.module:name` of wrappers, those of training first."""
    digits: bool = False
    """Whether each digit is a token. Otherwise a number is one."""
    hidden: int = 64
    """Width of the model."""
    episodes: int | None = None
    """How many episodes it reads again and again, for slow environments. By default every step has new ones."""
    system_prompt: str | None = None
    """Of the conversations that a named model reads."""
    base: str | None = None
    """The name of a model that reads, with LoRA that is merged afterwards. By default a tiny one is made."""


@dataclass(frozen=True)
class Run:
    """One training. Everything that decides it is here."""

    cell: str
    """What is compared, for example an estimator."""
    task: str
    seed: int
    """Decides the weights, the tasks and the sampling."""
    settings: Mapping[str, Any]
    """Settings of `TurnGRPOConfig`."""
    model: WarmStart | str
    """A tiny model, or another by its name (`smollm2`), path or hub id."""
    phase: str = "main"
    """`main`, or `tuning`, whose seeds are in no figure."""
    evaluate: bool = False
    """Whether the policy plays the environments `eval_env` before and after the training."""
    lora: int = 0
    """Rank of LoRA adapters on all linear layers; 0 trains all weights."""

    @property
    def name(self) -> str:
        """The name of the file with the result, without its ending."""
        return f"{self.phase}-{self.task}-{self.cell}-{self.seed}"


@dataclass(frozen=True)
class Study:
    """Declared runs."""

    name: str
    runs: Callable[[str], Sequence[Run]]
    """The runs of the profile `cpu` (tiny models), `smollm2` (on a CPU, too) or `gpu`, in the order in which they are
    worth their time: seed by seed."""
    short: Run
    """A run of seconds, for tests."""
    metric: str = "episode/success"
    """What the check of a repeated cell compares: the mean of this metric over the last fifth of a run."""
    player: str = "recipes.training"
    """The module whose `play` trains a run, after its `prepare`. It is imported by the process that trains."""

    @property
    def folder(self) -> Path:
        """The study's own folder."""
        return Path(__file__).parent / self.name

    def results(self, profile: str) -> Path:
        """The folder of the results. Those of a CPU belong to the repository."""
        if profile == "gpu":
            return Path("runs/recipes") / f"{self.name}-gpu"
        return self.folder / ("results" if profile == "cpu" else f"results_{profile}")
