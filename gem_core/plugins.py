"""Finding, loading and isolating plugins.

Nothing is loaded at import. Asking for `game:Sokoban-v0-easy` loads the entry points named `game` and no other.
Each plugin loads in isolation: whatever it raises, it is listed as broken, and the others work. Only Ctrl-C passes.

| environment variable | effect |
| --- | --- |
| `GEM_PLUGINS=a,b` | only these plugins are loaded; each is the name of a plugin or of a distribution |
| `GEM_DISABLE_PLUGINS=a,b` | these plugins are not loaded |
| `GEM_STRICT_PLUGINS=1` | a broken plugin raises instead of being listed as broken |

A name in the first two that matches nothing installed is logged as a warning.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import os
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pluggy

from gem_core import hookspecs
from gem_core.errors import (
    DuplicateIdError,
    NamespaceError,
    PluginApiError,
    PluginError,
    PluginLoadError,
    convert_errors,
    located,
    near_matches,
    printable,
)
from gem_core.specs import AdapterSpec, AdvantageSpec, BackendSpec, EnvSpec, Provenance, Spec, ToolSpec, namespace_of

if TYPE_CHECKING:
    import importlib.metadata

    from gem_core.partner import Partner

GROUP = "gem_core.plugins"
COMMANDS = "gem_core.commands"
IN_PROCESS = "<in-process>"

_log = logging.getLogger("gem_core.plugins")
_S = TypeVar("_S", bound=Spec)
_COLLECT: dict[str, type[Spec]] = {
    "gem_envs": EnvSpec,
    "gem_tools": ToolSpec,
    "gem_advantages": AdvantageSpec,
    "gem_backends": BackendSpec,
    "gem_adapters": AdapterSpec,
}


_FORMER = {
    "gem_commands": f" Commands are entry points of the group {COMMANDS!r} now; see docs/plugins.md",
    "gem_configure": " A run's settings are in `gem_rollout_start` and `gem_metrics_start`; see docs/plugins.md",
}
"""Hooks that older plugins may have, and what to use instead."""


@dataclass(frozen=True)
class Registration(Generic[_S]):
    """A spec and the distribution that declares it."""

    spec: _S
    provenance: Provenance


@dataclass
class Plugin:
    """One entry point and its state."""

    provenance: Provenance
    status: str = "not loaded"
    """`not loaded`, `ok`, `disabled` or `broken`."""
    error: PluginError | None = None
    """Why it is broken."""
    disabled_by: str = ""
    """Which environment variable disabled it, and how."""
    module: Any = None
    registrations: dict[str, list[Registration[Spec]]] = field(default_factory=dict[str, list[Registration[Spec]]])
    """Its specs, by collect hook."""

    @property
    def name(self) -> str:
        """Name of the entry point: the namespace of the plugin's ids."""
        return self.provenance.plugin

    @property
    def reason(self) -> str:
        """Why it is broken or disabled; empty where it is neither."""
        return self.disabled_by if self.error is None else str(self.error)


class PluginManager:
    """All plugins of one process. `gem_core` uses one manager; a test makes its own.

    Args:
        discover: lists the entry points; the default reads the installed distributions. Called once, on first use.
    """

    def __init__(self, discover: Callable[[], Iterable[importlib.metadata.EntryPoint]] | None = None) -> None:
        self.around: Callable[[str], AbstractContextManager[Any]] = nullcontext
        """Makes a context for each call into a plugin that may take long, from words such as `"loading gem-maze 1.0"`.
        The command line replaces it, to name a plugin that hangs."""
        self._discover = discover or _installed_entry_points
        self._hooks = pluggy.PluginManager(hookspecs.PROJECT)
        self._hooks.add_hookspecs(hookspecs)
        self._enabled: list[Any] = []
        self._enabled_names: list[str] = []
        self._loading = threading.RLock()
        self._in_process: dict[str, list[Registration[Spec]]] = {hook: [] for hook in _COLLECT}
        self._builtin_registrations: dict[str, list[Registration[Spec]]] | None = None

    # -- finding ---------------------------------------------------------------------------------------------------

    @functools.cached_property
    def _entries(self) -> list[tuple[importlib.metadata.EntryPoint, Plugin]]:
        entries = [(entry, Plugin(_provenance(entry))) for entry in self._discover()]
        for problem in _selection_problems([plugin.provenance for _, plugin in entries]):
            _log.warning("%s", printable(problem))
        return sorted(entries, key=lambda pair: (pair[1].name, pair[1].provenance.distribution))

    def plugins(self) -> list[Plugin]:
        """Every installed plugin, in name order, loaded or not."""
        with self._loading:
            return [plugin for _, plugin in self._entries]

    def selection_problems(self) -> list[str]:
        """Names in `GEM_PLUGINS` and `GEM_DISABLE_PLUGINS` that match nothing installed, one sentence each."""
        return _selection_problems([plugin.provenance for plugin in self.plugins()])

    def load(self, name: str) -> list[Plugin]:
        """Load the entry points of that name, each in isolation.

        Returns:
            One plugin per distribution that declares the name; empty when none does.

        Raises:
            PluginLoadError, PluginApiError: only with `GEM_STRICT_PLUGINS=1`.
        """
        with self._loading:  # two threads that load one plugin would register it twice
            found = [(entry, plugin) for entry, plugin in self._entries if entry.name == name]
            for entry, plugin in found:
                if plugin.status == "not loaded":
                    self._load(entry, plugin)
                if plugin.error is not None and os.environ.get("GEM_STRICT_PLUGINS") == "1":
                    raise plugin.error
        return [plugin for _, plugin in found]

    def load_all(self) -> list[Plugin]:
        """Load every plugin, each in isolation."""
        for name in sorted({plugin.name for plugin in self.plugins()}):
            self.load(name)
        return self.plugins()

    def _load(self, entry: importlib.metadata.EntryPoint, plugin: Plugin) -> None:
        if disabled_by := _disabled_by(plugin.provenance):
            plugin.status, plugin.disabled_by = "disabled", disabled_by
            return
        try:
            with self.around(f"loading {plugin.provenance}"):
                plugin.module = load_entry(entry, plugin.provenance)
                plugin.registrations = self._register(plugin.module, plugin.provenance)
            plugin.status = "ok"
        except PluginError as error:
            plugin.status, plugin.error = "broken", error
            _log.warning("%s", printable(f"{plugin.provenance} is broken and was left out: {error}"))

    def _register(self, module: Any, provenance: Provenance) -> dict[str, list[Registration[Spec]]]:
        name = f"{provenance.plugin} ({provenance.distribution})"
        if self._hooks.is_registered(module):
            raise PluginLoadError(f"{provenance}: its module is already plugin {self._hooks.get_name(module)!r}")
        try:
            with _load_boundary(f"{provenance}: registering it failed", passing=(PluginError,)):
                self._hooks.register(module, name)
                self._check_hooks(module)
                return self._collect(module, provenance)
        except BaseException:
            if self._hooks.is_registered(module):
                self._hooks.unregister(module)
            raise

    def _check_hooks(self, plugin: object) -> None:
        for hook in self._hooks.get_hookcallers(plugin) or ():
            own = [one for one in hook.get_hookimpls() if one.plugin is plugin]
            if any(one.wrapper or one.hookwrapper for one in own):
                raise PluginLoadError(
                    f"plugin {self._hooks.get_name(plugin)!r} implements {hook.name!r} as a wrapper, which gem-core "
                    "does not run. Write a plain implementation; tryfirst=True or trylast=True puts it before or after "
                    "the others."
                )
            if not hook.has_spec() and not all(one.optionalhook for one in own):
                known = [name for name in vars(hookspecs) if name.startswith("gem_")]
                raise PluginLoadError(
                    f"plugin {self._hooks.get_name(plugin)!r} implements {hook.name!r}, which is not a gem-core hook."
                    f"{_FORMER.get(hook.name) or near_matches(hook.name, known)}"
                )

    def _collect(self, module: Any, provenance: Provenance) -> dict[str, list[Registration[Spec]]]:
        registrations: dict[str, list[Registration[Spec]]] = {}
        for hook, kind in _COLLECT.items():
            for implementation in self._implementations(hook, of=module):
                found = [_registered(spec, kind, hook, provenance) for spec in _call(implementation, {})]
                registrations.setdefault(hook, []).extend(found)
        return registrations

    def _implementations(self, hook: str, of: Any = None) -> list[pluggy.HookImpl]:
        """In the order in which pluggy calls them: it lists the last one first."""
        implementations: list[pluggy.HookImpl] = getattr(self._hooks.hook, hook).get_hookimpls()
        return [one for one in reversed(implementations) if of is None or one.plugin is of]

    # -- registrations ---------------------------------------------------------------------------------------------

    def registrations(self, hook: str, namespace: str) -> list[Registration[Any]]:
        """The specs that the core, `register()` and the plugins of one namespace give to a collect hook."""
        own = [*self._builtins()[hook], *self._in_process[hook]]
        plugins = self.load(namespace) if namespace else []
        return own + [one for plugin in plugins for one in plugin.registrations.get(hook, [])]

    def all_registrations(self, hook: str) -> list[Registration[Any]]:
        """Every spec given to a collect hook. Loads every plugin."""
        own = [*self._builtins()[hook], *self._in_process[hook]]
        return own + [one for plugin in self.load_all() for one in plugin.registrations.get(hook, [])]

    def find(self, hook: str, name: str, namespace: str | None = None) -> Registration[Any] | None:
        """The registration of an id, or `None`. Loads only the plugins of its namespace, by default as it is written.

        Raises:
            DuplicateIdError: two distributions declare it.
            PluginError: a plugin failed when it was asked for the id (`gem_find_env`).
            NotFoundError: a plugin knows that there is no such id.
        """
        registered = self.registrations(hook, namespace_of(name) if namespace is None else namespace)
        found = [one for one in registered if one.spec.id == name]
        if not found and hook == "gem_envs":
            found = self._found_on_demand(name)
        if len(found) > 1:
            claims = " and ".join(str(registration.provenance) for registration in found)
            raise DuplicateIdError(
                f"{name!r} is claimed by {claims}. Uninstall one, or name its distribution in GEM_DISABLE_PLUGINS."
            )
        return found[0] if found else None

    def _found_on_demand(self, env_id: str) -> list[Registration[Any]]:
        found: list[Registration[Any]] = []
        plugins = self.load(namespace_of(env_id)) if namespace_of(env_id) else []
        for plugin in (one for one in plugins if one.status == "ok"):
            for implementation in self._implementations("gem_find_env", of=plugin.module):
                with convert_errors(_search_error(plugin.provenance, env_id)):
                    spec = _call(implementation, {"env_id": env_id})
                if spec is not None:
                    found.append(_registered(spec, EnvSpec, "gem_find_env", plugin.provenance))
        return found

    def partner(self, name: str, options: Mapping[str, Any]) -> Partner | None:
        """What the plugin of the name's namespace has for an environment to ask, or `None`.

        Raises:
            PluginError: the plugin failed.
        """
        plugins = self.load(namespace_of(name)) if namespace_of(name) else []
        for plugin in (one for one in plugins if one.status == "ok"):
            for implementation in self._implementations("gem_find_partner", of=plugin.module):
                with convert_errors(_search_error(plugin.provenance, name)):
                    partner = _call(implementation, {"name": name, "options": options})
                if partner is not None:
                    return partner
        return None

    def add(self, hook: str, spec: Spec) -> None:
        """Add a spec from this process. A later spec of the same id replaces it: notebook cells run again."""
        kept = [one for one in self._in_process[hook] if one.spec.id != spec.id]
        self._in_process[hook] = [*kept, Registration(spec, Provenance(IN_PROCESS, IN_PROCESS, "0"))]

    def _builtins(self) -> dict[str, list[Registration[Spec]]]:
        with self._loading:
            if self._builtin_registrations is None:
                from gem_core import _builtin as builtin

                provenance = Provenance(hookspecs.PROJECT, "gem-core", _own_version())
                self._builtin_registrations = {hook: [] for hook in _COLLECT} | self._register(builtin, provenance)
            return self._builtin_registrations

    # -- hooks -----------------------------------------------------------------------------------------------------

    def register(self, plugin: object, name: str | None = None) -> None:
        """Add an object with hook implementations, for example a `Recorder`, to this process.

        Raises:
            PluginError: it is registered already, implements a hook that does not exist (the message names the nearest
                one), takes arguments that the hook does not have, or is a wrapper.
        """
        name = name or getattr(plugin, "__name__", f"{type(plugin).__name__} {id(plugin):#x}")
        if self._hooks.is_registered(plugin):
            raise PluginError(f"{name} is registered already, as {self._hooks.get_name(plugin)!r}")
        try:
            self._hooks.register(plugin, name)
            self._check_hooks(plugin)
        except BaseException as error:
            if self._hooks.is_registered(plugin):
                self._hooks.unregister(plugin)
            if isinstance(error, pluggy.PluginValidationError):
                raise PluginError(str(error)) from error
            raise

    def unregister(self, plugin: object) -> None:
        """Remove an object that `register` added."""
        self._hooks.unregister(plugin)

    def enable(self, *names: str) -> None:
        """Load plugins and let them decide (`gem_make_env`, `gem_env_error`), in the order of the names.

        Raises:
            PluginError: no plugin has this name, or it is broken or disabled.
        """
        for plugin in self.require(*names):  # all of them, before the first one decides
            if plugin.module not in self._enabled:
                self._enabled.append(plugin.module)
                self._enabled_names.append(plugin.name)

    def require(self, *names: str) -> list[Plugin]:
        """Load plugins that a user named.

        Raises:
            PluginError: no plugin has this name, or it is broken or disabled.
        """
        found: list[Plugin] = []
        for name in names:
            plugins = self.load(name)
            if not plugins:
                known = ", ".join(sorted({plugin.name for plugin in self.plugins()})) or "none"
                raise PluginError(f"no plugin named {name!r} is installed; installed are: {known}")
            for plugin in plugins:
                if plugin.status != "ok":
                    raise PluginError(
                        f"{plugin.provenance} cannot be enabled: it is {plugin.status}: {plugin.reason}"
                    ) from plugin.error
            found += plugins
        return found

    @property
    def enabled(self) -> tuple[str, ...]:
        """Names of the plugins that decide, in the order in which they were named."""
        return tuple(dict.fromkeys(self._enabled_names))

    def decide(self, hook: str, **arguments: Any) -> Any:
        """The first answer that is not `None` from the plugins that `enable()` named.

        They are asked in that order, those with `tryfirst` before and those with `trylast` after all others.

        Raises:
            PluginError: a plugin raised something that is not an `Exception`, such as `SystemExit`. An `Exception`
                passes unchanged.
        """
        # pluggy would begin with the last loaded. An earlier `make` must not change which plugin decides.
        asked = [one for module in self._enabled for one in self._implementations(hook, of=module)]
        for implementation in sorted(asked, key=lambda one: one.trylast - one.tryfirst):
            answer = _call(implementation, arguments)
            if answer is not None:
                return answer
        return None

    def listeners(self, hook: str) -> list[object]:
        """The plugins that implement a hook."""
        return [one.plugin for one in self._implementations(hook)]

    def listens(self, hook: str) -> bool:
        """Whether any plugin implements a hook, for events that cost something to describe."""
        return bool(self._implementations(hook))

    def notify(self, hook: str, **arguments: Any) -> None:
        """Call every listener. What a listener raises is logged with its plugin's name and stops nothing."""
        for implementation in self._implementations(hook):
            try:
                with self.around(f"waiting for {hook} of plugin {implementation.plugin_name!r}"):
                    _call(implementation, arguments)
            except Exception:
                trace = printable(traceback.format_exc())
                _log.error("plugin %r failed in %s; the run continues\n%s", implementation.plugin_name, hook, trace)


def _call(implementation: pluggy.HookImpl, arguments: Mapping[str, Any]) -> Any:
    try:
        return implementation.function(*(arguments[name] for name in implementation.argnames))
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:  # callers handle an Exception; no other error of a plugin may end the process
        hook = implementation.function.__name__
        raise PluginError(f"plugin {implementation.plugin_name!r} failed in {hook}{located(error)}") from error


def _installed_entry_points() -> Iterable[importlib.metadata.EntryPoint]:
    import importlib.metadata  # most worker processes need no plugin by its name, and it is a sixth of their start

    return importlib.metadata.entry_points(group=GROUP)


def command_entries() -> list[tuple[importlib.metadata.EntryPoint, Provenance]]:
    """The commands of installed distributions, by name, without those that an environment variable disables."""
    import importlib.metadata

    entries = [(entry, _provenance(entry)) for entry in importlib.metadata.entry_points(group=COMMANDS)]
    allowed = [(entry, provenance) for entry, provenance in entries if not _disabled_by(provenance)]
    return sorted(allowed, key=lambda pair: (pair[0].name, pair[1].distribution))


def _own_version() -> str:
    import importlib.metadata

    try:
        return importlib.metadata.version("gem-core")
    except importlib.metadata.PackageNotFoundError:  # copied, not installed
        return "0"


def _provenance(entry: importlib.metadata.EntryPoint) -> Provenance:
    distribution = entry.dist
    if distribution is None:
        return Provenance(entry.name, "unknown", "0")
    return Provenance(entry.name, distribution.name, distribution.version)


def _disabled_by(provenance: Provenance) -> str:
    """Which environment variable disables a plugin, as a clause; empty where none does."""
    names = {provenance.plugin, provenance.distribution}
    if names & _listed("GEM_DISABLE_PLUGINS"):
        return "named in GEM_DISABLE_PLUGINS"
    only = _listed("GEM_PLUGINS")
    return "not named in GEM_PLUGINS" if only and not names & only else ""


def _listed(variable: str) -> set[str]:
    return {name.strip() for name in os.environ.get(variable, "").split(",") if name.strip()}


def _selection_problems(installed: Iterable[Provenance]) -> list[str]:
    known = {name for one in installed for name in (one.plugin, one.distribution)}
    return [
        f"{variable} names {name!r}, which is neither an installed plugin nor a distribution of one."
        f"{near_matches(name, sorted(known))}"
        for variable in ("GEM_PLUGINS", "GEM_DISABLE_PLUGINS")
        for name in sorted(_listed(variable) - known)
    ]


def _load_boundary(what: str, passing: tuple[type[PluginError], ...] = ()) -> AbstractContextManager[None]:
    return convert_errors(lambda error: PluginLoadError(f"{what}{located(error)}"), passing=passing)


def _search_error(provenance: Provenance, env_id: str) -> Callable[[BaseException], PluginError]:
    return lambda error: PluginError(f"{provenance}: finding {env_id!r} failed{located(error)}")


def load_entry(entry: importlib.metadata.EntryPoint, provenance: Provenance) -> Any:
    """What an entry point names.

    Raises:
        PluginLoadError: importing it failed.
        PluginApiError: it is a module for another version of the hooks.
    """
    with _load_boundary(f"{provenance}: importing {entry.value!r} failed"):
        module = entry.load()
        wanted = getattr(module, "GEM_PLUGIN_API", None)
    if wanted is not None:
        _check_api(wanted, provenance)
    return module


def _check_api(wanted: Any, provenance: Provenance) -> None:
    from packaging.specifiers import SpecifierSet

    try:
        agrees = hookspecs.PLUGIN_API in SpecifierSet(wanted)
    except Exception as error:  # not a range, or not even a string
        raise PluginApiError(
            f"{provenance}: GEM_PLUGIN_API = {wanted!r} is not a version range. Write one such as '>=1,<2'."
        ) from error
    if not agrees:
        raise PluginApiError(
            f"{provenance} wants plugin API {wanted!r}, this release has {hookspecs.PLUGIN_API}. "
            f"Install versions of gem-core and {provenance.distribution} that agree."
        )


def _registered(spec: object, kind: type[_S], hook: str, provenance: Provenance) -> Registration[_S]:
    if not isinstance(spec, kind):
        raise PluginLoadError(f"{provenance}: {hook} gave {spec!r}, which is not a {kind.__name__}")
    builtin = provenance.plugin == hookspecs.PROJECT
    if not builtin and kind is not AdapterSpec and spec.namespace != provenance.plugin:
        raise NamespaceError(
            f"{provenance}: id {spec.id!r} is outside its namespace. Begin the id with {provenance.plugin + ':'!r}, "
            f"or name the entry point {spec.namespace!r}.",
            spec.id,
        )
    return Registration(dataclasses.replace(spec, declared_by=provenance.distribution), provenance)


manager = PluginManager()
"""The plugins of this process."""
