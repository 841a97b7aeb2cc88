"""A tokenizer made of the words that environments use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from gem_core.env import Env, shown_text
from gem_core.registry import build, spec

_SPECIAL = ["<|pad|>", "<|end|>", "<|unknown|>", "<|system|>", "<|user|>", "<|assistant|>", "<|tool|>"]
_TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
# A number, the opening of a box and a word are one token each; whatever else is one character.
_PIECES = r"\d+|\\boxed\{| ?[A-Za-z]+|[\s\S]"


def tiny_tokenizer(
    env_ids: Sequence[str], *, wrappers: Sequence[Callable[[Env], Env]] = (), episodes: int = 200, seed: int = 0
) -> PreTrainedTokenizerFast:
    """A word-level tokenizer with a chat template, from what random play of the environments says.

    Args:
        env_ids: environments to listen to.
        wrappers: as for `make_vec`.
        episodes: episodes of random valid play per environment.
        seed: of that play.

    Returns:
        A tokenizer of a few dozen tokens. Words it has never met become `<|unknown|>`.
    """
    splitter = pre_tokenizers.Split(Regex(_PIECES), "isolated")
    pieces = {
        piece
        for env_id in env_ids
        for text in _random_play(env_id, wrappers, episodes, seed)
        for piece, _ in splitter.pre_tokenize_str(text)
    }
    vocabulary = {token: index for index, token in enumerate([*_SPECIAL, *sorted(pieces)])}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="<|unknown|>"))
    core.pre_tokenizer = splitter
    core.decoder = decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token="<|pad|>",
        eos_token="<|end|>",
        unk_token="<|unknown|>",
        additional_special_tokens=_SPECIAL[3:],
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = _TEMPLATE
    return tokenizer


def _random_play(env_id: str, wrappers: Sequence[Callable[[Env], Env]], episodes: int, seed: int) -> Iterator[str]:
    with build(spec(env_id), {}, wrappers) as env:
        for episode in range(episodes):
            observation, info = env.reset(seed=seed + episode)
            done = False
            while not done:
                yield shown_text(observation, info)
                action = env.sample_random_action()
                yield action
                observation, _, terminated, truncated, info = env.step(action)
                done = terminated or truncated
            yield observation
