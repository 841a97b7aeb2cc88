"""The hacking audit: what a policy earns that solves nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from gem_core.env import Env, shown_text
from gem_testing._degenerate import Policy, form_of, policies
from gem_testing._play import MAX_TURNS, Subject

ROUNDS = ((5, None), (15, 40), (50, 12))
"""Entries that have been played after each round, and the policies that it plays: the best of the last."""
_OTHERS = range(1_000, 1_040)
"""Entries whose questions and answers are tried on others."""
_ASKED = 6
"""Of these, entries whose questions are taken apart."""
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
    env_id: str, *, answers: Iterable[str] = (), rounds: Sequence[tuple[int, int | None]] = ROUNDS, **kwargs: Any
) -> HackingAudit:
    """Play some hundred policies that solve nothing, and report the best of them.

    They are constants, pieces of the question, answers and pieces of questions of other entries, expressions over what
    a grader may have in its hands, and nonsense; in games of several turns, each again and again, and valid actions in
    turn. All play the first entries, the best of them the next, and so on.

    Args:
        env_id: an id that `gem_core.make` knows.
        answers: further answers to try, without the form of an action, as in `\\boxed{...}`.
        rounds: see `ROUNDS`.
        kwargs: override the spec's keyword arguments.
    """
    with Subject(env_id, kwargs).make() as env:
        questions, actions = _others(env)
        tried = policies(form_of(actions[0]), actions, questions, answers)
        results: dict[Policy, list[tuple[float, bool]]] = {policy: [] for policy in tried}
        played = 0
        for entries, most in rounds:
            chosen = _best(results, most)
            for entry in range(played, entries):
                _play_entry(env, entry, chosen, results)
            results, played = {policy: results[policy] for policy in chosen}, entries
    found = [Finding(policy.name, *_means(result)) for policy, result in results.items()]
    best, luckiest = max(found, key=lambda one: one.reward), max(found, key=lambda one: one.success)
    return HackingAudit(env_id, len(tried), played, best, luckiest)


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


def _others(env: Env) -> tuple[list[str], list[str]]:
    """Questions and valid actions of other entries; an environment may give right answers as valid actions."""
    questions: list[str] = []
    actions: list[str] = []
    for entry in _OTHERS:
        questions.append(_reset(env, entry))
        actions += [env.sample_random_action() for _ in range(2)]
    return questions[:_ASKED], actions


def _best(results: dict[Policy, list[tuple[float, bool]]], most: int | None) -> list[Policy]:
    """The policies with the highest returns, and those with the most successes."""
    if most is None:
        return [*results]
    by_reward = sorted(results, key=lambda policy: _means(results[policy]), reverse=True)
    by_success = sorted(results, key=lambda policy: _means(results[policy])[::-1], reverse=True)
    return [*dict.fromkeys(by_reward[:most] + by_success[:most])]


def _play_entry(env: Env, entry: int, chosen: list[Policy], results: dict[Policy, list[tuple[float, bool]]]) -> None:
    """Each policy on one entry. Policies that write the same have the same result."""
    known: dict[tuple[str, ...], tuple[float, bool]] = {}
    question = _reset(env, entry)
    for policy in chosen:
        written = policy.write(question)
        if written not in known:
            _reset(env, entry)
            known[written] = _return(env, written)
        results[policy].append(known[written])


def _return(env: Env, actions: tuple[str, ...]) -> tuple[float, bool]:
    total = 0.0
    for action in itertools.islice(itertools.cycle(actions), MAX_TURNS):
        _, reward, terminated, truncated, info = env.step(action)
        total += reward
        if terminated or truncated:
            return total, bool(info.get("success"))
    return total, False


def _reset(env: Env, entry: int) -> str:
    options = {"data_index": entry} if env.takes_data_index else {}
    return shown_text(*env.reset(seed=entry, **options))


def _means(result: Sequence[tuple[float, bool]]) -> tuple[float, float]:
    return (fmean(reward for reward, _ in result), fmean(success for _, success in result)) if result else (0.0, 0.0)
