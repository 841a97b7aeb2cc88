"""The pages of a shop, and how they are written."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from gem_webshop._goods import Product, Shop

Form = Literal["html", "text", "text_rich"]
Name = Literal["search", "results", "item", "description", "features", "reviews", "attributes"]
DETAILS: tuple[Name, ...] = ("description", "features", "reviews", "attributes")

PER_PAGE = 10
"""Products on a page of results."""


class Part(NamedTuple):
    """A text of a page, or a button."""

    text: str
    button: bool = False
    chosen: bool = False
    """The button of an option whose value this is."""


@dataclass
class Visit:
    """Where a shopper is."""

    page: Name = "search"
    found: list[str] = field(default_factory=list[str])
    """The products of the last search, the best first."""
    number: int = 0
    """Which page of the results, from 0."""
    asin: str = ""
    """The product that is looked at."""
    chosen: dict[str, str] = field(default_factory=dict[str, str])
    """The values that were chosen of its options."""

    @property
    def pages(self) -> int:
        """Number of pages of the results."""
        return -(-len(self.found) // PER_PAGE)

    @property
    def shown(self) -> list[str]:
        """The products on this page of the results."""
        return self.found[self.number * PER_PAGE : (self.number + 1) * PER_PAGE]


def parts(shop: Shop, visit: Visit) -> list[Part]:
    """What is on the page."""
    if visit.page == "search":
        return [Part("Search", button=True)]
    if visit.page == "results":
        return _results(shop, visit)
    product = shop.products[visit.asin]
    head = [Part("Back to Search", button=True), Part("< Prev", button=True)]
    return [*head, *(_item(product, visit.chosen) if visit.page == "item" else _details(product, visit.page))]


def labels(page: Iterable[Part]) -> dict[str, str]:
    """The buttons' texts by what an action calls them: small letters."""
    return {part.text.lower(): part.text for part in page if part.button}


def written(instruction: str, page: Sequence[Part], form: Form) -> str:
    """The page as an observation."""
    whole = [Part("Instruction:"), Part(instruction), *page]
    if form == "html":
        return _html(whole)
    if form == "text":
        return " [SEP] ".join(part.text for part in whole)
    return "\n".join(_rich(part) for part in whole)


def _results(shop: Shop, visit: Visit) -> list[Part]:
    found = [Part("Back to Search", button=True)]
    found.append(Part(f"Page {visit.number + 1} (Total results: {len(visit.found)})"))
    if visit.number > 0:
        found.append(Part("< Prev", button=True))
    if visit.number + 1 < visit.pages:
        found.append(Part("Next >", button=True))
    for asin in visit.shown:
        product = shop.products[asin]
        found += [Part(asin, button=True), Part(product.name), Part(_price(product))]
    return found


def _item(product: Product, chosen: Mapping[str, str]) -> list[Part]:
    found: list[Part] = []
    for name, values in product.options.items():
        found.append(Part(name))
        found += [Part(value, button=True, chosen=chosen.get(name) == value) for value in values]
    found += [Part(product.name), Part(f"Price: {_price(product)}"), Part(f"Rating: {product.rating or 'none'}")]
    found += [Part(name.capitalize(), button=True) for name in DETAILS]
    return [*found, Part("Buy Now", button=True)]


def _details(product: Product, name: str) -> list[Part]:
    texts: Mapping[str, Sequence[str]] = {
        "description": [product.description],
        "features": product.features,
        "reviews": product.reviews,
        "attributes": product.attributes,
    }
    return [Part(text) for text in texts[name] if text] or [Part("None.")]


def _price(product: Product) -> str:
    return f"${product.price:.2f}" if product.price else "unknown"


def _rich(part: Part) -> str:
    if part.chosen:
        return f"[clicked button] {part.text} [clicked button_]"
    return f"[button] {part.text} [button_]" if part.button else part.text


def _html(page: Iterable[Part]) -> str:
    lines = ["<html>", "<body>"]
    for part in page:
        state = ' class="chosen"' if part.chosen else ""
        tag = "button" if part.button else "p"
        lines.append(f"<{tag}{state}>{html.escape(part.text, quote=False)}</{tag}>")
    return "\n".join([*lines, "</body>", "</html>"])
