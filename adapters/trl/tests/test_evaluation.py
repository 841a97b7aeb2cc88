"""Local weights are evaluated as they were trained."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from transformers import AutoTokenizer

from gem_evaluation import Entry, ModelSetupError, evaluate, load_model
from gem_evaluation._conversation import Message, Prompt
from gem_evaluation._engines import TransformersEngine
from gem_evaluation._local import LocalModel
from gem_evaluation._store import read_episodes
from gem_support.chat_server import ChatServer
from gem_tiny import tiny_policy
from gem_train.rollout import ChatTemplate

GAME = "game:GuessTheNumber-v0-easy"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model that knows the action format."""
    found = tmp_path_factory.mktemp("model")
    for part in tiny_policy(GAME, warm_start_steps=40, seed=0):
        part.save_pretrained(found)
    return found


def test_local_weights_play(folder: Path, tmp_path: Path) -> None:
    model = load_model(str(folder), options={"max_tokens": 4}, concurrency=16)
    results = evaluate(GAME, model, tasks=16, repeats=2, output=tmp_path)
    assert results.together.episodes.finished == 32
    assert results.together.completion_tokens > 32
    again = evaluate(GAME, load_model(str(folder), options={"max_tokens": 4}), tasks=16, repeats=2, output=tmp_path)
    assert again == results


def test_other_weights_are_another_experiment(folder: Path) -> None:
    before = LocalModel(folder).identity
    assert before == LocalModel(folder).identity
    weights = next(folder.glob("*.safetensors"))
    content = weights.read_bytes()
    weights.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    try:
        assert LocalModel(folder).identity != before
    finally:
        weights.write_bytes(content)


def test_a_batch_gives_what_each_prompt_gives_alone(folder: Path) -> None:
    model: Any = LocalModel(folder, {"temperature": 0, "max_tokens": 4})
    model._load()
    template = ChatTemplate(model._tokenizer)
    ids = [template.initial_prompt(text) for text in ("1", "2 3 4 5 6 7", "Guess my number from 1 to 10")]
    assert len({*map(len, ids)}) == 3
    assert model._engine.sample(ids) == [model._engine.sample([one])[0] for one in ids]


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interface of vLLM that the engine uses, over transformers."""

    class Llm:
        def __init__(self, path: str, **_: Any) -> None:
            self._engine = TransformersEngine(path, {"temperature": 0.0, "max_tokens": 6}, "cpu")
            core = SimpleNamespace(shutdown=lambda: None)
            self.llm_engine = SimpleNamespace(model_config=SimpleNamespace(max_model_len=1024), engine_core=core)

        def generate(self, asked: list[dict[str, Any]], sampling: Any, use_tqdm: bool) -> list[Any]:
            self._engine.stop_at(sampling.stop_token_ids)
            found = self._engine.sample([one["prompt_token_ids"] for one in asked])
            reasons = {True: "length", False: "stop"}
            outputs = [SimpleNamespace(token_ids=one.ids, finish_reason=reasons[one.truncated]) for one in found]
            return [SimpleNamespace(outputs=[one]) for one in outputs]

    monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace(LLM=Llm, SamplingParams=SimpleNamespace))


@pytest.fixture(scope="module")
def foreign(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same weights, whose tokenizer and configs name another end than the template: as a base model's do."""
    found = tmp_path_factory.mktemp("foreign")
    shutil.copytree(folder, found, dirs_exist_ok=True)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    for name in ("config.json", "generation_config.json"):
        content = json.loads((found / name).read_text())
        assert content["eos_token_id"] == tokenizer.convert_tokens_to_ids("<|end|>")
        (found / name).write_text(json.dumps({**content, "eos_token_id": tokenizer.pad_token_id}))
    tokenizer.eos_token = "<|pad|>"
    tokenizer.save_pretrained(found)
    return found


@pytest.mark.parametrize("history", [None, 1, 2, 3])
@pytest.mark.parametrize("engine", ["transformers", "vllm"])
def test_every_prompt_is_the_templates_rendering(
    foreign: Path, vllm: None, tmp_path: Path, engine: Any, history: int | None
) -> None:
    model: Any = LocalModel(foreign, {"temperature": 0.0, "max_tokens": 6}, engine=engine)
    results = evaluate(Entry(id=GAME, tasks=24, history=history, system_prompt="1 2"), model, output=tmp_path)
    assert results.together.episodes.finished == 24
    tokenizer: Any = AutoTokenizer.from_pretrained(foreign)
    ends = tokenizer.convert_tokens_to_ids(["<|end|>", "<|user|>", "<|pad|>"])
    assert {*ends} <= {*model.ends}
    turns = cut = 0
    for played in read_episodes(tmp_path):
        messages: list[dict[str, str]] = []
        for turn in played.episode.turns:
            messages.append({"role": "user", "content": turn.observation})
            window = messages if history is None else messages[-(2 * history - 1) :]
            rendered = tokenizer.apply_chat_template(
                [{"role": "system", "content": "1 2"}, *window], tokenize=False, add_generation_prompt=True
            )
            assert played.episode.prompt_ids(turn).tolist() == tokenizer.encode(rendered, add_special_tokens=False)
            response = played.episode.response_ids(turn).tolist()
            assert not {*model.ends} & {*response[:-1]}, "the engine went on after an end"
            assert turn.truncated == (response[-1] not in model.ends)
            said = response[:-1] if response[-1] == ends[0] else response
            messages.append({"role": "assistant", "content": tokenizer.decode(said)})
            turns, cut = turns + 1, cut + turn.truncated
            if response[-1] in model.ends[1:]:
                break  # another end than the template's own: what follows is tested with the conversation
    assert turns > 40 > 4 * cut


def test_an_end_that_only_the_template_names_changes_nothing_else(folder: Path, foreign: Path) -> None:
    """The same weights play alike, whatever end their tokenizer and configs name."""
    options = {"temperature": 0.0, "max_tokens": 6}
    found = [evaluate(GAME, LocalModel(path, options), tasks=12).together for path in (folder, foreign)]
    assert found[0].success == found[1].success
    assert found[0].completion_tokens == found[1].completion_tokens


def test_native_tools_that_the_template_does_not_show_are_refused_before_the_first_episode(folder: Path) -> None:
    entry = Entry(id=GAME, tools=["python:Interpreter"], tool_form="native")
    with pytest.raises(ModelSetupError, match="has native tools, and the chat template shows no tools"):
        evaluate(entry, load_model(str(folder), options={"max_tokens": 4}))


def test_a_response_that_leaves_no_room_for_a_prompt_is_refused(folder: Path) -> None:
    with pytest.raises(ModelSetupError, match=r"max_tokens=1022.*so no prompt fits into 1024 tokens"):
        evaluate(GAME, load_model(str(folder), options={"max_tokens": 1022}))


def test_a_partner_is_asked_in_the_same_tokens(folder: Path) -> None:
    """One that asks in messages: what was sampled stands in later prompts as it was sampled."""
    model: Any = LocalModel(folder, {"max_tokens": 6})
    sampled: list[list[int]] = []

    async def ask() -> Any:
        async with model.session():
            sample = model._engine.sample

            def recorded(prompts: Any) -> Any:
                sampled.extend([*one] for one in prompts)
                found = sample(prompts)
                sampled.extend(one.ids for one in found)
                return found

            model._engine.sample = recorded
            first = [Message("system", "1 2"), Message("user", "3")]
            reply = await model.respond(Prompt(first), "one")
            await model.respond(Prompt([*first, Message("assistant", reply.text), Message("user", "5")]), "one")

    asyncio.run(ask())
    prompt, response, later, _ = sampled
    template = ChatTemplate(model._tokenizer, system_prompt="1 2")
    assert prompt == template.initial_prompt("3")
    assert later == prompt + response + template.following(response[-1], "5")
    assert later.count(template.ends[0]) == 3 + (response.count(template.ends[0]) or 1)


def test_an_episode_that_outgrows_the_context_has_ended(folder: Path) -> None:
    long = Entry(id=GAME, tasks=2, system_prompt="1 " * 5000)
    results = evaluate(long, load_model(str(folder), options={"max_tokens": 4}))
    assert results.together.stop_reasons == {"context_full": 2}


@pytest.mark.parametrize(("options", "said"), [({"best_of": 3}, "no option best_of"), ({}, "cannot be loaded")])
def test_what_cannot_be_loaded_is_named(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(ModelSetupError, match=said):
        evaluate(GAME, load_model(str(tmp_path), options=options), tasks=1)


def test_the_same_weights_answer_alike_here_and_behind_an_endpoint(folder: Path, tmp_path: Path) -> None:
    """At temperature 0, in the first turn: later prompts contain what an endpoint has encoded again."""
    options = {"temperature": 0.0, "max_tokens": 4}
    behind: Any = LocalModel(folder, options)
    behind._load()

    def answer(body: dict[str, Any]) -> str:
        ids = behind._tokenizer.apply_chat_template(body["messages"], add_generation_prompt=True, return_dict=False)
        [sampled] = behind._engine.sample([ids])
        return behind._tokenizer.decode(sampled.ids, skip_special_tokens=True)

    with ChatServer(answer).running() as server:
        endpoint = load_model("stub", base_url=server.url, options=options)
        evaluate([GAME, "game:Corridor-v0"], endpoint, tasks=5, output=tmp_path / "there")
    evaluate([GAME, "game:Corridor-v0"], LocalModel(folder, options), tasks=5, output=tmp_path / "here")
    there, here = (
        {one.key: one.episode.turns[0].response for one in read_episodes(tmp_path / place)}
        for place in ("there", "here")
    )
    assert len(here) == 10
    assert there == here
