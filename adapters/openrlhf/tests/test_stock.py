"""How OpenRLHF's own agent handles misbehaving environments: the reason for our agent, and a check for changes.

`test_training.py` has the same for our agent, in whole runs.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
import torch
from openrlhf.utils.agent import AgentInstanceBase, MultiTurnAgentExecutor
from test_agent import CONTEXT, MAX_TOKENS, Engine
from vllm import SamplingParams


class Instance(AgentInstanceBase):
    """An environment of two turns, in the form that OpenRLHF documents; its label decides how it misbehaves."""

    def __init__(self) -> None:
        self.turns = 0

    async def reset(self, states: Any, **options: Any) -> Any:
        self.label = states["label"]
        return {"observation": "Hello."}

    async def step(self, states: Any, **options: Any) -> Any:
        self.turns += 1
        if self.label == "raises":
            raise RuntimeError("lost the connection")
        if self.label == "hangs":
            await asyncio.Event().wait()
        if self.label == "blocks":
            time.sleep(0.5)
        feedback = "On. " * (CONTEXT if self.label == "talks" else 1)
        return {"rewards": torch.tensor(1.0), "environment_feedback": feedback, "done": self.turns == 2}


async def play(tokenizer: Any, label: str) -> dict[str, Any]:
    return await MultiTurnAgentExecutor(Instance).execute(
        prompt="",
        label=label,
        sampling_params=SamplingParams(temperature=1.0, max_tokens=MAX_TOKENS),
        max_length=CONTEXT,
        hf_tokenizer=tokenizer,
        llm_engine=Engine(tokenizer),
    )


def test_an_exception_reaches_the_trainer(bpe: Any):
    with pytest.raises(RuntimeError, match="lost the connection"):
        asyncio.run(play(bpe, "raises"))


def test_an_agent_that_hangs_is_awaited_forever(bpe: Any):
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(play(bpe, "hangs"), 2))


def test_an_agent_that_blocks_stops_all_others(bpe: Any):
    async def both() -> float:
        slow = asyncio.create_task(play(bpe, "blocks"))
        quick = asyncio.create_task(play(bpe, "behaves"))
        await asyncio.sleep(0)
        started = time.monotonic()
        await quick
        await slow
        return time.monotonic() - started

    assert asyncio.run(both()) >= 1.0, "two steps, in each of which the event loop stood still"


def test_a_row_exceeds_the_context(bpe: Any):
    assert len(asyncio.run(play(bpe, "talks"))["observation_tokens"]) > CONTEXT


def test_rewards_of_turns_are_summed_and_a_response_may_fill_the_context(bpe: Any):
    result = asyncio.run(play(bpe, "behaves"))
    assert result["reward"] == 2.0
    assert max(end - start for start, end in result["action_ranges"]) > MAX_TOKENS
