"""Forms that a question asks for: what it wants expanded is no product, and what it wants factored is no sum."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from gem_math._expressions import Node


def is_missed(given: Node, reference: Node, question: str) -> bool:
    """Does the question ask for a form that the reference has, and an answer of the same value has not?"""
    return any(asks.search(question) and is_left(given) and not is_left(reference) for asks, is_left in _FORMS)


def _has_composite(tree: Node) -> bool:
    """Is it a whole number that is no prime, or a product with one?"""
    if tree.kind == "product":
        return any(map(_has_composite, tree.parts))
    base = tree.parts[0] if tree.kind == "power" else tree
    if base.kind != "number" or base.value.denominator != 1:
        return False
    value = int(base.value)
    return any(not value % factor for factor in range(2, min(value, _MAX_ROOT)) if factor * factor <= value)


def _has_sum_in_product(tree: Node) -> bool:
    return any(node.kind in ("product", "power") and _has_sum(node) for node in _nodes(tree))


def _has_sum(product: Node) -> bool:
    factors = product.parts[:1] if product.kind == "power" else product.parts
    return any(_bare(factor).kind == "sum" for factor in factors)


def _is_sum(tree: Node) -> bool:
    """Of terms, also where a number divides it."""
    tree = _bare(tree)
    return tree.kind == "sum" or (tree.kind == "quotient" and _is_sum(tree.parts[0]))


def _has_large_root(tree: Node) -> bool:
    """Is there a square root of a number that a whole number can be taken out of, or that is not carried out?

    One root of a number alone may be large: that of the question is a copy, and another one has been computed.
    """
    if tree.kind == "root" and tree.parts[0].kind == "number":
        return False
    return any(_is_large(node.parts[0]) for node in _nodes(tree) if _is_square_root(node))


def _is_square_root(node: Node) -> bool:
    if node.kind == "power" and node.parts[1].kind == "quotient":  # 8^{1/2}
        return node.parts[1].parts[1].text == "2"
    return node.kind == "root" and node.parts[1].text == "2"


def _is_large(radicand: Node) -> bool:
    if radicand.kind != "number":
        return bool(radicand.parts) and all(part.kind == "number" for part in radicand.parts)
    return any(not radicand.value % square**2 for square in range(2, _MAX_ROOT) if square**2 <= radicand.value)


def _has_root_below(tree: Node) -> bool:
    return any(
        node.kind == "quotient" and any(below.kind == "root" for below in _nodes(node.parts[1]))
        for node in _nodes(tree)
    )


def _bare(tree: Node) -> Node:
    return tree.parts[0] if tree.kind == "negation" else tree


def _nodes(tree: Node) -> Iterator[Node]:
    yield tree
    for part in tree.parts:
        yield from _nodes(part)


_MAX_ROOT = 100
_FORMS: tuple[tuple[re.Pattern[str], Callable[[Node], bool]], ...] = (
    (re.compile(r"\bexpand|\bmultiply(?:ing)? out", re.IGNORECASE), _has_sum_in_product),
    (re.compile(r"\bfactor(?!s of|ial)", re.IGNORECASE), _is_sum),
    (
        re.compile(
            r"\bprime\s+factori[sz]|\bfactori[sz]e\b|\bfactor\s+(?:\$|\\\(|\d|completely)|"
            r"\bproduct of (?:\w+ )?primes?\b",
            re.IGNORECASE,
        ),
        _has_composite,
    ),
    (re.compile(r"\bsimplif|\bsimplest", re.IGNORECASE), _has_large_root),
    (re.compile(r"\brationali[sz]", re.IGNORECASE), _has_root_below),
)
"""What the question says, and what is left to be done then."""
