"""Errors of an endpoint: their messages, and their causes."""

from __future__ import annotations

import re
from typing import Any, cast

from gem_evaluation._replies import ReplyError, as_object, decoded
from gem_evaluation._secret import Secret
from gem_train.rollout import as_utf8

_FULL_KIND = re.compile(r"context.?(length|size|window)|too.?long", re.IGNORECASE)
_FULL_WORDS = re.compile(
    r"context[ _-]?(length|size|window|limit)|context (is full|the overflows)|too many (input )?tokens"
    r"|(prompt|input)\b[^.]{0,60} too (long|large)|reduce the length of the (messages|prompt|input)"
    r"|input token count|`?inputs`? (tokens \+|must have less than)|longer than the (model|context|maximum model)"
    r"|exceeds? the (maximum|available)[^.]{0,30} (tokens|context)|exceeded model token limit"
    r"|maximum prompt length|range of input length|greater than max_seq_len"
    r"|messages\[\d+\]\.content'?: string too long",
    re.IGNORECASE,
)
"""Words of servers for a prompt that does not fit; tests/test_full_contexts.py has their bodies."""
_OTHER_WORDS = re.compile(
    r"credit|billing|api.?key|quota|rate.?limit|per minute|roles? must|alternate|tool_calls?\b|chat template|moderation"
    r"|content.?(filter|management|policy)|max_(completion_)?tokens'?( or '?max_completion_tokens'?)? is too large",
    re.IGNORECASE,
)
"""Words about the account, the roles of messages or a setting, however long the conversation is."""
_ACCOUNT_WORDS = re.compile(
    r"credit balance|billing|api.?key (expired|not valid)|insufficient.?(credits?|quota|balance)", re.IGNORECASE
)
_FLAGGED_WORDS = re.compile(r"moderation|flagged", re.IGNORECASE)


class Refusal:
    """An error of an endpoint.

    Args:
        status: of the reply.
        body: of the reply, which is untrusted.
    """

    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self._body = body
        document = _document(body)
        given = as_object(document).get("error", document)
        self._fields = as_object(given) or as_object(document)
        said = [given, *(self._fields.get(name) for name in ("message", "detail", "code"))]
        self._said = [one for one in said if isinstance(one, str)]

    def line(self, secret: Secret) -> str:
        """Its message and its code, in a line without the key; the body if it has no message."""
        given = self._fields.get("message") or self._fields.get("detail") or next(iter(self._said), None)
        if not isinstance(given, str):
            return secret.line(self._body.decode(errors="replace"))
        code = self._fields.get("code")
        return secret.line(as_utf8(f"{given}{f' ({code})' if isinstance(code, str | int) and code else ''}"))

    def is_of_the_account(self) -> bool:
        """Whether it is about the key or the account, although its status is that of a wrong request."""
        return self.status == 400 and bool(_ACCOUNT_WORDS.search(self._words))

    def is_of_the_prompt(self) -> bool:
        """Whether it refuses this prompt alone, for what it says."""
        return self.status == 403 and bool(_FLAGGED_WORDS.search(self._words))

    def says_full(self, *, later: bool = False) -> bool:
        """Whether the prompt does not fit: by the fields, the words, the status, then the place.

        Args:
            later: the endpoint took the beginning of the same conversation before, so its length is what is new.
        """
        if self.status not in (400, 413, 422):
            return False
        kinds = (self._fields.get(name) for name in ("code", "type", "error_type"))
        if "n_ctx" in self._fields or any(isinstance(kind, str) and _FULL_KIND.search(kind) for kind in kinds):
            return True
        if _OTHER_WORDS.search(self._words):
            return False
        return bool(_FULL_WORDS.search(self._words)) or self.status == 413 or later

    @property
    def _words(self) -> str:
        return " ".join(self._said)


def _document(body: bytes) -> Any:
    try:
        found = decoded(body)
    except ReplyError:
        return None
    several = cast("list[Any]", found) if isinstance(found, list) else [found]  # Gemini sends a list
    return several[0] if several else None
