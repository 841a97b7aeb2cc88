"""What a rollout asks of the model side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gem_core.episode import Completion, TokenIds


class Policy(Protocol):
    """Samples one completion per prompt, in the same order."""

    def __call__(self, prompts: Sequence[TokenIds]) -> Sequence[Completion]:
        """Prompts as arrays of token ids, of any lengths; `prompt.tolist()` is a list. The policy may change them."""
        ...


class AsyncPolicy(Protocol):
    """Samples the completion of one prompt; many are under way at once."""

    async def __call__(self, prompt: TokenIds) -> Completion:
        """The prompt as an array of token ids; `prompt.tolist()` is a list. The policy may change it."""
        ...
