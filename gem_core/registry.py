"""Environments, tools and estimators by name."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from gem_core._arguments import strict
from gem_core._match_env import MatchEnv
from gem_core.env import Env
from gem_core.errors import (
    EnvError,
    EnvKwargsError,
    GemError,
    NamespaceError,
    NotFoundError,
    ToolError,
    convert_errors,
    described,
    hint_for,
    near_matches,
)
from gem_core.match import Match
from gem_core.partner import name_and_options
from gem_core.plugins import Registration, manager
from gem_core.specs import AdvantageSpec, EnvSpec, Provenance, ToolSpec, namespace_of

if TYPE_CHECKING:
    from gem_core.partner import Partner, PartnerSetting
    from gem_core.tool import Tool


@strict({"id": "Use env_id"}, "Arguments of the environment go into kwargs={...}.")
def register(
    env_id: str,
    entry_point: str | Callable[..., Env | Match],
    *,
    kwargs: Mapping[str, Any] | None = None,
    tags: tuple[str, ...] = (),
) -> EnvSpec:
    """Register an environment in this process, for notebooks and tests; a package declares a plugin instead.

    Args:
        env_id: `namespace:Name-vN`; registering an id again replaces it.
        entry_point: the class of an environment or a match, or `"package.module:Class"`.
        kwargs: keyword arguments of this id.
        tags: words to filter by.

    Raises:
        EnvError: the id has no namespace or no name, or belongs to an installed plugin.
    """
    namespace = namespace_of(env_id)
    if not namespace or env_id.endswith(":"):
        raise EnvError(f"environment id {env_id!r} is not of the form 'namespace:Name', for example 'demo:Maze-v0'")
    spec = EnvSpec(env_id, entry_point, dict(kwargs or {}), tags)
    for plugin in manager.load(namespace):
        if any(one.spec.id == env_id for one in plugin.registrations.get("gem_envs", [])):
            raise EnvError(f"{env_id!r} belongs to {plugin.provenance}. Register yours under another id.")
    manager.add("gem_envs", spec)
    return spec


def spec(env_id: str) -> EnvSpec:
    """The spec of an id; loads only the plugin of its namespace.

    Raises:
        NotFoundError: no installed plugin declares the id; the message names near matches and what to install.
        DuplicateIdError: two distributions declare it.
    """
    return _find("gem_envs", "environment", env_id).spec


def provenance(env_id: str) -> Provenance:
    """The distribution and version that an id comes from, with its libraries. Raises as `spec`."""
    found = _find("gem_envs", "environment", env_id)
    return dataclasses.replace(found.provenance, libraries=tuple(map(_with_version, found.spec.libraries)))


def _with_version(distribution: str) -> str:
    import importlib.metadata  # see `gem_core.plugins`

    try:
        return f"{distribution} {importlib.metadata.version(distribution)}"
    except importlib.metadata.PackageNotFoundError:
        return f"{distribution} (not installed)"


def advantage_spec(name: str) -> AdvantageSpec:
    """The spec of an advantage estimator. Raises as `spec`."""
    return _find("gem_advantages", "advantage estimator", name).spec


def kind_of(name: str) -> str:
    """What has this id: an `environment`, a `tool` or an `advantage estimator`.

    Raises:
        NotFoundError, DuplicateIdError: see `spec`.
    """
    for what, hook in _KINDS.items():
        if manager.find(hook, name) is not None:
            return what
    raise NotFoundError(_not_found([*_KINDS.values()], "environment, tool or advantage estimator", name))


def make(env_id: str | EnvSpec, **kwargs: Any) -> Env:
    """Build an environment.

    Args:
        env_id: an id such as `"game:GuessTheNumber-v0-easy"`, or a spec.
        kwargs: override the spec's keyword arguments one by one.

    Raises:
        NotFoundError, DuplicateIdError: see `spec`.
        EnvKwargsError: the environment has no such keyword argument, or one that it needs is missing; the message says
            which there are.
        MissingExtraError: an optional dependency is not installed.
        EnvError: the constructor raised, or returned something other than an `Env`.
    """
    return build(spec(env_id) if isinstance(env_id, str) else env_id, kwargs)


def build(env_spec: EnvSpec, kwargs: Mapping[str, Any], wrappers: Sequence[Callable[[Env], Env]] = ()) -> Env:
    """Build an environment from a spec and apply the wrappers in this order. Raises as `make`."""
    merged = {**env_spec.kwargs, **kwargs}
    with convert_errors(lambda error: _not_built(env_spec, merged, error)):
        env = manager.decide("gem_make_env", spec=env_spec, kwargs=merged)
        if env is None:
            env = _construct(env_spec, merged)
    if not isinstance(env, Env):
        raise EnvError(f"{env_spec.id}: {env_spec.entry_point!r} returned {env!r}, which is not a gem_core.Env")
    env.spec = dataclasses.replace(env_spec, kwargs=merged, builder=build)
    for wrap in wrappers:
        env = _wrapped(env_spec.id, wrap, env)
    return env


def _wrapped(env_id: str, wrap: Callable[[Env], Env], env: Env) -> Env:
    with convert_errors(lambda error: EnvError(f"{env_id}: wrapping it with {wrap!r} failed: {described(error)}")):
        wrapped = wrap(env)
    if not isinstance(wrapped, Env):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise EnvError(f"{env_id}: the wrapper {wrap!r} returned {wrapped!r}, which is not a gem_core.Env")
    return wrapped


def make_tool(tool_id: str, **kwargs: Any) -> Tool:
    """Build a tool.

    Args:
        tool_id: an id such as `"python:Interpreter"`.
        kwargs: keyword arguments of its class.

    Raises:
        NotFoundError, DuplicateIdError: see `spec`.
        EnvKwargsError: the tool has no such keyword argument, or one that it needs is missing; the message says which
            there are.
        MissingExtraError: an optional dependency is not installed.
        ToolError: the constructor raised, or returned something other than a `Tool`.
    """
    from gem_core.tool import Tool

    tool_spec: ToolSpec = _find("gem_tools", "tool", tool_id).spec
    with convert_errors(lambda error: _not_built(tool_spec, kwargs, error)):
        tool = _construct(tool_spec, kwargs)
    if not isinstance(tool, Tool):
        raise ToolError(f"{tool_id}: {tool_spec.entry_point!r} returned {tool!r}, which is not a gem_core.tools.Tool")
    tool.spec = tool_spec
    return tool


def find_partner(setting: PartnerSetting) -> Partner:
    """Somebody whom an environment asks, for example a model as an opponent.

    Args:
        setting: a name such as `model:qwen`, or a dict of the name as `model` and options.

    Raises:
        NotFoundError: no installed plugin knows the name.
        EnvKwargsError: neither a name nor a dict with a name.
        PluginError: the plugin failed.
    """
    name, options = name_and_options(setting)
    partner = manager.partner(name, options)
    if partner is None:
        known = sorted(plugin.name for plugin in manager.plugins())
        raise NotFoundError(
            f"no partner {name!r}.{near_matches(namespace_of(name), known)} A partner's name begins with its plugin, "
            "for example model:qwen"
        )
    return partner


def _construct(wanted: EnvSpec | ToolSpec, kwargs: Mapping[str, Any]) -> Any:
    constructor = wanted.resolve()
    if not (inspect.isclass(constructor) and issubclass(constructor, Match)):
        _check_kwargs(wanted.id, constructor, kwargs)
        _check_types(wanted.id, constructor, kwargs)
        return constructor(**kwargs)
    own = {name: value for name, value in kwargs.items() if name != _OPPONENTS}
    _check_kwargs(wanted.id, constructor, own, (_OPPONENTS,))
    _check_types(wanted.id, constructor, own)
    return MatchEnv(constructor(**own), kwargs.get(_OPPONENTS), find_partner)


def _not_built(wanted: EnvSpec | ToolSpec, kwargs: Mapping[str, Any], error: BaseException) -> GemError:
    if isinstance(error, ModuleNotFoundError):
        return wanted.missing(error)
    kind = ToolError if isinstance(wanted, ToolSpec) else EnvError
    return kind(f"{wanted.id} could not be built with {dict(kwargs)!r}: {described(error)}")


_OPPONENTS = "opponents"
"""The argument of every match that is not its own."""

_PLAIN = frozenset({int, float, str, bool, type(None)})


def _check_types(env_id: str, constructor: Callable[..., Any], kwargs: Mapping[str, Any]) -> None:
    """Check plain values against plain annotations: a configuration file may have a string in place of a number."""
    try:
        hints = get_type_hints(constructor.__init__ if inspect.isclass(constructor) else constructor)
    except Exception:  # some annotations can only be resolved by a type checker
        return
    for name, value in kwargs.items():
        accepted = set(get_args(hints.get(name))) or {hints.get(name)}
        fits = type(value) in accepted or (type(value) is int and float in accepted)
        if type(value) in _PLAIN and accepted <= _PLAIN and not fits:
            wanted = " or ".join(sorted(one.__name__ for one in accepted if one is not type(None)))
            raise EnvKwargsError(f"{env_id}: {name}={value!r} is of the wrong type; give {wanted}")


def _check_kwargs(
    env_id: str, constructor: Callable[..., Any], kwargs: Mapping[str, Any], more: Sequence[str] = ()
) -> None:
    parameters = inspect.signature(constructor).parameters
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()):
        return
    instead_of: Mapping[str, str] = getattr(constructor, "instead_of", {})
    known = [*parameters, *more]
    for name in kwargs:
        if name not in parameters:
            accepted = ", ".join(known) or "none"
            raise EnvKwargsError(
                f"{env_id} has no argument {name!r} (given {kwargs[name]!r}).{hint_for(name, known, instead_of)} "
                f"It takes: {accepted}"
            )
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    needed = [one.name for one in parameters.values() if one.kind in named and one.default is one.empty]
    if missing := [name for name in needed if name not in kwargs]:
        raise EnvKwargsError(f"{env_id} needs a value for {', '.join(missing)}. It takes: {', '.join(known)}")


def _find(hook: str, what: str, name: str) -> Registration[Any]:
    found = manager.find(hook, name)
    if found is None:
        raise NotFoundError(_not_found([hook], what, name))
    return found


_KINDS = {"environment": "gem_envs", "tool": "gem_tools", "advantage estimator": "gem_advantages"}


def _not_found(hooks: Sequence[str], what: str, name: str) -> str:
    namespace = namespace_of(name)
    plugins = manager.load(namespace) if namespace else []
    if unusable := [plugin for plugin in plugins if plugin.status != "ok"]:
        reasons = "; ".join(f"{plugin.provenance} is {plugin.status}: {plugin.reason}" for plugin in unusable)
        return f"no {what} {name!r}: {reasons}"
    own = [one.spec.id for hook in hooks for one in manager.registrations(hook, namespace)]
    # An unknown namespace justifies loading every plugin: only then can the message name the right one.
    known = own if plugins else [one.spec.id for hook in hooks for one in manager.all_registrations(hook)]
    hint = near_matches(name, known) or _same_name_elsewhere(name, known)
    if namespace and not plugins and not any(namespace_of(one) == namespace for one in own):
        hint += _no_such_namespace(namespace)
    listing = "`gem-core list` shows them all." if "gem_envs" in hooks else f"Known: {', '.join(known)}."
    return f"no {what} {name!r}.{hint} {listing}"


def _no_such_namespace(namespace: str) -> str:
    for plugin in manager.plugins():
        if isinstance(plugin.error, NamespaceError) and namespace_of(plugin.error.spec_id) == namespace:
            return f" An installed plugin declares this namespace and is broken: {plugin.error}"
    installed = ", ".join(sorted({plugin.name for plugin in manager.plugins()})) or "none"
    return (
        f" No plugin named {namespace!r} is installed (installed: {installed}). "
        f"Install the distribution that provides {namespace!r}."
    )


def _same_name_elsewhere(name: str, known: list[str]) -> str:
    bare = name.rpartition(":")[2]
    found = [one for one in known if one.rpartition(":")[2] == bare]
    return f" Did you mean {found[0]!r}?" if found else ""
