"""Products, goals, and a shop of both."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gem_webshop._search import Index


@dataclass(frozen=True)
class Product:
    """Something to buy."""

    asin: str
    """Its number in the shop: ten capital letters and digits."""
    name: str
    query: str
    """The kind of thing it is, in a shopper's words."""
    categories: frozenset[str]
    """The wide and the narrow ones."""
    description: str
    features: tuple[str, ...]
    attributes: tuple[str, ...]
    """What the reward compares with a goal's attributes."""
    options: Mapping[str, tuple[str, ...]]
    """The values of each option, in small letters."""
    price: float
    """In dollars; 0 if unknown."""
    rating: str = ""
    reviews: tuple[str, ...] = ()

    @property
    def searched(self) -> str:
        """The text that a search finds it by."""
        values = [value for group in self.options.values() for value in group]
        return " ".join([self.name, self.description, *self.features, *self.attributes, *values])


@dataclass(frozen=True)
class Goal:
    """What a shopper wants."""

    asin: str
    """The product that it was made from."""
    instruction: str
    attributes: tuple[str, ...]
    options: Mapping[str, str]
    price_limit: float | None
    """In dollars; the price must not exceed it."""
    nouns: frozenset[str]
    """The nouns of the product's name, in small letters."""


@dataclass(frozen=True)
class Shop:
    """Products and goals; shared by all environments of a process."""

    products: Mapping[str, Product]
    """By their `asin`."""
    train: Sequence[Goal]
    test: Sequence[Goal]
    exact: bool = True
    """The nouns of goals are known, and not guessed."""
    _order: tuple[str, ...] = field(init=False, repr=False, default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "_order", tuple(self.products))

    def goals(self, split: str) -> Sequence[Goal]:
        """The goals of `train` or `test`."""
        return self.train if split == "train" else self.test

    def search(self, words: str) -> list[str]:
        """The products that fit the words best, at most 50, by their `asin`."""
        return [self._order[number] for number in self._index.search(words, 50)]

    @functools.cached_property
    def _index(self) -> Index:
        return Index([product.searched for product in self.products.values()])
