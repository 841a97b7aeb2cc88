"""A model whose tokenizer and config end a text, and whose template ends a turn, as base models have them."""

from __future__ import annotations

import copy
import inspect
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from spy import SpyTrainer
from trl.generation.vllm_generation import VLLMGeneration

from gem_core.errors import SettingsError, TemplateError
from gem_core.tools import FunctionTool, ToolEnv
from gem_support.chat_families import OTHERS
from gem_tiny import tiny_model, tiny_policy
from gem_train.rollout import ChatTemplate
from gem_trl import TurnGRPOTrainer
from gem_trl._ends import stop_at

GAME = "game:GuessTheNumber-v0-easy"


@pytest.fixture(scope="module")
def policy() -> Any:
    """A tiny model that knows the format of the game, and its tokenizer."""
    return tiny_policy(GAME, warm_start_steps=100, seed=0)


@pytest.fixture
def run(policy, settings):
    """A trainer of that model; `foreign` gives it another end than the template's."""

    def make(*, foreign: bool, **changes: Any) -> SpyTrainer:
        model, tokenizer = copy.deepcopy(policy)
        if foreign:
            tokenizer.eos_token = "<|pad|>"
            model.config.eos_token_id = model.generation_config.eos_token_id = tokenizer.eos_token_id
        # The foreign end is a token as any other for the model, which might sample it.
        options = {"generation_kwargs": {"suppress_tokens": [tokenizer.pad_token_id]}, "min_generation_batch": 8}
        args = settings(**{"env": GAME, "max_completion_length": 8, **options, **changes})
        return SpyTrainer(model, args, tokenizer)

    return make


def played(run: SpyTrainer) -> list[list[tuple[list[int], list[int], str, bool]]]:
    """Of each episode and turn: the prompt, what was sampled, what the environment got, and whether it was cut off."""
    return [
        [
            (one.prompt_ids(turn).tolist(), one.response_ids(turn).tolist(), turn.action, turn.truncated)
            for turn in one.turns
        ]
        for batch in run.batches
        for one in batch.episodes
    ]


@pytest.mark.parametrize("changes", [{}, {"history": 2, "row": "turn"}, {"max_staleness": 1}], ids=str)
def test_a_foreign_end_changes_nothing(run, changes) -> None:
    """The same weights, template and tasks: the same prompts, responses, actions and updates."""
    both = []
    for foreign in (False, True):
        one = run(foreign=foreign, max_steps=2, **changes)
        configured = one.model.generation_config.eos_token_id
        one.train()
        assert one.model.generation_config.eos_token_id == configured, "the model's config is the user's"
        both.append((played(one), torch.cat([part.detach().flatten() for part in one.model.parameters()])))
    (own, weights), (other, same_weights) = both
    assert own == other
    torch.testing.assert_close(weights, same_weights)
    ended = [turn for episode in other for turn in episode if not turn[3]]
    assert len(ended) > 0.8 * sum(map(len, other))
    assert any(len(episode) > 2 for episode in other)


def test_an_end_stands_once_and_is_no_word(run) -> None:
    one = run(foreign=True)
    one.train()
    tokenizer = one.processing_class
    end, user = tokenizer.convert_tokens_to_ids(["<|end|>", "<|user|>"])
    assert {end, user, tokenizer.pad_token_id} <= {*one.eos_token_ids}
    for episode in played(one):
        for number, (prompt, response, action, _) in enumerate(episode):
            assert not {*one.eos_token_ids} & {*response[:-1]}, "sampled beyond an end"
            assert prompt.count(user) == number + 1
            assert prompt.count(end) <= 2 * number + 1
            assert "<|" not in action


def test_the_users_own_ends_are_kept(run, policy) -> None:
    seven = policy[1].convert_tokens_to_ids("7")
    chosen = {"eos_token_id": seven}
    one = run(foreign=True, generation_kwargs=chosen)
    assert seven in one.eos_token_ids
    assert one.generation_config.eos_token_id == one.eos_token_ids
    assert one.args.generation_kwargs == {"eos_token_id": seven}
    one.train()
    assert any(response[-1] == seven for episode in played(one) for _, response, _, _ in episode)


@pytest.mark.parametrize("chosen", [None, {"stop_token_ids": [9], "ignore_eos": True}])
def test_vllm_is_told(chosen) -> None:
    engine = SimpleNamespace(generation_kwargs=chosen or {})
    args = SimpleNamespace(generation_kwargs=chosen)
    trainer: Any = SimpleNamespace(use_vllm=True, args=args, vllm_generation=engine, eos_token_ids=[2])
    stop_at(trainer, [5, 2, None])
    ends = [5, 2, *(chosen or {}).get("stop_token_ids", [])]
    assert engine.generation_kwargs == {**(chosen or {}), "stop_token_ids": ends}
    assert trainer.eos_token_ids == ends
    assert args.generation_kwargs is chosen
    assert chosen is None or chosen["stop_token_ids"] == [9]
    # TRL passes them to the engine in this process and to the server.
    source = inspect.getsource(VLLMGeneration.generate)
    assert source.count("self.generation_kwargs") == 2


# -- tools over a template without a role for them ---------------------------------------------------------------------


def look() -> str:
    """Look around."""
    return "it is left"


def always_looks(run: Any) -> None:
    """Have the policy call the tool in each first turn, and say nothing in the second."""
    call = run.processing_class.encode('<tool_call>{"name": "look", "arguments": {}}</tool_call>')
    silence = [run.processing_class.eos_token_id]

    def generate(prompts: list[list[int]], *_: Any) -> Any:
        return [silence if "it is left" in run.processing_class.decode(one) else call for one in prompts], None

    run._generate_single_turn = generate


def with_tool(form: str) -> Any:
    return lambda env: ToolEnv(env, [FunctionTool(look)], form=form)  # pyright: ignore[reportArgumentType]


def test_a_tool_in_text_trains_over_a_template_that_refuses_its_role(settings) -> None:
    tokenizer = OTHERS["llama2"]()
    tokenizer.pad_token = "</s>"
    args = settings(env="game:Corridor-v0", max_completion_length=96, max_steps=2)
    run = SpyTrainer(tiny_model(tokenizer, seed=0, context=2048), args, tokenizer, wrappers=[with_tool("text")])
    always_looks(run)
    run.train()
    turns = [turn for batch in run.batches for one in batch.episodes for turn in one.turns]
    assert sum(turn.tool_call for turn in turns) == sum(len(batch.episodes) for batch in run.batches)
    for batch in run.batches:
        for one in batch.episodes:
            assert "[INST] it is left [/INST]" in tokenizer.decode(one.prompt_ids(one.turns[1]))


def test_native_tools_are_refused_before_a_batch(settings) -> None:
    tokenizer = OTHERS["llama2"]()
    tokenizer.pad_token = "</s>"
    args = settings(env="game:Corridor-v0")
    with pytest.raises(TemplateError, match="has native tools, and the chat template shows no tools"):
        TurnGRPOTrainer(tiny_model(tokenizer, seed=0), args, tokenizer, wrappers=[with_tool("native")])


def test_limits_below_what_the_template_needs_are_refused(settings) -> None:
    tokenizer = OTHERS["channels"]()
    tokenizer.pad_token = "<|endoftext|>"
    model = tiny_model(tokenizer, seed=0)
    _, header = ChatTemplate(tokenizer).answer_header
    for changes, words in (
        (
            {"max_completion_length": header + 1},
            f"max_completion_length={header + 1}: before its first word, the policy",
        ),
        ({"max_completion_length": 60, "max_context_tokens": 80}, "no prompt fits into 80 tokens"),
    ):
        with pytest.raises(SettingsError, match=words):
            TurnGRPOTrainer(model, settings(system_prompt="go left " * 4, **changes), tokenizer)
