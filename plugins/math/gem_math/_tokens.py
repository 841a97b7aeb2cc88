"""Answers as tokens: numbers, letters, words, LaTeX commands and symbols. What has no meaning is left out."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Mapping, Sequence
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
_SPACES = re.compile(r"(?<!\\)\\(?:[,;:> \n]|(?:quad|qquad|thinspace|hspace\{[^{}]*\}|ldotp)(?![A-Za-z]))")
_TIGHT_COMMA = re.compile(r"(?<=\d),(?:\s*\\!)+\s*(?=\d{3})")
"""MATH writes thousands as `11,\\! 111`: the space behind the comma is taken back."""
_SYSTEM = re.compile(r"\\\{\s*\\begin\s*\{(array|aligned|gathered|matrix)\}(.*?)\\end\s*\{\1\}\s*\.?", re.DOTALL)
_ABOUT = re.compile(
    r"^(?:\\text\s*\{\s*)?(?:about|approximately|approx\.?|roughly)(?:\s*\}\s*|\s+)(?=[\d$\\.])", re.IGNORECASE
)

# -- other scripts ---------------------------------------------------------------------------------------------------

_RAISED, _LOWERED = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079\u207a\u207b\u207f", "₀₁₂₃₄₅₆₇₈₉"
_PLAIN = str.maketrans(_RAISED + _LOWERED, "0123456789+-n0123456789")
_RAISED_RUN, _LOWERED_RUN = re.compile(f"[{_RAISED}]+"), re.compile(f"[{_LOWERED}]+")
_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_GREEK = "αβγδεζηθκλμνξρστφχψωΓΔΘΛΞΠΣΦΨΩ"
_GREEK_NAMES = (
    "alpha beta gamma delta epsilon zeta eta theta kappa lambda mu nu xi rho sigma tau phi chi psi omega "
    "Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega"
)
_SIGN_NAMES = """
    00b0 degree  2260 neq  2264 le  2265 ge  2a7d le  2a7e ge  2248 approx  00d7 times  00b7 times  22c5 times
    2217 times  03c0 pi  221e infty  221a sqrt  222a cup  2205 emptyset  00b1 pm  2213 mp  2208 in
    2216 setminus  2220 angle
    211d mathbb{R}  2124 mathbb{Z}  2115 mathbb{N}  211a mathbb{Q}  2102 mathbb{C}
"""
_SIGN_TEXTS = "00f7 / 2236 : 2223 | 2212 - 2013 - 2032 ' 27e8 ( 27e9 ) 2215 / 2044 /"


def _by_code(table: str, before: str, after: str) -> dict[int, str]:
    codes, texts = table.split()[::2], table.split()[1::2]
    return {int(code, 16): f"{before}{text}{after}" for code, text in zip(codes, texts, strict=True)}


INVISIBLE: Mapping[int, str] = dict.fromkeys((0x00AD, 0x200B, 0x200E, 0x200F, 0x2060, 0xFEFF), "")
"""Soft hyphens, spaces without width and marks of direction mean nothing anywhere."""
_SPELLED_OUT = {
    **INVISIBLE,
    **{ord(sign): f"\\{name} " for sign, name in zip(_GREEK, _GREEK_NAMES.split(), strict=True)},
    **_by_code(_SIGN_NAMES, "\\", " "),
    **_by_code(_SIGN_TEXTS, "", ""),
}
"""Signs of Unicode, and how LaTeX writes them."""
_VULGAR = re.compile("[¼-¾⅐-⅞]")
_BLANKS = re.compile("[\u00a0\u2009\u202f\u3000]")
_STOPS = re.compile("[。．｡।۔、،]+$")  # noqa: RUF001


def _in_ascii(text: str) -> str:
    """Signs and digits of other scripts as LaTeX writes them."""
    text = _VULGAR.sub(_fraction, _STOPS.sub("", _BLANKS.sub(" ", text))).translate(_FULL_WIDTH)
    text = _RAISED_RUN.sub(lambda match: f"^{{{match[0].translate(_PLAIN)}}}", text)
    text = _LOWERED_RUN.sub(lambda match: f"_{{{match[0].translate(_PLAIN)}}}", text)
    return text.translate(_SPELLED_OUT)


def _fraction(match: re.Match[str]) -> str:
    above, _, below = unicodedata.normalize("NFKC", match[0]).partition("\u2044")
    return f"\\frac{{{above}}}{{{below}}}"


_COMMAND = re.compile(r"\\([A-Za-z]+)")
_SAME_COMMANDS = """
    frac dfrac tfrac cfrac sfrac nicefrac | binom dbinom tbinom | neq ne | le leqslant leqq leq | ge geqslant geqq geq
    | times cdot ast | emptyset varnothing empty | approx simeq doteq thickapprox | setminus smallsetminus backslash
    | mathbb{R} R
"""
_COMMANDS = {
    "lt": "<",
    "gt": ">",
    "div": "/",
    "colon": ":",
    "equiv": "=",
    **dict.fromkeys(("lvert", "rvert", "vert", "mid"), "|"),
    "lbrace": "\\{",
    "rbrace": "\\}",
    "lbrack": "[",
    "rbrack": "]",
    "langle": "(",
    "rangle": ")",
    **{
        name: f"\\{names.split()[0]} "
        for names in _SAME_COMMANDS.split("|")
        for name in names.split()
        if name.isalpha()
    },
}
"""Commands with one meaning, and how it is written here."""
_WORDS = {**dict.fromkeys(("lor", "vee"), " or "), **dict.fromkeys(("land", "wedge"), " and ")}
"""Words between inequalities and equations. Anywhere else they are logic, which is not read."""
_RELATES = re.compile(r"[=<>]|\\(?:le|ge|ne|in|l|g)(?:q|qslant|t)?(?![A-Za-z])")
_SPELLINGS = (
    ("mathrm", re.compile(r"\\mathrm\s*\{([ei])\}"), r" \1 "),
    ("{", re.compile(r"\\(?:operatorname|mathrm)\s*\{(arc(?:sin|cos|tan)|(?:sin|cos|tan)h?|ln|log|exp)\}"), r"\\\1 "),
    ("\\angle", re.compile(r"(?<![A-Za-z\\])m\s*(?=\\angle(?![A-Za-z]))"), ""),
    ("\\circ", re.compile(r"\^\s*(?:\{\s*\\circ\s*\}|\\circ(?![A-Za-z]))"), r"\\degree "),
    ("\\prime", re.compile(r"\^\s*\{?\s*\\prime\s*\}?"), "'"),
    ("\\not", re.compile(r"\\not\s*="), r"\\neq "),
    ("\\mathbb", re.compile(r"\\mathbb\s*([RZNQC])(?![A-Za-z])"), r"\\mathbb{\1}"),
)
"""What takes more than its name, with a part that a text must have."""
_TYPED = (
    ("<", re.compile(r"<="), r"\\le "),
    (">", re.compile(r">="), r"\\ge "),
    ("!=", re.compile(r"(?:(?<=[A-Za-z])|(?<=\s))!="), r"\\neq "),  # 4!=24 is a factorial
    ("*", re.compile(r"\*\*"), "^"),
    ("*", re.compile(r"\*"), r"\\times "),
    ("sq.", re.compile(r"\bsq\.\s*"), "sq "),
    (" x ", re.compile(r"(?<=\d) x (?=10\s*\^)"), r"\\times "),
    ("{,}", re.compile(r"\{,\}"), ","),
    ("O", re.compile(r"(?<=[\s{])(?:OR|Or)(?=\s+[^=\s])"), "or"),  # and not the segment OR
)
"""Signs as they are typed."""
_EMPHASIS = re.compile(r"(\*{1,3}|__|[`'\"])(?!\s)([^*`\"]+?)(?<!\s)\1\.?")
_LEAD = re.compile(
    r"^(\\text\s*\{\s*)?(?:the\s+)?(?:(?:final|correct)\s+)?answer(?:\s+is)?\s*[:=]?\s*(?(1)(\})?)\s*(?=\S)",
    re.IGNORECASE,
)
"""`The answer is 5`, of which only the end may stand in a formula."""
_COLOR = re.compile(r"\\(?:text)?color\s*\{\w+\}")
_MARKED = re.compile(
    r"\\(?:underline|underbar|boldsymbol|mathbf|bm|pmb)\s*\{([^{}]*(?:\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}[^{}]*)*)\}"
)
_CLOCK = re.compile(
    r"(?:(?<=:\d\d)|(?<=\d)(?=[^AaPp]*[AaPp]\.))(?:\s|\\[,;: ])*"
    r"(\\(?:text|mathrm)\s*\{\s*)?([ap])\.?\s?m\.?(?(1)\s*\})$",
    re.IGNORECASE,
)
"""The half of a day behind a time: `p.m.`."""
_DOLLAR = re.compile(r"(?<!\\)\$")
_DELIMITER = re.compile(r"(?<!\\)\\[()\[\]]")
_STOP = re.compile(r"(?<![\\.])\.$")
_DIGIT = re.compile("[0-9]")
_MARKS = 3
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
    "pct": Token("symbol", "%"),
    "infinity": Token("command", "infty"),
    "degree": Token("command", "degree"),
    "degrees": Token("command", "degree"),
}
"""Words for signs."""
_NUMBER_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
_NUMBERS: Sequence[str] = _NUMBER_WORDS.split()
"""Numbers that are written as a word, where they are all of an answer."""
_WORD = re.compile(r"[^\W\d_]+")
"""Also of signs such as \u00b2, which Python takes for digits but not for numbers; they are no letters."""


@functools.lru_cache(maxsize=512)  # what cannot be read as a whole is compared token by token
def tokens(answer: str) -> tuple[Token, ...]:
    """The tokens of an answer, delimiters of formulas left out. Raises `Unread`."""
    if len(answer) > MAX_CHARACTERS:
        raise Unread("it is too long")
    found = list(_formula(undelimited(answer)))
    while found and found[-1] in (Token("symbol", ","), Token("symbol", ";")):
        found.pop()
    if len(found) == 1 and found[0].text.lower() in _NUMBERS:
        found = [Token("number", str(_NUMBERS.index(found[0].text.lower())))]
    if any(token.text.lower() == "all" for token in found[:1]):
        found = _with_reals(found)
    if not 0 < len(found) <= MAX_TOKENS:
        raise Unread("it is empty or too long")
    return tuple(found)


def _with_reals(found: list[Token]) -> list[Token]:
    """`all real numbers except 2` as a set."""
    words = [token.text.lower() for token in found[:5]]
    length = 3 if words[1:3] in (["real", "numbers"], ["real", "values"]) else 2 if words[1:2] == ["reals"] else 0
    if not length:
        return found
    reals = [Token("command", "mathbb"), Token("symbol", "{"), Token("letters", "R"), Token("symbol", "}")]
    rest = found[length:]
    if not rest:
        return reals
    but = 2 if words[length : length + 2] in (["except", "for"], ["other", "than"]) else 1
    if rest[0].text not in ("except", "but", "other") or not rest[but:]:
        return found
    return [*reals, Token("command", "setminus"), Token("symbol", "\\{"), *rest[but:], Token("symbol", "\\}")]


def undelimited(answer: str) -> str:
    """Without what only says that it is a formula, and without a full stop."""
    text = answer.strip().rstrip("\\ ")
    if (bold := _EMPHASIS.fullmatch(text)) is not None:
        text = bold[2]
    if not text.isascii():
        text = _in_ascii(text)
    if text[-1:] in "mM.}" and ":" in text:
        text = _CLOCK.sub(lambda match: f"\\text{{ {match[2].lower()}m}}", text)
    if "\\" in text:
        text = _without_marks(text)
        text = _SILENT.sub("", _TIGHT_COMMA.sub(",", text))
        text = _SYSTEM.sub(r"\\begin{cases}\2\\end{cases}", text) if "\\begin" in text else text
        text = _SPACES.sub(" ", text)
    text = text.replace("~", " ").strip()
    if "$" in text and len(_DOLLAR.findall(text)) % 2 == 0:  # otherwise one of them is money
        text = _DOLLAR.sub(" ", text)
    if "\\" in text:
        text = _DELIMITER.sub(" ", text)
    text = _STOP.sub("", text.strip()).rstrip()
    if "nswer" in text[:40]:
        text = _LEAD.sub(lambda match: "\\text{" if match[1] and not match[2] else "", text)
    return _ABOUT.sub(r"\\approx ", text) if text[:1] in "\\aAr" else text


def _without_marks(text: str) -> str:
    """Without colors, and without bold type and lines below a number, which may be set apart more than once."""
    text = _COLOR.sub("", text) if "color" in text else text
    for _ in range(_MARKS):
        plain = _MARKED.sub(lambda match: match[1] if _DIGIT.search(match[1]) else match[0], text)
        if plain == text:
            break
        text = plain
    return text


def _formula(text: str) -> list[Token]:
    spellings = _TYPED
    if "\\" in text:
        spellings = (*_SPELLINGS, *_TYPED)
        text = _COMMAND.sub(_spelling, text)
    for part, pattern, spelling in spellings:
        if part in text:
            text = pattern.sub(spelling, text)
    if "{" not in text:
        return _pieces(text, "letters")
    found: list[Token] = []
    place = 0
    for block in _TEXT.finditer(text):
        found += _pieces(text[place : block.start()], "letters")
        found += _pieces(
            block[1].rstrip(" ."), "word", spaced=block[1][:1].isspace() or text[: block.start()][-1:].isspace()
        )
        place = block.end()
    return found + _pieces(text[place:], "letters", spaced=text[:place][-1:].isspace())


def _spelling(match: re.Match[str]) -> str:
    if match[1] in _WORDS and _RELATES.search(match.string):
        return _WORDS[match[1]]
    return _COMMANDS.get(match[1], match[0]) if match[1] != "equiv" or "mod" not in match.string else match[0]


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
