"""Checking an environment against the contract of `gem_core.Env`: in one call, or as pytest tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from gem_core.registry import spec
from gem_core.testing import checks
from gem_core.testing.play import Subject


class ConformanceError(AssertionError):
    """An environment breaks the contract of `gem_core.Env`; the message lists every problem."""


def check_env(env_id: str, **kwargs: Any) -> None:
    """Check that an environment keeps the contract of `gem_core.Env`.

    Args:
        env_id: an id that `gem_core.make` knows; `gem_core.register()` makes a class known.
        kwargs: override the spec's keyword arguments, for example to make episodes short.

    Raises:
        ConformanceError: the environment breaks the contract; one line per problem says what happened, what was given
            and what to do.
        NotFoundError, DuplicateIdError: as `gem_core.spec`.

    Example:
        >>> from gem_core.testing import check_env
        >>> check_env("game:GuessTheNumber-v0-easy")
    """
    subject = Subject(env_id, kwargs)
    # If an environment cannot be reset and stepped, reports of the other checks are noise.
    _ask(subject, checks.FIRST)
    _ask(subject, [check for check in checks.CHECKS if check not in checks.FIRST])


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
        _ask(Subject(self.env_id, dict(self.kwargs)), [one])

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


def _ask(subject: Subject, wanted: Iterable[checks.Check]) -> None:
    __tracebackhide__ = True
    spec(subject.env_id)  # an unknown id is the caller's mistake, not the environment's
    problems: list[str] = []
    cause: BaseException | None = None
    for check in wanted:
        try:
            for problem in check(subject):
                problems.append(f"{check.__name__}: {problem}.")
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # an environment may raise SystemExit, or pytest's Skipped
            problems.append(f"{check.__name__}: raised {type(error).__name__}: {error}")
            cause = cause or error
    if problems:
        listing = "\n".join(f"- {problem}" for problem in problems)
        raise ConformanceError(f"{subject.env_id} does not keep the contract of gem_core.Env:\n{listing}") from cause
