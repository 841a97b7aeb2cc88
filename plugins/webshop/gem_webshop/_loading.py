"""WebShop's own data: products that it collected, and the instructions that were written for them.

The files are those of https://github.com/princeton-nlp/WebShop, which has its own terms; none is part of this project.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from gem_core.errors import EnvError
from gem_webshop._goods import Goal, Product, Shop

FILES = (("items_shuffle.json", "items_ins_v2.json"), ("items_shuffle_1000.json", "items_ins_v2_1000.json"))
"""Products and instructions: all of them, or the first thousand."""
TESTS = 500
"""Goals of the test split, of the shuffled goals."""
_SEED = 233
_LIMITS = [10.0 * step for step in range(1, 1001)]
_NOT_NOUNS = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at by for from in into is it its of on or over per that the their this to under up with "
        "without your you all any best big great high large long low mini new non short small soft top ultra very",
    )
)


def load_shop(folder: str) -> Shop:
    """The shop of a folder with WebShop's files.

    A goal is made from each product with an instruction: its price limit and the values of its options are drawn with a
    generator of a fixed seed. The nouns of its name are guessed, so the type's part of the reward is approximate. Where
    there are fewer than 1,000 goals, half of them are for tests.

    Raises:
        EnvError: files that are missing or cannot be read.
    """
    products_file, instructions_file = _files(Path(folder))
    products: dict[str, Product] = {}
    instructions = cast("Mapping[str, Any]", _read(instructions_file, dict))
    for row in cast("list[dict[str, Any]]", _read(products_file, list)):
        try:
            product = _product(row, instructions.get(str(row.get("asin")), {}))
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            raise EnvError(f"{products_file}: cannot read the product {str(row)[:80]!r}: {error!r}") from error
        products.setdefault(product.asin, product)
    goals = [goal for product in products.values() if (goal := _goal(product, instructions.get(product.asin, {})))]
    if len(goals) < 2:
        raise EnvError(
            f"{instructions_file} has {len(goals)} instructions for the products of {products_file}; two are needed"
        )
    random.Random(_SEED).shuffle(goals)
    tests = min(TESTS, len(goals) // 2)
    return Shop(products, goals[tests:], goals[:tests], exact=False)


def _files(folder: Path) -> tuple[Path, Path]:
    for products, instructions in FILES:
        if (folder / products).is_file() and (folder / instructions).is_file():
            return folder / products, folder / instructions
    raise EnvError(
        f"{folder} has no {FILES[0][0]} with {FILES[0][1]}. Next: download both as WebShop's README says, or leave out "
        "data=... for the shop of this project"
    )


def _read(file: Path, kind: type) -> Any:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EnvError(f"cannot read {file}: {error}. Next: download it again") from error
    if not isinstance(found, kind):
        raise EnvError(f"{file} holds a {type(found).__name__} and not a {kind.__name__}. Next: download it again")
    return found


def _product(row: Mapping[str, Any], told: Mapping[str, Any]) -> Product:
    features = cast("str | list[str]", row.get("small_description") or [])
    options = cast("Mapping[str, list[dict[str, Any]] | None]", row.get("customization_options") or {})
    return Product(
        asin=str(row["asin"]),
        name=str(row["name"]),
        query=str(row.get("query") or "").lower().strip(),
        categories=frozenset(part.strip() for part in str(row.get("product_category") or "").split("\u203a")),
        description=str(row.get("full_description") or ""),
        features=tuple(map(str, [features] if isinstance(features, str) else features)),
        attributes=tuple(map(str, told.get("attributes") or ["DUMMY_ATTR"])),
        options={name.lower(): _values(values) for name, values in options.items() if values},
        price=_price(row.get("pricing")),
        rating=str(row.get("average_rating") or ""),
        reviews=tuple(_reviews(row.get("customer_reviews") or [])),
    )


def _values(values: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(one["value"]).strip().replace("/", " | ").lower() for one in values))


def _reviews(rows: Iterable[Any]) -> list[str]:
    found: list[str] = []
    for row in rows:
        told = cast("Mapping[str, Any]", row if isinstance(row, dict) else {"review": row})
        found.append(str(told.get("review") or told.get("title") or ""))
    return found


def _price(text: Any) -> float:
    """The lowest price of a text such as `$10.00 to $20.00`; 0 if there is none."""
    found = [float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?:\.\d+)?", str(text or ""))]
    return min(found, default=0.0)


def _goal(product: Product, told: Mapping[str, Any]) -> Goal | None:
    attributes = tuple(map(str, told.get("instruction_attributes") or []))
    instruction = str(told.get("instruction") or "").strip().rstrip(".")
    if not attributes or not instruction:
        return None
    rng = random.Random(f"{_SEED} {product.asin}")
    options = {name: rng.choice(values) for name, values in product.options.items() if values}
    limit = next((limit for limit in _LIMITS if limit > product.price), None) if product.price else None
    wanted = [instruction, *(f"{name}: {value}" for name, value in options.items())]
    if limit is not None:
        wanted.append(f"and price lower than {limit:.2f} dollars")
    return Goal(product.asin, ", ".join(wanted), attributes, options, limit, _nouns(product.name))


def _nouns(name: str) -> frozenset[str]:
    """A guess: the words of three letters or more that are no function words and no usual adjectives."""
    return frozenset(word for word in re.findall(r"[a-z]{3,}", name.lower()) if word not in _NOT_NOUNS)
