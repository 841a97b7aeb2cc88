"""The shop of this project: products and goals, generated from word lists. The same on every machine and Python."""

from __future__ import annotations

import functools
import math
import random
from typing import TypeVar

from gem_webshop._goods import Goal, Product, Shop
from gem_webshop._words import BRANDS, KINDS, OPTIONS, REVIEWS, Kind

_T = TypeVar("_T")

PER_KIND = 28
"""Products of a kind."""
GOALS_PER_KIND = 8
TEST_EVERY = 4
"""Each goal of this number is one of the test split."""
_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"


@functools.cache
def generated_shop() -> Shop:
    """1,120 products of 40 kinds; 240 goals to train on and 80 to test."""
    rng = random.Random("gem_webshop 1")
    products: dict[str, Product] = {}
    goals: list[Goal] = []
    for kind in KINDS:
        own = [_product(rng, kind) for _ in range(PER_KIND)]
        products |= {product.asin: product for product in own}
        goals += [_goal(rng, kind, product) for product in own[:GOALS_PER_KIND]]
    goals = _some(rng, goals, len(goals))
    test = [*range(TEST_EVERY - 1, len(goals), TEST_EVERY)]
    return Shop(products, [goals[one] for one in range(len(goals)) if one not in test], [goals[one] for one in test])


def _product(rng: random.Random, kind: Kind) -> Product:
    attributes = tuple(_some(rng, kind.attributes.split(","), 4))
    options = {name: _values(rng, name) for name in _option_names(kind)}
    brand = BRANDS[int(rng.random() * len(BRANDS))]
    low, high = kind.prices
    return Product(
        asin="B0" + "".join(_LETTERS[int(rng.random() * len(_LETTERS))] for _ in range(8)),
        name=f"{brand} {attributes[0].title()} {kind.name.title()}, {attributes[1].title()}",
        query=kind.name,
        categories=frozenset(kind.category.split(" > ")),
        description=f"This {kind.name} by {brand} is made for every day. It comes with: {', '.join(attributes[:3])}.",
        features=tuple(f"{attribute.capitalize()}: you will notice it at once." for attribute in attributes[1:]),
        attributes=attributes,
        options=options,
        price=low + int(rng.random() * (high - low)) + 0.99,
        rating=f"{3 + int(rng.random() * 20) / 10:.1f}",
        reviews=tuple(_some(rng, [*REVIEWS], 2)),
    )


def _goal(rng: random.Random, kind: Kind, product: Product) -> Goal:
    attributes = tuple(_some(rng, [*product.attributes], 2))
    options = {name: values[int(rng.random() * len(values))] for name, values in product.options.items()}
    limit = math.ceil((product.price + 1) / 10) * 10
    chosen = ", ".join(f"{name}: {value}" for name, value in options.items())
    return Goal(
        asin=product.asin,
        instruction=f"I need a {kind.name} that is described as {attributes[0]} and {attributes[1]}, {chosen}, "
        f"and that costs at most {limit} dollars.",
        attributes=attributes,
        options=options,
        price_limit=float(limit),
        nouns=frozenset(kind.nouns.split()),
    )


def _option_names(kind: Kind) -> list[str]:
    return [name.replace("-", " ") for name in kind.options.split()]


def _values(rng: random.Random, name: str) -> tuple[str, ...]:
    """Three or four values of an option, in their usual order."""
    chosen = _some(rng, [*OPTIONS[name]], 3 + int(rng.random() * 2))
    return tuple(value for value in OPTIONS[name] if value in chosen)


def _some(rng: random.Random, pool: list[_T], count: int) -> list[_T]:
    """So many of the pool, drawn with `rng.random` alone, whose numbers are the same in every version of Python."""
    left = [*pool]
    return [left.pop(int(rng.random() * len(left))) for _ in range(count)]
