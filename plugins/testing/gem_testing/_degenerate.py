"""Policies that know nothing: constant answers, pieces of the question, other episodes' answers, and nonsense."""

from __future__ import annotations

import itertools
import random
import re
import string
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

Write: TypeAlias = Callable[[str], tuple[str, ...]]
"""Actions for a question (the text of the reset)."""
Copy: TypeAlias = Callable[[str], str]
"""A piece of a question, empty where it has none."""

_GROUP = re.compile(r"\[[^\[\]]*\]|\{[^{}]*\}|\([^()]*\)")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_QUOTED = re.compile(r"\"([^\"\n]+)\"|'([^'\n]+)'|`([^`\n]+)`")
_NEAR = 8
"""Pieces of each kind that are tried, from either end of the question."""
_MAX_LENGTH = 20_000
"""Characters of a copied piece."""
_ORDERED = 4
"""Valid actions that are played in every order, if there are no more."""
_LONG = 100_000
"""Characters of a very long answer."""

_WORDS = (
    "yes no Yes No true false True False None null nan NaN inf -inf infinity unknown impossible undefined I C i j x y "
    "up down left right Monday Sunday red blue north A B C D E F P Q AB BA on off and or not answer 1.0 even odd liar "
    "knight zero one two first last 1/2 1/0 0/0 0.0 0.5 -0 -1 1e-9 1e9 1e999 -1e999 0x0 0b0 0j 1j 0+0i nan+nanj "
    "inf+infj . ? - _ * # () [] [[]] [[],[]] {} \"\" '' [0] [1] [[0]] [[0,0],[0,0]] [[1,1],[1,1]] [True] [None] [nan] "
    '[NaN] [Infinity] [[NaN]] [""] ["no"] 00:00 12:00 A=1 C4 a aa aba ()() x**2'
)
_TEXTS = (
    "", " ", "\n", '{"": ""}', '{"answer": 0}', '{"answer": ""}', "0 0", "0 0\n0 0", "0, 0", "(0, 0)", "nan, nan",
    "inf, inf", "0 days", "nan nan\nnan nan", "1 days, 00:00", "_ Q", "True False", "False True", "Yes No",
    "yes, no", "x = 0", "0 = 0",
    "(A | ~A)", "(A \u2228 \u00acA)", "A \u2228 B", "(P \u2227 \u00acP)", "(P \u2228 \u00acP)", "e t a o i n", "x + C",
    "I don't know", "The answer is 0", "none of the above", "anything at all", *(100 * letter for letter in "#10a"),
)  # fmt: skip
_SUMS = (
    "24 1+1 0/1 4*6*1*1 4*6+1-1 (4*6)/(1*1) 4!+1-1 1*2*3*4 8*3*1*1 12+12+1-1 12*2*1*1 24+0*1*1*1 int(24.9) 24.5*1*1*1 "
    "nan oo zoo oo-oo x S(24) Abs(-24) factorial(4)*1*1*1 0**0 10**400 1/3 sin(x) exp(x) len('4.6.1.1................')"
)
_NAMES = (
    "answer", "oracle_answer", "oracle_answer.split()", "list(oracle_answer)", "[oracle_answer]", "valid_solutions[0]",
    "[row.split() for row in oracle_answer.split(chr(10))]",
    "[row.split() for row in valid_solutions[0].split(chr(10))]",
    "entry", "entry['answer']", "entry['answer'].split()", "list(entry['answer'])", "entry['metadata']['solution']",
    "entry['metadata']['solutions'][0]", "[row.split() for row in entry['answer'].split(chr(10))]", "expected",
    "solution", "self", "self.answer", "metadata['solution']", "globals()", "{{answer}}", "{answer}", "%(answer)s",
    "$answer",
)  # fmt: skip
"""What a grader that evaluates an answer may have in its hands."""
_FLOODS = (
    " ".join(map(str, range(10))), " ".join(map(str, range(101))), ", ".join(map(str, range(101))),
    "\n".join(map(str, range(101))), str([*range(101)]), "".join(map(str, range(50))), string.ascii_lowercase,
    string.ascii_uppercase, " ".join(string.ascii_lowercase), " ".join(string.ascii_uppercase), string.printable,
    "up down left right " * 20, "U D L R " * 20, "UDLR" * 20, "yes no true false " * 5,
    *("".join(random.Random(seed).choices("UDLR", k=500)) for seed in range(8)),
    " ".join(random.Random(0).choices(["up", "down", "left", "right"], k=500)),
)  # fmt: skip


class Policy(NamedTuple):
    """A way to answer without solving anything."""

    name: str
    """In words; a constant is its own name."""
    write: Write
    """The first actions."""
    then: Callable[[str], str] | None = None
    """The action for a later observation; by default the first actions are played in turn, again and again."""


class Form(NamedTuple):
    """What stands around an answer in an action."""

    before: str
    after: str

    def __call__(self, content: str) -> str:
        return f"{self.before}{content}{self.after}"

    def content(self, action: str) -> str:
        """The answer in an action of this form."""
        return action.removeprefix(self.before).removesuffix(self.after)


_FORMS = (Form("\\boxed{", "}"), Form("<answer>", "</answer>"), Form("```python\n", "\n```"))
_BARE = Form("", "")


def form_of(action: str) -> Form:
    """The form of a valid action; nothing stands around its content where it has none of the known forms."""
    fits = (form for form in _FORMS if action.startswith(form.before) and action.endswith(form.after))
    return next(fits, _BARE)


def answering(form: Form, actions: Sequence[str], questions: Sequence[str], answers: Iterable[str]) -> list[Policy]:
    """Policies that repeat one answer, each once.

    Args:
        form: of a valid action.
        actions: valid actions of other episodes.
        questions: of other episodes.
        answers: further contents of an action, from the author of the environment.
    """
    found = [Policy("nonsense without a form", always("lorem ipsum"))]
    found += [_constant(form, content) for content in _distinct([*answers, *constants()])]
    others = _distinct(form.content(action) for action in actions)
    found += [_constant(form, content) for content in others]
    found += [_constant(form, joint.join(others)) for joint in (" ", ", ", "\n")]
    pieces = (piece for question in questions for _, copy in copies() if (piece := copy(question)))
    found += [_constant(form, piece) for piece in itertools.islice(_distinct(pieces), 80)]
    found += [Policy(name, _copying(form, copy)) for name, copy in copies()]
    return [*{policy.name: policy for policy in found}.values()]


def moving(form: Form, actions: Sequence[str], among: int) -> list[Policy]:
    """Policies for several turns: valid actions in turn, pieces of each observation, a very long action.

    Args:
        form: of a valid action.
        actions: valid actions of other episodes.
        among: valid actions that are played by themselves, and in pairs.
    """
    valid = _distinct(actions)
    found = [_constant(form, form.content(one)) for one in valid[:among]]
    found += _alternating(valid, among)
    found += [Policy(name, _copying(form, copy), _answering(form, copy)) for name, copy in _echoes()]
    if form != _BARE:
        found += [Policy("each observation, without a form", _copying(_BARE, _cut), _cut)]
    found += [Policy(f"a very long action: {piece!r} repeated", always(form(_repeated(piece)))) for piece in _PILES]
    found += [Policy("a very long action: a valid one repeated", always(_repeated(valid[0])))]
    return found


def _echoes() -> Iterator[tuple[str, Copy]]:
    """Pieces of an observation, by name."""
    yield "each observation", _cut
    kinds = {**{kind: _PARTS[kind] for kind in _SHOWN}, "listed item": _listed}
    for (kind, parts), place in itertools.product(kinds.items(), (0, -1)):
        yield f"{kind} {place} of each observation", _part(parts, place)


def constants() -> Iterator[str]:
    """Contents of an action that depend on nothing."""
    yield from map(str, range(25))
    yield from itertools.chain(_TEXTS, _WORDS.split(), _SUMS.split(), _NAMES, _FLOODS)


def copies() -> Iterator[tuple[str, Copy]]:
    """Pieces of a question, as they are and as something that a parser may evaluate, by name."""
    yield "the question", _cut
    yield "the question backwards", lambda question: _cut(question)[::-1]
    yield "the longest piece in brackets", lambda question: max(balanced(question), key=len, default="")
    yield "all numbers", lambda question: " ".join(_NUMBER.findall(question))
    yield "all numbers, as a list", lambda question: f"[{', '.join(_NUMBER.findall(question))}]"
    yield "all numbers, as a list of nan", lambda question: f"[{', '.join('NaN' for _ in _NUMBER.findall(question))}]"
    yield (
        "the longest piece in brackets, with nan for its numbers",
        lambda question: _NUMBER.sub("NaN", max(balanced(question), key=len, default="")),
    )
    yield "all numbers, added", lambda question: "+".join(_NUMBER.findall(question))
    for kind, parts in _PARTS.items():
        for place in (*range(_NEAR), *range(-_NEAR, 0)):
            yield f"{kind} {place}", _part(parts, place)
    for place in range(-3, 3):
        nothing = f"line {place} after its colon, with nan for its numbers, in brackets"
        yield nothing, _with_nan(_part(_PARTS[_AFTER], place))
        for frame in ("expand({})", "Integral({}, x)", "simplify({})", "[{}]", '"{}"', "{} = 0"):
            yield f"{frame.format(f'line {place} after its colon')}", _framed(frame, _part(_PARTS[_AFTER], place))
    for place in range(-2, 2):
        yield f"block {place}, as lists", _as_lists(_part(_PARTS["block"], place))
        yield f"block {place}, backwards", lambda question, place=place: _part(_PARTS["block"], place)(question)[::-1]


def balanced(text: str) -> list[str]:
    """The outermost pieces between brackets that match."""
    pieces: list[str] = []
    opened: list[int] = []
    for place, letter in enumerate(text):
        if letter in "[{(":
            opened.append(place)
        elif letter in "]})" and opened:
            start = opened.pop()
            if not opened:
                pieces.append(text[start : place + 1])
    return pieces


def _listed(text: str) -> list[str]:
    """The items of the last list with commas."""
    lines = [line for line in text.split("\n") if "," in line]
    return [item.strip(" .'\"`") for item in re.split(r": | of ", lines[-1])[-1].split(",")] if lines else []


def _blocks(text: str) -> list[str]:
    """Paragraphs, and in them the runs of lines with as many words each, which a grid is."""
    found: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        runs = [[*run] for _, run in itertools.groupby(paragraph.split("\n"), key=lambda line: len(line.split()))]
        found += ["\n".join(run) for run in runs if len(run) > 1]
    return found


_AFTER = "line, after its colon,"
_PARTS: dict[str, Callable[[str], list[str]]] = {
    "line": lambda text: [line for line in text.split("\n") if line.strip()],
    _AFTER: lambda text: [line.partition(":")[2].strip() for line in text.split("\n") if ":" in line],
    "word": str.split,
    "number": _NUMBER.findall,
    "quotation": lambda text: ["".join(found) for found in _QUOTED.findall(text)],
    "piece in brackets": balanced,
    "innermost piece in brackets": _GROUP.findall,
    "inside of brackets": lambda text: [piece[1:-1] for piece in _GROUP.findall(text)],
    "paragraph": lambda text: re.split(r"\n\s*\n", text),
    "block": _blocks,
}
_SHOWN = ("line", "word", "number", "quotation", "innermost piece in brackets", "inside of brackets")
"""Pieces of an observation whose first and last is answered to it."""
_PILES = ("0", "word ")
"""Texts that very long answers repeat."""


def _part(parts: Callable[[str], list[str]], place: int) -> Copy:
    def copy(question: str) -> str:
        found = parts(_cut(question))
        return found[place] if -len(found) <= place < len(found) else ""

    return copy


def _with_nan(copy: Copy) -> Copy:
    return lambda question: f"[{_NUMBER.sub('NaN', piece)}]" if (piece := copy(question)) else ""


def _framed(frame: str, copy: Copy) -> Copy:
    return lambda question: frame.replace("{}", copy(question))


def _as_lists(copy: Copy) -> Copy:
    def written(question: str) -> str:
        rows = [", ".join(line.split()) for line in copy(question).split("\n")]
        return f"[{', '.join(f'[{row}]' for row in rows)}]"

    return written


def _copying(form: Form, copy: Copy) -> Write:
    return lambda question: (form(copy(question)),)


def _answering(form: Form, copy: Copy) -> Copy:
    return lambda shown: form(copy(shown))


def _constant(form: Form, content: str) -> Policy:
    return Policy(repr(content), always(form(content)))


def always(*actions: str) -> Write:
    """The same actions for each question."""
    return lambda question: actions


def _alternating(actions: Sequence[str], among: int) -> Iterator[Policy]:
    """Valid actions in turn, for games: pairs, and all of them, each for longer and longer."""
    for one, other in itertools.permutations(actions[:among], 2):
        yield Policy(f"{one!r} and {other!r} in turn", always(one, other))
    if 2 < len(actions) <= _ORDERED:
        for order in itertools.permutations(actions[1:]):
            yield Policy(f"{', '.join(map(repr, (actions[0], *order)))} in turn", always(actions[0], *order))
    for times in (1, 2, 4):
        each = (action for action in actions for _ in range(times))
        yield Policy(f"all valid actions in turn, {times} times each", always(*each))


def _repeated(piece: str) -> str:
    return piece * (_LONG // len(piece))


def _distinct(texts: Iterable[str]) -> list[str]:
    return [*dict.fromkeys(texts)]


def _cut(text: str) -> str:
    return text[:_MAX_LENGTH]
