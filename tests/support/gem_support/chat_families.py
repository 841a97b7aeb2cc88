"""Small tokenizers with the special tokens and chat templates of the families of chat models, written for the tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from gem_support import real_tokenizers

_CORPUS = ["user assistant tool the goal is left of you, go on and look at 12 <tags> [and] |bars| of it all\n"] * 4


def _fast(core: Tokenizer, special: Sequence[str | AddedToken], template: str, **named: str) -> PreTrainedTokenizerFast:
    tokens = [
        one if isinstance(one, AddedToken) else AddedToken(one, special=True, normalized=False) for one in special
    ]
    core.add_tokens(tokens)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, clean_up_tokenization_spaces=False, **named)
    tokenizer.chat_template = template
    return tokenizer


def _bytes(special: Sequence[str | AddedToken], template: str, *, ignore_merges: bool = False, **named: str) -> Any:
    core = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    core.train_from_iterator(
        _CORPUS, trainers.BpeTrainer(vocab_size=340, initial_alphabet=alphabet, show_progress=False)
    )
    return _fast(core, special, template, **named)


def _pieces(special: Sequence[str | AddedToken], template: str, *, prefix: bool, **named: str) -> Any:
    core = Tokenizer(models.BPE())
    alphabet = sorted({*"".join(_CORPUS), *map(chr, range(33, 127)), "▁", "\n"} - {" "})
    core.normalizer = normalizers.Replace(" ", "▁")
    core.train_from_iterator(
        _CORPUS, trainers.BpeTrainer(vocab_size=200, initial_alphabet=alphabet, show_progress=False)
    )
    model: dict[str, Any] = json.loads(core.to_str())["model"]
    names = ["<unk>", *(f"<0x{number:02X}>" for number in range(256)), *model["vocab"]]
    merges = [(one, other) for one, other in model["merges"]]
    vocabulary = {name: number for number, name in enumerate(names)}
    core = Tokenizer(models.BPE(vocabulary, merges, byte_fallback=True, unk_token="<unk>"))
    if prefix:
        core.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    else:
        core.normalizer = normalizers.Replace(" ", "▁")
    core.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return _fast(core, special, template, unk_token="<unk>", **named)


def chatml() -> PreTrainedTokenizerFast:
    """ChatML."""
    return real_tokenizers.chatml_tokenizer()


def qwen() -> PreTrainedTokenizerFast:
    """ChatML whose frames of tools are added tokens, but no special ones."""
    tokenizer = real_tokenizers.chatml_tokenizer()
    frames = ["<tool_response>", "</tool_response>"]
    tokenizer.add_tokens([AddedToken(one, special=False, normalized=False) for one in frames])
    return tokenizer


def llama() -> PreTrainedTokenizerFast:
    """Headers of roles; contents are trimmed, and a tool's answer is JSON."""
    special = ["<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|python_tag|>"]
    template = (
        "{{ '<|begin_of_text|>' }}{% for m in messages %}"
        "{{ '<|start_header_id|>' + ('ipython' if m.role == 'tool' else m.role) + '<|end_header_id|>\n\n' }}"
        "{% if m.role == 'tool' %}{{ m.content | tojson }}{% else %}{{ m.content | trim }}{% endif %}"
        "{{ '<|eot_id|>' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
    )
    return _bytes(special, template, ignore_merges=True, bos_token="<|begin_of_text|>", eos_token="<|eot_id|>")


def mistral() -> PreTrainedTokenizerFast:
    """Brackets around instructions, and a space before the first word of a text."""
    special = ["<s>", "</s>", "[INST]", "[/INST]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]"]
    template = (
        "{{ '<s>' }}{% for m in messages %}"
        "{% if m.role == 'assistant' %}{{ ' ' + m.content + '</s>' }}"
        "{% elif m.role == 'tool' %}{{ '[TOOL_RESULTS] ' + m.content + '[/TOOL_RESULTS]' }}"
        "{% else %}{{ '[INST] ' + m.content + '[/INST]' }}{% endif %}{% endfor %}"
    )
    return _pieces(special, template, prefix=True, bos_token="<s>", eos_token="</s>")


def gemma() -> PreTrainedTokenizerFast:
    """Turns, with the model's name for itself."""
    special = ["<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"]
    template = (
        "{{ '<bos>' }}{% for m in messages %}"
        "{{ '<start_of_turn>' + ('model' if m.role == 'assistant' else m.role) + '\n' + m.content | trim }}"
        "{{ '<end_of_turn>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
    )
    return _pieces(special, template, prefix=False, bos_token="<bos>", eos_token="<end_of_turn>")


def phi() -> PreTrainedTokenizerFast:
    """A token per role, which swallows the white space behind it."""
    names = ["<|user|>", "<|assistant|>", "<|tool|>", "<|end|>", "<|endoftext|>"]
    special = [AddedToken(one, special=True, normalized=False, rstrip=True) for one in names]
    template = (
        "{% for m in messages %}{{ '<|' + m.role + '|>\n' + m.content + '<|end|>\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"
    )
    return _bytes(special, template, eos_token="<|end|>", pad_token="<|endoftext|>")


def _wide(text: str) -> str:
    return text.replace("|", "\uff5c")


def deepseek() -> PreTrainedTokenizerFast:
    """Signs of full width."""
    tools = ["<|tool▁outputs▁begin|>", "<|tool▁output▁begin|>", "<|tool▁output▁end|>", "<|tool▁outputs▁end|>"]
    special = ["<|begin▁of▁sentence|>", "<|end▁of▁sentence|>", "<|User|>", "<|Assistant|>", *tools]
    template = (
        "{{ '<|begin▁of▁sentence|>' }}{% for m in messages %}"
        "{% if m.role == 'user' %}{{ '<|User|>' + m.content }}"
        "{% elif m.role == 'tool' %}{{ '<|tool▁outputs▁begin|><|tool▁output▁begin|>' + m.content }}"
        "{{ '<|tool▁output▁end|><|tool▁outputs▁end|>' }}"
        "{% else %}{{ m.content + '<|end▁of▁sentence|>' }}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|Assistant|>' }}{% endif %}"
    )
    named = {"bos_token": _wide(special[0]), "eos_token": _wide(special[1])}
    return _bytes([*map(_wide, special)], _wide(template), **named)


def glm() -> PreTrainedTokenizerFast:
    """No end of a turn: the header of the next speaker is it."""
    special = ["[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>", "<|endoftext|>"]
    template = (
        "[gMASK]<sop>{% for m in messages %}"
        "{{ ('<|observation|>' if m.role == 'tool' else '<|' + m.role + '|>') + '\n' + m.content }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"
    )
    return _bytes(special, template, eos_token="<|endoftext|>")


def channels() -> PreTrainedTokenizerFast:
    """Harmony in small: the assistant writes headers and ends of messages within its turn, and ends it with others."""
    names = ["<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|return|>", "<|call|>", "<|endoftext|>"]
    template = (
        "{% for m in messages %}{% set last = loop.last and not add_generation_prompt %}"
        "{% if m.role == 'assistant' and m.tool_calls %}"
        "{{ '<|start|>assistant<|channel|>commentary to=' + m.tool_calls[0].function.name + '<|message|>' }}"
        "{{ (m.tool_calls[0].function.arguments | tojson) + '<|call|>' }}"
        "{% elif m.role == 'assistant' %}"
        "{% if m.thinking and last %}"
        "{{ '<|start|>assistant<|channel|>analysis<|message|>' + m.thinking + '<|end|>' }}{% endif %}"
        "{{ '<|start|>assistant<|channel|>final<|message|>' + m.content + ('<|return|>' if last else '<|end|>') }}"
        "{% elif m.role == 'tool' %}{{ raise_exception('no call before the result of a tool') }}"
        "{% else %}{{ '<|start|>' + m.role + '<|message|>' + m.content + '<|end|>' }}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|start|>assistant' }}{% endif %}"
    )
    return _bytes(names, template, eos_token="<|return|>")


def llama2() -> PreTrainedTokenizerFast:
    """Brackets that are words, a space before the end, and no roles but two that alternate."""
    template = (
        "{% for m in messages %}{% if m.role != ('user' if loop.index0 % 2 == 0 else 'assistant') %}"
        "{{ raise_exception('users and assistants take turns') }}{% endif %}"
        "{% if m.role == 'user' %}{{ '<s>[INST] ' + m.content + ' [/INST]' }}"
        "{% else %}{{ ' ' + m.content + ' </s>' }}{% endif %}{% endfor %}"
    )
    return _pieces(["<s>", "</s>"], template, prefix=True, bos_token="<s>", eos_token="</s>")


def command() -> PreTrainedTokenizerFast:
    """Two tokens at the end of a turn; messages of other roles are dropped."""
    special = [
        "<BOS>",
        "<|START_TURN|>",
        "<|END_TURN|>",
        "<|USER|>",
        "<|BOT|>",
        "<|START_TEXT|>",
        "<|END_TEXT|>",
        "<EOS>",
    ]
    template = (
        "<BOS>{% for m in messages %}{% if m.role == 'user' %}"
        "{{ '<|START_TURN|><|USER|>' + m.content + '<|END_TURN|>' }}{% elif m.role == 'assistant' %}"
        "{{ '<|START_TURN|><|BOT|><|START_TEXT|>' + m.content + '<|END_TEXT|><|END_TURN|>' }}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}<|START_TURN|><|BOT|><|START_TEXT|>{% endif %}"
    )
    return _bytes(special, template, bos_token="<BOS>", eos_token="<|END_TURN|>")


def words() -> PreTrainedTokenizerFast:
    """Roles and ends of turns that are words and lines."""
    template = (
        "{% for m in messages %}{{ m.role + ': ' + m.content + '\n\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ 'assistant:' }}{% endif %}"
    )
    return _bytes(["<|endoftext|>"], template, eos_token="<|endoftext|>")


def parts() -> PreTrainedTokenizerFast:
    """Of a vision-language model: each content is a list of parts."""
    template = (
        "<|im_start|>{% for m in messages %}{{ m.role + ': ' }}{% for part in m.content %}"
        "{{ '<image>' if part.type == 'image' else part.text }}{% endfor %}{{ '<end_of_utterance>\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ 'assistant:' }}{% endif %}"
    )
    return _bytes(["<|im_start|>", "<end_of_utterance>", "<image>"], template, eos_token="<end_of_utterance>")


FAMILIES: dict[str, Callable[[], PreTrainedTokenizerFast]] = {
    one.__name__: one for one in (chatml, qwen, llama, mistral, gemma, phi, deepseek)
}
"""Those that have a role for tools, and take texts."""
OTHERS: dict[str, Callable[[], PreTrainedTokenizerFast]] = {
    one.__name__: one for one in (glm, channels, llama2, command, words, parts)
}
