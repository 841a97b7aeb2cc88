"""This project's environments, as lenient as upstream's.

Upstream's constructors ignore arguments that they do not know, its games begin with their construction, and a step
after the end of an episode is played.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Collection, Mapping
from typing import Any, ClassVar, cast

import gem_core.env
from gem_core.errors import near_matches

_RENAMED = {
    "dataset_name": ("dataset",),
    "question_key": ("question",),
    "answer_key": ("answer",),
    "test_key": ("answer",),
    "image_key": ("images",),
    "extract_boxed": ("boxed",),
    "seed": ("shuffle_seed", "data_seed"),
}
"""Arguments of upstream's environments, and the names that they may have here."""
_IDLE = frozenset(
    {"load_from_cache_file", "max_workers", "only_real_words", "sandbox_type", "seed", "use_mp", "verbose"}
)
"""Arguments that change nothing here: answers and programs are always confined, and games are seeded by `reset`."""
_ELSEWHERE = frozenset(
    {"board_size", "clues", "dataset", "hardcore", "max_number", "max_tests", "max_turns", "min_number", "num_rows"}
    | {"num_words", "scale", "size", "split", "target_tile", "tokenizer", "word_length", *_RENAMED}
)
"""Arguments that upstream's other environments have, so that nobody has misspelt them."""
_SEEDS = 2**64
"""Seeds of data sets are below; upstream takes any whole number."""


class Kept(dict[str, Any]):
    """Values that a copy of an environment shares, such as its data."""

    def __deepcopy__(self, memo: Any) -> Kept:
        return self


class Lenient(gem_core.env.Env):
    """What such an environment has beside what its own class has; the class is `ours`.

    Args:
        arguments: of `ours`, under its names or upstream's; others are ignored.
    """

    plays_on = True
    ours: ClassVar[type[gem_core.env.Env]] = gem_core.env.Env

    def __init__(self, **arguments: Any) -> None:
        self.arguments = Kept(arguments)
        cast("Any", self.ours).__init__(self, **self.named(arguments))

    def named(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """These arguments under the names that `ours` has for them."""
        return named(self.ours, arguments, None)

    def spawn(self, same_state: bool = False, **kwargs: Any) -> gem_core.env.Env:
        """A new environment with `kwargs` in place of this one's where given, in the same state or a new one."""
        twin = type(self)(**{**self.arguments, **kwargs})
        twin.spec = self.spec
        vars(twin).update({name: vars(self)[name] for name in ("env_id", "entry_point") if name in vars(self)})
        if same_state:
            twin.set_state(self.get_state())
        return twin

    def __reduce__(self) -> Any:
        made = "made" in vars(type(self))
        return _empty, (self.ours, type(self).__bases__[0]) if made else (type(self), None), vars(self)


class Games(Lenient):
    """A game, which begins with its construction."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.reset()

    def named(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """If one argument is to be drawn, all are that can be."""
        found = super().named(arguments)
        parameters = inspect.signature(self.ours).parameters.values()
        drawn = [one.name for one in parameters if "None" in str(one.annotation)]
        return {**found, **dict.fromkeys(drawn)} if any(found.get(name, 0) is None for name in drawn) else found


def lenient(kind: type[gem_core.env.Env], mixin: type[Lenient] = Lenient) -> type[Lenient]:
    """The lenient class of one of this project's, the same each time."""
    return kind if issubclass(kind, Lenient) else _made(kind, mixin)


@functools.cache
def _made(kind: type[gem_core.env.Env], mixin: type[Lenient]) -> type[Lenient]:
    body = {"ours": kind, "made": True, "__module__": kind.__module__, "__doc__": kind.__doc__}
    return type(kind.__name__, (mixin, kind), body)


def _empty(kind: type[Any], mixin: type[Lenient] | None) -> Lenient:
    """An environment without its attributes, which `pickle` and `copy` set."""
    found: Any = kind if mixin is None else lenient(kind, mixin)
    return found.__new__(found)


def named(
    ours: type[gem_core.env.Env], arguments: Mapping[str, Any], more: Collection[str] | None = ()
) -> dict[str, Any]:
    """Arguments under the names that a class has for them; those that it has no name for are left out.

    Args:
        ours: the class.
        arguments: under its names, or under upstream's.
        more: what else a class with `**kwargs` takes; `None` means anything.
    """
    parameters = inspect.signature(ours).parameters
    open_ended = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    known = {one.name for one in parameters.values() if one.kind is not one.VAR_KEYWORD}
    found: dict[str, Any] = {}
    for name, value in arguments.items():
        if name in known:
            found[name] = value
        elif name == "eval" and "shuffle_seed" in known:
            found.update({"shuffle_seed": None} if value else {})
        elif here := next((one for one in _RENAMED.get(name, ()) if one in known), None):
            found.setdefault(here, value)  # `eval` wins over `seed`
        elif name not in _IDLE and open_ended and (more is None or name in more):
            found[name] = value
        elif name not in _IDLE | _ELSEWHERE and (hint := near_matches(name, known)):
            warnings.warn(f"{ours.__name__} ignores {name}={value!r:.80}, as gem-llm does.{hint}", stacklevel=2)
    if "instruction" in known:
        found.setdefault("instruction", False)  # upstream's questions are bare
    if "data_seed" in found:
        found["data_seed"] = int(found["data_seed"]) % _SEEDS
    return found
