"""Observations that carry the history of their episode."""

from __future__ import annotations

from gem_core.env import Env
from gem_core.wrappers import HistoryMode, ObservationHistory, TextTemplate


class ObservationWrapper(ObservationHistory):
    """`ObservationHistory` with upstream's arguments.

    Args:
        env: the environment to wrap.
        include_action: show actions between the observations.
        include_chat_template: show both as messages, in the tokenizer's chat template.
        apply_chat_template_on_reset: show the first observation in the chat template, and the rest as plain text.
        max_history_length: earlier turns that are shown with the newest observation; `None` shows all.
        tokenizer: has the chat template.

    Raises:
        ValueError: flags that exclude each other, or a number of turns below 0.
        TemplateError: a chat template is wanted, and there is no tokenizer.
    """

    plays_on = True

    def __init__(
        self,
        env: Env,
        include_action: bool = True,
        include_chat_template: bool = True,
        apply_chat_template_on_reset: bool = False,
        max_history_length: int | None = None,
        tokenizer: TextTemplate | None = None,
    ) -> None:
        if max_history_length is not None and max_history_length < 0:
            raise ValueError(f"max_history_length must be a number of turns or None, not {max_history_length}")
        mode = _mode(include_action, include_chat_template, apply_chat_template_on_reset)
        last = None if max_history_length is None else max_history_length + 1
        super().__init__(env, mode, last=last, tokenizer=tokenizer)


def _mode(action: bool, chat: bool, chat_on_reset: bool) -> HistoryMode:
    if (chat and chat_on_reset) or ((chat or chat_on_reset) and not action):
        raise ValueError(
            f"include_chat_template={chat} and apply_chat_template_on_reset={chat_on_reset}: at most one of them, and "
            f"only with include_action (which is {action})"
        )
    if chat:
        return HistoryMode.CONCAT_CHAT
    if chat_on_reset:
        return HistoryMode.CONCAT_CHAT_ON_RESET
    return HistoryMode.CONCAT_WITH_ACTION if action else HistoryMode.CONCAT
