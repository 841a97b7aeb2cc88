"""Checking environments, tools and estimators against their contracts: in one call, or as pytest tests."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

from gem_core.errors import MissingExtraError, described
from gem_core.registry import advantage_spec, spec
from gem_testing import checks
from gem_testing._play import Subject

_S = TypeVar("_S")


class ConformanceError(AssertionError):
    """An environment, tool or estimator breaks its contract; the message lists every problem."""


@dataclass(frozen=True)
class Result:
    """What a check found."""

    check: str
    """Name of the check."""
    problems: tuple[str, ...]
    """A sentence each; empty where the promise is kept."""
    seconds: float
    """Duration, in seconds of wall time."""
    error: BaseException | None = None
    """What the environment, tool or estimator raised, if it ended the check."""
    skipped: bool = False
    """The check did not run, because one of the first found a problem."""


def check_env(env_id: str, **kwargs: Any) -> None:
    """Check that an environment keeps the contract of `gem_core.Env`.

    Args:
        env_id: an id that `gem_core.make` knows; `gem_core.register()` makes a class known.
        kwargs: override the spec's keyword arguments, for example to make episodes short.

    Raises:
        ConformanceError: the environment breaks the contract; one line per problem says what happened, what was given
            and what to do.
        NotFoundError, DuplicateIdError: as `gem_core.spec`.
        MissingExtraError: something that the environment needs is not installed.

    Example:
        >>> from gem_testing import check_env
        >>> check_env("game:GuessTheNumber-v0-easy")
    """
    spec(env_id)  # an unknown id is the caller's mistake, not the environment's
    _require(env_id, "gem_core.Env", results(Subject(env_id, kwargs), checks.FIRST, checks.OTHERS))


def check_tool(tool_id: str, **kwargs: Any) -> None:
    """Check that a tool keeps the contract of `gem_core.tools.Tool`. Its resources must be there to be opened.

    Args:
        tool_id: an id that `gem_core.make_tool` knows.
        kwargs: keyword arguments of its class.

    Raises:
        ConformanceError: as `check_env`.
        NotFoundError, DuplicateIdError, EnvKwargsError, MissingExtraError, ToolError: as `gem_core.make_tool`.
    """
    from gem_testing.checks import _tools as tools

    subject = tools.ToolSubject(tool_id, kwargs)
    subject.make()
    _require(tool_id, "gem_core.tools.Tool", results(subject, tools.FIRST, tools.OTHERS))


def check_estimator(name: str) -> None:
    """Check that an advantage estimator keeps the contract of `gem_core.advantages`, on one rank and on several.

    Raises:
        ConformanceError: as `check_env`.
        NotFoundError, DuplicateIdError: as `gem_core.spec`.
        MissingExtraError: something that the estimator needs is not installed.
    """
    from gem_testing.checks import _estimators as estimators  # imports numpy

    advantage_spec(name)
    _require(
        name, "gem_core.advantages", results(estimators.EstimatorSubject(name), estimators.FIRST, estimators.OTHERS)
    )


def results(
    subject: _S, first: Iterable[Callable[[_S], Iterator[str]]], others: Iterable[Callable[[_S], Iterator[str]]] = ()
) -> Iterator[Result]:
    """Run checks one by one. If one of the first finds a problem, the others are skipped: they would report noise.

    Raises:
        MissingExtraError: something that the subject needs is not installed.
    """
    sound = True
    for check in first:
        result = _result(subject, check)
        sound = sound and not result.problems
        yield result
    for check in others:
        yield _result(subject, check) if sound else Result(check.__name__, (), 0.0, skipped=True)


class EnvConformance:
    """One pytest test per promise of `gem_core.Env`; a subclass names the environment.

    Example:
        >>> class TestFork(EnvConformance):
        ...     env_id = "maze:Fork-v0"
        ...     kwargs = {"forks": 2}
    """

    env_id: ClassVar[str]
    """The environment to test."""
    kwargs: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """Keyword arguments that override its spec's."""

    def check(self, one: checks.Check) -> None:
        """Run one check. Raises `ConformanceError` as `check_env`."""
        __tracebackhide__ = True
        spec(self.env_id)
        _require(self.env_id, "gem_core.Env", results(Subject(self.env_id, dict(self.kwargs)), [one]))

    def test_construction(self) -> None:
        """The constructor does no network access and starts no process or thread."""
        self.check(checks.construction)

    def test_keyword_arguments(self) -> None:
        """An argument that the constructor does not name is an error."""
        self.check(checks.keyword_arguments)

    def test_order(self) -> None:
        """A step without an episode is refused, and so is an option that `reset` does not have."""
        self.check(checks.order)

    def test_reset(self) -> None:
        """`reset` gives a text and a dict, with a seed and without."""
        self.check(checks.reset)

    def test_step(self) -> None:
        """`step` gives a text, a finite number, two flags and a dict."""
        self.check(checks.step)

    def test_info(self) -> None:
        """Infos are JSON and never change later, and the keys that the engine reads have their types."""
        self.check(checks.info)

    def test_success(self) -> None:
        """The last info of an episode says whether the task was solved."""
        self.check(checks.success)

    def test_random_action(self) -> None:
        """`sample_random_action` gives valid actions in every state, the same ones under one seed."""
        self.check(checks.random_action)

    def test_expert(self) -> None:
        """`expert_action`, if there is one, gives valid actions, leaves the episode alone, and beats chance."""
        self.check(checks.expert)

    def test_form(self) -> None:
        """The text that an agent is shown first says the form that random actions have."""
        self.check(checks.form)

    def test_seeding(self) -> None:
        """One seed and one list of actions give one episode, and the unseeded one after it."""
        self.check(checks.seeding)

    def test_seeds_differ(self) -> None:
        """Different seeds give different episodes, unless there is only one."""
        self.check(checks.seeds_differ)

    def test_global_random(self) -> None:
        """The global generators of `random` and `numpy.random` are neither moved nor used."""
        self.check(checks.global_random)

    def test_own_state(self) -> None:
        """Instances that take turns do not change one another."""
        self.check(checks.own_state)

    def test_threads(self) -> None:
        """Instances in threads play as they do alone."""
        self.check(checks.threads)

    def test_pickling(self) -> None:
        """An environment can be sent to another process, before its first episode and in the middle of one."""
        self.check(checks.pickling)

    def test_saved_state(self) -> None:
        """`set_state` restores what `get_state` saved, more than once; environments may refuse both."""
        self.check(checks.saved_state)

    def test_spawning(self) -> None:
        """`spawn` gives another environment of the same id, which leaves this one alone."""
        self.check(checks.spawning)

    def test_closing(self) -> None:
        """`close` is safe before the first reset, in the middle of an episode, and twice."""
        self.check(checks.closing)

    def test_adversarial(self) -> None:
        """No action raises, whatever it contains, and none is evaluated; the episode continues or ends as usual."""
        self.check(checks.adversarial)

    def test_long(self) -> None:
        """An action of a million characters is answered in time."""
        self.check(checks.long)


def _result(subject: _S, check: Callable[[_S], Iterator[str]]) -> Result:
    problems: list[str] = []
    raised: BaseException | None = None
    start = time.perf_counter()
    try:
        for problem in check(subject):
            problems.append(f"{problem}.")
    except (KeyboardInterrupt, MissingExtraError):
        raise
    except BaseException as error:  # an environment may raise SystemExit, or pytest's Skipped
        problems.append(f"raised {described(error)}")
        raised = error
    return Result(check.__name__, tuple(problems), time.perf_counter() - start, raised)


def _require(id_: str, contract: str, found: Iterable[Result]) -> None:
    __tracebackhide__ = True
    bad = [result for result in found if result.problems]
    if bad:
        listing = "\n".join(f"- {result.check}: {problem}" for result in bad for problem in result.problems)
        cause = next((result.error for result in bad if result.error), None)
        raise ConformanceError(f"{id_} does not keep the contract of {contract}:\n{listing}") from cause
