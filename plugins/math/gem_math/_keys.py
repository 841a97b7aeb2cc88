"""Texts that are the same for the same quantity, however it is written."""

from __future__ import annotations

from collections.abc import Sequence

from gem_math import _expressions as expressions
from gem_math import _groups as groups
from gem_math import _wording as wording
from gem_math._expressions import Node
from gem_math._tokens import Token, Unread


def key(found: Sequence[Token], functions: frozenset[str]) -> str:
    """A text that is the same for the same quantity: `PQ:QR` and `\\frac{PQ}{QR}` have one."""
    parts = groups.split(found, lambda token: token.text == ":")
    try:
        trees = [expressions.read(part, functions) for part in parts]
    except Unread:
        return wording.normal(found)
    return ordered(trees[0] if len(trees) == 1 else Node("quotient", tuple(trees)))


def ordered(tree: Node) -> str:
    """The expression as a text that does not depend on the order of terms and factors."""
    parts = [ordered(part) for part in _operands(tree)]
    return f"{tree.kind} {tree.text}({','.join(sorted(parts) if tree.kind in ('sum', 'product') else parts)})"


def _operands(tree: Node) -> list[Node]:
    """The parts, with those of a product in a product."""
    if tree.kind != "product":
        return list(tree.parts)
    return [operand for part in tree.parts for operand in (_operands(part) if part.kind == "product" else [part])]
