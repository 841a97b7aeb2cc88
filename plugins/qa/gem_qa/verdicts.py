"""Is an answer of a few words right? By the words and signs that carry meaning, or by the normal form of SQuAD.

The normal form of SQuAD deletes all punctuation and all articles, so `1.5` becomes `15`, `C++` becomes `C`, and `A`
becomes nothing. Here an article or a sign is dropped only if it means nothing.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterator

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_ARTICLES = frozenset(("a", "an", "the"))

_MAX_CHARACTERS = 10_000
"""Longer answers are compared as they stand."""
_WESTERN = {
    **{code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)},
    **str.maketrans("\u3000\u066b\u066c\u066a\u30fb\uff65\u05be", " .,%---"),
}
"""Full-width characters, Arabic separators of numbers, and the dots and dashes that join words of other scripts."""
_PUNCTUATION_KINDS = frozenset(("Po", "Ps", "Pe", "Pi", "Pf"))
_MEANT = frozenset("\u2018\u2019\u2030\u2031\u2032\u2033\u2034\u00a7")
"""Apostrophes, which may be part of a word, per mille, primes, and the section sign."""
_JOINERS = frozenset("\u200c\u200d")
"""They show nothing, and decide about the letters beside them."""
_APOSTROPHES = re.compile(r"(?<=\w)['\u2018\u2019`\u00b4](?=\w)")
_DASHES = re.compile(r"[\u2010-\u2015\u2212]")
_RANGE = re.compile(r"(?<=\d)\s+-\s+(?=\d)")
_PERCENT = re.compile(r"(?<=\d)\s*(?:percent|per cent)\b")
_MARKED = re.compile(
    r"[\s\"'(]*(?:\\(?:text|math)(?:bf|it|rm)?\{([^{}\\]+)\}|(\*{1,3})([^\s*](?:[^*]*[^\s*])?)\2)[\s\"').,:;!?]*"
)
_FORMULA = re.compile(r"\s*\$([^$]+)\$[\s.]*")
_TOKEN = re.compile(
    r"(?P<number>(?:(?<![\w.])[-])?(?:\d+(?:[.,:/-]\d+)*|(?<![\w.])\.\d+))"
    r"|(?P<initials>(?<!\w)(?:[^\W\d_]\.\s?){2,}(?:[^\W\d_](?!\w))?)"
    r"|(?P<word>[^\W\d_]+(?:[-/][^\W\d_]+)*)"
    r"|(?P<sign>(?<=\w)-(?!\w)|[+#%&$@<>=*/^|~\\]|[^\w\s!-/:-@\[-`{-~\u2018\u2019])"
)
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_INITIAL_ENDS = re.compile(r"[.\s]")
_JOINTS = re.compile(r"[-/]")


def is_right(given: str, accepted: str) -> bool:
    """Do two answers have the same words, numbers and signs?

    Case, white space, quotation marks, punctuation at the ends of words, of any script, and articles before a word do
    not matter. Digits of all scripts are the same digits.
    Words may be written together, apart or with a hyphen. Numbers count as they are written, without commas between
    thousands.
    """
    if len(given) > _MAX_CHARACTERS:  # normal forms take the square of the length, where all characters are accents
        return given.strip() == accepted.strip()
    given, accepted = _western(given), _western(accepted)
    if _folded(given).strip() == _folded(accepted).strip():
        return bool(given.strip())
    return bool(_forms(_unmarked(given)) & _forms(accepted))


def is_right_in_squad(given: str, accepted: str) -> bool:
    """Do two answers have the same normal form, as in the evaluation of SQuAD?"""
    return normalised(given) == normalised(accepted)


def normalised(text: str) -> str:
    """Lower case, without punctuation, articles and repeated white space, as in the evaluation of SQuAD."""
    bare = text.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLE.sub(" ", bare).split())


def _unmarked(given: str) -> str:
    """Without what makes all of an answer bold, a text or a formula: `**Paris**`, `\\text{True}`, `$5$`."""
    given = formula[1] if (formula := _FORMULA.fullmatch(given)) else given
    match = _MARKED.fullmatch(given)
    return match[1] or match[3] if match else given


def _forms(text: str) -> set[tuple[str, ...]]:
    """The ways to write an answer down, as tokens: with articles and without, hyphens as spaces and as nothing."""
    found = list(_tokens(text))
    forms: set[tuple[str, ...]] = set()
    for tokens in (found, _without_articles(found)):
        for joint in (" ", ""):
            forms.add(tuple(piece for token in tokens for piece in _spelled(token, joint)))
    return forms - {()}


def _tokens(text: str) -> Iterator[str]:
    plain = _RANGE.sub("-", _DASHES.sub("-", _APOSTROPHES.sub("", _folded(text))))
    for match in _TOKEN.finditer(_PERCENT.sub("%", plain)):
        token = match[0]
        if match["number"]:
            token = _number(token)
        elif match["initials"]:
            token = _INITIAL_ENDS.sub("", token)
        yield "and" if token == "&" else token


def _western(text: str) -> str:
    """With digits and signs as English has them, and without the punctuation of other scripts."""
    return "".join(_western_character(each) for each in text.translate(_WESTERN))


def _western_character(character: str) -> str:
    if character.isascii():
        return character
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    kind = unicodedata.category(character)
    if kind == "Cf" and character not in _JOINERS:  # spaces without width, soft hyphens, marks of direction
        return ""
    return " " if kind in _PUNCTUATION_KINDS and character not in _MEANT else character


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


def _number(token: str) -> str:
    """As it is written, without commas between thousands, and with a digit before its point."""
    sign, digits = ("-", token[1:]) if token.startswith("-") else ("", token)
    if _THOUSANDS.fullmatch(digits):
        digits = digits.replace(",", "")
    return f"{sign}0{digits}" if digits.startswith(".") else sign + digits


def _without_articles(tokens: list[str]) -> list[str]:
    """Without those that a word follows. The `A` of vitamin A is a name, and so is an answer that is nothing else."""
    following = [*tokens, ""][1:]
    return [
        token
        for token, after in zip(tokens, following, strict=True)
        if token not in _ARTICLES or not after[:1].isalnum()
    ]


def _spelled(token: str, joint: str) -> list[str]:
    return _JOINTS.sub(joint, token).split() if token[:1].isalpha() else [token]
