"""Upstream's constants."""

from __future__ import annotations

TERMINAL_STATE = "<\uff5cTERMINAL_STATE\uff5c>"
"""What upstream shows after the answer to a question, and so does this package. `gem_core` shows an empty text."""


class LanguageGameReward:
    """The rewards of the games, which are the same here."""

    success_reward = 1.0
    internal_step_reward = 0.0
    fail_reward = 0.0
    invalid_action_reward = 0.0
    format_error_reward = -0.1
