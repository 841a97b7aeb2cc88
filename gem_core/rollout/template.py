"""A tokenizer's chat template as the two pieces that a token-exact conversation needs."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any, Protocol

from gem_core.errors import TemplateError

# Stands for the assistant's words while the text around them is looked up. It has to survive templates that strip
# white space or cut reasoning blocks out of earlier messages.
_PLACEHOLDER = "GEMCOREPLACEHOLDER"
_PROBE = "GEMCOREPROBE"


class Tokenizer(Protocol):
    """The part of a Hugging Face tokenizer that rollouts need."""

    chat_template: Any

    # Types as loose as those of transformers, whose methods also take batches and tensors.
    def apply_chat_template(self, conversation: Any, /, **kwargs: Any) -> Any:
        """Render messages as text."""
        ...

    def encode(self, text: Any, /, **kwargs: Any) -> Any:
        """Text to token ids."""
        ...

    def decode(self, token_ids: Any, /, **kwargs: Any) -> Any:
        """Token ids to text."""
        ...


class ChatTemplate:
    """Renders openings and glue, and never a response.

    An *opening* is a first message with everything before it and the header of the answer. *Glue* is what the
    template writes between the end of a response and the start of the next one: the end of the turn, the new
    message, the header of the answer.

    Args:
        tokenizer: a Hugging Face tokenizer with a chat template.
        system_prompt: system message of every conversation; `None` for none.
        options: further arguments of the template, for example `{"enable_thinking": False}`.

    Raises:
        TemplateError: the tokenizer has no chat template, or one that drops what is said or raises.
    """

    def __init__(
        self, tokenizer: Tokenizer, *, system_prompt: str | None = None, options: dict[str, Any] | None = None
    ) -> None:
        if not getattr(tokenizer, "chat_template", None):
            raise TemplateError(
                f"{type(tokenizer).__name__} has no chat template. Set tokenizer.chat_template to a jinja template, "
                "or load the tokenizer of a chat model."
            )
        self._tokenizer = tokenizer
        self._system = [] if system_prompt is None else [{"role": "system", "content": system_prompt}]
        self._options = dict(options or {})
        self._with_tools: dict[str, ChatTemplate] = {}
        self._roles: set[str] = set()
        self._check_role("user")

    def with_tools(self, tools: Sequence[dict[str, Any]]) -> ChatTemplate:
        """The same template, which tells the model of functions that it may call.

        Args:
            tools: their JSON schemas.

        Raises:
            TemplateError: the template does not show them, or has no role `tool` for their answers.
        """
        key = json.dumps(tools, sort_keys=True)
        if key not in self._with_tools:
            template = copy.copy(self)
            template._options = {**self._options, "tools": list(tools)}
            template._roles = set()
            if template._probe() == self._probe():
                raise TemplateError(
                    "the chat template shows no tools, so the model could not know of them. Use ToolEnv(form='text'), "
                    "or a model that was trained to call functions."
                )
            template._check_role("tool")
            self._with_tools[key] = template
        return self._with_tools[key]

    def _probe(self) -> str:
        return self._render([*self._system, {"role": "user", "content": "."}])

    def _check_role(self, role: str) -> None:
        """Raises `TemplateError` where messages of this role would be lost."""
        if role not in self._roles:
            if _PROBE not in self._glue(_PROBE, role):
                raise TemplateError(f"the chat template drops messages of the role {role!r}")
            self._roles.add(role)

    def opening(self, message: str, role: str = "user") -> list[int]:
        """Token ids of a conversation that starts with `message`, up to where the answer begins."""
        self._check_role(role)
        return self._encode(self._render([*self._system, {"role": role, "content": message}]))

    def glue(self, message: str, role: str = "user") -> list[int]:
        """Token ids between a response and the answer to `message`, the response's end of turn included."""
        self._check_role(role)
        return self._encode(self._glue(message, role))

    def _glue(self, message: str, role: str) -> str:
        text = self._render(
            [
                *self._system,
                {"role": "user", "content": "."},
                {"role": "assistant", "content": _PLACEHOLDER},
                {"role": role, "content": message},
            ]
        )
        _, found, after = text.partition(_PLACEHOLDER)
        if not found:
            raise TemplateError("the chat template drops the assistant's words, so no multi-turn prompt can be built")
        return after

    def decode(self, ids: Sequence[int]) -> str:
        """The text of sampled tokens, without special tokens."""
        return self._tokenizer.decode(list(ids), skip_special_tokens=True)

    def _render(self, messages: list[dict[str, str]]) -> str:
        try:
            return self._tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True, **self._options
            )
        except Exception as error:  # templates raise what they like, for example at a role they do not know
            roles = [message["role"] for message in messages]
            hint = " A tool's answer has the role 'tool'; use a template that knows it." if "tool" in roles else ""
            raise TemplateError(f"the chat template refused messages of the roles {roles}: {error}.{hint}") from error

    def _encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False))
