r"""Train a model to answer questions with a search engine, in TRL's own GRPOTrainer, on one reward per turn.

    pip install -e ".[trl,search,search-server]"
    python examples/trl_qa_with_search.py        # a tiny model on a CPU, a few minutes: it learns to search first
    gem-core search-server --corpus wikipedia.jsonl --index wikipedia.index     # prints the address to give below
    python examples/trl_qa_with_search.py --model Qwen/Qwen3-4B --env qa:HotpotQA --search-url http://... \
        --response-tokens 500 --micro-batch 2 --learning-rate 1e-6 --vllm

Without an address it searches a small bundled corpus. `--form native` has the chat template describe the tool, for
models that were trained to call functions.
"""

from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
import tyro

from gem_core.rollout import recording
from gem_core.tools import Toolbox, ToolEnv
from gem_search.local import local_server
from gem_search.tool import SearchTool
from gem_tiny import tiny_policy
from gem_trl import ProgressCallback, TurnGRPOConfig, TurnGRPOTrainer


@dataclass
class Options:
    model: str = "tiny"
    """Path or hub id of a chat model; `tiny` builds one on the spot and teaches it the action formats first."""
    env: tuple[str, ...] = ("qa:Sample",)
    """Environments to train on, `qa:HotpotQA` for example."""
    search_url: str | None = None
    """Address of a search server; by default the bundled corpus is searched."""
    topk: int = 1
    """Passages of one result. For a real model use 3."""
    form: Literal["text", "native"] = "text"
    """How the model calls the tool: in `<search>` tags, or by its own function calls."""
    max_tool_uses: int = 5
    """Searches of one episode."""
    tool_reward: float = 0.3
    """For each search; real models need none."""
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
    """Decides the model, the order of questions and the sampling."""
    output: str = "runs/trl_qa_with_search"
    """Folder for curve.png, metrics.jsonl and episodes.jsonl."""


def main(options: Options) -> None:
    with nullcontext(options.search_url) if options.search_url else local_server() as url:
        train(options, url)


def train(options: Options, url: str) -> None:
    with_search = partial(
        ToolEnv,
        tools=Toolbox([SearchTool(url, topk=options.topk)]),
        form=options.form,
        tool_reward=options.tool_reward,
        max_tool_uses=options.max_tool_uses,
    )
    model, tokenizer = options.model, None
    if model == "tiny":
        torch.set_num_threads(1)  # a tiny model only loses time to more
        print(f"Warm start: {options.warm_start_steps} steps on random valid play, for words and formats only.")
        play = {"warm_start_steps": options.warm_start_steps, "warm_start_episodes": 300, "seed": options.seed}
        model, tokenizer = tiny_policy(options.env, wrappers=[with_search], **play)
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
    trainer = TurnGRPOTrainer(model, args, tokenizer, wrappers=[with_search], callbacks=callbacks)
    with recording(f"{options.output}/episodes.jsonl"):
        trainer.train()


if __name__ == "__main__":
    main(tyro.cli(Options))
