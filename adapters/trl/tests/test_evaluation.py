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
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer

from gem_evaluation import Entry, ModelSetupError, _engines, evaluate, load_model
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
        def __init__(self, path: str, *, enable_lora: bool = False, max_lora_rank: int = 16, **_: Any) -> None:
            assert max_lora_rank in (8, 16, 32)
            self._enable_lora = enable_lora
            self._load(path)
            self._adapter: Any = None
            self.llm_engine = SimpleNamespace(
                model_config=SimpleNamespace(max_model_len=1024),
                engine_core=SimpleNamespace(shutdown=lambda: None),
                add_lora=self._add,
            )

        def _load(self, path: str) -> None:
            self._engine = TransformersEngine(path, {"temperature": 0.0, "max_tokens": 6}, "cpu")

        def _add(self, adapter: Any) -> None:
            assert self._enable_lora
            self._load(adapter.lora_path)
            self._adapter = adapter

        def generate(self, asked: list[dict[str, Any]], sampling: Any, use_tqdm: bool, lora_request: Any) -> list[Any]:
            assert lora_request is self._adapter
            self._engine.stop_at(sampling.stop_token_ids)
            found = self._engine.sample([one["prompt_token_ids"] for one in asked])
            reasons = {True: "length", False: "stop"}
            outputs = [SimpleNamespace(token_ids=one.ids, finish_reason=reasons[one.truncated]) for one in found]
            return [SimpleNamespace(outputs=[one]) for one in outputs]

    def request(lora_name: str, lora_int_id: int, lora_path: str) -> Any:
        return SimpleNamespace(lora_path=lora_path)

    monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace(LLM=Llm, SamplingParams=SimpleNamespace))
    monkeypatch.setitem(sys.modules, "vllm.lora.request", SimpleNamespace(LoRARequest=request))


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


@pytest.fixture(scope="module")
def adapter(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A LoRA adapter as a training saves it, which changes what the model says."""
    torch.manual_seed(0)
    config = LoraConfig(r=12, target_modules="all-linear", task_type="CAUSAL_LM", init_lora_weights=False)
    found = tmp_path_factory.mktemp("adapter")
    get_peft_model(AutoModelForCausalLM.from_pretrained(folder), config).save_pretrained(found)
    AutoTokenizer.from_pretrained(folder).save_pretrained(found)
    return found


def _loaded(path: Path, engine: Any = "transformers") -> Any:
    model: Any = LocalModel(path, {"temperature": 0.0, "max_tokens": 6}, engine=engine)
    model._load()
    return model


@pytest.mark.parametrize("engine", ["transformers", "vllm"])
def test_an_adapter_is_asked_with_its_model(folder: Path, adapter: Path, vllm: None, engine: Any) -> None:
    whole: Any = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(folder), adapter).merge_and_unload()
    prompts = [[*range(4, 4 + length)] for length in (5, 9, 13)]
    ids = [whole.generate(torch.tensor([one]), max_new_tokens=1, do_sample=False)[0, -1].item() for one in prompts]
    assert [one.ids[0] for one in _loaded(adapter, engine)._engine.sample(prompts)] == ids
    assert [one.ids[0] for one in _loaded(folder, engine)._engine.sample(prompts)] != ids


def test_an_adapter_is_another_experiment_if_its_model_is_another(folder: Path, adapter: Path, tmp_path: Path) -> None:
    shutil.copytree(adapter, tmp_path / "adapter")
    shutil.copytree(folder, tmp_path / "base")
    path = tmp_path / "adapter" / "adapter_config.json"
    config = {**json.loads(path.read_text()), "base_model_name_or_path": str(tmp_path / "base")}
    path.write_text(json.dumps(config))
    before = LocalModel(tmp_path / "adapter").identity
    assert before["weights"].endswith(f" on {LocalModel(folder).identity['weights']}")
    (tmp_path / "base" / "config.json").write_text("{}")
    assert LocalModel(tmp_path / "adapter").identity != before
    shutil.rmtree(tmp_path / "base")
    with pytest.raises(ModelSetupError, match="base' as the model that the adapter was trained on"):
        LocalModel(tmp_path / "adapter")


def test_vllm_refuses_what_is_no_lora(adapter: Path, vllm: None, tmp_path: Path) -> None:
    shutil.copytree(adapter, tmp_path / "adapter")
    path = tmp_path / "adapter" / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "peft_type": "IA3"}))
    with pytest.raises(ModelSetupError, match="of the kind IA3, and vLLM knows LORA only"):
        _loaded(tmp_path / "adapter", "vllm")


@pytest.mark.parametrize(("arithmetic", "dtype"), [(False, torch.float32), (True, torch.bfloat16)])
def test_bfloat16_is_read_as_the_processor_computes(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arithmetic: bool, dtype: Any
) -> None:
    AutoModelForCausalLM.from_pretrained(folder).to(torch.bfloat16).save_pretrained(tmp_path)
    monkeypatch.setattr(_engines, "computes_bf16", lambda: arithmetic)
    assert TransformersEngine(str(tmp_path), {}, "cpu")._model.dtype == dtype


def test_a_declared_name_is_a_model(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "maze-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: maze\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[gem_core.models]\nmaze = maze_models:folder\n")
    (tmp_path / "maze_models.py").write_text(f"def folder(): return {str(folder)!r}")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    model: Any = load_model("maze", engine="transformers")
    assert model.identity["path"] == str(folder)
    # A user's own alias comes first.
    (tmp_path / "endpoints.toml").write_text('[maze]\nmodel = "far"\nbase_url = "http://one/v1"\n')
    assert load_model("maze").identity["kind"] != "local"


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


def test_what_only_the_next_response_has_before_it_is_dropped_from_later_prompts(folder: Path, tmp_path: Path) -> None:
    """As a template writes an empty thought before the next response alone."""
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    header = "<|assistant|>"
    tokenizer.chat_template = tokenizer.chat_template.replace(f"{header}{{% endif %}}", f"1 2 3{header}{{% endif %}}")
    assert "1 2 3" in tokenizer.chat_template
    shutil.copytree(folder, tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    model = LocalModel(tmp_path / "model", {"temperature": 0.0, "max_tokens": 6})
    evaluate(Entry(id=GAME, tasks=12, thoughts="drop"), model, output=tmp_path / "run")
    turns = 0
    for played in read_episodes(tmp_path / "run"):
        messages: list[dict[str, str]] = []
        for turn in played.episode.turns:
            messages.append({"role": "user", "content": turn.observation})
            rendered = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
            assert rendered.count("1 2 3") == 1
            assert played.episode.prompt_ids(turn).tolist() == tokenizer.encode(rendered, add_special_tokens=False)
            messages.append({"role": "assistant", "content": tokenizer.decode(played.episode.response_ids(turn)[:-1])})
            turns += 1
        assert [turn.sequence for turn in played.episode.turns] == [*range(len(played.episode.turns))]
    assert turns > 24


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
