"""A tokenizer made of the words that environments use."""

from __future__ import annotations

import itertools
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from gem_core.env import Env, shown_text
from gem_tiny._play import RandomTurn, random_play

_SPECIAL = ["<|pad|>", "<|end|>", "<|unknown|>", "<|system|>", "<|user|>", "<|assistant|>", "<|tool|>"]
_TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
_VISION = ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
_VISION_TEMPLATE = _TEMPLATE.replace(
    "{{ message.content }}",
    "{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}"
    "{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ part.text }}{% endif %}"
    "{% endfor %}{% endif %}",
)
# A number, the opening of a box and a word are one token each; other tokens are single characters.
_PIECES = r"\d+|\\boxed\{| ?[A-Za-z]+|[\s\S]"
_PIECES_OF_DIGITS = _PIECES.removeprefix(r"\d+|")


def tiny_tokenizer(
    env_ids: Sequence[str],
    *,
    wrappers: Sequence[Callable[[Env], Env]] = (),
    env_kwargs: Mapping[str, Any] | None = None,
    episodes: int = 200,
    images: bool = False,
    digits: bool = False,
    seed: int = 0,
) -> PreTrainedTokenizerFast:
    """A word-level tokenizer with a chat template, from the text of random play of the environments.

    Args:
        env_ids: environments to play.
        wrappers, env_kwargs: as for `make_vec`.
        episodes: number of episodes of random valid play per environment.
        images: with the special tokens of Qwen2-VL around images, and a chat template that writes them.
        digits: each digit is a token, and all ten are in the vocabulary, so numbers that random play never showed can
            be read and written. By default a number is one token.
        seed: seed of the play.

    Returns:
        A tokenizer of a few dozen tokens. Unknown words become `<|unknown|>`.

    Raises:
        EnvFailure: more than half of 40 episodes of an environment failed.
        NotFoundError, EnvKwargsError, MissingExtraError, EnvError: as `gem_core.make`.
    """
    splitter = pre_tokenizers.Split(Regex(_PIECES_OF_DIGITS if digits else _PIECES), "isolated")
    with closing(random_play(env_ids, wrappers=wrappers, env_kwargs=env_kwargs, seed=seed)) as play:
        heard = {text for episode in itertools.islice(play, episodes * len(env_ids)) for text in _texts(episode)}
    pieces = {piece for text in heard for piece, _ in splitter.pre_tokenize_str(text)}
    if digits:
        pieces.update(string.digits)
    special = [*_SPECIAL, *_VISION] if images else _SPECIAL
    vocabulary = {token: index for index, token in enumerate([*special, *sorted(pieces)])}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="<|unknown|>"))
    core.pre_tokenizer = splitter
    core.decoder = decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token="<|pad|>",
        eos_token="<|end|>",
        unk_token="<|unknown|>",
        additional_special_tokens=special[3:],
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = _VISION_TEMPLATE if images else _TEMPLATE
    return tokenizer


def _texts(episode: list[RandomTurn]) -> Iterator[str]:
    for turn in episode:
        yield shown_text(turn.observation, turn.info)
        if turn.action is not None:
            yield turn.action
