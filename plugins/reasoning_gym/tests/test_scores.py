"""Our own scores: what solves nothing earns nothing, and right answers earn what they did."""

from __future__ import annotations

import ast
import functools
import inspect
import random
import textwrap
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("reasoning_gym")

import gem_core
import gem_reasoning_gym
from gem_reasoning_gym._entries import Definition, entry
from gem_reasoning_gym._golds import CORRECTED
from gem_reasoning_gym._names import SCORED_ANEW
from gem_reasoning_gym.scorers import PUBLISHED, RIGHT, SAME
from gem_testing import Bound, HackingError, check_hacking

pytestmark = pytest.mark.long

ENTRIES = 50
SLOW = ("futoshiki", "puzzle24")
"""Data sets of which an entry takes a tenth of a second."""
LISTS = ("binary_matrix", "n_queens", "spiral_matrix", "string_insertion")
FORMULAS = ("simple_integration", "intermediate_integration", "polynomial_multiplication")


@functools.cache
def dataset(name: str) -> Any:
    return Definition.of(name, {}).build(42)


@functools.cache
def told(name: str, number: int) -> dict[str, Any]:
    """An entry. Many tests look at the same ones, and some take a tenth of a second to make."""
    return entry(Definition.of(name, {}), 42, number)


def score(name: str, answer: str, number: int, *, published: bool = False) -> float:
    """In this process; other tests go the whole way."""
    own = (PUBLISHED if published else RIGHT).get(name)
    found = told(name, number)
    return float(dataset(name).score_answer(answer, found) if own is None else own(dataset(name), answer, found))


def theirs(name: str, answer: str, number: int) -> float:
    return float(dataset(name).score_answer(answer, told(name, number)))


def oracle(name: str, number: int) -> str:
    return told(name, number)["answer"]


def paid(env_id: str, answer: str, number: int = 0) -> tuple[float, bool]:
    """The whole way."""
    with gem_core.make(env_id) as env:
        env.reset(row=number)
        *_, reward, _, _, info = env.step(f"\\boxed{{{answer}}}")
        return reward, info["success"]


# -- the demonstrated attacks, the whole way ---------------------------------------------------------------------------

ATTACKS = {
    "puzzle24": ["4*6*1*1", "24+0*1*1*1", "24.9*1*1*1", "4!+1-1*1", "(24)*(1)*(1)*(1)", "1*2*3*4"],
    "complex_arithmetic": ["nan", "nan+nanj", "nanj", "NaN", "inf", "-inf+infj"],
    "coin_flip": ["0", "0.0", "0.", "1e-5", "0/1", "nan"],
    "countdown": ["{a text as long as the target}", "len('1, 2, 3')", "S(100)", "0", "nan", "oo"],
    "n_queens": [
        "[row.split() for row in valid_solutions[0].split(chr(10))]",
        "[row.split() for row in entry['answer'].split(chr(10))]",
        "[[c for c in row] for row in entry['metadata']['solutions'][0]]",
    ],
    "game_of_life": ["[" + ",".join(["[" + ",".join("0" * 10) + "]"] * 10) + "]", "[]", "[[0]]", "0"],
    "binary_matrix": ["[row.split() for row in oracle_answer.split(chr(10))]"],
    "spiral_matrix": ["oracle_answer.split()"],
    "string_insertion": ["oracle_answer", "list(oracle_answer)"],
    "simple_integration": ["Integral({integrand}, {variable})", "integrate({integrand}, {variable})"],
    "intermediate_integration": ["Integral({integrand}, {variable})"],
    "polynomial_multiplication": ["expand({polynomial_expr})"],
    "number_sorting": ["{nan}", "{hidden nan}", "{sorted nan}", "[NaN]"],
    "propositional_logic": ["(P \u2228 Q)"],
    "prime_factorization": ["{number}"],
    "spell_backward": ["{answer} and more"],
    "gsm_symbolic": ["not {answer}", "{answer} or else 7"],
}  # fmt: skip


@pytest.mark.parametrize(("name", "attack"), [(name, attack) for name in ATTACKS for attack in ATTACKS[name]])
def test_an_answer_that_solves_nothing_earns_nothing(name: str, attack: str) -> None:
    # An entry where it is wrong: with premises that say more, with a number that is no prime.
    number = 0 if name == "propositional_logic" else 1
    if name == "prime_factorization":
        number = next(n for n in range(50) if "\u00d7" in oracle(name, n))
    found = told(name, number)
    content = attack
    if attack == "{a text as long as the target}":
        numbers = " ".join(map(str, found["metadata"]["numbers"]))
        content = f"len('{numbers:.<{found['metadata']['target']}}')"
    for key, nan in (("{nan}", "NaN"), ("{hidden nan}", "'\\u006ean'"), ("{sorted nan}", "'nan'")):
        content = content.replace(key, f"[{', '.join([nan] * (1 + str(found['answer']).count(',')))}]")
    for key, value in {**found["metadata"], "answer": found["answer"]}.items():
        content = content.replace(f"{{{key}}}", str(value))
    assert paid(f"rg:{name}", content, number) == (0.0, False)


HEDGES = (
    "not {answer}",
    "maybe {answer}?",
    "{answer} or else {other}",
    "{other} or {answer}",
    "{answer} {other}",
    "{answer}, {other}",
)
OTHERS = {
    "advanced_geometry": ("0.304, -1.217", "(0.304,-1.217)"),
    "fraction_simplification": ("23/131", "$\\dfrac{23}{131}$", " \\frac{ 23 }{ 131 } "),
    "gsm_symbolic": ("70.0", "$70", "\\$70", "70 students", "70\\text{ students}", "70\\%", "70."),
    "kakurasu": ("[[0, 1, 1, 0],\n[0, 1, 0, 0],\n[1, 1, 0, 0],\n[0, 0, 0, 1]]",),
    "knights_knaves": (
        "Riley is a sage and Zoey is a fool",
        "Zoey is a fool\nRiley is a sage.",
        "(Zoey fool), (Riley sage)",
    ),
    "letter_jumble": ("We shall be  able to produce",),
    "survo": ("5  4 4 13\n3 2 9 14\n2 7 1 10\n10 13 14 37\n",),
    "word_sorting": ("DIRECT,dreaming,exclaims,  given",),
    "time_intervals": ("17 days,03:43", " 17 days, 3:43"),
}
"""Right answers that are written in another way, of entry 0, or of entry 1 of advanced_geometry."""


@pytest.mark.parametrize("name", [*OTHERS])
def test_an_answer_is_all_that_stands_in_the_box(name: str) -> None:
    for number in range(4):
        right, other = oracle(name, number), oracle(name, number + 4)
        assert score(name, right, number) == score(name, f" {right}\n", number) == 1.0
        for hedge in HEDGES:
            given = hedge.format(answer=right, other=other)
            assert score(name, given, number) < 0.5, given
    for given in OTHERS[name]:
        assert score(name, given, int(name == "advanced_geometry")) == pytest.approx(1.0), given


def test_a_sign_belongs_to_a_number() -> None:
    assert score("gsm_symbolic", f"-{oracle('gsm_symbolic', 0)}", 0) == 0.01
    assert theirs("gsm_symbolic", f"-{oracle('gsm_symbolic', 0)}", 0) == 1.0


def test_the_form_of_an_answer_alone_earns_nothing() -> None:
    """Zeros in the right shape, blanks in the right number, a ladder of letters that are no words."""
    for number in range(10):
        rows = oracle("pool_matrix", number).split("\n")
        zeros = "\n".join(" ".join("0" for _ in row.split()) for row in rows)
        assert paid("rg:pool_matrix", zeros, number) == (0.0, False)
        assert paid("rg:emoji_mystery", "e" * len(oracle("emoji_mystery", number)), number)[0] < 0.05
        words = told("word_ladder", number)["metadata"]
        start, end = words["start_word"], words["end_word"]
        ladder = list(dict.fromkeys(end[:letters] + start[letters:] for letters in range(len(end) + 1)))
        known = dataset("word_ladder").word_sets[len(end)]
        assert score("word_ladder", ",".join(ladder), number) == float({*ladder} <= {*known})


def test_a_walk_without_a_plan_solves_no_sokoban() -> None:
    walk = "".join(random.Random(1).choices("UDLR", k=500))
    assert [score("sokoban", walk, number) for number in range(ENTRIES)] == [0.0] * ENTRIES
    assert sum(theirs("sokoban", walk, number) for number in range(ENTRIES)) > 1.0


def test_sokoban_takes_moves_that_can_be_made() -> None:
    right = oracle("sokoban", 0)
    assert score("sokoban", f" {right[:3]} {right[3:]}\n", 0) == 1.0
    for wrong in (f"The answer is {right}", right[:-1], right.lower(), "", f"{right}{right[-1] * 9}"):
        assert score("sokoban", wrong, 0) == 0.0


def test_an_attack_on_one_entry_in_four_is_no_way_to_a_living() -> None:
    """The audit's short form, on ids that could be hacked; `nox -s audit` plays all."""
    bound = Bound(0.2, 0.2, "so few entries")
    options = {"answers": ["4*6*1*1", "nan", "0", "(P \u2228 Q)"], "rounds": ((1, None), (4, 6))}
    for name in ("puzzle24", "complex_arithmetic"):
        check_hacking(f"rg:{name}", bound, **options)
    with pytest.raises(HackingError, match=r"pays 1 a question.*'nan'"):
        check_hacking("rg:complex_arithmetic-v0", bound, **options)


# -- right answers, and those that are nearly right --------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(RIGHT))
def test_right_answers_earn_what_they_did(name: str) -> None:
    if name == "propositional_logic":
        pytest.skip("it tells no answer")
    for number in range(15 if name in SLOW else ENTRIES):
        right = oracle(name, number)
        if "Integral" not in right:  # an answer that sympy has not found
            paid_now = {score(name, right, number, published=published) for published in (False, True)}
            assert paid_now == {theirs(name, right, number)} == {1.0}


def test_unsolved_integrals_are_no_answers() -> None:
    name = "intermediate_integration"
    unsolved = [number for number in range(ENTRIES) if "Integral" in oracle(name, number)]
    assert unsolved
    assert [score(name, oracle(name, number), number) for number in unsolved] == [0.0] * len(unsolved)
    assert score(name, "-2*(x**2*sin(3*x)/3 + 2*x*cos(3*x)/9 - 2*sin(3*x)/27) + C", 11) == 1.0


def near(right: str) -> list[str]:
    """Spellings of an answer, and what is nearly it."""
    lines = right.split("\n")
    lists = [line.split() for line in lines]
    return [
        right, f" {right} ", f"{right}\n", f"({right})", f"+{right}", f"-{right}", f"{right}0", f"{right}.0",
        right.lower(),
        right.upper(), right[:-1], right[1:], right[::-1], f"{right} {right}", f'"{right}"', f"'{right}'", f"[{right}]",
        right.replace(" ", ""), right.replace(" ", ", "), repr(right.split()), repr(list(right)), repr(lists),
        repr(lists).replace("'", '"'), repr(lists).replace("'", ""), repr(lines), repr(tuple(map(tuple, lists))),
        ", ".join(right.split()), right.replace("C", ""), right.replace(" + C", ""), right.replace("**", "^"),
        right.replace("*", " * "), f"{right} + 1", f"{right} = 1", f"1*({right})", f"0 + {right}", "", "0", "[]", "()",
    ]  # fmt: skip


@pytest.mark.parametrize("name", sorted(SAME))
def test_near_answers_earn_what_they_did(name: str) -> None:
    """Where only the evaluation is gone, reasoning-gym's own scoring is the reference."""
    if name == "game_of_life_halting":
        pytest.skip("any text was right")
    for number in range(ENTRIES if name in LISTS else 12):
        for answer in near(oracle(name, number)):
            now, before = score(name, answer, number), theirs(name, answer, number)
            if name in LISTS:
                assert now == before, (number, answer)
            elif not set("\"'") & set(answer) and "Integral" not in answer and "*  *" not in answer:
                # A number may be written with decimals, and be right.
                assert now == before or (now > before and ".0" in answer), (number, answer)


@pytest.mark.parametrize("name", ["countdown", "puzzle24"])
def test_the_published_version_pays_for_expressions_as_reasoning_gym_does(name: str) -> None:
    for number in range(15):
        for answer in [*near(oracle(name, number)), "4*6*1*1", "1+1", "8*3*1*1", "(25*2-1)/2+0"]:
            if not set("[.\"'") & set(answer):
                assert score(name, answer, number, published=True) == theirs(name, answer, number), (number, answer)


@pytest.mark.parametrize("name", ["countdown", "puzzle24"])
def test_near_expressions_earn_no_more_than_they_did(name: str) -> None:
    for number in range(15):
        for answer in near(oracle(name, number)):
            assert (score(name, answer, number) == 1.0) <= (theirs(name, answer, number) == 1.0), (number, answer)


@pytest.mark.parametrize("name", sorted(SCORED_ANEW - {"propositional_logic", *CORRECTED}))
def test_no_answer_earns_more_than_it_did(name: str) -> None:
    for number in range(10):
        for answer in near(oracle(name, number)):
            try:
                # White space around an answer costs nothing here.
                now, before = score(name, answer, number), theirs(name, answer.strip(), number)
            except ValueError:  # no number, in prime_factorization
                continue
            assert 0 <= now <= before + 1e-9, (number, answer)


@pytest.mark.parametrize("text", ["banana", "nan", "x = 0", "[]", "0", "inf", "1, banana"])
def test_an_equation_without_a_solution_has_an_empty_answer(text: str) -> None:
    found = {"answer": ""}
    kind, solve = dataset("polynomial_equations"), RIGHT["polynomial_equations"]
    assert solve(kind, text, found) == 0.0
    assert [solve(kind, empty, found) for empty in ("", " ", '""', "''")] == [1.0] * 4
    assert solve(kind, "-1.5,0.25", {"answer": "-1.5, 0.25"}) == 1.0


@pytest.mark.parametrize(
    ("text", "right"),
    [("3+2i", 3 + 2j), ("3 - 2j", 3 - 2j), ("(-7i)", -7j), ("i", 1j), ("-I", -1j), ("4", 4), ("2.50+.5i", 2.5 + 0.5j),
    ("1e1-i", 10 - 1j)],
)  # fmt: skip
def test_complex_numbers_as_people_write_them(text: str, right: complex) -> None:
    found = {"metadata": {"result": (right.real, right.imag)}}
    assert (
        RIGHT["complex_arithmetic"](None, text, found) == dataset("complex_arithmetic").score_answer(text, found) == 1.0
    )


@pytest.mark.parametrize("text", ["", "()", "+", "i2", "2i+3", "3+", "3 2i", "3++2i", "nan", "infi", "1e999i", "3+2k"])
def test_what_is_no_complex_number(text: str) -> None:
    assert RIGHT["complex_arithmetic"](None, text, {"metadata": {"result": (3.0, 2.0)}}) < 0.1


def test_probabilities_have_to_be_near_in_proportion() -> None:
    found = {"metadata": {"rational": {"numerator": 1, "denominator": 1024}}}
    for text in ("1/1024", "0.0009765625", "9.77e-4", "0.00098"):
        assert RIGHT["coin_flip"](None, text, found) == 1.0
    for text in ("0", "0.001", "0.0009", "1/1000", "-1/1024", "0.00109"):
        assert RIGHT["coin_flip"](None, text, found) == 0.0


def test_every_entry_of_propositional_logic_has_a_right_answer() -> None:
    name = "propositional_logic"
    for number in range(ENTRIES):
        letters = told(name, number)["metadata"]["variables"]
        literals = [f"{sign}{letter}" for letter in letters for sign in ("", "¬")]
        pairs = [f"({one} {sign} {other})" for one in literals for other in literals for sign in "∧\u2228↔"]
        right = [each for each in (*literals, *pairs) if score(name, each, number) == 1.0]
        assert right
        assert all(theirs(name, each, number) >= 0.25 for each in right), "it does follow"


# -- versions ----------------------------------------------------------------------------------------------------------


def test_the_data_sets_with_scores_of_our_own_have_the_published_ones_too() -> None:
    assert {*RIGHT, *CORRECTED} - {*SAME} == SCORED_ANEW
    assert paid("rg:puzzle24-v0", "4*6*1*1") == (1.0, True)
    assert paid("rg:puzzle24", "4*6*1*1") == (0.0, False)
    assert paid("rg:coin_flip-v0", "0", 1)[0] > 0.0


def test_nothing_of_ours_evaluates_a_text() -> None:
    """Neither Python's functions nor sympy's, which evaluate as well."""
    evaluating = {
        "eval",
        "exec",
        "compile",
        "sympify",
        "parse_expr",
        "literal_eval",
        "S",
        "N",
        "parse_latex",
        "lambdify",
    }
    for file in Path(gem_reasoning_gym.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call):
                called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                assert called not in evaluating or ast.unparse(node.func) == "re.compile", (file.name, node.lineno)


def test_no_scorer_that_is_left_evaluates_an_answer() -> None:
    """reasoning-gym's own `score_answer` is called only where it does not evaluate."""
    from gem_reasoning_gym._entries import DATASETS

    evaluate = set[str]()
    for name, (kind, _) in DATASETS.items():
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind.score_answer)))
        calls = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Call)]
        if any(
            call.startswith(("eval(", "exec(", "parse_expr(", "sympy.parse_expr(", "sp.parse_expr(", "sympify("))
            for call in calls
        ):
            evaluate.add(name)
    assert evaluate - {"number_sorting"} == {*LISTS, *FORMULAS, "countdown", "puzzle24"}, (
        "number_sorting evaluates its own answer"
    )
    assert evaluate - {"number_sorting"} <= {*PUBLISHED} & {*RIGHT}
