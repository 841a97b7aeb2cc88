"""Settings without passwords and keys, for records and trackers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

_SECRET = ("token", "key", "keys", "secret", "secrets", "password", "passwd", "credential", "credentials", "auth")
"""What a word of a secret's name ends with: `HF_TOKEN`, `AWS_ACCESS_KEY_ID`, `apikey`; `max_tokens` is none."""
_LOGIN = re.compile(r"(?<=://)[^/@\s]+@")

HIDDEN = "<hidden>"


def without_secrets(value: Any) -> Any:
    """A copy of settings, in which texts under names of secrets, and logins in addresses, are replaced.

    Args:
        value: settings: mappings, lists and plain values.
    """
    return _copied(value, secret=False)


def _copied(value: Any, *, secret: bool) -> Any:
    if isinstance(value, Mapping):
        entries = cast("Mapping[Any, Any]", value).items()
        return {name: _copied(one, secret=secret or _is_secret(str(name))) for name, one in entries}
    if isinstance(value, list | tuple):
        return [_copied(one, secret=secret) for one in cast("list[Any]", value)]
    if not isinstance(value, str):
        return value
    return HIDDEN if secret and value else _LOGIN.sub(f"{HIDDEN}@", value)


def _is_secret(name: str) -> bool:
    return any(word.endswith(_SECRET) for word in re.split("[^a-z]+", name.lower()))
