"""Actions and observations of OpenEnv, which are objects of named fields, as text."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Mapping
from typing import Any, cast

_OWN = frozenset({"done", "reward", "metadata", "terminated", "truncated", "info"})
"""Fields that say more than the observation."""


class BadAction(Exception):
    """The text is no action; the message is for the policy."""


class Fields:
    """How the text of a policy becomes an action, and an observation becomes text.

    Args:
        schemas: what the server says at `/schema`.
        action: the field of an action that takes the policy's text. By default the only field, if it is a text;
            otherwise the policy writes a JSON object.
        observation: the field of an observation that is shown. By default the only field, if it is a text; otherwise a
            JSON object of all.

    Raises:
        ValueError: there is no such field.
    """

    def __init__(self, schemas: Mapping[str, Any], action: str | None, observation: str | None) -> None:
        self._action: dict[str, Any] = schemas.get("action") or {}
        self.action = _field(self._action, action, "action")
        self.observation = _field(cast("dict[str, Any]", schemas.get("observation") or {}), observation, "observation")
        self.instruction = "" if self.action else f"Reply with a JSON object of this schema: {_shown(self._action)}\n"
        """What a policy that writes JSON has to know."""

    def action_of(self, text: str) -> dict[str, Any]:
        """The action that a text stands for.

        Raises:
            BadAction: a JSON object is needed, and the text is none.
        """
        if self.action:
            return {self.action: text}
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise BadAction("An action is a JSON object.")
        return cast("dict[str, Any]", value)

    def text_of(self, observation: Mapping[str, Any]) -> str:
        """What a policy is shown of an observation."""
        if self.observation:
            return str(observation.get(self.observation, ""))
        return json.dumps({name: value for name, value in observation.items() if name not in _OWN}, ensure_ascii=False)

    def random_action(self, rng: random.Random) -> str:
        """The text of an action that the schema allows; whether the server's rules allow it, nobody says."""
        action = _drawn(self._action, self._action, rng)
        return str(action.get(self.action, _word(rng))) if self.action else json.dumps(action)


def _field(schema: Mapping[str, Any], wanted: str | None, of: str) -> str | None:
    fields: dict[str, Any] = schema.get("properties") or {}
    if wanted is not None:
        if wanted not in fields:
            raise ValueError(f"the server's {of} has no field {wanted!r}; it has: {', '.join(fields)}")
        return wanted
    own = [name for name in fields if name not in _OWN]
    return own[0] if len(own) == 1 and fields[own[0]].get("type") == "string" else None


def _shown(schema: Mapping[str, Any]) -> str:
    fields: dict[str, Any] = schema.get("properties") or {}
    shown = {name: value for name, value in fields.items() if name not in _OWN}
    return json.dumps({**schema, "properties": shown}, ensure_ascii=False)


def _drawn(schema: Mapping[str, Any], root: Mapping[str, Any], rng: random.Random, depth: int = 0) -> Any:
    if "$ref" in schema and depth < 10:
        name = schema["$ref"].rpartition("/")[2]
        return _drawn(root.get("$defs", {}).get(name, {}), root, rng, depth + 1)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return _drawn(rng.choice(options), root, rng, depth + 1)
    kind = schema.get("type")
    if kind == "object":
        fields: dict[str, Any] = schema.get("properties") or {}
        return {name: _drawn(fields.get(name, {}), root, rng, depth + 1) for name in schema.get("required", [])}
    if kind in ("integer", "number"):
        low = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
        return rng.randint(int(low), int(schema.get("maximum", schema.get("exclusiveMaximum", int(low) + 10) - 1)))
    simple: dict[Any, Any] = {"boolean": rng.random() < 0.5, "array": [], "null": None}
    return simple[kind] if kind in simple else _word(rng)


def _word(rng: random.Random) -> str:
    return "".join(rng.choices(string.ascii_lowercase, k=5))
