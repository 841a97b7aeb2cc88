"""The reward of a purchase."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from rapidfuzz import fuzz, utils

from gem_webshop._goods import Goal, Product

THRESHOLD = 85
"""Texts match if they are more alike than this, in percent."""
_NOT_ASCII = dict.fromkeys(range(128, 256))
_WORD = re.compile(r"[a-z0-9]+")


def likeness(one: str, other: str) -> int:
    """thefuzz's `token_set_ratio` of two texts, in percent, which WebShop uses: computed by rapidfuzz.

    thefuzz deletes the characters from 128 to 255, and rounds half to even.
    """
    first, second = (utils.default_process(text.translate(_NOT_ASCII)) for text in (one, other))
    return round(fuzz.token_set_ratio(first, second))


def purchase_reward(goal: Goal, wanted: Product, bought: Product, chosen: Mapping[str, str]) -> float:
    """WebShop's reward: a factor for the type, times the share of what was wanted. From 0 to 1.

    Args:
        goal: what was wanted.
        wanted: the product that the goal was made from.
        bought: the product that was bought.
        chosen: the values that were chosen of its options.

    Source: Yao et al., WebShop, 2022, https://arxiv.org/abs/2207.01206, section 3.
    """
    matched = sum(_has(bought, attribute) for attribute in goal.attributes)
    matched += sum(_any_like(chosen.values(), value) for value in goal.options.values())
    matched += goal.price_limit is None or bought.price <= goal.price_limit
    return type_factor(goal, wanted, bought) * matched / (len(goal.attributes) + len(goal.options) + 1)


def type_factor(goal: Goal, wanted: Product, bought: Product) -> float:
    """How far the product is of the kind that was wanted: 0, 0.1, 0.5 or 1."""
    share = 0.2
    if goal.nouns:
        share = len(goal.nouns & {*_WORD.findall(bought.name.lower())}) / len(goal.nouns)
    if share == 0:
        return 0.0
    if share < 0.1:
        return 0.1
    same = wanted.categories & bought.categories
    return 1.0 if wanted.query == bought.query or len(same) >= 2 or share > 0.2 else 0.5


def _has(product: Product, attribute: str) -> bool:
    if _any_like(product.attributes, attribute):
        return True
    return any(attribute in text.lower() for text in (product.name, *product.features, product.description))


def _any_like(texts: Iterable[str], wanted: str) -> bool:
    return any(likeness(text, wanted) > THRESHOLD for text in texts)
