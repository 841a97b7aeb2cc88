"""What an answer is: a number or an expression, words, a point, a set, an interval, an equation, a matrix."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from gem_math._expressions import Node


@dataclass(frozen=True)
class Scalar:
    """A number or an expression."""

    tree: Node


@dataclass(frozen=True)
class Words:
    """A text, in lower case, its words apart by one space each."""

    text: str


@dataclass(frozen=True)
class Numeral:
    """A number that is written in another base than ten: what is asked for is how it is written."""

    value: Fraction
    base: int


@dataclass(frozen=True)
class Tuple:
    """A point, a vector, or an interval: parts in their order, with brackets."""

    brackets: str
    parts: tuple[Answer, ...]


@dataclass(frozen=True)
class Listing:
    """Several answers; `braces` where they are written as a set."""

    parts: tuple[Answer, ...]
    braces: bool = False
    either: bool = field(default=False, compare=False)
    """There is an "or" between them."""
    word: str = ""
    """The word between inequalities, words or names: "and", "or", or empty for a comma."""


@dataclass(frozen=True)
class Matrix:
    """Rows of equal length."""

    rows: tuple[tuple[Answer, ...], ...]


@dataclass(frozen=True)
class Named:
    """A name, and what it is: `x = 5`."""

    name: str
    answer: Answer
    left: Node | None = None
    """The name as an expression, if it is one."""
    is_claim: bool = False
    """It is more than a name, such as `PQ:QR`: right only where the question asks for it."""


@dataclass(frozen=True)
class System:
    """Values of several names: `x = 3, y = 2`."""

    parts: tuple[Named, ...]
    is_ordered: bool = False
    """The names stand in brackets: `(x, y) = (3, 2)`."""

    @property
    def names(self) -> frozenset[str]:
        """Its names."""
        return frozenset(part.name for part in self.parts)


@dataclass(frozen=True)
class Rounded:
    """A number, and what it is rounded to: `16\\pi \\approx 50.27`."""

    exact: Answer
    rounded: Answer


@dataclass(frozen=True)
class Relation:
    """An equation or an inequality between expressions; several in a row are a chain."""

    signs: tuple[str, ...]
    sides: tuple[Node, ...]


@dataclass(frozen=True)
class Union:
    """Intervals and sets of numbers together."""

    parts: tuple[Answer, ...]


@dataclass(frozen=True)
class Difference:
    """A set without others."""

    whole: Answer
    removed: tuple[Answer, ...]


@dataclass(frozen=True)
class Family:
    """An answer for each number of a kind: `k\\pi, k\\in\\mathbb{Z}`."""

    answer: Answer
    names: tuple[str, ...]
    """The letters that stand for these numbers."""
    kind: str
    """`integers`, `naturals` or `rationals`."""


@dataclass(frozen=True)
class Ratio:
    """Numbers with colons between them."""

    parts: tuple[Node, ...]


_OfNames: TypeAlias = "Named | System | Relation"
_OfSets: TypeAlias = "Union | Difference"
Answer: TypeAlias = (
    "Scalar | Words | Numeral | Tuple | Listing | Matrix | Rounded | Ratio | Family | _OfNames | _OfSets"
)
