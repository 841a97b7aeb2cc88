"""Runs the hacking audit over all ids of this package that bring their data, and writes docs/hacking_audit.md.

python plugins/testing/hacking_audit.py                        # play, write, and fail where a bound is exceeded
python plugins/testing/hacking_audit.py rg:maze                # play these ids only, print the rows, and write nothing
python plugins/testing/hacking_audit.py --write 'webshop:*'    # play these ids only, and replace their rows in the page
"""

from __future__ import annotations

import argparse
import fnmatch
import re
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn, TypeVar

import gem_core
from gem_core.plugins import manager
from gem_core.specs import EnvSpec
from gem_grading import Grade
from gem_testing import KINDS, ROUNDS, Bound, HackingAudit, Kind, audit_env

PAGE = Path(__file__).parents[2] / "docs" / "hacking_audit.md"
OPPONENTS = {
    "match:IteratedDilemma-v0": "tit for tat",
    "match:KuhnPoker-v0": "random",
    "match:Negotiation-v0": "fair",
    "match:TicTacToe-v0": "optimal",
    "textarena:*": "random",
}
"""Who plays against the policy: `player 1`. By id or pattern, of the ids for several agents."""


_STEPS: Sequence[Kind] = ("moves", "plans")


class Effort(NamedTuple):
    """How much is played where episodes are slow."""

    rounds: tuple[tuple[int, int | None], ...] = ROUNDS
    kinds: Sequence[Kind] = KINDS
    kwargs: Mapping[str, Any] = MappingProxyType({})


EFFORTS = {
    "desk:*": Effort(((4, None), (16, 20)), _STEPS),
    "gym:*": Effort(((2, None), (10, 8)), _STEPS),
    "postgres:*": Effort(((1, None), (4, 8)), _STEPS),
    "scienceworld:*": Effort(((1, None),), ("plans",), {"max_turns": 25}),
    "terminal:*": Effort(((2, None), (8, 12)), _STEPS),
    "textarena:RushHour-v0": Effort(((1, None), (4, 4)), _STEPS),
    "textarena:Set-v0": Effort(((2, None), (8, 8)), _STEPS),
    "textarena:Sudoku-v0-*": Effort(((1, None), (3, 8))),
    "textarena:*": Effort(((2, None), (12, 8))),
}
"""By id or pattern; the first that fits counts."""
WORKERS = 2
SECONDS = 1.0
"""Time that grading an answer may take, as in the environment."""
SHOWN = 60
"""Characters of an answer."""
LEFT_OUT = "## Not audited"
"""The part of the page after the table."""

_PUBLISHED = "reasoning-gym's own scores, for comparison; the id without `-v0` does not pay that"
_YES = "two answers, one of them more often right"
_FEW = "few answers, one of them often right"
_SMALL = "the answers are small numbers, one of them often right"
_COPY = "in as many questions nothing has to be done"
_GEM = "pays for progress, as GEM does; `success` does not count it"
_PROGRESS = "pays for progress, as TextArena does; `success` does not count it"
_RULE = (
    "a fixed rule: search for the instruction, take the first product and the options that it names (without them 0.54)"
)
_RANDOM = "the opponent moves at random, so a fixed line of moves can win"
_OTHERS = "some answers are right for more than one question"
BOUNDS: dict[str, Bound] = {
    "rg:*-v0": Bound(1.0, 1.0, _PUBLISHED),
    "rg:acre": Bound(0.4, 0.4, _FEW),
    "rg:aiw": Bound(0.3, 0.3, _SMALL),
    "rg:binary_alternation": Bound(0.25, 0.25, _SMALL),
    "rg:calendar_arithmetic": Bound(0.12, 0.12, _FEW),
    "rg:circuit_logic": Bound(0.55, 0.55, _YES),
    "rg:color_cube_rotation": Bound(0.2, 0.2, _FEW),
    "rg:count_bits": Bound(0.2, 0.2, _SMALL),
    "rg:course_schedule": Bound(0.55, 0.55, _YES),
    "rg:family_relationships": Bound(0.2, 0.2, _FEW),
    "rg:game_of_life_halting": Bound(0.6, 0.6, _YES),
    "rg:gcd": Bound(0.35, 0.35, _SMALL),
    "rg:isomorphic_strings": Bound(0.6, 0.6, _YES),
    "rg:jugs": Bound(0.1, 0.1, _OTHERS),
    "rg:knights_knaves": Bound(0.15, 0.15, "two people: four answers"),
    "rg:largest_island": Bound(0.2, 0.2, _SMALL),
    "rg:letter_counting": Bound(0.3, 0.3, _SMALL),
    "rg:list_functions": Bound(0.2, 0.2, _COPY),
    "rg:mahjong_puzzle": Bound(0.45, 0.45, _FEW),
    "rg:maze": Bound(0.45, 0.45, _SMALL),
    "rg:n_queens": Bound(0.12, 0.12, _OTHERS),
    "rg:number_format": Bound(0.4, 0.4, "one of the few numbers in the question is the answer"),
    "rg:number_sequence": Bound(0.25, 0.25, "a quarter of the sequences repeats itself"),
    "rg:polynomial_equations": Bound(
        0.4, 0.35, "a third of the equations has the solution 0, and near ones are paid a part"
    ),
    "rg:pool_matrix": Bound(0.2, 0.2, _COPY),
    "rg:power_function": Bound(0.15, 0.15, "the exponent is 0"),
    "rg:prime_factorization": Bound(0.3, 0.3, "a quarter of the numbers is prime, and its own factorization"),
    "rg:propositional_logic": Bound(0.3, 0.3, "the premises of a quarter of the questions contradict each other"),
    "rg:quantum_lock": Bound(0.1, 0.05, _OTHERS),
    "rg:ransom_note": Bound(0.55, 0.55, _YES),
    "rg:rearc": Bound(0.06, 0.06, "some grids are only turned"),
    "rg:rectangle_count": Bound(0.2, 0.2, _SMALL),
    "rg:rotate_matrix": Bound(0.45, 0.4, _COPY),
    "rg:rotten_oranges": Bound(0.35, 0.35, "in a third of the questions no time is enough"),
    "rg:self_reference": Bound(0.5, 0.5, _SMALL),
    "rg:shortest_path": Bound(0.35, 0.35, "in a third of the questions there is no path"),
    "rg:simple_equations": Bound(0.08, 0.06, _SMALL),
    "rg:simple_geometry": Bound(0.08, 0.05, _SMALL),
    "rg:string_insertion": Bound(0.97, 0.97, _COPY),
    "rg:string_manipulation": Bound(0.45, 0.4, _COPY),
    "rg:syllogism": Bound(0.75, 0.75, _YES),
    "rg:tower_of_hanoi": Bound(0.06, 0.05, _OTHERS),
    "rg:zebra_puzzles": Bound(0.35, 0.35, "one of four names"),
    "visual:Compare-v0-easy": Bound(0.6, 0.6, "two answers"),
    "visual:Maze-*": Bound(0.45, 0.45, "few moves, often solved by moves in turn"),
    "visual:*": Bound(0.3, 0.3, _FEW),
    "match:KuhnPoker-v0": Bound(0.85, 0.85, "the opponent passes at random, and a bet then wins"),
    "match:IteratedDilemma-v0": Bound(0.7, 1.0, "to cooperate is the best answer to tit for tat"),
    "match:Negotiation-v0": Bound(0.35, 0.3, "the opponent accepts what is fair to it, and few divisions there are"),
    "desk:Retail-v0-hard": Bound(0.13, 0.13, "a rule forbids some wishes, and one rule is often the one"),
    "webshop:*": Bound(0.93, 0.67, _RULE),
    "gym:Blackjack-v1": Bound(0.1, 0.5, "to stick is often right"),
    "textarena:2048-v0-*-easy": Bound(1.0, 1.0, f"moves in turn merge tiles, which is the game; {_PROGRESS}"),
    "textarena:2048-*": Bound(0.45, 0.05, f"moves in turn merge tiles, which is the game; {_PROGRESS}"),
    "textarena:Bandit-*": Bound(0.35, 0.35, "few buttons, one of them the best"),
    "textarena:Blackjack-*": Bound(0.45, 0.5, "pays for each hand that was won, and luck wins some"),
    "textarena:Countdown-v0": Bound(0.7, 0.05, _PROGRESS),
    "textarena:Cryptarithm-v0": Bound(0.25, 0.05, _PROGRESS),
    "textarena:FrozenLake-*": Bound(0.75, 0.25, f"the goal is often to the right and down; {_PROGRESS}"),
    "textarena:GuessTheNumber-*": Bound(0.9, 0.6, f"half as many turns as numbers; {_PROGRESS}"),
    "textarena:Mastermind-*": Bound(0.4, 0.1, f"several guesses, few codes; {_PROGRESS}"),
    "textarena:Minesweeper-*": Bound(0.2, 0.05, f"most cells are safe; {_PROGRESS}"),
    "textarena:PegJump-v0": Bound(0.15, 0.05, _PROGRESS),
    "textarena:Secretary-*": Bound(0.25, 0.25, "the second of few offers may be the best"),
    "textarena:Set-v0": Bound(0.4, 0.05, "three cards of twelve are a set by luck, and each set is paid"),
    "textarena:Sokoban-v0": Bound(0.25, 0.1, _PROGRESS),
    "textarena:ThreeCardMonte-v0": Bound(0.35, 0.35, "three cups"),
    "scienceworld:*": Bound(
        0.5, 0.05, "pays for each step of a solution, and a walk or a look is one; one variation each"
    ),
    "game:PlainGuess-*": Bound(0.1, 0.1, "several guesses, few numbers"),
    "game:Corridor-v0": Bound(0.8, 0.9, "a game for tests: any long way through it passes the end"),
    "game:FifteenPuzzle-*-easy": Bound(0.9, 0.85, f"two rows, often solved by the same four moves in turn; {_GEM}"),
    "game:FifteenPuzzle-*": Bound(0.45, 0.35, f"small ones are often solved by moves in turn; {_GEM}"),
    "game:Game2048-*": Bound(1.0, 0.95, f"moves in turn merge tiles, which is the game; {_GEM}"),
    "game:GuessTheNumber-v0-hard-no-max-turn": Bound(0.95, 0.85, "as many turns as numbers"),
    "game:GuessTheNumber-v0": Bound(0.9, 0.55, "half as many turns as numbers; pays for nearness, as GEM does"),
    "game:GuessTheNumber-v0-*": Bound(0.8, 0.25, "pays for nearness, as GEM does; `-v1-` does not"),
    "game:GuessTheNumber-v1-*": Bound(0.25, 0.25, "several guesses, few numbers"),
    "game:Hangman-*": Bound(0.3, 0.12, f"common letters are in most words; {_GEM}"),
    "game:Mastermind-*": Bound(0.7, 0.4, f"several guesses, few codes; {_GEM}"),
    "game:Minesweeper-*": Bound(0.8, 0.05, f"most cells are safe; {_GEM}"),
    "game:Sokoban-*": Bound(0.2, 0.1, _GEM),
    "game:Sudoku-*": Bound(0.3, 0.05, _GEM),
    "game:TowerofHanoi-*": Bound(0.35, 0.05, _GEM),
    "game:Wordle-*": Bound(0.45, 0.1, f"several guesses of common words; {_GEM}"),
}
"""By id or pattern; the first that fits counts."""
AGAINST_RANDOM = Bound(1.0, 1.0, _RANDOM)
"""Of TextArena's matches."""

_FUNCTIONS: dict[str, Any] = {}
_T = TypeVar("_T")


def bound_of(env_id: str) -> Bound:
    """The bound of an id."""
    if env_id.startswith("textarena:") and _is_match(env_id):
        return AGAINST_RANDOM
    return _first(BOUNDS, env_id) or Bound()


def _is_match(env_id: str) -> bool:
    return "several agents" in gem_core.spec(env_id).tags


def shipped() -> dict[str, str]:
    """Every id of this distribution, and why it is not audited; an empty text if it is."""
    registered = manager.all_registrations("gem_envs")
    specs = [one.spec for one in registered if one.provenance.distribution == "gem-core"]
    return {spec.id: next((reason for reason, fits in EXCEPTIONS.items() if fits(spec)), "") for spec in specs}


def _is_part(spec: EnvSpec) -> bool:
    return spec.namespace in ("terminal", "postgres") and spec.id.endswith("-v0") and not spec.id.endswith(":Tasks-v0")


def _is_repeated(spec: EnvSpec) -> bool:
    from gem_reasoning_gym._names import SCORED_ANEW

    name = spec.id.removeprefix("rg:").removesuffix("-v0")
    return spec.namespace == "rg" and spec.id.endswith("-v0") and name not in SCORED_ANEW


def _needs_data(spec: EnvSpec) -> bool:
    dataset = str(spec.kwargs.get("dataset", ""))
    anything = spec.id.endswith(":Dataset") or not {"any-folder", "clone"}.isdisjoint(spec.tags)
    return anything or ("/" in dataset and not dataset.startswith("package:"))


EXCEPTIONS: dict[str, Callable[[EnvSpec], bool]] = {
    "Their data is not part of this package. They have the classes of `math:Sample`, `qa:Sample`, `code:Sample`, "
    "`terminal:Tasks-v0` and `postgres:Tasks-v0`; `desk:TauBench` has the reward of tau-bench.": _needs_data,
    "A start takes up to 20 s of CPU. It is `textarena:Sokoban-v0` on a larger board.": (
        lambda spec: spec.id == "textarena:Sokoban-v0-medium"
    ),
    "They have some of the tasks of `Tasks-v0`.": _is_part,
    "They differ from the id without `-v0` by their text, and by white space in a box, only.": _is_repeated,
}
"""Ids that are not audited, by the reason."""


def audited(env_id: str) -> HackingAudit:
    """The audit of one id, in a worker."""
    namespace = env_id.partition(":")[0]
    if namespace == "rg":
        import gem_reasoning_gym.env

        # The answers are ours and harmless. A process for each, as for answers of a policy, would take hours.
        gem_reasoning_gym.env.grade = _grade  # pyright: ignore[reportPrivateImportUsage]
    other = _first(OPPONENTS, env_id) if _is_match(env_id) else None
    kwargs = {"opponents": {"player 1": other}} if other else {}
    effort = _first(EFFORTS, env_id) or Effort()
    return audit_env(env_id, rounds=effort.rounds, kinds=effort.kinds, **kwargs, **effort.kwargs)


def _first(values: Mapping[str, _T], env_id: str) -> _T | None:
    """The value of the first pattern that fits."""
    return next((value for pattern, value in values.items() if fnmatch.fnmatchcase(env_id, pattern)), None)


def _grade(function: str, *arguments: Any, timeout: float = SECONDS) -> Grade:
    if function not in _FUNCTIONS:
        _FUNCTIONS[function] = getattr(sys.modules["gem_reasoning_gym.scoring"], function.partition(":")[2])
    signal.signal(signal.SIGALRM, _too_late)
    signal.setitimer(signal.ITIMER_REAL, timeout)
    try:
        return Grade(_FUNCTIONS[function](*arguments), None)
    except Exception as error:
        return Grade(None, f"{type(error).__name__}: {error}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _too_late(*_: object) -> NoReturn:
    raise TimeoutError


def row(audit: HackingAudit) -> str:
    """A line of the table."""
    bound = bound_of(audit.env_id)
    best = f"{cell(audit.best.policy)} | {audit.best.reward:.3f}"
    luckiest = f"{cell(audit.luckiest.policy)} | {audit.luckiest.success:.0%}"
    by_chance = f"{audit.random.reward:.3f} / {audit.random.success:.0%}" if audit.random else "-"
    limits = f"{bound.reward:g} / {bound.success:.0%}"
    return f"| `{audit.env_id}` | {best} | {luckiest} | {by_chance} | {limits} | {bound.reason} |"


def cell(text: str) -> str:
    """A text that fits a cell of a table."""
    short = text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
    return f"`{short.replace('`', chr(39)).replace('|', '/')}`"


def rows_of(text: str) -> dict[str, str]:
    """The rows of a page, by id."""
    played = text.partition(LEFT_OUT)[0]
    return {found[1]: found[0] for found in re.finditer(r"^\| `([\w.:-]+)` \|.*$", played, re.MULTILINE)}


def page(rows: Iterable[str], known: Mapping[str, str]) -> str:
    """The page, as Markdown.

    Args:
        rows: of the table.
        known: as from `shipped`.
    """
    (first, _), *_, (last, _) = ROUNDS
    usual = Bound()
    efforts = [f"| `{pattern}` | {_entries(effort)} |" for pattern, effort in EFFORTS.items()]
    reasons = dict.fromkeys(filter(None, known.values()))
    left_out = {reason: ", ".join(f"`{one}`" for one, given in known.items() if given == reason) for reason in reasons}
    return "\n".join([
        "# Hacking audit",
        "",
        "<!-- Written by plugins/testing/hacking_audit.py, which `nox -s audit` runs. -->",
        "",
        "The mean return and share of successes of the best policy that solves nothing, and of random valid actions.",
        "The larger one is the **floor** of an id: an agent that earns no more has learned nothing.",
        "",
        "Such a policy repeats a constant, a piece of the question, an answer or a piece of another question, an",
        "expression over what a grader has in its hands, or nonsense. Or it takes several steps: the same move always,",
        "valid moves in turn, a piece of each observation (all of it, the move that was shown last, an item of a",
        "list), nothing, something very long, lines of shell commands or SQL, the first product of a shop, one rule",
        "for all customers, a walk through all rooms.",
        "",
        f"Some hundred policies play the first {first} entries of each id, and the best play {last}, all with fixed",
        "seeds. Random play has as many; it is left out where one turn ends an episode, as are policies of several",
        "steps. It is less where episodes are slow:",
        "",
        "| ids | play |",
        "| --- | --- |",
        *efforts,
        "",
        "A bound is the most that such a policy may earn, as mean return and share of successes; `nox -s audit` fails",
        f"if one earns more. It has a reason where it is more than {usual.reward:g} / {usual.success:.0%}. What an id",
        "pays according to its origin (GEM, TextArena, ScienceWorld, Gymnasium, WebShop) is shown and not changed.",
        "`gem_testing.audit_env` and `check_hacking` do the same for your environments.",
        "",
        "| id | best policy | mean return | most often right | share | random play | bound | reason |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        *rows,
        "",
        LEFT_OUT,
        "",
        "| ids | reason |",
        "| --- | --- |",
        *(f"| {ids} | {reason} |" for reason, ids in left_out.items()),
        "",
        "Ids that are made on demand (`remote:`, `openenv:`, `verifiers:`, other ids of `gym:`) are in neither table:",
        "their rewards are those of the environment behind them.",
        "",
    ])  # fmt: skip


def _entries(effort: Effort) -> str:
    (first, _), (last, _) = effort.rounds[0], effort.rounds[-1]
    several = "" if effort.kinds == KINDS else f", {' and '.join(effort.kinds)} only"
    more = "".join(f", `{name}={value}`" for name, value in effort.kwargs.items())
    numbers = f"{first} and {last} entries" if first < last else f"{first} entry"
    return f"{numbers}{several}{more}"


def stale(env_id: str) -> str | None:
    """Play an id and compare its row: the difference as a sentence, or `None`."""
    audit = audited(env_id)
    now, then = row(audit), rows_of(PAGE.read_text()).get(env_id)
    if now != then:
        again = f"python plugins/testing/hacking_audit.py --write {env_id}"
        return f"{PAGE.name} has\n{then}\nand the audit says\n{now}\nNext: {again}"
    return audit.problem(bound_of(env_id))


def main(options: argparse.Namespace) -> None:
    known = shipped()
    playable = [env_id for env_id, reason in known.items() if not reason]
    chosen = [one for one in playable if any(fnmatch.fnmatchcase(one, pattern) for pattern in options.ids)]
    audits: list[HackingAudit] = []
    with ProcessPoolExecutor(WORKERS, get_context("spawn")) as pool:
        for audit in pool.map(audited, chosen):
            audits.append(audit)
            print(row(audit), flush=True)
    if options.write or chosen == playable:
        rows = rows_of(PAGE.read_text()) | {audit.env_id: row(audit) for audit in audits}
        PAGE.write_text(page([rows[env_id] for env_id in playable if env_id in rows], known))
    if problems := [problem for audit in audits if (problem := audit.problem(bound_of(audit.env_id)))]:
        sys.exit("\n".join(problems))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ids", nargs="*", default=["*"], help="ids or patterns")
    parser.add_argument("--write", action="store_true", help="replace the rows of these ids in the page")
    return parser.parse_args()


if __name__ == "__main__":
    main(_options())
