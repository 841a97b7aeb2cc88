"""Answers of a server as text for a model."""

from __future__ import annotations

import json

from mcp import types

from gem_core.tools import ToolResult


def as_result(answer: types.CallToolResult) -> ToolResult:
    """Texts unchanged, and a line for anything else. Without texts, the structured content."""
    parts = [_described(block) for block in answer.content]
    if answer.structured_content is not None and not any(
        isinstance(block, types.TextContent) for block in answer.content
    ):
        parts.append(json.dumps(answer.structured_content, ensure_ascii=False))
    text = "\n".join(parts)
    return ToolResult(text or "[no output]", error=bool(answer.is_error))


def _described(block: types.ContentBlock) -> str:
    if isinstance(block, types.TextContent):
        return block.text
    if isinstance(block, types.ResourceLink):
        return f"[resource {block.uri}: {block.name}]"
    if isinstance(block, types.EmbeddedResource):
        return _resource(block.resource)
    return f"[{block.type} {block.mime_type}, {len(block.data) * 3 // 4:,} bytes]"


def _resource(resource: types.TextResourceContents | types.BlobResourceContents) -> str:
    if isinstance(resource, types.TextResourceContents):
        return f"[resource {resource.uri}]\n{resource.text}"
    return f"[resource {resource.uri}: {resource.mime_type}, {len(resource.blob) * 3 // 4:,} bytes]"
