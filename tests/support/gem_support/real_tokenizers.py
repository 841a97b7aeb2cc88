"""Real tokenizers, built on the spot: tests of token-exact rollouts need no download and no torch."""

from __future__ import annotations

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

_ROLES = ["<|system|>", "<|user|>", "<|assistant|>", "<|tool|>"]
_WORDS = "the goal is left right of you go on and stop now a b c 0 1 2 3 4 5 6 7 8 9 . , : ? ! @ G < > - \n"
_WORD_TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)

# Qwen3's in small: a tool's answer is a user message in tags, and reasoning is cut out of earlier answers.
_CHATML_TEMPLATE = (
    "{%- for message in messages -%}"
    "{%- if message.role == 'tool' -%}"
    "{{- '<|im_start|>user\n<tool_response>\n' + message.content + '\n</tool_response><|im_end|>\n' -}}"
    "{%- elif message.role == 'assistant' and '</think>' in message.content -%}"
    "{{- '<|im_start|>assistant\n' + message.content.split('</think>')[-1] + '<|im_end|>\n' -}}"
    "{%- else -%}"
    "{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' -}}"
    "{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}"
    "{{- '<|im_start|>assistant\n' + ('<think>\n\n</think>\n\n' if thinking is false else '') -}}"
    "{%- endif -%}"
)
_CORPUS = [
    "Guess my number between 1 and 20. My number is higher than 7, my number is lower than 19.",
    "user assistant system tool_response think the corridor, the goal, the player walks left or right",
    "\\boxed{12} \\boxed{7} \\boxed{higher} and another guess, and another number, and another turn",
] * 4


def word_tokenizer() -> PreTrainedTokenizerFast:
    """One token per word, digit or sign; what it has never met is `<|unknown|>`."""
    vocabulary = ["<|pad|>", "<|end|>", "<|unknown|>", *_ROLES, *_WORDS.replace("\n", "").split(), " ", "\n"]
    core = Tokenizer(models.WordLevel({token: index for index, token in enumerate(vocabulary)}, "<|unknown|>"))
    core.pre_tokenizer = pre_tokenizers.Split(Regex(r"[A-Za-z]+|[\s\S]"), "isolated")
    core.decoder = decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token="<|pad|>",
        eos_token="<|end|>",
        unk_token="<|unknown|>",
        additional_special_tokens=_ROLES,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = _WORD_TEMPLATE
    return tokenizer


def chatml_tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level BPE with a ChatML template, for which decoding and encoding again is not the identity."""
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator(_CORPUS, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token="<|endoftext|>",
        eos_token="<|im_end|>",
        additional_special_tokens=["<|im_start|>"],
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = _CHATML_TEMPLATE
    return tokenizer
