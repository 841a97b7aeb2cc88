"""What a rollout asks of the model side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gem_core.episode import Completion


class Policy(Protocol):
    """Samples one completion per prompt, in the same order."""

    def __call__(self, prompts: Sequence[list[int]]) -> Sequence[Completion]:
        """Prompts as token ids, of any lengths."""
        ...


class AsyncPolicy(Protocol):
    """Samples the completion of one prompt; many are under way at once."""

    async def __call__(self, prompt: list[int]) -> Completion:
        """The prompt as token ids."""
        ...
