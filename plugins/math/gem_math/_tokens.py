"""Answers as tokens: numbers, letters, words, LaTeX commands and symbols. What has no meaning is left out."""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_CHARACTERS, MAX_TOKENS = 1000, 400


class Unread(Exception):
    """It is not written in the notation that is read here."""


class Token(NamedTuple):
    """A piece of an answer."""

    kind: str
    """`number`, `letters` (as in formulas), `word` (of a text), `command` (without its backslash), or `symbol`."""
    text: str
    spaced: bool = False
    """There is white space before it."""


_SILENT = re.compile(
    r"\\(?:left|right|[bB]igg?[lrm]?|displaystyle|textstyle|limits|nolimits|mathstrut)(?![A-Za-z])|\\[!]|\\phantom\{[^{}]*\}"
)
_SPACES = re.compile(
    r"(?<!\\)\\(?:[,;:> \n]|(?:quad|qquad|thinspace|hspace\{[^{}]*\}|ldotp)(?![A-Za-z]))|[~\u00a0\u2009\u202f]"
)
_SUPERSCRIPTS = str.maketrans("\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079", "0123456789")


def _superscript(match: re.Match[str]) -> str:
    digits = match[0].translate(_SUPERSCRIPTS)
    return f"^{digits}" if len(digits) == 1 else f"^{{{digits}}}"


_SPELLINGS = (
    (re.compile(r"[\u2070\u00b9\u00b2\u00b3\u2074-\u2079]+"), _superscript),
    (re.compile(r"\\(?:operatorname|mathrm)\s*\{(arc(?:sin|cos|tan)|(?:sin|cos|tan)h?|ln|log|exp)\}"), r"\\\1 "),
    (re.compile(r"\\mathrm\s*\{([ei])\}"), r" \1 "),
    (re.compile(r"\\[dtc]frac(?![A-Za-z])"), r"\\frac"),
    (re.compile(r"\\[dt]binom(?![A-Za-z])"), r"\\binom"),
    (re.compile(r"\^\s*(?:\{\s*\\circ\s*\}|\\circ(?![A-Za-z]))|\\degree(?![A-Za-z])|°"), r"\\degree "),
    (re.compile(r"\^\s*\{?\s*\\prime\s*\}?"), "'"),
    (re.compile(r"\{,\}"), ","),
    (re.compile(r"\\(?:ne|not\s*=|neq)(?![A-Za-z])|≠"), r"\\neq "),
    (re.compile(r"\\(?:leqslant|leq|le)(?![A-Za-z])|≤|<="), r"\\le "),
    (re.compile(r"\\(?:geqslant|geq|ge)(?![A-Za-z])|≥|>="), r"\\ge "),
    (re.compile(r"\\lt(?![A-Za-z])"), "<"),
    (re.compile(r"\\gt(?![A-Za-z])"), ">"),
    (re.compile(r"\\(?:cdot|times|ast)(?![A-Za-z])|[\u00d7\u00b7\u22c5\u2217]|(?<!\*)\*(?!\*)"), r"\\times "),
    (re.compile(r"\*\*"), "^"),
    (re.compile(r"\\div(?![A-Za-z])|÷"), "/"),
    (re.compile(r"[\u2212\u2013]"), "-"),
    (re.compile(r"π"), r"\\pi "),
    (re.compile(r"∞"), r"\\infty "),
    (re.compile(r"√"), r"\\sqrt "),
    (re.compile("\u222a"), r"\\cup "),
    (re.compile(r"∅|\\(?:varnothing|empty)(?![A-Za-z])"), r"\\emptyset "),
    (re.compile(r"±"), r"\\pm "),
    (re.compile(r"\\lbrace(?![A-Za-z])"), r"\\{"),
    (re.compile(r"\\rbrace(?![A-Za-z])"), r"\\}"),
    (re.compile(r"\\lbrack(?![A-Za-z])"), "["),
    (re.compile(r"\\rbrack(?![A-Za-z])"), "]"),
    (re.compile(r"\\[lr]vert(?![A-Za-z])"), "|"),
    (re.compile(r"\\langle(?![A-Za-z])"), "("),
    (re.compile(r"\\rangle(?![A-Za-z])"), ")"),
)
_DOLLAR = re.compile(r"(?<!\\)\$")
_DELIMITER = re.compile(r"(?<!\\)\\[()\[\]]")
_STOP = re.compile(r"(?<![\\.])\.$")
_TEXT = re.compile(
    r"\\(?:text(?:rm|bf|it|sf|tt|normal|up)?|math(?:rm|bf|it|sf|tt|cal)|mbox|hbox|operatorname|emph|boldsymbol|bm)\s*\{([^{}]*)\}"
)
_TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3}(?![\d.]))?)"
    r"|\\(?P<command>[A-Za-z]+)"
    r"|(?P<escaped>\\[{}|%$&\\#_])"
    r"|(?P<letters>[A-Za-z]+)"
    r"|(?P<symbol>[-+^_/=<>()\[\]{}|,;:!%$€£&'])"
)
_SIGNS = {
    "percent": Token("symbol", "%"),
    "infinity": Token("command", "infty"),
    "degree": Token("command", "degree"),
    "degrees": Token("command", "degree"),
}
"""Words for signs."""
_WORD = re.compile(r"[^\W\d_]+")
"""Also of signs such as \u00b2, which Python takes for digits but not for numbers; they are no letters."""


def tokens(answer: str) -> list[Token]:
    """The tokens of an answer, delimiters of formulas left out. Raises `Unread`."""
    if len(answer) > MAX_CHARACTERS:
        raise Unread("it is too long")
    found = list(_formula(_undelimited(answer)))
    while found and found[-1] in (Token("symbol", ","), Token("symbol", ";")):
        found.pop()
    if not 0 < len(found) <= MAX_TOKENS:
        raise Unread("it is empty or too long")
    return found


def _undelimited(answer: str) -> str:
    """Without what only says that it is a formula, and without a full stop."""
    text = _SPACES.sub(" ", _SILENT.sub("", answer)).strip()
    if len(_DOLLAR.findall(text)) % 2 == 0:  # otherwise one of them is money
        text = _DOLLAR.sub(" ", text)
    return _STOP.sub("", _DELIMITER.sub(" ", text).strip()).rstrip()


def _formula(text: str) -> list[Token]:
    for pattern, spelling in _SPELLINGS:
        text = pattern.sub(spelling, text)
    found: list[Token] = []
    place = 0
    for block in _TEXT.finditer(text):
        found += _pieces(text[place : block.start()], "letters")
        found += _pieces(block[1], "word", spaced=block[1][:1].isspace() or text[: block.start()][-1:].isspace())
        place = block.end()
    return found + _pieces(text[place:], "letters", spaced=text[:place][-1:].isspace())


def _pieces(text: str, letters: str, *, spaced: bool = False) -> list[Token]:
    found: list[Token] = []
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place) or (_WORD.match(text, place) if letters == "word" else None)
        if match is None or not (match.lastgroup or match[0].isalpha()):
            raise Unread(f"{text[place]!r} is not read")
        place = match.end()
        kind = match.lastgroup
        if kind == "space":
            spaced = True
            continue
        if kind == "escaped":
            token = Token("symbol", match[0] if match[0][1] in "{}|\\" else match[0][1], spaced)
        elif kind in ("letters", None):
            token = _SIGNS.get(match[0].lower(), Token(letters, match[0]))._replace(spaced=spaced)
        else:
            token = Token(kind or "", match[kind or 0], spaced)
        found.append(token)
        spaced = False
    return found
