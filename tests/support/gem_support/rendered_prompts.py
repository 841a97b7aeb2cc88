"""Prompts of episodes against `apply_chat_template`, with nothing of what builds them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gem_core.episode import Episode, Turn


class Shown(NamedTuple):
    """A message, and the ids of the response that a later prompt shows after it."""

    role: str
    message: str
    response: list[int]


def role_of(turns: Sequence[Turn], position: int) -> str:
    """The role of a turn's message."""
    return "tool" if position and turns[position - 1].info.get("use_tool") else "user"


def without_end(tokenizer: Any, ids: Sequence[int]) -> list[int]:
    """A response without the end of its turn, which the template writes."""
    return [*ids[:-1]] if ids[-1] == tokenizer.eos_token_id else [*ids]


def check_prompt(
    tokenizer: Any,
    prompt: Sequence[int],
    system: str | None,
    shown: Sequence[Shown],
    message: tuple[str, str],
    **options: Any,
) -> None:
    """Assert that a prompt is the template's rendering of a conversation, with the responses' ids as they are.

    Texts with control tokens have no rendering of their own: there, the prompt has the same text as the rendering, and
    the control tokens of the template and the responses alone.

    Args:
        tokenizer: with its chat template.
        prompt: the ids.
        system: the message of the system, if there is one.
        shown: the earlier messages and responses.
        message: role and text of the newest one.
        options: further arguments of the template.
    """
    responses = [one.response for one in shown]
    parts = _rendered(tokenizer, system, shown, message, options)
    texts = [message[1], *(one.message for one in shown)]
    if not any(token in text for token in tokenizer.added_tokens_encoder for text in texts):
        assert [*prompt] == _ids(tokenizer, parts, responses)
        return
    said = [*map(tokenizer.decode, responses), ""]
    assert tokenizer.decode([*prompt]) == "".join(part for pair in zip(parts, said, strict=True) for part in pair)
    harmless = [Shown(one.role, ".", []) for one in shown]
    frame = _ids(tokenizer, _rendered(tokenizer, system, harmless, (message[0], "."), options), responses)
    assert _controls(tokenizer, prompt) == _controls(tokenizer, frame)


def check_episode(tokenizer: Any, episode: Episode, system: str | None = None, history: int | None = None) -> None:
    """Assert that each prompt of an episode without thoughts and summaries is the template's rendering."""
    turns = episode.turns
    shown = [
        Shown(role_of(turns, at), turn.observation, without_end(tokenizer, episode.response_ids(turn).tolist()))
        for at, turn in enumerate(turns)
    ]
    for at, turn in enumerate(turns):
        first = 0 if history is None else max(0, at + 1 - history)
        check_prompt(tokenizer, episode.prompt_ids(turn), system, shown[first:at], shown[at][:2])


def _rendered(
    tokenizer: Any, system: str | None, shown: Sequence[Shown], message: tuple[str, str], options: dict[str, Any]
) -> list[str]:
    """The text that `apply_chat_template` writes, in parts between the responses."""
    messages = [] if system is None else [{"role": "system", "content": system}]
    for place, (role, content, _) in enumerate(shown):
        messages += [{"role": role, "content": content}, {"role": "assistant", "content": f"RESPONSE{place}STANDS"}]
    messages.append({"role": message[0], "content": message[1]})
    rest = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **options)
    parts: list[str] = []
    for place in range(len(shown)):
        part, found, rest = rest.partition(f"RESPONSE{place}STANDS")
        assert found
        parts.append(part)
    return [*parts, rest]


def _ids(tokenizer: Any, parts: Sequence[str], responses: Sequence[list[int]]) -> list[int]:
    """The ids of the parts with those of the responses between them."""
    first, *others = [tokenizer.encode(part, add_special_tokens=False) for part in parts]
    return [*first, *(one for ids, part in zip(responses, others, strict=True) for one in [*ids, *part])]


def _controls(tokenizer: Any, ids: Sequence[int]) -> list[int]:
    return [one for one in ids if one in tokenizer.added_tokens_decoder]
