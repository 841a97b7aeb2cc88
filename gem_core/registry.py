"""Environments, tools and estimators by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from gem_core.env import Env
from gem_core.errors import EnvError, EnvKwargsError, GemError, NotFoundError, ToolError, near_matches
from gem_core.plugins import Offer, manager
from gem_core.specs import AdvantageSpec, EnvSpec, Provenance, namespace_of

if TYPE_CHECKING:
    from gem_core.tools import Tool


def register(
    env_id: str,
    entry_point: str | Callable[..., Env],
    *,
    kwargs: Mapping[str, Any] | None = None,
    tags: tuple[str, ...] = (),
) -> EnvSpec:
    """Make an environment known to this process, for notebooks and tests; a package declares a plugin instead.

    Args:
        env_id: `namespace:Name-vN`; registering an id again replaces it.
        entry_point: the class, or `"package.module:Class"`.
        kwargs: keyword arguments of this id.
        tags: words to filter by.

    Raises:
        EnvError: the id has no namespace, or belongs to an installed plugin.
    """
    namespace = namespace_of(env_id)
    if not namespace or env_id.endswith(":"):
        raise EnvError(f"environment id {env_id!r} is not of the form 'namespace:Name', for example 'demo:Maze-v0'")
    spec = EnvSpec(env_id, entry_point, dict(kwargs or {}), tags)
    for plugin in manager.load(namespace):
        if any(offer.spec.id == env_id for offer in plugin.offers.get("gem_envs", [])):
            raise EnvError(f"{env_id!r} belongs to {plugin.provenance}. Register yours under another id.")
    manager.add("gem_envs", spec)
    return spec


def spec(env_id: str) -> EnvSpec:
    """The spec of an id; loads only the plugin of its namespace.

    Raises:
        NotFoundError: nobody offers it; the message names near matches and what to install.
        DuplicateIdError: two distributions offer it.
    """
    return _find("gem_envs", "environment", env_id).spec


def provenance(env_id: str) -> Provenance:
    """Which distribution and version an id comes from. Raises as `spec`."""
    return _find("gem_envs", "environment", env_id).provenance


def advantage_spec(name: str) -> AdvantageSpec:
    """The spec of an advantage estimator. Raises as `spec`."""
    return _find("gem_advantages", "advantage estimator", name).spec


def make(env_id: str | EnvSpec, **kwargs: Any) -> Env:
    """Build an environment.

    Args:
        env_id: an id such as `"game:GuessTheNumber-v0-easy"`, or a spec.
        kwargs: override the spec's keyword arguments one by one.

    Raises:
        NotFoundError, DuplicateIdError: see `spec`.
        EnvKwargsError: the environment has no such keyword argument; the message names the near match.
        MissingExtraError: something it needs is not installed.
        EnvError: its constructor raised.
    """
    return build(spec(env_id) if isinstance(env_id, str) else env_id, kwargs)


def build(env_spec: EnvSpec, kwargs: Mapping[str, Any], wrappers: Sequence[Callable[[Env], Env]] = ()) -> Env:
    """Build from a spec, and wrap in this order; what `make` does once it has found one. Raises as `make`."""
    merged = {**env_spec.kwargs, **kwargs}
    try:
        env = manager.decide("gem_make_env", spec=env_spec, kwargs=merged)
        if env is None:
            constructor = env_spec.resolve()
            _check_kwargs(env_spec.id, constructor, merged)
            _check_types(env_spec.id, constructor, merged)
            env = constructor(**merged)
    except GemError:
        raise
    except ModuleNotFoundError as error:
        raise env_spec.missing(error) from error
    except (Exception, SystemExit) as error:
        raise EnvError(f"{env_spec.id} could not be built with {merged!r}: {type(error).__name__}: {error}") from error
    if not isinstance(env, Env):
        raise EnvError(f"{env_spec.id}: {env_spec.entry_point!r} gave {env!r}, which is not a gem_core.Env")
    env.spec = EnvSpec(env_spec.id, env_spec.entry_point, merged, env_spec.tags, env_spec.extra, builder=build)
    for wrap in wrappers:
        env = wrap(env)
    return env


def make_tool(tool_id: str, **kwargs: Any) -> Tool:
    """Build a tool.

    Args:
        tool_id: an id such as `"python:Interpreter"`.
        kwargs: keyword arguments of its class.

    Raises:
        NotFoundError, DuplicateIdError: see `spec`.
        EnvKwargsError: it has no such keyword argument; the message names the near match.
        MissingExtraError: something it needs is not installed.
        ToolError: its constructor raised.
    """
    from gem_core.tools import Tool

    tool_spec = _find("gem_tools", "tool", tool_id).spec
    try:
        constructor = tool_spec.resolve()
        _check_kwargs(tool_id, constructor, kwargs)
        _check_types(tool_id, constructor, kwargs)
        tool = constructor(**kwargs)
    except GemError:
        raise
    except ModuleNotFoundError as error:
        raise tool_spec.missing(error) from error
    except (Exception, SystemExit) as error:
        raise ToolError(f"{tool_id} could not be built with {kwargs!r}: {type(error).__name__}: {error}") from error
    if not isinstance(tool, Tool):
        raise ToolError(f"{tool_id}: {tool_spec.entry_point!r} gave {tool!r}, which is not a gem_core.tools.Tool")
    tool.spec = tool_spec
    return tool


_PLAIN = frozenset({int, float, str, bool, type(None)})


def _check_types(env_id: str, constructor: Callable[..., Any], kwargs: Mapping[str, Any]) -> None:
    """Plain values against plain annotations, which is what a configuration file gets wrong."""
    try:
        hints = get_type_hints(constructor.__init__ if inspect.isclass(constructor) else constructor)
    except Exception:  # names that only a type checker sees
        return
    for name, value in kwargs.items():
        accepted = set(get_args(hints.get(name))) or {hints.get(name)}
        fits = type(value) in accepted or (type(value) is int and float in accepted)
        if type(value) in _PLAIN and accepted <= _PLAIN and not fits:
            wanted = " or ".join(sorted(one.__name__ for one in accepted if one is not type(None)))
            raise EnvKwargsError(f"{env_id}: {name}={value!r} is of the wrong type; give {wanted}")


def _check_kwargs(env_id: str, constructor: Callable[..., Any], kwargs: Mapping[str, Any]) -> None:
    parameters = inspect.signature(constructor).parameters
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()):
        return
    for name in kwargs:
        if name not in parameters:
            accepted = ", ".join(parameters) or "none"
            raise EnvKwargsError(
                f"{env_id} has no argument {name!r} (given {kwargs[name]!r}).{near_matches(name, parameters)} "
                f"It takes: {accepted}"
            )


def _find(hook: str, what: str, name: str) -> Offer[Any]:
    offer = manager.find(hook, name)
    if offer is None:
        raise NotFoundError(_not_found(hook, what, name))
    return offer


def _not_found(hook: str, what: str, name: str) -> str:
    namespace = namespace_of(name)
    plugins = manager.load(namespace) if namespace else []
    broken = [plugin for plugin in plugins if plugin.status != "ok"]
    if broken:
        off = "see GEM_PLUGINS and GEM_DISABLE_PLUGINS"
        reasons = "; ".join(f"{plugin.provenance} is {plugin.status}: {plugin.error or off}" for plugin in broken)
        return f"no {what} {name!r}: {reasons}"
    own = [offer.spec.id for offer in manager.offers(hook, namespace)]
    # Without a known namespace the cost of loading every plugin is worth a good hint.
    known = own if plugins else [offer.spec.id for offer in manager.all_offers(hook)]
    hint = near_matches(name, known) or _same_name_elsewhere(name, known)
    if namespace and not plugins and not any(namespace_of(one) == namespace for one in own):
        installed = ", ".join(sorted({plugin.name for plugin in manager.plugins()})) or "none"
        hint += f" No plugin named {namespace!r} is installed (installed: {installed}): install what offers it."
    listing = "`gem-core list` shows them all." if hook == "gem_envs" else f"Known: {', '.join(known)}."
    return f"no {what} {name!r}.{hint} {listing}"


def _same_name_elsewhere(name: str, known: list[str]) -> str:
    bare = name.rpartition(":")[2]
    found = [one for one in known if one.rpartition(":")[2] == bare]
    return f" Did you mean {found[0]!r}?" if found else ""
