r"""Train a model to answer questions with a search engine, in TRL's own GRPOTrainer, on one reward per turn.

    pip install -e ".[trl,search,search-server]"
    python trl_qa_with_search.py        # a tiny model on a CPU, a few minutes: it learns to search first
    gem-core search-server --corpus wikipedia.jsonl --index wikipedia.index     # prints the address to give below
    python trl_qa_with_search.py --model Qwen/Qwen3-4B --env qa:HotpotQA --search-url http://... \
        --response-tokens 500 --micro-batch 2 --learning-rate 1e-6 --vllm

Without an address it searches a small bundled corpus.
"""

import sys
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Literal

from gem_core.tools import Toolbox, ToolEnv
from gem_search import SearchTool, local_server
from gem_trl import TurnGRPOConfig, TurnGRPOTrainer


@dataclass
class Options:
    model: str = "tiny"  # path or hub id of a chat model, or smollm2; `tiny` builds one that knows the action format
    env: tuple[str, ...] = ("qa:Sample",)  # environments to train on, for example qa:HotpotQA
    search_url: str | None = None  # address of a search server; by default the bundled corpus is searched
    topk: int = 1  # passages per result; 3 for a real model
    form: Literal["text", "native"] = "text"  # how the model calls the tool: in <search> tags, or by function calls
    max_tool_uses: int = 5  # searches per episode
    tool_reward: float = 0.3  # for each search; real models need none
    system_prompt: str | None = None  # first message of each conversation
    episodes: int = 64  # per batch, on each process
    micro_batch: int = 64  # episodes in one forward and backward pass; limited by memory with a real model
    updates: int = 20  # of the policy, each on a new batch
    learning_rate: float = 1e-3  # falls linearly to zero; about 1e-6 for a real model
    response_tokens: int = 32  # token limit of one response; 4096 or more for a real model
    warm_start_steps: int = 200  # steps of next-token prediction on random valid play; only for the tiny model
    vllm: bool = False  # sample with vLLM in the same process (needs a GPU and `pip install "gem-core[vllm]"`)
    seed: int = 0  # decides the model, the order of questions and the sampling
    output: str = "runs/trl_qa_with_search"  # folder for curve.png, metrics.jsonl, records, and model/ at the end


def train(options: Options, url: str) -> None:
    micro_batch = min(options.micro_batch, options.episodes)
    if options.episodes % micro_batch:
        sys.exit(f"--episodes {options.episodes} is not a multiple of --micro-batch {micro_batch}")
    calls = {"form": options.form, "max_tool_uses": options.max_tool_uses, "tool_reward": options.tool_reward}
    with_search = partial(ToolEnv, tools=Toolbox([SearchTool(url, topk=options.topk)]), **calls)
    model, tokenizer = options.model, None
    if model == "tiny":
        from gem_tiny import tiny_policy

        play = {"warm_start_steps": options.warm_start_steps, "warm_start_episodes": 300, "seed": options.seed}
        model, tokenizer = tiny_policy(options.env, wrappers=[with_search], **play)
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
    trainer = TurnGRPOTrainer(model, args, tokenizer, wrappers=[with_search])
    trainer.train()
    trainer.save_model(f"{options.output}/model")


if __name__ == "__main__":
    import tyro

    options = tyro.cli(Options)
    with nullcontext(options.search_url) if options.search_url else local_server() as url:
        train(options, url)
