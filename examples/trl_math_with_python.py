r"""Train a model to solve mathematics with a Python interpreter, in TRL's own GRPOTrainer, on one reward per turn.

    pip install -e ".[trl,math]"
    python examples/trl_math_with_python.py      # a tiny model on a CPU, a few minutes: it learns to call the tool
    python examples/trl_math_with_python.py --model Qwen/Qwen3-4B-Base --env math:Orz57K --response-tokens 4096 \
        --micro-batch 1 --learning-rate 1e-6 --vllm

Programs run in a sandbox; `gem-core doctor` shows which one this machine has. `--form native` has the chat template
describe the tool, for models that were trained to call functions.
"""

from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
import tyro

from gem_core.rollout import recording
from gem_core.tools import Toolbox, ToolEnv
from gem_python.tool import PythonTool
from gem_tiny import tiny_policy
from gem_trl import ProgressCallback, TurnGRPOConfig, TurnGRPOTrainer


@dataclass
class Options:
    model: str = "tiny"
    """Path or hub id of a chat model; `tiny` builds one on the spot and teaches it the action formats first."""
    env: tuple[str, ...] = ("math:Sample",)
    """Environments to train on, `math:Orz57K` for example."""
    form: Literal["text", "native"] = "text"
    """How the model calls the tool: in `<python>` tags and fenced blocks, or by its own function calls."""
    max_tool_uses: int = 5
    """Programs of one episode."""
    tool_reward: float = 0.05
    """For each program; real models need none."""
    tool_success_reward: float = 0.25
    """For each program that ends well; real models need none."""
    timeout: float = 5.0
    """Seconds that a program may run."""
    episodes: int = 64
    """Episodes of a batch on each process."""
    micro_batch: int = 64
    """Episodes in one forward and backward pass; memory is the limit with a real model."""
    updates: int = 20
    """Updates of the policy, each on a new batch."""
    learning_rate: float = 1e-3
    """Falls linearly to zero. For a real model use about 1e-6."""
    response_tokens: int = 32
    """Token limit of one response. For a real model use 4096 or more."""
    warm_start_steps: int = 200
    """Steps of next-token prediction on random valid play; only for the tiny model."""
    vllm: bool = False
    """Sample with vLLM in the same process (needs a GPU and `pip install "gem-core[vllm]"`)."""
    seed: int = 0
    """Decides the model, the order of problems and the sampling."""
    output: str = "runs/trl_math_with_python"
    """Folder for curve.png, metrics.jsonl and episodes.jsonl."""


def main(options: Options) -> None:
    with_python = partial(
        ToolEnv,
        tools=Toolbox([PythonTool(timeout=options.timeout)]),
        form=options.form,
        tool_reward=options.tool_reward,
        tool_success_reward=options.tool_success_reward,
        max_tool_uses=options.max_tool_uses,
    )
    model, tokenizer = options.model, None
    if model == "tiny":
        torch.set_num_threads(1)  # a tiny model only loses time to more
        print(f"Warm start: {options.warm_start_steps} steps on random valid play, for words and formats only.")
        play = {"warm_start_steps": options.warm_start_steps, "warm_start_episodes": 300, "seed": options.seed}
        model, tokenizer = tiny_policy(options.env, wrappers=[with_python], **play)
    args = TurnGRPOConfig(
        options.output,
        env=[*options.env],
        per_device_train_batch_size=min(options.micro_batch, options.episodes),
        gradient_accumulation_steps=max(options.episodes // options.micro_batch, 1),
        max_steps=options.updates,
        max_completion_length=options.response_tokens,
        learning_rate=options.learning_rate,
        use_vllm=options.vllm,
        seed=options.seed,
        logging_steps=1,
    )
    callbacks = [ProgressCallback(", ".join(options.env))]
    trainer = TurnGRPOTrainer(model, args, tokenizer, wrappers=[with_python], callbacks=callbacks)
    with recording(f"{options.output}/episodes.jsonl"):
        trainer.train()


if __name__ == "__main__":
    main(tyro.cli(Options))
