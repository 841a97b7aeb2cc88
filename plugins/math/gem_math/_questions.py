"""What stands in a question: its formulas, what it asks for and what it gives, its functions and its variables."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator, Sequence, Set
from functools import cached_property
from typing import NamedTuple

from gem_math import _choices as choices
from gem_math import _expressions as expressions
from gem_math import _groups as groups
from gem_math import _keys as keys
from gem_math import _structure as structure
from gem_math._answers import Answer
from gem_math._expressions import Node
from gem_math._tokens import Token, Unread, tokens

_DRAWING = re.compile(
    r"\[asy\].*?(?:\[/asy\]|\Z)|\\begin\{(tikzpicture|asy)\}.*?(?:\\end\{\1\}|\Z)", re.DOTALL | re.IGNORECASE
)
_FORMULA = re.compile(r"\$+([^$]+)\$+|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL)
_MAX_FORMULAS, _MAX_NAMES = 40, 3
_ASKS = re.compile(
    r"\b(?:find|compute|determine|calculate|evaluate|estimate|solve\s+for|what|give|state|how|which)\b", re.IGNORECASE
)
_SENTENCE = re.compile(r"[.?!](?=\s|\Z)")
_NAME = r"\\?[A-Za-z]+(?:_(?:\w|\{\w+\}))?"
_TUPLE = re.compile(rf"\(\s*{_NAME}(?:\s*,\s*{_NAME})+\s*\)")
_DEFINED = re.compile(
    r"(?<![A-Za-z\\])([A-Za-z]|\\[a-z]+)\s*(?:\\left)?\(\s*[A-Za-z](?:\s*,\s*[A-Za-z])*\s*(?:\\right)?\)"
)
_FUNCTION = re.compile(r"\bfunctions?\s+(?:\$|\\\()?\s*([A-Za-z])\b")
_SIGNED = re.compile(
    r"(?:^|[$(,]|\b(?:for|where|if|with|when|let|that|and|all|suppose|assume)\s)\s*(?:"
    r"((?:[a-zA-Z]\s*,\s*)*[a-zA-Z])\s*(?:>|\\gt|≥|\\geq?)\s*0(?![\d.])|0\s*(?:<|\\lt|\\leq?)\s*([a-zA-Z])\b)",
    re.IGNORECASE,
)
_POSITIVE = re.compile(r"\bpositive\b[A-Za-z\s]{0,40}\$((?:[a-zA-Z]\s*,\s*)*[a-zA-Z])\$")
_COMBINED = re.compile(
    r"\b(ratio|quotient|sum|product|difference)\s+(?:of\s+)?(\$[^$]{1,40}\$|[A-Za-z]{1,3}\b)\s+(?:to|and)\s+(\$[^$]{1,40}\$|[A-Za-z]{1,3}\b)",
    re.IGNORECASE,
)
_ASKED_SIDES = frozenset(("", "?"))
_ENDS = frozenset(("=", "<", ">", "le", "ge", "neq", "approx", ",", ";", ":"))
_MARKUP = re.compile(r"\\(?:left|right|[,;!:]|displaystyle)(?![a-z])|[{}]")
_COMMAND = re.compile(r"\\(?:text|mathrm)\s*\{[^{}]*\}|\\[A-Za-z]+")
_GAP = re.compile(r"\s+(?=\W)|(?<=\W)\s+")


_TASK = re.compile(
    r"\b(?:find|compute|determine|calculate|evaluate|simplify|what\s+is|what's)\s+(?:the\s+(?:exact\s+)?values?\s+of\s+)?$",
    re.IGNORECASE,
)
_UNMARKED = re.compile(
    r"\b(?:find|compute|determine|calculate|evaluate|what is|value of)\s+(?:the value of\s+)?([^.?,;:]{1,60}?)"
    r"(?=\s+(?:if|when|where|given|for|such|in|to|and)\b|[.?,;:]|\Z)",
    re.IGNORECASE,
)


_PROSE = re.compile(
    r"(?<![A-Za-z\\])(?:(?!(?:sin|cos|tan|cot|sec|csc|log|lim|sqrt|exp|abs)\b)[a-z]{3,}|of|is|in|to|at|if|it|be|an|as|by|or|on)"
    r"(?![A-Za-z])"
)
"""A word, as no formula has one."""


class _Piece(NamedTuple):
    """A formula of the question, or what stands between commas there."""

    keys: tuple[str, ...]
    """What it is, and each of its sides where it is an equation or an inequality."""
    is_relation: bool
    is_asked: bool
    """It stands in a sentence behind what asks."""
    is_task: bool
    """It stands right behind what asks."""


class Question:
    """A question, read as far as it decides about answers. Drawings are left out: their text asks nothing."""

    def __init__(self, text: str) -> None:
        self.text = _DRAWING.sub(" ", text) if "asy]" in text or "\\begin" in text else text

    # -- what it asks and gives ----------------------------------------------------------------------------------------

    @cached_property
    def asked(self) -> frozenset[str]:
        """The keys of formulas that it asks for: `f(2)` of "Find f(2)"."""
        direct = {piece.keys[0] for piece in self._pieces if piece.is_asked and not piece.is_relation}
        return frozenset(direct | {*self._combined()})

    @cached_property
    def tasks(self) -> frozenset[str]:
        """The keys of formulas that stand right behind what asks: they are to be computed."""
        return frozenset(piece.keys[0] for piece in self._pieces if piece.is_task and not piece.is_relation)

    @cached_property
    def mentioned(self) -> frozenset[str]:
        """The keys of formulas that are no equations."""
        return frozenset(piece.keys[0] for piece in self._pieces if not piece.is_relation) | self.asked

    @cached_property
    def given(self) -> frozenset[str]:
        """The keys of both sides of its equations."""
        return frozenset(key for piece in self._pieces if piece.is_relation for key in piece.keys)

    def order_of(self, names: Sequence[str]) -> tuple[str, ...] | None:
        """The order in which it has these names in brackets, `(x, y)`, or side by side, "x and y"."""
        found = next((each for each in self._tuples if sorted(each) == sorted(names)), None)
        if found is None and len(names) <= _MAX_NAMES:
            found = next((each for each in itertools.permutations(names) if self._has_in_a_row(each)), None)
        return found

    def has_other_names(self, names: Set[str]) -> bool:
        """Does it ask for as many names in brackets, and has none of these?"""
        has_tuple = any(len(each) == len(names) for each in self._tuples)
        return has_tuple and not any(self.has_name(name) or self.has_letter(name) for name in names)

    def _has_in_a_row(self, names: Sequence[str]) -> bool:
        between = r"\s*\$?\s*(?:,|,?\s*\band\b)\s*\$?\s*"
        return bool(re.search(rf"(?<![A-Za-z\\]){between.join(map(re.escape, names))}(?![A-Za-z])", self.text))

    @cached_property
    def _tuples(self) -> list[tuple[str, ...]]:
        found = (re.sub(r"[\s\\{}()]", "", match[0]).split(",") for match in _TUPLE.finditer(self.text))
        return [tuple(each) for each in found]

    # -- names ---------------------------------------------------------------------------------------------------------

    @cached_property
    def functions(self) -> frozenset[str]:
        """The letters that are functions in it."""
        found = {match[1].removeprefix("\\") for match in _DEFINED.finditer(self.text)}
        return frozenset(found | {match[1] for match in _FUNCTION.finditer(self.text)})

    @cached_property
    def positive(self) -> frozenset[str]:
        """The variables that it says are positive."""
        groups = [match[1] or match[2] for match in _SIGNED.finditer(self.text)]
        groups += [match[1] for match in _POSITIVE.finditer(self.text)]
        return frozenset(name.strip() for group in groups for name in group.split(","))

    def has_name(self, name: str) -> bool:
        """Does it have this variable?"""
        plain = re.sub(r"\{(\w+)\}", r"\1", self.text)
        return bool(re.search(rf"(?<![A-Za-z]){re.escape(name)}(?![A-Za-z0-9_])", plain))

    def has_letter(self, name: str) -> bool:
        """Does one of its formulas have this letter, also beside others: `k` in `e^{kx}`?"""
        return len(name) == 1 and any(name in _COMMAND.sub(" ", text) for text, *_ in self._marked())

    def has_numbered(self, letter: str) -> bool:
        """Does it have this letter with an index?"""
        return bool(re.search(rf"(?<![A-Za-z]){letter}\s*_", self.text))

    # -- formulas ------------------------------------------------------------------------------------------------------

    @cached_property
    def formulas(self) -> tuple[Answer, ...]:
        """Its formulas, read as answers are: equations among them."""
        found: list[Answer] = []
        for text, *_ in self._marked():
            try:
                found += structure.read(text, self.functions)
            except Unread:
                continue
        return tuple(found)

    @cached_property
    def trees(self) -> tuple[Node, ...]:
        """Its expressions, and those on the sides of its equations."""
        found: list[Node] = []
        for text, *_ in self._marked():
            try:
                sides = [*_sides(tokens(text))]
            except Unread:
                continue
            found += filter(None, map(self._read, sides))
        return tuple(found)

    @cached_property
    def squeezed(self) -> str:
        """Its text as `squeezed` leaves it."""
        return squeezed(self.text)

    def _read(self, found: Sequence[Token]) -> Node | None:
        try:
            return expressions.read(found, self.functions)
        except Unread:
            return None

    def _marked(self) -> Iterator[tuple[str, bool, bool]]:
        """Its formulas, and whether each stands behind what asks, in one sentence, and right behind it."""
        for match, _ in zip(_FORMULA.finditer(self.text), range(_MAX_FORMULAS), strict=False):
            before = self.text[max(0, match.start() - 300) : match.start()]
            sentence = before[max((end.end() for end in _SENTENCE.finditer(before)), default=0) :]
            yield "".join(match.groups(default="")), bool(_ASKS.search(sentence)), bool(_TASK.search(sentence))

    def _all_marked(self) -> list[tuple[str, bool, bool]]:
        """These, or what stands behind what asks where no formula is marked."""
        unmarked = (match[1] for match in _UNMARKED.finditer(self.text))
        return [*self._marked()] or [(text, True, True) for text in unmarked if not _PROSE.search(text)]

    @cached_property
    def _pieces(self) -> list[_Piece]:
        found: list[_Piece] = []
        for text, is_asked, is_task in self._all_marked():
            try:
                parts = groups.split(tokens(text.replace("?", " ")), groups.separates)
            except Unread:
                continue
            for part in parts:
                sides = [side for side in groups.split(part, groups.relates) if side]
                found_keys = tuple(keys.key(side, self.functions) for side in sides)
                if found_keys:
                    found.append(_Piece(found_keys, len(found_keys) > 1, is_asked, is_task))
        return found

    def _combined(self) -> Iterator[str]:
        """The keys of what it asks for in words: "the ratio of a to b"."""
        for match, _ in zip(_COMBINED.finditer(self.text), range(_MAX_FORMULAS), strict=False):
            try:
                one, other = (expressions.read(tokens(match[place]), self.functions) for place in (2, 3))
            except Unread:
                continue
            word = match[1].lower()
            if word == "difference":
                other = Node("negation", (other,))
            yield keys.ordered(
                Node({"sum": "sum", "difference": "sum", "product": "product"}.get(word, "quotient"), (one, other))
            )


@functools.lru_cache(maxsize=256)
def question_of(text: str) -> Question:
    """A question, which a group of answers shares."""
    return Question(text)


def squeezed(text: str) -> str:
    """Without markup, and without white space but between words; a delimiter of formulas is one character."""
    plain = (
        choices.without_markup(text)
        .replace("$", "\0")
        .replace("\\(", "\0")
        .replace("\\)", "\0")
        .replace("\\dfrac", "\\frac")
    )
    return _GAP.sub("", _MARKUP.sub("", plain).strip())


def _sides(found: Sequence[Token]) -> Iterator[list[Token]]:
    side: list[Token] = []
    for token in [*found, Token("symbol", "=")]:
        if token.text in _ENDS:
            yield side
            side = []
        else:
            side.append(token)
