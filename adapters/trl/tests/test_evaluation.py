"""Local weights are evaluated as they were trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gem_evaluation import Entry, ModelSetupError, evaluate, load_model
from gem_evaluation._conversation import Message, Prompt
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
    prompts = [Prompt([Message("user", text)]) for text in ("1", "2 3 4 5 6 7", "Guess my number from 1 to 10")]
    ids = [model._encoded(prompt, "one") for prompt in prompts]
    assert len({*map(len, ids)}) == 3
    assert model._engine.sample(ids) == [model._engine.sample([one])[0] for one in ids]


def test_prompts_are_those_of_training(folder: Path) -> None:
    model: Any = LocalModel(folder)
    model._load()
    template = ChatTemplate(model._tokenizer, system_prompt="1 2")
    messages = [Message("system", "1 2"), Message("user", "3"), Message("assistant", "4"), Message("user", "5")]
    sampled = [7, 7, model._tokenizer.eos_token_id]  # another encoding than the text's own
    model._own["one"] = {"4": sampled}
    assert model._encoded(Prompt(messages), "one") == template.initial_prompt("3") + sampled + template.bridge_tokens(
        "5"
    )


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
