"""What a tool is to upstream."""

from __future__ import annotations

from abc import ABC, abstractmethod


class BaseTool(ABC):
    """Finds its calls in a response itself, and answers them."""

    tool_type = "base"

    def __init__(self, num_workers: int = 1) -> None:
        self.num_workers = num_workers

    @abstractmethod
    def instruction_string(self) -> str:
        """How a model calls the tool."""

    @abstractmethod
    def execute_action(self, action: str) -> tuple[bool, bool, str, str]:
        """Answer the call in a response.

        Returns:
            Whether there is a call, whether it failed, the answer, and the response up to the end of the call.
        """
