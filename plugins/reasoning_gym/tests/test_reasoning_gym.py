"""Every data set of reasoning-gym: entries without end, the data set's own scores, and answers that mean harm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("reasoning_gym")

import gem_core
from gem_core.env import Env
from gem_core.errors import EnvError, EnvKwargsError, NotFoundError
from gem_grading import Grade
from gem_reasoning_gym import env as module
from gem_reasoning_gym import scoring
from gem_reasoning_gym._entries import DATASETS, Definition, entry
from gem_reasoning_gym._names import _OF_0_1_25, names, registered
from gem_reasoning_gym._ordered import ORDERED
from gem_reasoning_gym.scoring import compared, compares, function_name
from gem_testing import check_env

pytestmark = pytest.mark.long

NAMES = sorted(names())
# Words, numbers, tables; oracles that are told and that are not; sympy, eval, numpy's generators; made at once.
SAMPLE = (
    "chain_sum", "codeio", "game_of_life_halting", "graph_color", "gsm_symbolic", "leg_counting", "letter_counting",
    "list_functions", "n_queens", "pool_matrix", "prime_factorization", "propositional_logic",
)  # fmt: skip
NUMBERS_AT_ONCE = ("acre", "gsm_symbolic", "list_functions", "word_ladder")
IN_ORDER = ("isomorphic_strings", "knight_swap", "polynomial_multiplication", "ransom_note", "word_ladder")
"""Data sets that reasoning-gym makes in the order of sets of text."""
UNTOLD = {"boxnet", "graph_color", "propositional_logic", "rubiks_cube", "rush_hour"}
"""Data sets that tell no answer, as many are right."""


def opened(name: str, **kwargs: Any) -> Env:
    return gem_core.make(f"rg:{name}", **kwargs)


def answered(env: Env, content: str, **options: Any) -> tuple[float, dict[str, Any]]:
    env.reset(**options)
    observation, reward, terminated, truncated, info = env.step(f"So it is \\boxed{{{content}}}.")
    assert (observation, terminated, truncated) == ("", True, True)
    return reward, info


def oracle(env: Env) -> Any:
    return env.unwrapped._entry["answer"]  # pyright: ignore


def test_every_data_set_can_be_solved() -> None:
    """By the answer that it has; three have none."""
    unsolved: set[str] = set()
    for name in NAMES:
        env = opened(name)
        env.reset(seed=1)
        try:
            assert env.step(env.expert_action())[1] == 1, name
        except NotImplementedError:
            unsolved.add(name)
    assert unsolved == UNTOLD - {"graph_color", "rubiks_cube"}


# -- ids ---------------------------------------------------------------------------------------------------------------


def test_there_is_an_id_for_every_data_set_that_is_installed() -> None:
    from reasoning_gym.factory import DATASETS

    assert set(NAMES) == set(DATASETS) - {"composite"}


def test_the_names_known_without_reasoning_gym_are_those_of_its_sources() -> None:
    from importlib.metadata import version

    if version("reasoning-gym") != "0.1.25":
        pytest.skip("another release")
    assert {name for listed in _OF_0_1_25.values() for name in listed.split()} == set(NAMES)


def test_names_are_read_from_sources_that_are_never_run(tmp_path: Path) -> None:
    folder = tmp_path / "games"
    folder.mkdir()
    (folder / "a.py").write_text('DATASET_NAME = "maze"\n1 / 0\nregister_dataset(DATASET_NAME, A, B)\n')
    (folder / "b.py").write_text('register_dataset(\n    "fog", A, B)\ndef register_dataset(name): ...\n')
    assert registered(tmp_path) == {"maze": "games", "fog": "games"}


def test_listing_the_ids_imports_no_reasoning_gym() -> None:
    source = (
        "import sys, gem_core\nfrom gem_core.plugins import manager\n"
        "print(len(manager.registrations('gem_envs', 'rg')), 'reasoning_gym' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(2 * len(NAMES)), "False"]


def test_a_misspelt_id_is_answered_with_the_near_one() -> None:
    with pytest.raises(NotFoundError, match="rg:letter_counting"):
        gem_core.make("rg:letter_countin")


# -- settings ----------------------------------------------------------------------------------------------------------


def test_settings_of_the_data_set_are_passed_on() -> None:
    easy = opened("chain_sum", min_terms=2, max_terms=2, min_digits=1, max_digits=1)
    hard = opened("chain_sum", min_terms=9, max_terms=9)
    for number in range(5):
        assert easy.reset(row=number)[0].count(" + ") + easy.reset(row=number)[0].count(" - ") <= 2
        assert len(hard.reset(row=number)[0]) > len(easy.reset(row=number)[0])


@pytest.mark.parametrize(("argument", "hint"), [("min_wordz", "min_words"), ("seed", "data_seed"), ("sizes", "size")])
def test_an_unknown_setting_is_an_error_with_a_hint(argument: str, hint: str) -> None:
    with pytest.raises(EnvKwargsError, match=hint):
        opened("letter_counting", **{argument: 1})


@pytest.mark.parametrize(
    "settings",
    [
        {"min_words": -5},
        {"min_words": 9, "max_words": 3},
        {"data_seed": -1},
        {"size": 0},
        {"size": 2.0},
        {"size": True},
    ],
    ids=str,
)
def test_values_that_make_no_data_set_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(EnvError):
        opened("letter_counting", **settings)


def test_settings_that_the_scoring_reads_reach_it() -> None:
    """decimal_arithmetic rounds to as many places as its configuration allows."""
    exact = opened("decimal_arithmetic", max_num_decimal_places=6, precision=12)
    exact.reset(row=0)
    assert answered(exact, oracle(exact), row=0)[0] == 1.0


# -- which entry -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["chain_sum", *NUMBERS_AT_ONCE])
def test_every_task_is_another_entry_across_blocks(name: str) -> None:
    env = opened(name)
    tasks = [*range(20), *range(495, 515)]
    questions = [env.reset(data_index=task)[0] for task in tasks]
    assert len(set(questions)) >= 0.9 * len(tasks), "a finite source may repeat itself; numbers do not"
    assert questions == [opened(name).reset(seed=9, data_index=task)[0] for task in tasks]


def test_entries_are_those_of_reasoning_gym() -> None:
    import reasoning_gym

    theirs = reasoning_gym.create_dataset("letter_counting", seed=42, size=500)
    env = opened("letter_counting")
    assert [env.reset(row=number)[0] for number in range(20)] == [theirs[number]["question"] for number in range(20)]


def entries_elsewhere(hash_seed: str) -> dict[str, Any]:
    """Entries of those data sets in a process of its own."""
    source = (
        "import json, sys, gem_core\n"
        "def entry(name, **kwargs):\n"
        "    env = gem_core.make(f'rg:{name}', **kwargs)\n"
        "    return [(env.reset(data_index=task)[0], env.unwrapped._entry) for task in range(6)]\n"
        "found = {name: entry(name) for name in sys.argv[1:]}\n"
        "several = {'allow_multivariate_polynomials': True, 'allow_cross_variable_product': True}\n"
        "found['several variables'] = entry('polynomial_multiplication', **several)\n"
        "print(json.dumps(found))"
    )
    done = subprocess.run(
        [sys.executable, "-c", source, *IN_ORDER],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_entries_do_not_depend_on_the_order_of_sets() -> None:
    first, second = entries_elsewhere("1"), entries_elsewhere("2")
    assert {name for name in first if first[name] != second[name]} == set()


@pytest.mark.parametrize("name", IN_ORDER)
def test_sorting_changes_nothing_else(name: str) -> None:
    from reasoning_gym.factory import DATASETS

    cls, config = DATASETS[name]
    ours, theirs = ORDERED[name](config(seed=7, size=20)), cls(config(seed=7, size=20))
    for number in range(6 if name == "knight_swap" else 20):  # an entry takes both a sixth of a second
        one, other = ours[number], theirs[number]
        assert [one.keys(), one["metadata"].keys()] == [other.keys(), other["metadata"].keys()]
        assert theirs.score_answer(one["answer"], one) == 1, "our answer, to our question, by reasoning-gym's own score"
        if name in ("knight_swap", "word_ladder"):  # many answers are right, and one is told
            assert one["question"] == other["question"]
            assert theirs.score_answer(one["answer"], other) == theirs.score_answer(other["answer"], one) == 1
            assert len(one["answer"]) == len(other["answer"])


def test_without_number_and_seed_the_next_entry_is_shown() -> None:
    env, other = opened("chain_sum"), opened("chain_sum")
    assert [env.reset()[0] for _ in range(5)] == [other.reset(row=number)[0] for number in range(5)]


def test_seeds_draw_from_many() -> None:
    env = opened("letter_counting")
    assert len({env.reset(seed=seed)[0] for seed in range(50)}) == 50
    assert env.reset(seed=7) == opened("letter_counting").reset(seed=7)


def test_another_data_seed_gives_other_entries() -> None:
    one, other = opened("chain_sum", data_seed=1), opened("chain_sum", data_seed=5000)
    assert all(one.reset(row=number)[0] != other.reset(row=number)[0] for number in range(5))


@pytest.mark.parametrize("name", ["letter_counting", "chain_sum"])
def test_a_data_set_of_some_size_begins_anew(name: str) -> None:
    env, endless = opened(name, size=3), opened(name)
    entries = [endless.reset(row=number)[0] for number in range(3)]
    assert (env.data_size, endless.data_size) == (3, None)
    assert [env.reset()[0] for _ in range(6)] == entries * 2
    assert [env.reset(seed=1, data_index=number)[0] for number in range(3, 6)] == entries
    assert {env.reset(seed=seed)[0] for seed in range(40)} == {*entries}
    assert env.reset(row=2)[0] == entries[2]
    with pytest.raises(EnvError, match="no entry 3: size=3"):
        env.reset(row=3)


@pytest.mark.parametrize("number", [-1, 2**64])
def test_a_number_that_cannot_be_is_an_error(number: int) -> None:
    with pytest.raises(EnvError, match="no entry"):
        opened("chain_sum").reset(row=number)


# -- answers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["letter_counting", "simple_integration", "countdown", "spiral_matrix"])
@pytest.mark.parametrize(
    "action", ["<answer>" * 20_000, "\\boxed{" + "<a>" * 53_000 + "}", "\\boxed{" * 23_000], ids=len
)
def test_floods_of_tags_cost_the_answer(name: str, action: str) -> None:
    env = opened(name)
    env.reset(row=0)
    assert env.step(action)[1:4] == (pytest.approx(0.0, abs=0.06), True, True)
    assert answered(env, oracle_of(env), row=0)[0] == 1.0


def oracle_of(env: Env) -> str:
    env.reset(row=0)
    return oracle(env)


def test_the_last_box_counts() -> None:
    env = opened("chain_sum")
    right = oracle_of(env)
    assert env.step(f"\\boxed{{no}} then \\boxed{{{right}}}")[1] == 1.0
    env.reset(row=0)
    assert env.step(f"\\boxed{{{right}}} then \\boxed{{no}}")[1] == 0.0


def test_a_part_of_the_score_is_paid_and_is_no_success() -> None:
    env = opened("letter_counting")
    right = oracle_of(env)
    reward, info = answered(env, f"it is {right}", row=0)
    assert 0 < reward < 1
    assert info == {"success": False, "score": reward}


@pytest.mark.parametrize("number", range(6))
def test_game_of_life_halting_pays_for_the_right_word_only(number: int) -> None:
    env = opened("game_of_life_halting", grid_size_x=12, grid_size_y=12, num_oscillators=1)
    env.reset(row=number)
    right = oracle(env)
    wrong = {"True": "False", "False": "True"}[right]
    paid = {
        content: answered(env, content, row=number)[0] for content in (right, f" {right.lower()} ", wrong, "banana")
    }
    assert [*paid.values()] == [1.0, 1.0, 0.0, 0.0]


def test_an_answer_that_makes_the_scoring_raise_costs_the_answer() -> None:
    reward, info = answered(opened("prime_factorization"), "banana", row=0)
    assert reward == 0.0
    assert info["success"] is False
    assert info["grading_error"].startswith("ValueError")


def test_what_only_compares_is_scored_as_in_a_process_of_its_own() -> None:
    definitions = [Definition.of(name, {}) for name in DATASETS if name != "composite"]
    comparing = [definition for definition in definitions if compares(definition, published=False)]
    assert len(comparing) > 30
    for definition in comparing:
        score = getattr(scoring, function_name(definition, published=False).partition(":")[2])
        first = entry(definition, 42, 0)
        for answer in (first["answer"], f"It is {first['answer']}.", "banana", "", first["answer"].upper()):
            assert compared(answer, first) == score(answer, first), (definition.name, answer)


def test_what_only_compares_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "grade", None)
    env = opened("leg_counting")
    env.reset(row=0)
    right = entry(Definition.of("leg_counting", {}), 42, 0)["answer"]
    assert env.step(f"\\boxed{{{right}}}")[1] == 1.0


@pytest.mark.parametrize("forged", [7.0, -1.0, float("nan"), "1", True, None, [1.0]], ids=repr)
def test_a_score_that_cannot_be_is_not_paid(forged: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "grade", lambda *_, **__: Grade(forged, None))
    reward, info = answered(opened("chain_sum"), "1", row=0)
    assert reward == 0.0
    assert "from 0 to 1" in info["grading_error"]


@pytest.mark.parametrize("form", ["\n{}\n", " {} ", "\t{}", "{}\r\n", "\u00a0{}"], ids=ascii)
@pytest.mark.parametrize("name", ["n_queens", "rotate_matrix", "gcd", "spell_backward", "zebra_puzzles", "sudoku"])
def test_white_space_around_an_answer_says_nothing(name: str, form: str) -> None:
    env, published = opened(name), opened(f"{name}-v0")
    right = oracle_of(env)
    assert answered(env, form.format(right), row=0) == (1.0, {"success": True, "score": 1.0})
    assert answered(env, form.format(f"{right[:1]} {right[1:]}x"), row=0)[0] < 1.0
    assert answered(published, right, row=0)[0] == pytest.approx(1.0)


def test_the_published_score_counts_white_space() -> None:
    assert answered(opened("gcd-v0"), f" {oracle_of(opened('gcd'))} ", row=0)[0] < 1.0


@pytest.mark.parametrize("name", ["gcd", "countdown", "syllogism"])
def test_the_question_says_that_a_box_is_needed(name: str) -> None:
    observation, info = opened(name).reset(row=0)
    assert "\\boxed{" in info["suffix"]
    assert opened(name, instruction=False).reset(row=0) == opened(f"{name}-v0").reset(row=0) == (observation, {})
    assert opened(name, instruction="Use \\boxed{}.").reset(row=0)[1] == {"suffix": "Use \\boxed{}."}
    with pytest.raises(EnvError, match="instruction"):
        opened(name, instruction=1)


# -- the contract ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SAMPLE)
def test_the_contract_is_kept(name: str) -> None:
    check_env(f"rg:{name}")


@pytest.mark.parametrize("name", ["chain_sum", "pool_matrix", "graph_color"])
def test_random_actions_are_answers_and_sometimes_right(name: str) -> None:
    env = opened(name)
    scores: list[bool] = []
    for seed in range(20):
        env.reset(seed=seed)
        *_, info = env.step(env.sample_random_action())
        assert "invalid_action" not in info
        scores.append(info["success"])
    assert name in UNTOLD or any(scores)
    assert not all(scores)


# -- every data set ----------------------------------------------------------------------------------------------------


# Last in this file: with all data sets, the server that grades is so large that each fork of it takes three times as
# long.
@pytest.mark.parametrize("name", NAMES)
def test_right_wrong_and_hostile_answers(name: str, tmp_path: Path) -> None:
    env = opened(name)
    env.reset(row=0)
    right = oracle(env)
    assert (right is None) == (name in UNTOLD)
    touched = tmp_path / "touched"
    hostile = f"__import__('os').system('touch {touched}')"
    for content in (hostile, f"[{hostile}]", "9**9**9**9", "(" * 5000 + ")" * 5000, "\0\ud800"):
        reward, info = answered(env, content, row=0)
        assert reward < 1.0 or name == "game_of_life_halting"
        assert info["success"] is False
        json.dumps(info)
    assert not touched.exists()
    env.reset(row=0)
    assert env.step(f"{right} boxed{{{right}}}")[1:] == (0.0, True, True, {
        "success": False, "score": 0.0, "invalid_action": True,
    })  # fmt: skip
    if right is not None:  # what came before has changed nothing
        assert answered(env, right, row=0)[1] == {"success": True, "score": 1.0}
