"""The endpoints file: what a model's alias means.

[qwen]
model = "Qwen/Qwen3-8B"
base_url = ["http://10.0.0.1:8000/v1", "http://10.0.0.2:8000/v1"]   # several are replicas
api_key_env = "QWEN_KEY"                                            # the name of a variable, never a key
prompt_price = 0.05                                                 # dollars per million tokens
completion_price = 0.20

[qwen.options]                                                      # further fields of each request
top_p = 0.95
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from gem_core.errors import near_matches
from gem_evaluation._errors import EvaluationError
from gem_evaluation._toml import read_toml

DEFAULT_FILE = Path("endpoints.toml")
DEFAULT_KEY = "OPENAI_API_KEY"


class Endpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model behind one or several URLs."""

    model: str
    """The name that the server knows."""
    base_url: str | list[str] | None = None
    """URLs of its replicas, which end in `/v1`. `None`: OpenAI's own."""
    api_key_env: str = DEFAULT_KEY
    """The environment variable that holds the key."""
    prompt_price: float = 0.0
    """Dollars per million tokens."""
    completion_price: float = 0.0
    """Dollars per million tokens."""
    options: dict[str, Any] = {}
    """Further fields of each request."""

    def __post_init__(self) -> None:
        if self.base_url == []:
            raise ValueError("base_url has no URL")
        if taken := sorted({"model", "messages", "tools", "stream"} & self.options.keys()):
            raise ValueError(f"options cannot have {', '.join(taken)}")
        json.dumps(self.options)  # raises for what JSON does not have, for example dates

    @property
    def urls(self) -> list[str | None]:
        """One URL for each replica; `None` is OpenAI's own."""
        return [*self.base_url] if isinstance(self.base_url, list) else [self.base_url]

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Dollars."""
        return (prompt_tokens * self.prompt_price + completion_tokens * self.completion_price) / 1e6


def read_endpoints(path: Path) -> dict[str, Endpoint]:
    """The endpoints of a file, by alias.

    Raises:
        EvaluationError: it cannot be read, or an endpoint has a field that does not exist.
    """
    try:
        tables = read_toml(path)
    except (OSError, ValueError) as error:
        raise EvaluationError(f"the endpoints file {path} cannot be read: {error}") from error
    try:
        return {alias: msgspec.convert(table, Endpoint) for alias, table in tables.items()}
    except msgspec.ValidationError as error:
        fields = ", ".join(Endpoint.__struct_fields__)
        raise EvaluationError(f"{path}: {error}. An endpoint has the fields {fields}") from error


def find_endpoint(name: str, path: Path | None) -> Endpoint | None:
    """The endpoint with that alias, or `None` where there is no file.

    Args:
        name: the alias.
        path: the file; `None`: `endpoints.toml` in the current folder, if there is one.

    Raises:
        EvaluationError: as `read_endpoints`; or a file was given that has no such alias.
    """
    if path is None and not DEFAULT_FILE.exists():
        return None
    known = read_endpoints(path or DEFAULT_FILE)
    if name not in known and path is not None:
        raise EvaluationError(
            f"{path} has no endpoint {name!r}.{near_matches(name, known)} It has: {', '.join(known) or 'none'}"
        )
    return known.get(name)
