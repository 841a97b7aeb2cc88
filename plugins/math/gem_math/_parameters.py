"""Letters that stand for any number of a kind: `k` of `k\\pi, k\\in\\mathbb{Z}`, and `C` where it "is a constant"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gem_math import _groups as groups
from gem_math._tokens import Token

_NAME = r"[A-Za-z](?: _ (?:\w+|\{ \w+ \}))?"
_ANY = r"(?:(?:is|are|being|denotes|an|a|any|all|some|each|every|the|arbitrary|real|whole|=) )*"
_KIND = r"(?P<{}>constants?|consts?|integers?|numbers?|reals?)(?: of integration)?"
_NAMES = rf"{_NAME}(?:(?: ,| and) {_NAME})*"
_SAID = re.compile(
    r"(?:^| )(?P<mark>(?:[,;] |\( |(?:where|with|for|and|here) )*)"
    rf"(?:{_ANY}(?P<names>{_NAMES}) "
    rf"(?:in (?:mathbb \{{ )?(?P<set>[RZNQC])(?: \}})?|{_ANY}{_KIND.format('kind')})"
    rf"|{_ANY}{_KIND.format('before')} (?P<named>{_NAMES}))(?P<shut> \))?$"
)
_SETS = {"Z": "integers", "N": "naturals", "Q": "rationals"}
_SUCH_THAT = frozenset("|:")
_DANGLING = frozenset("=<>+-/^_:|([{") | {"in", "le", "ge", "neq", "times", "setminus", "cup", "mid"}


def split(found: Sequence[Token]) -> tuple[Sequence[Token], tuple[str, ...], str]:
    """An answer without what it says of such letters at its end, these letters, and what they are.

    That they are real or constants is said by nothing: it is empty.
    """
    if not _may_say(found):
        return found, (), ""
    bare, said = _without_braces(found), None
    joined = " ".join(token.text for token in bare)
    while said := _SAID.search(joined, said.start() + 1 if said else 0):
        if read := _read(bare, said):
            return read
    return found, (), ""


def _read(found: Sequence[Token], said: re.Match[str]) -> tuple[Sequence[Token], tuple[str, ...], str] | None:
    start = len(found) - len(said[0].split())
    rest, first = found[:start], start + len(said["mark"].split())
    names = re.findall(_NAME, (said["names"] or said["named"]).replace(" and ", " , "))
    apart = bool(said["mark"]) or (bool(said["set"]) and found[first].spaced)
    if not apart or bool(said["shut"]) != ("(" in said["mark"]) or not _is_whole(rest, names):
        return None
    kind = said["kind"] or said["before"] or ""
    return rest, tuple(map(_joined, names)), _SETS.get(said["set"] or "", "integers" if kind[:3] == "int" else "")


def _without_braces(found: Sequence[Token]) -> Sequence[Token]:
    """`\\{k\\pi : k\\in\\mathbb{Z}\\}` as it is said without a set; a name before the sign is left out."""
    bars = [place for place, token in enumerate(found) if token.text in _SUCH_THAT and token.kind == "symbol"]
    is_set = (found[0].text, found[-1].text) == ("\\{", "\\}") and groups.balanced(found[1:-1])
    if not is_set or len(bars) != 1 or any(token.text == "in" for token in found[: bars[0]]):
        return found
    said = found[bars[0] + 1 : -1]
    return said if bars[0] == 2 and _is_of(found[1], said) else [*found[1 : bars[0]], Token("symbol", ","), *said]


def _is_of(name: Token, said: Sequence[Token]) -> bool:
    """Is it said of this name what it is: `x=k\\pi`?"""
    return len(said) > 2 and said[0][:2] == name[:2] and said[1].text == "="


def _may_say(found: Sequence[Token]) -> bool:
    return any(token.kind != "symbol" and (token.text == "in" or len(token.text) > 3) for token in found[1:])


def _is_whole(rest: Sequence[Token], names: Sequence[str]) -> bool:
    """Is it an answer that has these letters?"""
    if not rest or rest[-1].text in _DANGLING or not groups.balanced(rest):
        return False
    return all(any(name[0] in token.text for token in rest if token.kind == "letters") for name in names)


def _joined(name: str) -> str:
    return re.sub(r"[ {}]", "", name)
