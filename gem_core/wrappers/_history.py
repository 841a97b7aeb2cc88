"""Observations that carry the history of their episode.

For training, `gem_train.rollout` keeps histories as token ids. These wrappers give the same views as text: for
evaluation over a plain endpoint, for single-turn policies, and for recipes written for upstream GEM.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import Any, Protocol

from gem_core._arguments import strict
from gem_core.controls import ControlTokens, changed_texts
from gem_core.env import Env, Info, ResetResult, StepResult, Wrapper
from gem_core.errors import TemplateError

_BREAK = "\u200b"
"""Stands inside of a control token's text that a message has: in the chat modes, only the template writes one."""


class TextTemplate(Protocol):
    """The part of a Hugging Face tokenizer that the chat modes need."""

    def apply_chat_template(self, conversation: Any, /, **kwargs: Any) -> Any:
        """Render messages as text."""
        ...


class HistoryMode(str, Enum):
    """How an observation shows the episode so far."""

    CONCAT = "concat"
    """All observations, one after the other."""
    CONCAT_WITH_ACTION = "concat_with_action"
    """Observations and actions, alternating."""
    CONCAT_CHAT = "concat_chat"
    """The same as user and assistant messages in the tokenizer's chat template."""
    CONCAT_CHAT_ON_RESET = "concat_chat_on_reset"
    """The first observation in the chat template, everything later appended to it as plain text."""


class ObservationHistory(Wrapper):
    """Shows the episode so far in place of the newest observation.

    An info's `prefix` and `suffix` move from the info into the observation.

    Args:
        env: the environment to wrap.
        mode: see `HistoryMode`.
        last: number of observations to keep (a frame stack), with the actions between them; `None` keeps all.
        tokenizer: anything with `apply_chat_template`; the chat modes need it.

    Raises:
        ValueError: an unknown mode, `last` below 1, or an environment with several agents.
        TemplateError: a chat mode without a tokenizer.
    """

    @strict(
        {
            "max_history_length": "Use last=n+1: it counts observations and the newest is one of them, where upstream "
            "counts earlier ones",
            "include_action": "Use mode='concat_with_action', or 'concat' without actions",
            "include_chat_template": "Use mode='concat_chat'",
            "apply_chat_template_on_reset": "Use mode='concat_chat_on_reset'",
        }
    )
    def __init__(
        self,
        env: Env,
        mode: HistoryMode | str = HistoryMode.CONCAT,
        *,
        last: int | None = None,
        tokenizer: TextTemplate | None = None,
    ) -> None:
        super().__init__(env)
        if len(env.agents) > 1:
            raise ValueError(
                f"{env!r} has the agents {', '.join(env.agents)}, and one history would show each of them what only "
                "another may see. Leave ObservationHistory out: rollouts give each agent its own conversation."
            )
        self.mode = HistoryMode(mode)
        if last is not None and last < 1:
            raise ValueError(f"last must be at least 1 observation, not {last}")
        if tokenizer is None and self.mode in (HistoryMode.CONCAT_CHAT, HistoryMode.CONCAT_CHAT_ON_RESET):
            raise TemplateError(f"history mode {self.mode.value!r} needs a tokenizer with a chat template")
        self._render = None if tokenizer is None else _Renderer(tokenizer)
        self._observations: deque[tuple[str, str]] = deque(maxlen=last)
        self._actions: deque[str] = deque(maxlen=None if last is None else last - 1)
        self._tools: list[dict[str, Any]] | None = None

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Start an episode with an empty history."""
        observation, info = self.env.reset(seed=seed, **options)
        self._tools = info.get("tools")
        self._observations.clear()
        self._actions.clear()
        if self.mode is HistoryMode.CONCAT_CHAT_ON_RESET:
            observation = self._chat([{"role": "user", "content": observation}])
        self._observations.append((_role(info), observation))
        return self._view(info), _without_frame(info)

    def step(self, action: str) -> StepResult:
        """Play one turn and add it to the history."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._actions.append(info.get("parsed_action", action))
        self._observations.append((_role(info), observation))
        return self._view(info), reward, terminated, truncated, _without_frame(info)

    def _view(self, info: Info) -> str:
        prefix, suffix = info.get("prefix", ""), info.get("suffix", "")
        if self.mode is HistoryMode.CONCAT_CHAT:
            messages = self._messages()
            messages[0]["content"] = prefix + messages[0]["content"]
            messages[-1]["content"] += f"\n{suffix}" if suffix else ""
            return self._chat(messages)
        if self.mode is HistoryMode.CONCAT:
            body = "".join(_line(observation) for _, observation in self._observations)
        else:
            body = "".join(_line(message["content"]) for message in self._messages())
        return f"{prefix}{body}{suffix}"

    def _messages(self) -> list[dict[str, str]]:
        messages: list[dict[str, str]] = []
        for turn, (role, observation) in enumerate(self._observations):
            if turn:
                messages.append({"role": "assistant", "content": self._actions[turn - 1]})
            messages.append({"role": role, "content": observation})
        return messages

    def _chat(self, messages: list[dict[str, str]]) -> str:
        assert self._render is not None
        return self._render(messages, self._tools)


class _Renderer:
    """Messages as text. Copies of a wrapper share it: a tokenizer is large and does not change."""

    def __init__(self, tokenizer: TextTemplate) -> None:
        self._tokenizer = tokenizer
        self._controls = ControlTokens.of(tokenizer)
        self._has_tool_role = self._shows("user", "assistant", "tool")
        self._begins_with_tool = self._has_tool_role and self._shows("tool")

    def _shows(self, *roles: str) -> bool:
        """Whether the template shows the last of some messages."""
        talk = [{"role": role, "content": f"the{role}s"} for role in roles]
        try:
            return f"the{roles[-1]}s" in self._tokenizer.apply_chat_template(talk, tokenize=False)
        except Exception:  # templates raise what they like at a role that they do not know
            return False

    def __call__(self, messages: list[dict[str, str]], tools: list[dict[str, Any]] | None) -> str:
        if not self._has_tool_role:  # a tool's result is the user's, as in `gem_train.rollout`
            messages = [{**one, "role": "user"} if one["role"] == "tool" else one for one in messages]
        elif not self._begins_with_tool and messages[0]["role"] == "tool":
            messages = [{**messages[0], "role": "user"}, *messages[1:]]
        messages, tools = changed_texts((messages, tools), lambda text: self._controls.broken(text, _BREAK))
        return self._tokenizer.apply_chat_template(messages, tools=tools, tokenize=False, add_generation_prompt=True)

    def __deepcopy__(self, memo: dict[int, Any]) -> _Renderer:
        return self


def _role(info: Info) -> str:
    return "tool" if info.get("use_tool") else "user"


def _without_frame(info: Info) -> Info:
    # The observation already contains both keys, so a prompt built from the info would show them twice.
    return {key: value for key, value in info.items() if key not in ("prefix", "suffix")}


def _line(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"
