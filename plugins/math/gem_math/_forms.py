"""Forms that a question asks for: what it wants expanded is no product, and what it wants factored is no sum."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator

from gem_math import _evaluation as evaluation
from gem_math._expressions import Node
from gem_math._keys import ordered


def is_missed(given: Node, reference: Node, question: str) -> bool:
    """Does the question ask for a form that the reference has, and an answer of the same value has not?"""
    if _FACTORED.search(question) and _count_factors(given) < _count_factors(reference):
        return True
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
    """Is there a root in a denominator, a root of a fraction, or such a root as a power?"""
    return any(
        (node.kind == "quotient" and any(map(_is_root, _nodes(node.parts[1]))))
        or (_is_root(node) and (node.parts[0].kind == "quotient" or node.parts[1].kind == "negation"))
        for node in _nodes(tree)
    )


def _is_root(node: Node) -> bool:
    if node.kind != "power":
        return node.kind == "root"
    exponent = _bare(node.parts[1])
    return exponent.kind == "quotient" or "." in exponent.text


def _is_uncollected(tree: Node) -> bool:
    """Are there two terms that differ by a number, or a factor that stands in a product twice?"""
    for node in _nodes(tree):
        if node.kind == "sum":
            keys = [_without_number(term) for part in node.parts for term in _terms(part)]
            if len({*keys}) < len(keys):
                return True
        bases = [ordered(_base(factor)) for factor in _factors(node) if _base(factor).kind == "name"]
        if len({*bases}) < len(bases):
            return True
    return False


def _terms(tree: Node) -> list[Node]:
    tree = _bare(tree)
    return [term for part in tree.parts for term in _terms(part)] if tree.kind == "sum" else [tree]


def _without_number(term: Node) -> str:
    """A term without its coefficient."""
    if term.kind == "quotient" and not _letters(term.parts[1]):
        term = term.parts[0]
    kept = [
        ordered(factor)
        for factor in _factors(_bare(term))
        if factor.kind not in ("number", "quotient") or _letters(factor)
    ]
    return " ".join(sorted(kept))


def _factors(tree: Node) -> list[Node]:
    if tree.kind != "product":
        return [_bare(tree)]
    return [factor for part in tree.parts for factor in _factors(_bare(part))]


def _base(factor: Node) -> Node:
    return factor.parts[0] if factor.kind == "power" else factor


def _letters(tree: Node) -> bool:
    return bool(evaluation.variables(tree))


def _is_reducible(tree: Node) -> bool:
    """Is there a fraction whose numbers have a common factor?"""
    return any(node.kind == "quotient" and math.gcd(*map(_content, node.parts)) > 1 for node in _nodes(tree))


def _content(tree: Node) -> int:
    """The greatest whole number that all terms are multiples of, by how they are written."""
    numbers = [
        math.prod(
            int(factor.value) for factor in _factors(term) if factor.kind == "number" and factor.value.denominator == 1
        )
        for term in _terms(tree)
    ]
    return math.gcd(*numbers)


def _has_content(tree: Node) -> bool:
    """Is there a factor whose terms have a common factor?"""
    return any(_content(factor) > 1 for factor in _factors(_bare(tree)) if factor.kind == "sum")


def _has_letters_below(tree: Node) -> bool:
    return not any(node.kind == "factorial" for node in _nodes(tree)) and any(
        (node.kind == "quotient" and _letters(node.parts[1]))
        or (node.kind == "power" and node.parts[1].kind == "negation")
        for node in _nodes(tree)
    )


def _count_factors(tree: Node) -> int:
    """Of a product, those with letters, a power as often as it says."""
    if tree.kind == "quotient":
        return _count_factors(tree.parts[0])
    found = 0
    for factor in _factors(_bare(tree)):
        if _letters(factor):
            is_power = factor.kind == "power" and factor.parts[1].text.isdigit()
            found += int(factor.parts[1].text) * _count_factors(factor.parts[0]) if is_power else 1
    return found


def _bare(tree: Node) -> Node:
    return tree.parts[0] if tree.kind == "negation" else tree


def _nodes(tree: Node) -> Iterator[Node]:
    yield tree
    for part in tree.parts:
        yield from _nodes(part)


_MAX_ROOT = 100
_FACTORED = re.compile(r"(?<!what )(?<!common )(?<!\ba )(?<!the )\bfactor(?:i[sz]e)?\b|\bfactored form", re.IGNORECASE)
_SIMPLIFIED = re.compile(r"\bsimplif|\bsimplest", re.IGNORECASE)
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
    (
        re.compile(r"\bexpand|\bmultiply(?:ing)? out|\bsimplif|\bcombin\w+ like|\bcollect", re.IGNORECASE),
        _is_uncollected,
    ),
    (re.compile(r"(?=.*\bfactor).*\b(?:completely|fully)", re.IGNORECASE | re.DOTALL), _has_content),
    (_SIMPLIFIED, _has_large_root),
    (_SIMPLIFIED, _is_reducible),
    (_SIMPLIFIED, _has_letters_below),
    (re.compile(r"\brationali[sz]", re.IGNORECASE), _has_root_below),
)
"""What the question says, and what is left to be done then."""
