"""Settings are recorded without passwords and keys."""

from __future__ import annotations

from typing import Any

import pytest

from gem_train.rollout._secrets import HIDDEN, without_secrets


@pytest.mark.parametrize(
    "settings",
    [
        {"hf_token": "hf_abc"},
        {"tracker_kwargs": {"api_key": "abc", "WANDB_API_KEY": "def"}},
        {"env": {"AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "B"}},
        {"credentials": [{"user": "a", "value": "b"}]},
        {"apikey": "abc", "db-password": "def"},
    ],
)
def test_secrets_are_hidden(settings: dict[str, Any]) -> None:
    assert texts(without_secrets(settings)) == {HIDDEN}


def texts(value: Any) -> set[str]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return {value} if inner is None else {text for one in inner for text in texts(one)}


def test_all_else_stays() -> None:
    settings = {
        "max_tokens": 5,
        "tokenizer_path": "a/b",
        "loss": "token-mean",
        "hub_token": None,
        "key": 1,
        "empty_key": "",
        "nested": [{"rate": 0.1, "names": ("a", "b")}],
    }
    assert without_secrets(settings) == settings | {"nested": [{"rate": 0.1, "names": ["a", "b"]}]}


def test_addresses_lose_their_logins() -> None:
    assert without_secrets({"url": "https://me:pass@host/x"}) == {"url": f"https://{HIDDEN}@host/x"}
    assert without_secrets("https://host/a@b") == "https://host/a@b"
