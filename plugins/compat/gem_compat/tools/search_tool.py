"""The search tool."""

from __future__ import annotations

from gem_compat.tools.registered_tool import RegisteredTool


class SearchTool(RegisteredTool):
    """Sends the first `<search>` of a response to a search server.

    Args:
        num_workers: accepted and not used.
        search_url: the server; `None` takes the environment variable `SEARCH_URL` at the first use.
        topk: passages of one answer.
        timeout: seconds for one call.
    """

    tool_type = "search"

    def __init__(self, num_workers: int = 1, search_url: str | None = None, topk: int = 3, timeout: float = 5) -> None:
        super().__init__("search:Passages", url=search_url, topk=topk, timeout=float(timeout))
        self.num_workers = num_workers
