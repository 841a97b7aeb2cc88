"""A tokenizer's chat template as the two pieces that a token-exact conversation needs."""

from __future__ import annotations

import copy
import json
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, product
from typing import Any, Protocol, TypeAlias, cast

from gem_core.controls import ControlTokens, changed_texts
from gem_core.errors import TemplateError
from gem_core.responses import MARKS
from gem_train.rollout._images import ImageReader, texts_around
from gem_train.rollout._turn_ends import TurnEndFinder, TurnEnds

# No environment and no tool can know these words, and a template passes them on.
_SECRET = secrets.token_hex(8)
_CUT = f"GEMCORECUT{_SECRET}"
"""Where foreign text is cut before it is encoded."""
_PLACEHOLDER = f"GEMCOREPLACEHOLDER{_SECRET}"
"""Stands for the assistant's words while the text around them is looked up. It has to survive templates that strip
white space or cut reasoning blocks out of earlier messages."""
_PROBE = f"GEMCOREPROBE{_SECRET}"
"""Stands for a message."""

_KEPT_MESSAGES = 1024
"""Messages whose token ids a template keeps."""
_KEPT_CHARACTERS = 1000
"""Length of the longest message that is kept: longer ones hardly repeat, and would need memory."""


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


Content: TypeAlias = "str | list[dict[str, str]]"
"""The content of a message, as chat templates take it: a string, or parts if it has images."""


class ChatTemplate:
    """Renders initial prompts and bridge tokens, and never a response.

    An *initial prompt* is a first message with everything before it and the header of the answer. *Bridge tokens*
    are what the template writes between the end of a response and the start of the next one: the end of the turn, the
    new message, the header of the answer.

    Args:
        tokenizer: a Hugging Face tokenizer with a chat template.
        system_prompt: system message of every conversation; `None` for none.
        options: further arguments of the template, for example `{"enable_thinking": False}`.
        images: reads images for the model; `None` for a model that reads text only.

    Raises:
        TemplateError: the tokenizer has no chat template, or one that drops what is said or raises.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        system_prompt: str | None = None,
        options: dict[str, Any] | None = None,
        images: ImageReader | None = None,
    ) -> None:
        if not getattr(tokenizer, "chat_template", None):
            raise TemplateError(
                f"{type(tokenizer).__name__} has no chat template. Set tokenizer.chat_template to a jinja template, "
                "or load the tokenizer of a chat model."
            )
        self.images = images
        self._tokenizer = tokenizer
        special = _special_tokens(tokenizer)
        self._marks = frozenset(number for number, text in special.items() if text in MARKS)
        """Marks of thoughts and calls that are special tokens."""
        self._hidden = frozenset(special).difference(self._marks)
        self._system = [] if system_prompt is None else [{"role": "system", "content": system_prompt}]
        self._options = dict(options or {})
        self._with_tools: dict[str, ChatTemplate] = {}
        self._roles: set[str] = set()
        self._first_roles: dict[str, str] = {}
        """Of a role: the one with which a first message of it is written."""
        self._known_controls: ControlTokens | None = None
        self._known_ends: TurnEnds | None = None
        self._known_tool_role: str | None = None
        self._openings: dict[str, tuple[int, ...]] = {}
        """Of a role: control tokens between a response and a message, in order."""
        self._frames: dict[tuple[str, str, int], list[int]] = {}
        """Of a place, a role and a number of images: the control tokens around a message and for its images. With
        any message, there are no others."""
        self._kept: dict[tuple[str, str, str, int], tuple[int, ...]] = {}
        """Token ids of short messages that were encoded: rules and answers of environments repeat."""
        self._in_parts = False
        """Whether each message has to be a list of parts, as for some vision-language models."""
        self._check_template()

    def _check_template(self) -> None:
        try:
            self._check_role("user")
        except TemplateError as error:
            self._in_parts = True
            with suppress(TemplateError):
                return self._check_role("user")
            raise error

    def with_tools(self, tools: Sequence[dict[str, Any]]) -> ChatTemplate:
        """The same template, which tells the model of functions that it may call.

        Args:
            tools: their JSON schemas.

        Raises:
            TemplateError: the template does not show them, or has no role `tool` for their answers.
        """
        key = json.dumps(tools, sort_keys=True)
        if key not in self._with_tools:
            template = self._showing(tools)
            if template._probe() == self._probe():
                raise TemplateError(
                    "the chat template shows no tools, so the model could not know of them. Use ToolEnv(form='text'), "
                    "or a model that was trained to call functions."
                )
            template._check_role("tool")
            self._with_tools[key] = template
        return self._with_tools[key]

    def _showing(self, tools: Sequence[dict[str, Any]]) -> ChatTemplate:
        """With descriptions in which no text is a control token: what they say is a stranger's, as a message is."""
        plain = self._having(changed_texts([*tools], partial(_PUNCTUATION.sub, "")))
        frame = plain._frame("initial", "user")
        for change in (partial(plain._controls.broken, mark=_CUT), _CUT.join):
            template = self._having(changed_texts([*tools], change))
            template._known_controls = plain._controls
            if template._keeps(frame, template._encode(template._initial_prompt(_PROBE, "user"))):
                return template
        raise TemplateError("the descriptions of the tools would become control tokens of the chat template")

    def _having(self, tools: list[dict[str, Any]]) -> ChatTemplate:
        template = copy.copy(self)
        template._options = {**self._options, "tools": tools}
        template._roles, template._frames, template._kept, template._known_controls = set(), {}, {}, None
        template._openings, template._known_ends, template._known_tool_role = {}, None, None
        template._first_roles = {}
        return template

    def _probe(self) -> str:
        return self._render([*self._system, {"role": "user", "content": "."}])

    def _check_role(self, role: str) -> None:
        """Raises `TemplateError` where messages of this role would be lost."""
        if role not in self._roles:
            if _PROBE not in self._bridge(_PROBE, role):
                raise TemplateError(f"the chat template drops messages of the role {role!r}")
            self._roles.add(role)

    @property
    def tool_role(self) -> str:
        """The role of a tool's result: `tool`, or `user` where the template refuses, drops or does not mark others."""
        if self._known_tool_role is None:
            self._known_tool_role = "tool" if self._shows_speaker("tool") else "user"
        return self._known_tool_role

    def _shows_speaker(self, role: str) -> bool:
        """Whether the template shows messages of this role, and says whose they are."""
        try:
            self._check_role(role)
            before = self._bridge(_PROBE, role).partition(_PROBE)[0]
        except TemplateError:
            return False
        return self._encode(before.strip()) != self._encode(self._end_finder.closing.strip())

    def initial_prompt(self, message: str, role: str = "user", images: int = 0) -> list[int]:
        """Token ids of a conversation that starts with `message`, up to where the answer begins.

        Args:
            message: the text.
            role: who says it. Where the template refuses or drops a first message of this role, it is the user's: a
                bounded history may begin with a tool's result.
            images: how many it shows, each one placeholder here.
        """
        self._check_role(role)
        return self._ids("initial", self._first_role(role), message, images)

    def _first_role(self, role: str) -> str:
        if role not in self._first_roles:
            self._first_roles[role] = "user"
            with suppress(TemplateError):
                if _PROBE in self._initial_prompt(_PROBE, role):
                    self._first_roles[role] = role
        return self._first_roles[role]

    def bridge_tokens(self, message: str, role: str = "user", images: int = 0) -> list[int]:
        """Token ids between a response and the answer to `message`, the response's end of turn included.

        Arguments as for `initial_prompt`.
        """
        self._check_role(role)
        return self._ids("bridge", role, message, images)

    @property
    def ends(self) -> tuple[int, ...]:
        """Ids at which the template says that an assistant's turn ends, at which sampling has to stop.

        These are control tokens: the end of a turn, and headers of messages. Empty if the template writes only words.
        `end_token_ids` adds those of the tokenizer and the model.
        """
        return self._turn_ends.ids

    @property
    def answer_header(self) -> tuple[str, int]:
        """What the policy has to sample before its first word, and its number of tokens: what the template writes in
        earlier answers, and not in front of the next one. Empty for most; Harmony has a channel."""
        ids = self._end_finder.answer_header()
        return (str(self._tokenizer.decode(ids)) if ids else ""), len(ids)

    @property
    def _turn_ends(self) -> TurnEnds:
        if self._known_ends is None:
            self._known_ends = self._end_finder.find()
        return self._known_ends

    @property
    def _end_finder(self) -> TurnEndFinder:
        def render(messages: Sequence[Mapping[str, Any]], *, generate: bool = True) -> str:
            return self._render([*self._system, *messages], generate=generate)

        return TurnEndFinder(render, self._encode, self._leading, self._controls.among, self._marks)

    def _leading(self, ids: Sequence[int]) -> list[int]:
        """The control tokens of some ids before the first word."""
        found: list[int] = []
        for number in ids:
            if self._controls.among([number]):
                found.append(number)
            elif self._tokenizer.decode([number]).strip():
                break
        return found

    def following(self, last: int, message: str, role: str = "user", images: int = 0) -> list[int]:
        """The bridge tokens after a response that ends with this id, without what the response has sampled of them.

        A response may end with the end of the turn, or with the header of the next message.

        Args:
            last: the last id of the response.
            message, role, images: as for `initial_prompt`.
        """
        bridge = self.bridge_tokens(message, role, images)
        if role not in self._openings:
            self._openings[role] = self._end_finder.opening(role)
        opening = self._openings[role]
        if last == self._turn_ends.last and last not in opening and len(opening) > 1:
            last = opening[0]  # the turn has ended as the last turn of a conversation does
        return bridge[bridge.index(last) + 1 :] if last in opening else bridge

    def words(self, text: str) -> list[int]:
        """Token ids of a text of the assistant that nobody sampled, none of them a control token.

        Raises:
            TemplateError: the text would become control tokens.
        """
        for change in (str, partial(self._controls.broken, mark=_CUT), _CUT.join):
            ids = self._encode(change(text))
            if not self._controls.among(ids):
                return ids
        raise TemplateError(f"a text would become control tokens of the chat template: {text!r:.200}")

    def header(self, role: str = "user") -> str:
        """The text between a message of this role and the response to it; it ends with the header of the response."""
        return self._bridge(_PROBE, role).partition(_PROBE)[2]

    def earlier(self, role: str, response: Mapping[str, str], following: str) -> str:
        """An earlier response as the template writes it, with all text between the messages around it.

        Args:
            role: of the message before it.
            response: its fields besides the role, such as `content`.
            following: the role of the message after it.

        Raises:
            TemplateError: the template refuses such messages, or drops one of the two.
        """
        before = [("user", "."), ("assistant", "."), (role, _PROBE)]
        messages = [{"role": one, "content": said} for one, said in before]
        after = {"role": following, "content": _PLACEHOLDER}
        text = self._render([*self._system, *messages, {"role": "assistant", **response}, after])
        _, found, after = text.partition(_PROBE)
        between, also_found, _ = after.partition(_PLACEHOLDER)
        if not (found and also_found):
            raise TemplateError(f"the chat template drops messages of the role {role!r} or {following!r}")
        return between

    def _ids(self, place: str, role: str, message: str, images: int) -> list[int]:
        """Token ids of a message with its frame, as a list of the caller's own."""
        key = place, role, message, images
        if (kept := self._kept.get(key)) is not None:
            return [*kept]
        ids = self._encoded(place, role, message, images)
        if len(message) <= _KEPT_CHARACTERS:
            if len(self._kept) >= _KEPT_MESSAGES:
                self._kept.clear()
            self._kept[key] = tuple(ids)
        return ids

    def _encoded(self, place: str, role: str, message: str, images: int) -> list[int]:
        """Token ids of a message with its frame, whose control tokens are those of the frame alone."""
        frame, written = self._frame(place, role, images), self._written(place)
        if not self._controls.written_in(message):
            ids = self._encode(written(_content(message, images), role))
            if self._keeps(frame, ids):
                return ids
        # The second way is for what a tokenizer reads as a control token in another spelling, or across a border.
        for change in (partial(self._controls.broken, mark=_CUT), _CUT.join):
            ids = self._encode(written(_content(message, images, change), role))
            if self._keeps(frame, ids):
                return ids
        raise TemplateError(f"a message would become control tokens of the chat template: {message!r:.200}")

    def _keeps(self, frame: list[int], ids: Sequence[int]) -> bool:
        # A template may leave out some of its frame, for example around an empty message.
        rest = iter(frame)
        return all(one in rest for one in self._controls.among(ids))

    def _written(self, place: str) -> Callable[[Content, str], str]:
        return self._initial_prompt if place == "initial" else self._bridge

    def _frame(self, place: str, role: str, images: int = 0) -> list[int]:
        key = place, role, images
        if key not in self._frames:
            ids = self._encode(self._written(place)(_content(_PROBE, images), role))
            if images and (self.images is None or ids.count(self.images.placeholder) != images):
                raise TemplateError(
                    f"the chat template does not show the model the {images} images of a message. Use the template "
                    "of a vision-language model, which writes one placeholder for each part of the type 'image'"
                )
            self._frames[key] = self._controls.among(ids)
        return self._frames[key]

    @property
    def _controls(self) -> ControlTokens:
        """The tokenizer's special tokens, and all other added tokens that this template writes around messages."""
        if self._known_controls is None:
            framing: set[int] = set() if self.images is None else {*self.images.reserved}
            for written, role in product((self._initial_prompt, self._bridge), ("user", "tool", "system")):
                with suppress(TemplateError):  # a role that it does not know
                    framing.update(self._encode(written(_PROBE, role)))
            self._known_controls = ControlTokens.of(self._tokenizer, framing)
        return self._known_controls

    def _initial_prompt(self, message: Content, role: str) -> str:
        return self._render([*self._system, {"role": role, "content": message}])

    def _bridge(self, message: Content, role: str) -> str:
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
        """The text of sampled tokens, without the end of the turn and other special tokens.

        Marks of thoughts and calls (`gem_core.responses.MARKS`) stay, also where they are special tokens.
        """
        words = list(ids)
        if words and words[-1] in self._turn_ends.ids:
            words.pop()
        if not self._marks:
            return self._tokenizer.decode(words, skip_special_tokens=True)
        return self._tokenizer.decode([one for one in words if one not in self._hidden])

    def _render(self, messages: Sequence[Mapping[str, Any]], *, generate: bool = True) -> str:
        given = [_in_parts(message) for message in messages] if self._in_parts else [*messages]
        try:
            return self._tokenizer.apply_chat_template(
                given, tokenize=False, add_generation_prompt=generate, **self._options
            )
        except Exception as error:  # templates raise what they like, for example at a role they do not know
            roles = [message["role"] for message in messages]
            hint = " A tool's answer has the role 'tool'; use a template that knows it." if "tool" in roles else ""
            raise TemplateError(f"the chat template refused messages of the roles {roles}: {error}.{hint}") from error

    def _encode(self, text: str) -> list[int]:
        text = text.encode(errors="replace").decode()  # a tokenizer raises at half a character
        encode = partial(self._tokenizer.encode, add_special_tokens=False)
        return [*encode(text)] if _CUT not in text else [*chain.from_iterable(map(encode, text.split(_CUT)))]


def _special_tokens(tokenizer: Any) -> dict[int, str]:
    """The special tokens of a tokenizer by their ids: those that decoding may leave out."""
    added: Mapping[int, Any] = getattr(tokenizer, "added_tokens_decoder", {})
    return {number: str(token) for number, token in added.items() if token.special}


def _in_parts(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message whose text is a part."""
    content = message["content"]
    return {**message, "content": [{"type": "text", "text": content}]} if isinstance(content, str) else message


def _content(message: str, images: int, change: Callable[[str], str] = str) -> Content:
    """A message with its images, each text changed."""
    if not images:
        return change(message)
    image = {"type": "image"}
    texts = ({"type": "text", "text": change(text)} for text in texts_around(message, images))
    return [part for text in texts for part in (image, text) if part.get("text") != ""][1:]


def end_token_ids(template: ChatTemplate, tokenizer: Tokenizer, generation_config: Any = None) -> tuple[int, ...]:
    """All ids that end a response: those of the template, of the tokenizer, and of the model.

    Every engine stops at all of them, in training and in evaluation.

    Args:
        template: of the conversation.
        tokenizer: its `eos_token_id`, if it has one.
        generation_config: the model's, an object or a mapping with `eos_token_id`; or this value itself, an id or ids.

    Returns:
        The ids without repetition: the template's, the tokenizer's, the model's.
    """
    configured: Any = generation_config
    if isinstance(configured, Mapping):
        configured = cast("Mapping[str, Any]", configured).get("eos_token_id")
    elif hasattr(configured, "eos_token_id"):
        configured = configured.eos_token_id
    found = [*template.ends, *_ids(getattr(tokenizer, "eos_token_id", None)), *_ids(configured)]
    return (*dict.fromkeys(found),)


def _ids(value: int | Sequence[int] | None) -> Sequence[int]:
    return () if value is None else (value,) if isinstance(value, int) else value


_PUNCTUATION = re.compile(r"[^\w .,-]")
"""What words of a description can do without, and no control token."""
