r"""Train a model to solve mathematics with a Python interpreter, in TRL's own GRPOTrainer, on one reward per turn.

    pip install -e ".[trl,math]"
    python trl_math_with_python.py      # a tiny model on a CPU, a few minutes: it learns to call the tool
    python trl_math_with_python.py --model Qwen/Qwen3-4B-Base --env math:Orz57K --response-tokens 4096 \
        --micro-batch 1 --learning-rate 1e-6 --vllm

Programs run in a sandbox; `gem-core doctor` shows which one this machine has. With `--form native` the chat template
describes the tool, for models that were trained to call functions.
"""

import sys
from dataclasses import dataclass
from functools import partial
from typing import Literal

from gem_core.tools import Toolbox, ToolEnv
from gem_python import PythonTool
from gem_trl import TurnGRPOConfig, TurnGRPOTrainer


@dataclass
class Options:
    model: str = "tiny"  # path or hub id of a chat model, or smollm2; `tiny` builds one that knows the action format
    env: tuple[str, ...] = ("math:Sample",)  # environments to train on, for example math:Orz57K
    form: Literal["text", "native"] = "text"  # how the model calls the tool: in <python> tags, or by function calls
    max_tool_uses: int = 5  # programs per episode
    tool_reward: float = 0.05  # for each program; real models need none
    tool_success_reward: float = 0.25  # for each program that ends well; real models need none
    timeout: float = 5.0  # seconds that a program may run
    system_prompt: str | None = None  # first message of each conversation
    episodes: int = 64  # per batch, on each process
    micro_batch: int = 64  # episodes in one forward and backward pass; limited by memory with a real model
    updates: int = 20  # of the policy, each on a new batch
    learning_rate: float = 1e-3  # falls linearly to zero; about 1e-6 for a real model
    response_tokens: int = 32  # token limit of one response; 4096 or more for a real model
    warm_start_steps: int = 200  # steps of next-token prediction on random valid play; only for the tiny model
    vllm: bool = False  # sample with vLLM in the same process (needs a GPU and `pip install "gem-core[vllm]"`)
    seed: int = 0  # decides the model, the order of problems and the sampling
    output: str = "runs/trl_math_with_python"  # folder for curve.png, metrics.jsonl, records, and model/ at the end


def main(options: Options) -> None:
    micro_batch = min(options.micro_batch, options.episodes)
    if options.episodes % micro_batch:
        sys.exit(f"--episodes {options.episodes} is not a multiple of --micro-batch {micro_batch}")
    rewards = {"tool_reward": options.tool_reward, "tool_success_reward": options.tool_success_reward}
    tools = Toolbox([PythonTool(timeout=options.timeout)])
    with_python = partial(ToolEnv, tools=tools, form=options.form, max_tool_uses=options.max_tool_uses, **rewards)
    model, tokenizer = options.model, None
    if model == "tiny":
        from gem_tiny import tiny_policy

        play = {"warm_start_steps": options.warm_start_steps, "warm_start_episodes": 300, "seed": options.seed}
        model, tokenizer = tiny_policy(options.env, wrappers=[with_python], **play)
    args = TurnGRPOConfig(
        options.output,
        env=[*options.env],
        per_device_train_batch_size=micro_batch,
        gradient_accumulation_steps=options.episodes // micro_batch,
        max_steps=options.updates,
        max_completion_length=options.response_tokens,
        learning_rate=options.learning_rate,
        use_vllm=options.vllm,
        system_prompt=options.system_prompt,
        save_strategy="no",  # a checkpoint has the optimizer's state, twice the weights
        seed=options.seed,
        logging_steps=1,
        report=options.output,
        record="full",  # for `gem-core view`
    )
    trainer = TurnGRPOTrainer(model, args, tokenizer, wrappers=[with_python])
    trainer.train()
    trainer.save_model(f"{options.output}/model")


if __name__ == "__main__":
    import tyro

    main(tyro.cli(Options))
