"""Wrappers by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from gem_compat.tools.python_code_tool import PythonCodeTool
from gem_compat.tools.search_tool import SearchTool
from gem_compat.tools.tool_env_wrapper import ToolEnvWrapper
from gem_compat.wrappers.episode_tracking_wrapper import EpisodeTrackingWrapper
from gem_compat.wrappers.observation_wrapper import ObservationWrapper
from gem_core.env import Env
from gem_core.errors import near_matches
from gem_core.wrappers import TextTemplate

_free = partial(ToolEnvWrapper, tool_reward=0.0, tool_success_reward=0.0, max_tool_uses=5)
_plain = partial(ObservationWrapper, include_chat_template=False)

WRAPPER_FACTORY: dict[str, Callable[..., Env]] = {
    "python_tool": partial(_free, tools=[PythonCodeTool()], tool_reward=0.05, tool_success_reward=0.25),
    "python_tool_no_int_reward": partial(_free, tools=[PythonCodeTool()]),
    "python_tool_no_int_reward_last_line_error": partial(_free, tools=[PythonCodeTool(keep_error_last_line=True)]),
    "search_tool": partial(_free, tools=[SearchTool()], tool_reward=0.3),
    "search_tool_no_int_reward": partial(_free, tools=[SearchTool()]),
    "concat": partial(_plain, include_action=False),
    "concat_with_action": _plain,
    "concat_chat": ObservationWrapper,
    "concat_chat_on_reset": partial(_plain, apply_chat_template_on_reset=True),
    "episode_tracking": EpisodeTrackingWrapper,
}
"""First a tool wrapper, then an observation wrapper, then `episode_tracking`; each is optional."""
TOKENIZER_REQUIRED = ["concat_chat", "concat_chat_on_reset"]


def get_wrapper_fns(wrappers: str, tokenizer: TextTemplate | None = None) -> list[Callable[..., Env]]:
    """The wrappers of a list such as `"python_tool,concat_chat"`, in this order; none for an empty text.

    Raises:
        ValueError: an unknown name; the message names near matches.
    """
    return [_wrapper(name, tokenizer) for name in wrappers.split(",") if name]


def _wrapper(name: str, tokenizer: TextTemplate | None) -> Callable[..., Env]:
    if name not in WRAPPER_FACTORY:
        known = ", ".join(WRAPPER_FACTORY)
        raise ValueError(f"no wrapper {name!r}.{near_matches(name, WRAPPER_FACTORY)} There are: {known}")
    named: dict[str, Any] = {"tokenizer": tokenizer} if name in TOKENIZER_REQUIRED else {}
    return partial(WRAPPER_FACTORY[name], **named)
