"""Expressions as trees, read from tokens by recursive descent. Nothing is computed here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from gem_math import _units as units
from gem_math._tokens import Token, Unread

MAX_DEPTH, MAX_FACTORS, MAX_HEIGHT = 30, 40, 80


@dataclass(frozen=True)
class Node:
    """A part of an expression."""

    kind: str
    """`number`, `name`, `unit`, `sign` (of a plus-minus), `binomial`, or an operation: `sum`, `product`, `quotient`,
    `power`, `negation`, `mixed`, `factorial`, `root` (parts: radicand, index), `call` of the function `text`, or
    `value` of a function `text` of which nothing is known."""
    parts: tuple[Node, ...] = ()
    text: str = ""
    value: Fraction = Fraction(0)
    """Of a number."""


def number(text: str) -> Node:
    """A number as it is written."""
    return Node("number", text=text, value=Fraction(text.removesuffix(".")))


_FUNCTIONS = "sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh ln exp log lg abs floor ceil"
_GREEK_LETTERS = """
    alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho sigma tau upsilon
    phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega ell hbar
"""
_MARKS = "overline bar vec hat widehat tilde dot ddot overrightarrow overleftrightarrow underline"
FUNCTIONS, _GREEK, _DECORATIONS = (frozenset(names.split()) for names in (_FUNCTIONS, _GREEK_LETTERS, _MARKS))
_NO_FACTORS = frozenset(("pm", "mp", "times", "degree", "rfloor", "rceil", "over", "choose"))
_SIGNS = frozenset(("+", "-", "pm", "mp"))
_SHAPES = frozenset(("angle", "triangle", "odot", "parallel", "square"))
_CURRENCIES = frozenset("$€£")
_SEPARATORS = frozenset(("and", "or"))
_UNKNOWN_FUNCTIONS = frozenset("fghFGPQ")
_CONSTANTS = frozenset(("e", "i", "pi", "infty"))
_MINUTES = 60
"""Of a degree, and seconds of a minute."""


def read(found: Sequence[Token], functions: frozenset[str] = frozenset()) -> Node:
    """The expression that all these tokens make up. Raises `Unread`.

    A letter before brackets is a function if it is one of `functions` or usually one, or if no sum stands in the
    brackets: `s(0)` is no product, and `x(x+5)` is one.
    """
    tree = _Reader(found, functions).whole()
    level, height = [tree], 0
    while level:  # what goes through the tree by recursion must not go too deep
        level, height = [part for node in level for part in node.parts], height + 1
    if height > MAX_HEIGHT:
        raise Unread("it has too many factors and brackets")
    return tree


class _Reader:
    def __init__(self, found: Sequence[Token], functions: frozenset[str]) -> None:
        self._tokens = [*found, Token("end", "")]
        self._functions = functions
        self._next = 0
        self._depth = 0
        self._bars = 0

    def whole(self) -> Node:
        tree = self._all()
        if self._token.kind != "end":
            raise Unread(f"{self._token.text!r} is not expected here")
        return tree

    # -- operations ----------------------------------------------------------------------------------------------------

    def _all(self) -> Node:
        """Up to where a group ends: a sum, or two with TeX's `\\over` or `\\choose` between them."""
        tree = self._sum()
        for command, kind in (("over", "quotient"), ("choose", "binomial")):
            if self._is_command(command):
                self._take()
                return Node(kind, (tree, self._sum()))
        return tree

    def _sum(self) -> Node:
        terms = [self._signed()]
        while sign := self._sign():
            terms.append(_times_sign(sign, self._signed() if self._is("+", "-") else self._product()))
        return Node("sum", tuple(terms)) if len(terms) > 1 else terms[0]

    def _signed(self) -> Node:
        sign = self._sign()
        return _times_sign(sign, self._product()) if sign else self._product()

    def _sign(self) -> str:
        """The sign that comes next, if one does: `+`, `-`, `pm` or `mp`."""
        if self._tokens[self._next].text not in _SIGNS:
            return ""
        if self._is("+", "-") or (self._token.kind == "command" and self._token.text in ("pm", "mp")):
            return self._take().text
        return ""

    def _product(self) -> Node:
        tree, divided = self._power(), False
        for _ in range(MAX_FACTORS):
            if self._is_command("times"):
                self._take()
                tree, divided = Node("product", (tree, self._signed_power())), False
            elif self._is("/") or self._is_word(*units.PER):
                self._take()
                tree, divided = Node("quotient", (tree, self._divisor(tree))), True
            elif self._is_unit():
                tree, divided = self._with_unit(tree), False
            elif self._starts_factor():
                if divided:
                    raise Unread("a factor after a quotient can be read in two ways")
                tree = Node("product", (tree, self._power()))
            else:
                return tree
        raise Unread("it has too many factors")

    def _divisor(self, dividend: Node) -> Node:
        """After a unit, a letter is one, too: `km/h`; and so is a unit after "per"."""
        measured = dividend.kind == "product" and dividend.parts[1].kind == "unit"
        measured = measured or self._tokens[self._next - 1].text in units.PER
        if measured and self._token.kind == "letters" and units.known(self._token.text):
            return self._unit(self._take().text)
        return self._signed_power()

    def _signed_power(self) -> Node:
        if self._is("-"):
            self._take()
            return Node("negation", (self._power(),))
        return self._power()

    def _starts_factor(self) -> bool:
        token, before = self._token, self._tokens[self._next - 1]
        if token.kind == "letters":
            return True
        if token.kind == "command":
            return token.text not in _NO_FACTORS
        if token.kind == "symbol":
            return token.text in ("(", "[", "{") or (token.text == "|" and not self._bars)
        return token.kind == "number" and (before.text in (")", "}", "!") or self._is_power_after(before))

    def _is_power_after(self, before: Token) -> bool:
        """Is it the second of two powers with a space between, `2^3 3^2`?"""
        ahead = self._tokens[self._next + 1 : self._next + 2]
        return (
            self._token.spaced
            and before.kind == "number"
            and ahead[0].text == "^"
            and self._tokens[self._next - 2].text == "^"
        )

    def _power(self) -> Node:
        base = self._postfix(self._atom())
        if not self._is("^"):
            return base
        self._take()
        exponent = self._exponent()
        if self._is("^"):
            raise Unread("a power of a power needs brackets")
        return self._postfix(Node("power", (base, exponent)))

    def _exponent(self) -> Node:
        if self._is("{"):
            return self._group()
        if self._is("-"):
            self._take()
            return Node("negation", (self._atom(),))
        return self._atom()

    def _postfix(self, tree: Node) -> Node:
        while True:
            if self._is("!"):
                self._take()
                if tree.kind == "factorial":
                    raise Unread("a double factorial is not read")
                tree = Node("factorial", (tree,))
            elif self._is("%") or self._is_command("degree"):
                sign = self._take().text
                tree = self._with_minutes(tree) if sign == "degree" and tree.kind == "number" else tree
                tree = Node("product", (tree, Node("unit", text=sign)))
            else:
                return tree

    def _with_minutes(self, degrees: Node) -> Node:
        """A number of degrees with the minutes and seconds that follow: `30'`."""
        value, text = degrees.value, degrees.text
        for mark, parts in (("'", _MINUTES), ("''", _MINUTES**2)):
            ahead = self._tokens[self._next : self._next + 2 + len(mark)]
            texts = [token.text for token in ahead]
            if ahead[0].kind != "number" or texts[1 : 1 + len(mark)] != [*mark] or texts[-1] == "'":
                break
            if Fraction(texts[0].rstrip(".")) >= _MINUTES:
                raise Unread("a degree has sixty minutes")
            self._next += 1 + len(mark)
            value, text = value + Fraction(texts[0].rstrip(".")) / parts, f"{text}({texts[0]}{mark})"
        return replace(degrees, value=value, text=text)

    # -- units ---------------------------------------------------------------------------------------------------------

    def _is_unit(self) -> bool:
        token, before = self._token, self._tokens[self._next - 1]
        if token.kind == "word":
            return token.text.lower() not in _SEPARATORS
        if token.kind == "letters" and len(token.text) > 1 and token.text not in FUNCTIONS:
            measured = before.kind in ("number", "word") or before.text in "/}$" or units.power(before.text) is not None
            if token.text in units.LAST:
                return before.kind in ("letters", "word", "number")
            long = len(token.text) > 3 and token.text != "sqrt" and not token.text.isupper()
            return measured and (units.known(token.text) or units.power(token.text) is not None or long)
        return token.kind == "symbol" and token.text in _CURRENCIES

    def _with_unit(self, tree: Node) -> Node:
        text = self._take().text
        if text == "in" and self._is_word("total"):
            self._take()
            return tree
        if text.lower() in units.SILENT and (text.lower() in units.LAST or self._is_unit()):  # 24 different ways
            return tree
        exponent = units.power(text)
        if exponent is None:
            return Node("product", (tree, self._unit(text)))
        if self._is_unit():  # square metres
            return Node("product", (tree, Node("power", (Node("unit", text=self._take().text), number(str(exponent))))))
        if tree.kind in ("product", "quotient") and tree.parts[1].kind == "unit":  # metres squared
            return Node(tree.kind, (tree.parts[0], Node("power", (tree.parts[1], number(str(exponent))))))
        return Node("product", (tree, Node("unit", text=text)))

    def _unit(self, text: str) -> Node:
        unit = Node("unit", text=text)
        if not self._is("^"):
            return unit
        self._take()
        return Node("power", (unit, self._exponent()))

    # -- atoms ---------------------------------------------------------------------------------------------------------

    def _atom(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise Unread("it nests too deep")
        atom = self._read_atom()
        self._depth -= 1
        return atom

    def _read_atom(self) -> Node:
        token = self._take()
        if token.kind == "number":
            return self._number(token.text)
        if token.kind == "letters":
            return self._letters(token.text)
        if token.kind == "command":
            return self._command(token.text)
        if token.kind == "word" and self._next > 1 and self._tokens[self._next - 2].text in ("/", "per", "{"):
            return Node("unit", text=token.text)
        if token.kind == "word" and len(token.text) == 1:
            return self._named(token.text)
        if token.text in ("(", "["):
            return self._inside(")" if token.text == "(" else "]")
        if token.text == "{":
            self._next -= 1
            return self._group()
        if token.text == "|":
            return self._absolute()
        if token.text in _CURRENCIES:
            return Node("product", (Node("unit", text=token.text), self._power()))
        raise Unread(f"{token.text!r} is not expected here")

    def _number(self, text: str) -> Node:
        if any(map(self._is_command, ("overline", "bar", "dot"))) and "." in text:  # 0.1\overline{6}
            self._take()
            return _repeating(text, self._plain_group())
        if self._is("_"):
            raise Unread("a number in a base stands alone")
        if text.isdigit() and (fraction := self._fraction_after()) is not None:
            return Node("mixed", (number(text), fraction))
        return number(text)

    def _fraction_after(self) -> Node | None:
        """The fraction of a mixed number: `3\\frac{1}{2}` or `3 1/2`."""
        ahead = self._tokens[self._next : self._next + 3]
        if len(ahead) == 3 and ahead[0].spaced and ahead[1].text == "/":
            above, below = ahead[0].text, ahead[2].text
            if above.isdigit() and below.isdigit() and int(below):
                self._next += 3
                return Node("quotient", (number(above), number(below)))
        if not self._is_command("frac"):
            return None
        start = self._next
        self._take()
        fraction = Node("quotient", (self._argument(), self._argument()))
        above, below = fraction.parts
        if above.text.isdigit() and below.text.isdigit() and above.value < below.value:
            return fraction
        self._next = start
        return None

    def _letters(self, run: str) -> Node:
        if run in FUNCTIONS:
            return self._call(run)
        if run == "sqrt":
            return self._root()
        if run == "pi":
            return Node("name", text="pi")
        if run == "infty" or run == "infinity":
            return Node("name", text="infty")
        if len(run) == 1 or run.isupper():
            return self._named(run)
        if len(run) > 4:
            raise Unread(f"{run!r} is a word")
        pieces = re.findall(r"[A-Z]+|[a-z]", run)
        kept = [Node("name", text=piece) for piece in pieces[:-1]]
        tree = self._named(pieces[-1])
        if self._is("^"):  # the exponent belongs to the last letter
            self._take()
            tree = Node("power", (tree, self._exponent()))
        for piece in reversed(kept):
            tree = Node("product", (piece, tree))
        return tree

    def _named(self, name: str) -> Node:
        letter = name
        if self._is("_"):
            self._take()
            token = self._token
            name += "_" + (self._plain_group() if self._is("{") else self._take().text)
            if token.kind not in ("number", "letters", "symbol", "command", "word"):
                raise Unread("an index is missing")
        while self._is("'"):
            name += self._take().text
        inverse = [token.text for token in self._tokens[self._next : self._next + 6]] == [*"^{-1}", "("]
        if inverse and self._is_function(letter):
            self._next += 5
            name += "^-1"
        if self._is("(") and (self._is_function(letter) or "'" in name or self._has_one_argument(letter)):
            return Node("value", self._arguments(), name)
        return Node("name", text=name)

    def _is_function(self, letter: str) -> bool:
        return letter in _UNKNOWN_FUNCTIONS or letter in self._functions

    def _has_one_argument(self, letter: str) -> bool:
        """Do a number or another letter alone, or several of them, stand in the brackets that come next?"""
        if letter in _CONSTANTS or (len(letter) > 1 and letter not in _GREEK):
            return False
        place, single = self._next + 1, False
        while (token := self._tokens[place]).text != ")":
            place += 1
            if token.text in (",", "-") and not (token.text == "-" and single):
                single = False
            elif not single and token.text != letter and _is_single(token):
                single = True
            else:
                return False
        return single

    def _arguments(self) -> tuple[Node, ...]:
        self._take()
        arguments = [self._sum()]
        while self._is(","):
            self._take()
            arguments.append(self._sum())
        self._expect(")")
        return tuple(arguments)

    def _command(self, name: str) -> Node:
        if name == "frac":
            return Node("quotient", (self._argument(), self._argument()))
        if name == "sqrt":
            return self._root()
        if name == "binom":
            return Node("binomial", (self._argument(), self._argument()))
        if name in FUNCTIONS:
            return self._call(name)
        if name in ("pi", "infty"):
            return Node("name", text=name)
        if name in _GREEK:
            return self._named(name)
        if name in _DECORATIONS:
            return Node("name", text=f"{name} {self._plain_group()}")
        if name in _SHAPES:
            return Node("name", text=f"{name} {self._take().text}")
        if name in ("lfloor", "lceil"):
            tree = self._sum()
            if not self._is_command("r" + name[1:]):
                raise Unread(f"\\{name} is not closed")
            self._take()
            return Node("call", (tree,), name[1:])
        raise Unread(f"\\{name} is not read")

    def _root(self) -> Node:
        index = number("2")
        if self._is("["):
            self._take()
            index = self._inside("]")
        return Node("root", (self._argument(), index))

    def _call(self, name: str) -> Node:
        base: Node | None = None
        exponent: Node | None = None
        if name == "log" and self._is("_"):
            self._take()
            base = self._argument()
        if self._is("^"):
            self._take()
            exponent = self._exponent()
        argument = self._group() if self._is("{") else self._call_argument()
        inverse = exponent is not None and exponent.kind == "negation" and exponent.parts[0].text == "1"
        if inverse and name in ("sin", "cos", "tan"):
            return Node("call", (argument,), f"arc{name}")
        tree = Node("call", (argument,) if base is None else (argument, base), name)
        return tree if exponent is None else Node("power", (tree, exponent))

    def _call_argument(self) -> Node:
        """Brackets, or what follows without a sign: `\\sin 2x`, up to the next function."""
        if self._is("("):
            self._take()
            return self._inside(")")
        tree = self._power()
        while self._starts_factor() and not self._is("(") and self._token.text not in FUNCTIONS:
            tree = Node("product", (tree, self._power()))
        return tree

    def _argument(self) -> Node:
        """What stands in braces or brackets, or one character."""
        if self._is("{"):
            return self._group()
        if self._is("("):
            self._take()
            return self._inside(")")
        token = self._take()
        if token.kind == "number" and token.text.isdigit():
            if len(token.text) > 1:  # \frac12 is a half
                self._next -= 1
                self._tokens[self._next] = Token("number", token.text[1:])
            return number(token.text[0])
        if token.kind == "letters" and (len(token.text) == 1 or token.text.islower()):
            if len(token.text) > 1:  # \\frac ab is a over b
                self._next -= 1
                self._tokens[self._next] = Token("letters", token.text[1:])
            return Node("name", text=token.text[0])
        if token.kind == "command" and (token.text in _GREEK or token.text == "pi"):
            return Node("name", text=token.text)
        raise Unread("an argument is missing")

    def _group(self) -> Node:
        self._expect("{")
        return self._inside("}")

    def _inside(self, closing: str) -> Node:
        bars, self._bars = self._bars, 0
        tree = self._all()
        self._bars = bars
        self._expect(closing)
        return tree

    def _absolute(self) -> Node:
        self._bars += 1
        tree = self._sum()
        self._bars -= 1
        self._expect("|")
        return Node("call", (tree,), "abs")

    def _plain_group(self) -> str:
        """The text of what stands in braces, without nested ones."""
        if not self._is("{"):
            return self._take().text
        self._take()
        pieces: list[str] = []
        while not self._is("}"):
            token = self._take()
            if token.kind == "end" or token.text in ("{", "\\{"):
                raise Unread("a brace is not closed")
            pieces.append(token.text)
        self._take()
        return "".join(pieces)

    # -- tokens --------------------------------------------------------------------------------------------------------

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._token
        if token.kind == "end":
            raise Unread("it ends too early")
        self._next += 1
        return token

    def _is(self, *texts: str) -> bool:
        token = self._tokens[self._next]
        return token.text in texts and token.kind == "symbol"

    def _is_command(self, name: str) -> bool:
        token = self._tokens[self._next]
        return token.kind == "command" and token.text == name

    def _is_word(self, *words: str) -> bool:
        return self._token.kind in ("word", "letters") and self._token.text in words

    def _expect(self, text: str) -> None:
        if not self._is(text):
            raise Unread(f"{text!r} is missing")
        self._take()


def _is_single(token: Token) -> bool:
    if token.kind == "letters":
        return len(token.text) == 1
    return token.kind == "number" or (token.kind == "command" and (token.text in _GREEK or token.text in _CONSTANTS))


def _times_sign(sign: str, tree: Node) -> Node:
    if sign == "+":
        return tree
    negative = Node("negation", (tree,))
    return negative if sign == "-" else Node("product", (Node("sign", text=sign), tree))


def _repeating(text: str, digits: str) -> Node:
    if not digits.isdigit() or len(digits) > 30:
        raise Unread("no digits repeat")
    places = len(text.partition(".")[2])
    tail = Fraction(int(digits), (10 ** len(digits) - 1) * 10**places)
    return Node("number", text=f"{text}({digits})", value=Fraction(text.removesuffix(".")) + tail)
