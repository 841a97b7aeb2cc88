"""What a user chooses about a rollout."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from gem_train.rollout._images import ImageReader
from gem_train.rollout._template import ChatTemplate, Tokenizer
from gem_train.rollout._thoughts import Thoughts
from gem_train.rollout.compaction import BY_POLICY, Rule, load_rule

Cutoff: TypeAlias = Literal["forfeit", "drop"]
"""`forfeit`: rewards are those of `Match.forfeit` for the agent that reached a limit. `drop`: the match is left out."""


@dataclass(frozen=True)
class RolloutSettings:
    """How episodes become prompts, and when they are cut off."""

    max_response_tokens: int
    """Token limit of one response, as the engine enforces it."""
    max_context_tokens: int | None = None
    """An episode whose next prompt and response might exceed this ends truncated; `None` means no limit."""
    history: int | None = None
    """`None`: the whole episode in every prompt. `k`: the last `k` observations. `1`: the present one only."""
    compaction: str | None = None
    """What happens where the context is nearly full. `None`: the episode ends. `policy`: the policy writes a summary,
    and a new token sequence begins with the first observation, the summary and the newest observation. The
    `package.module:function` of a `compaction.Rule`: the rule writes the summary."""
    thoughts: Thoughts = "keep"
    """`keep`: later prompts have the thoughts of earlier responses. `drop`: they have them no more, as the chat
    template shows earlier responses; a new token sequence begins where the ids do not continue."""
    system_prompt: str | None = None
    """System message of every conversation."""
    truncated_is_invalid: bool = True
    """A response cut off by the token limit reaches the environment as an empty action. Turn off only for models
    that are not meant to end their turn, such as one-token policies."""
    match_cutoff: Cutoff = "forfeit"
    """What happens to a match that a limit cuts off: of the context, the turns, or the time of a step. `forfeit`: the
    agent that reached it gets the last place. `drop`: its episodes are left out."""
    template_options: dict[str, Any] = field(default_factory=dict[str, Any])
    """Further arguments of the chat template."""

    def __post_init__(self) -> None:
        if self.max_response_tokens < 1:
            raise ValueError(f"max_response_tokens must be at least 1, not {self.max_response_tokens}")
        limit = self.max_context_tokens
        if limit is not None and limit <= self.max_response_tokens:
            raise ValueError(
                f"max_context_tokens={limit} leaves no room for a prompt beside {self.max_response_tokens} tokens "
                "of response"
            )
        if self.history is not None and self.history < 1:
            raise ValueError(f"history must be None (all) or at least 1 observation, not {self.history}")
        if self.thoughts not in get_args(Thoughts):
            raise ValueError(f"thoughts must be one of {', '.join(get_args(Thoughts))}, not {self.thoughts!r}")
        if self.match_cutoff not in get_args(Cutoff):
            raise ValueError(f"match_cutoff must be one of {', '.join(get_args(Cutoff))}, not {self.match_cutoff!r}")
        if self.compaction is not None:
            self._check_compaction(self.compaction)

    @property
    def summary_rule(self) -> Rule | None:
        """The rule that writes summaries; `None` if the policy writes them, or nobody."""
        return None if self.compaction in (None, BY_POLICY) else load_rule(self.compaction)

    def _check_compaction(self, compaction: str) -> None:
        _ = self.summary_rule
        if self.history is not None:
            raise ValueError(
                f"compaction={compaction!r} replaces observations by a summary, and history={self.history} drops them. "
                "Use one of the two"
            )
        if self.max_context_tokens is None:
            raise ValueError(f"compaction={compaction!r} needs max_context_tokens, the limit that it keeps")

    def template(self, tokenizer: Tokenizer, images: ImageReader | None = None) -> ChatTemplate:
        """The chat template of these conversations.

        Args:
            tokenizer: of the model.
            images: reads images for the model; `None` for a model that reads text only.

        Raises:
            TemplateError: the tokenizer cannot carry them.
        """
        return ChatTemplate(tokenizer, system_prompt=self.system_prompt, options=self.template_options, images=images)
