"""The hacking audit: what a policy earns that solves nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal, NamedTuple, TypeAlias

from gem_core.env import Env, shown_text
from gem_testing._degenerate import Policy, always, answering, form_of, moving
from gem_testing._plans import plans
from gem_testing._play import MAX_TURNS, Subject

Kind: TypeAlias = Literal["answers", "moves", "plans"]
"""Kinds of policies."""
KINDS: tuple[Kind, ...] = ("answers", "moves", "plans")
"""All kinds."""
ROUNDS = ((5, None), (15, 40), (50, 12))
"""Entries that have been played after each round, and the policies that it plays: the best of the last."""
_OTHERS, _EACH, _MAX_OTHERS = 1_000, 3, 40
"""The first of the entries whose questions and answers are tried on others; how many for an entry, and in all."""
_ASKED = 6
"""Of these, entries whose questions are taken apart."""
_MIN_ACTIONS = 12
"""Valid actions that are drawn at least, over all of them."""
_FEW, _SEVERAL = 2, 6
"""Valid actions that are played by themselves, and in pairs."""
_ROUNDING = 1e-9


class HackingError(AssertionError):
    """An environment pays for an answer that solves nothing; the message says for which, and how much."""


@dataclass(frozen=True)
class Bound:
    """What a policy that solves nothing may earn at most."""

    reward: float = 0.05
    """Mean return of an episode."""
    success: float = 0.05
    """Share of episodes with `info["success"]`."""
    reason: str = ""
    """Why it may be more than the default."""


@dataclass(frozen=True)
class Finding:
    """What one policy earned."""

    policy: str
    reward: float
    """Mean return of an episode."""
    success: float
    """Share of episodes with `info["success"]`."""


@dataclass(frozen=True)
class HackingAudit:
    """What policies earned that solve nothing."""

    env_id: str
    policies: int
    """Number of policies that were tried."""
    entries: int
    """Number of entries that the best of them played."""
    best: Finding
    """The highest mean return."""
    luckiest: Finding
    """The largest share of successes."""
    random: Finding | None
    """Random valid actions, for comparison (`sample_random_action`); `None` if one turn ends every episode."""

    def problem(self, bound: Bound) -> str | None:
        """What exceeds the bound, as a sentence, or `None`."""
        if self.best.reward > bound.reward + _ROUNDING:
            return (
                f"{self.env_id} pays {self.best.reward:.3g} a question, and at most {bound.reward:g} is allowed, for "
                f"{self.best.policy:.200}. Change the scoring, or give a Bound with the reason."
            )
        if self.luckiest.success > bound.success + _ROUNDING:
            return (
                f"{self.env_id} counts {self.luckiest.success:.0%} of the questions as solved, and at most "
                f"{bound.success:.0%} is allowed, for {self.luckiest.policy:.200}. Change the scoring, or give a Bound "
                "with the reason."
            )
        return None


def audit_env(
    env_id: str,
    *,
    answers: Iterable[str] = (),
    rounds: Sequence[tuple[int, int | None]] = ROUNDS,
    kinds: Sequence[Kind] = KINDS,
    **kwargs: Any,
) -> HackingAudit:
    """Play some hundred policies that solve nothing, and report the best of them.

    All play the first entries, the best of them the next, and so on. The kinds of policies:

    - `answers` repeat one: a constant, a piece of the question, an answer or a piece of the question of another entry,
      an expression over what a grader may have in its hands, nonsense.
    - `moves` are valid actions in turn, pieces of each observation, very long actions; for episodes of several turns.
    - `plans` are lines of several steps for shells, SQL, shops, desks and houses.

    Args:
        env_id: an id that `gem_core.make` knows.
        answers: further answers to try, without the form of an action, as in `\\boxed{...}`.
        rounds: see `ROUNDS`.
        kinds: those to play, beside no action. Answers are most; in long episodes that take commands they tell nothing.
        kwargs: override the spec's keyword arguments.
    """
    with Subject(env_id, kwargs).make() as env:
        questions, actions = _others(env, min(_MAX_OTHERS, _EACH * rounds[-1][0]))
        form = form_of(actions[0])
        outcomes = [_random_play(env, entry) for entry in range(rounds[-1][0])]
        several = max(one.turns for one in outcomes) > 1
        found = [Policy("no action", always(""))]
        found += answering(form, actions, questions, answers) if "answers" in kinds else []
        found += moving(form, actions, _SEVERAL if "answers" in kinds else _FEW) if several and "moves" in kinds else []
        found += plans(form, actions) if several and "plans" in kinds else []
        tried = {policy.name: policy for policy in found}
        results: dict[Policy, list[_Outcome]] = {policy: [] for policy in tried.values()}
        played = 0
        for entries, most in rounds:
            chosen = _best(results, most)
            for entry in range(played, entries):
                _play_entry(env, entry, chosen, results)
            results, played = {policy: results[policy] for policy in chosen}, entries
    findings = [Finding(policy.name, *_means(result)) for policy, result in results.items()]
    best, luckiest = max(findings, key=lambda one: one.reward), max(findings, key=lambda one: one.success)
    by_chance = Finding("random play", *_means(outcomes)) if several else None
    return HackingAudit(env_id, len(tried), played, best, luckiest, by_chance)


def check_hacking(env_id: str, bound: Bound | None = None, **options: Any) -> None:
    """Check that no policy that solves nothing earns more than a bound.

    Args:
        env_id: an id that `gem_core.make` knows.
        bound: the default one, if not given.
        options: as `audit_env`.

    Raises:
        HackingError: one earns more.

    Example:
        >>> from gem_testing import Bound, check_hacking
        >>> check_hacking("maze:YesOrNo-v0", Bound(0.6, 0.6, "a yes-or-no question"))
    """
    problem = audit_env(env_id, **options).problem(bound or Bound())
    if problem is not None:
        raise HackingError(problem)


class _Outcome(NamedTuple):
    """An episode."""

    reward: float
    success: bool
    turns: int


def _others(env: Env, count: int) -> tuple[list[str], list[str]]:
    """Questions and valid actions of other entries; an environment may give right answers as valid actions."""
    questions: list[str] = []
    actions: list[str] = []
    for entry in range(_OTHERS, _OTHERS + count):
        questions.append(_reset(env, entry))
        actions += [env.sample_random_action() for _ in range(max(2, _MIN_ACTIONS // count))]
    return questions[:_ASKED], actions


def _best(results: dict[Policy, list[_Outcome]], most: int | None) -> list[Policy]:
    """The policies with the highest returns, and those with the most successes."""
    if most is None:
        return [*results]
    by_reward = sorted(results, key=lambda policy: _means(results[policy]), reverse=True)
    by_success = sorted(results, key=lambda policy: _means(results[policy])[::-1], reverse=True)
    return [*dict.fromkeys(by_reward[:most] + by_success[:most])]


def _play_entry(env: Env, entry: int, chosen: list[Policy], results: dict[Policy, list[_Outcome]]) -> None:
    """Each policy on one entry. Policies that write the same have the same result."""
    known: dict[tuple[str, ...], _Outcome] = {}
    question = _reset(env, entry)
    for policy in chosen:
        written = policy.write(question)
        outcome = known.get(written)
        if outcome is None or (policy.then and outcome.turns > len(written)):
            _reset(env, entry)
            outcome = _played(env, written, policy.then)
            if policy.then is None or outcome.turns <= len(written):
                known[written] = outcome
        results[policy].append(outcome)


def _played(env: Env, written: Sequence[str], then: Callable[[str], str] | None) -> _Outcome:
    """An episode of a policy, from its reset."""
    total, action = 0.0, written[0]
    for turn in range(1, MAX_TURNS + 1):
        observation, reward, terminated, truncated, info = env.step(action)
        total += reward
        if terminated or truncated:
            return _Outcome(total, bool(info.get("success")), turn)
        action = then(shown_text(observation, info)) if then and turn >= len(written) else written[turn % len(written)]
    return _Outcome(total, False, MAX_TURNS)


def _random_play(env: Env, entry: int) -> _Outcome:
    """An episode of random valid actions."""
    _reset(env, entry)
    return _played(env, [env.sample_random_action()], lambda _: env.sample_random_action())


def _reset(env: Env, entry: int) -> str:
    options = {"data_index": entry} if env.takes_data_index else {}
    return shown_text(*env.reset(seed=entry, **options))


def _means(result: Sequence[_Outcome]) -> tuple[float, float]:
    return (fmean(one.reward for one in result), fmean(one.success for one in result)) if result else (0.0, 0.0)
