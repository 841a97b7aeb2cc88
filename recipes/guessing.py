"""Guessing in plain words, which several studies play with SmolLM2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recipes.study import WarmStart

TASK = "plain-guess"
SETTINGS: Mapping[str, Any] = {
    "env": "game:PlainGuess-v0",
    "eval_env": "game:PlainGuess-v0-test",  # other numbers than those of the training
    "system_prompt": "You guess numbers.",
}
MODEL = WarmStart(("game:PlainGuess-v0",), 6, 1 - (4 / 5) ** 3, base="smollm2")
"""SmolLM2 after a few steps on random valid play, which teach it to answer with a number."""
