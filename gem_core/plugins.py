"""Finding, loading and isolating plugins.

Nothing is loaded at import. Asking for `game:Sokoban-v0-easy` loads the entry points named `game` and no other.
Each plugin loads in its own `try`: a broken one is listed as broken and harms nobody.

| environment variable | effect |
| --- | --- |
| `GEM_PLUGINS=a,b` | only these plugins exist, by name or by distribution |
| `GEM_DISABLE_PLUGINS=a,b` | these do not |
| `GEM_STRICT_PLUGINS=1` | a broken plugin raises instead of being listed as broken |
"""

from __future__ import annotations

import functools
import importlib.metadata
import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import pluggy

from gem_core import hookspecs
from gem_core.errors import DuplicateIdError, PluginApiError, PluginError, PluginLoadError, near_matches
from gem_core.specs import AdapterSpec, AdvantageSpec, EnvSpec, Provenance, Spec, ToolSpec, namespace_of

GROUP = "gem_core.plugins"
IN_PROCESS = "<in-process>"

_log = logging.getLogger("gem_core.plugins")
_S = TypeVar("_S", bound=Spec)
_COLLECT: dict[str, type[Spec]] = {
    "gem_envs": EnvSpec,
    "gem_tools": ToolSpec,
    "gem_advantages": AdvantageSpec,
    "gem_adapters": AdapterSpec,
}


@dataclass(frozen=True)
class Offer(Generic[_S]):
    """A spec and where it came from."""

    spec: _S
    provenance: Provenance


@dataclass
class Plugin:
    """One entry point and what became of it."""

    provenance: Provenance
    status: str = "not loaded"
    """`not loaded`, `ok`, `disabled` or `broken`."""
    error: Exception | None = None
    """Why it is broken."""
    module: Any = None
    offers: dict[str, list[Offer[Spec]]] = field(default_factory=dict[str, list[Offer[Spec]]])
    """What it offers, by collect hook."""

    @property
    def name(self) -> str:
        """Name of its entry point: the namespace of its ids."""
        return self.provenance.plugin


class PluginManager:
    """All plugins of one process; `gem_core` uses one, tests make their own.

    Args:
        discover: lists the entry points; the default reads the installed distributions, once, when first needed.
    """

    def __init__(self, discover: Callable[[], Iterable[importlib.metadata.EntryPoint]] | None = None) -> None:
        self._discover = discover or _installed_entry_points
        self._hooks = pluggy.PluginManager(hookspecs.PROJECT)
        self._hooks.add_hookspecs(hookspecs)
        self._enabled: list[Any] = []
        self._enabled_names: list[str] = []
        self._configs: list[Mapping[str, Any]] = []
        self._loading = threading.RLock()
        self._in_process: dict[str, list[Offer[Spec]]] = {hook: [] for hook in _COLLECT}
        self._builtin_offers: dict[str, list[Offer[Spec]]] | None = None

    # -- finding ---------------------------------------------------------------------------------------------------

    @functools.cached_property
    def _entries(self) -> list[tuple[importlib.metadata.EntryPoint, Plugin]]:
        entries = [(entry, Plugin(_provenance(entry))) for entry in self._discover()]
        return sorted(entries, key=lambda pair: (pair[1].name, pair[1].provenance.distribution))

    def plugins(self) -> list[Plugin]:
        """Every plugin installed, in name order, loaded or not."""
        with self._loading:
            return [plugin for _, plugin in self._entries]

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
        """Load every plugin, each in isolation; what `gem-core list` shows."""
        for name in sorted({plugin.name for plugin in self.plugins()}):
            self.load(name)
        return self.plugins()

    def _load(self, entry: importlib.metadata.EntryPoint, plugin: Plugin) -> None:
        if not _allowed(plugin.provenance):
            plugin.status = "disabled"
            return
        try:
            plugin.module = _import(entry, plugin)
            plugin.offers = self._register(plugin.module, plugin.provenance)
            plugin.status = "ok"
        except Exception as error:
            plugin.status, plugin.error = "broken", error
            _log.warning("%s is broken and was left out: %s", plugin.provenance, error)

    def _register(self, module: Any, provenance: Provenance) -> dict[str, list[Offer[Spec]]]:
        name = f"{provenance.plugin} ({provenance.distribution})"
        if self._hooks.is_registered(module):
            raise PluginLoadError(f"{provenance}: its module is already plugin {self._hooks.get_name(module)!r}")
        try:
            self._hooks.register(module, name)
            self._check_hooks(module)
            return self._collect(module, provenance)
        except PluginError:
            self._unregister(module)
            raise
        except (Exception, SystemExit) as error:
            self._unregister(module)
            raise PluginLoadError(f"{provenance}: registering it failed: {type(error).__name__}: {error}") from error

    def _unregister(self, module: Any) -> None:
        if self._hooks.is_registered(module):
            self._hooks.unregister(module)

    def _check_hooks(self, plugin: object) -> None:
        for hook in self._hooks.get_hookcallers(plugin) or ():
            own = [one for one in hook.get_hookimpls() if one.plugin is plugin]
            if not hook.has_spec() and not all(one.optionalhook for one in own):
                known = [name for name in vars(hookspecs) if name.startswith("gem_")]
                raise PluginLoadError(
                    f"plugin {self._hooks.get_name(plugin)!r} implements {hook.name!r}, and there is no such hook."
                    f"{near_matches(hook.name, known)}"
                )

    def _collect(self, module: Any, provenance: Provenance) -> dict[str, list[Offer[Spec]]]:
        offers: dict[str, list[Offer[Spec]]] = {}
        for hook, kind in _COLLECT.items():
            for implementation in self._implementations(hook, of=module):
                specs = list(_call(implementation, {}))
                for spec in specs:
                    _check_spec(spec, kind, hook, provenance)
                offers[hook] = [Offer(spec, provenance) for spec in specs]
        return offers

    def _implementations(self, hook: str, of: Any = None) -> list[pluggy.HookImpl]:
        implementations: list[pluggy.HookImpl] = getattr(self._hooks.hook, hook).get_hookimpls()
        return [one for one in implementations if of is None or one.plugin is of]

    # -- offers ----------------------------------------------------------------------------------------------------

    def offers(self, hook: str, namespace: str) -> list[Offer[Any]]:
        """What the built-ins, `register()` and the plugins of one namespace offer through a collect hook."""
        own = [*self._builtins()[hook], *self._in_process[hook]]
        plugins = self.load(namespace) if namespace else []
        return own + [offer for plugin in plugins for offer in plugin.offers.get(hook, [])]

    def all_offers(self, hook: str) -> list[Offer[Any]]:
        """What anything installed offers through a collect hook. Loads every plugin."""
        own = [*self._builtins()[hook], *self._in_process[hook]]
        return own + [offer for plugin in self.load_all() for offer in plugin.offers.get(hook, [])]

    def find(self, hook: str, name: str) -> Offer[Any] | None:
        """The one offer of that id, loading only its namespace.

        Raises:
            DuplicateIdError: two distributions offer it.
        """
        found = [offer for offer in self.offers(hook, namespace_of(name)) if offer.spec.id == name]
        if len(found) > 1:
            claims = " and ".join(str(offer.provenance) for offer in found)
            raise DuplicateIdError(
                f"{name!r} is claimed by {claims}. Uninstall one, or name its distribution in GEM_DISABLE_PLUGINS."
            )
        return found[0] if found else None

    def add(self, hook: str, spec: Spec) -> None:
        """Add a spec from this process; a later one of the same id replaces it, as notebooks need."""
        kept = [offer for offer in self._in_process[hook] if offer.spec.id != spec.id]
        self._in_process[hook] = [*kept, Offer(spec, Provenance(IN_PROCESS, IN_PROCESS, "0"))]

    def _builtins(self) -> dict[str, list[Offer[Spec]]]:
        with self._loading:
            if self._builtin_offers is None:
                from gem_core import builtin

                provenance = Provenance(hookspecs.PROJECT, "gem-core", _own_version())
                self._builtin_offers = {hook: [] for hook in _COLLECT} | self._register(builtin, provenance)
            return self._builtin_offers

    # -- hooks -----------------------------------------------------------------------------------------------------

    def register(self, plugin: object, name: str | None = None) -> None:
        """Add an object with hook implementations, for example a `Recorder`, to this process.

        Raises:
            PluginError: it implements a hook that does not exist, most likely a misspelt one.
        """
        self._hooks.register(plugin, name or getattr(plugin, "__name__", f"{type(plugin).__name__} {id(plugin):#x}"))
        try:
            self._check_hooks(plugin)
        except PluginError:
            self._hooks.unregister(plugin)
            raise

    def unregister(self, plugin: object) -> None:
        """Take such an object out again."""
        self._hooks.unregister(plugin)

    def enable(self, *names: str) -> None:
        """Load plugins and let them decide (`gem_make_env`, `gem_env_error`), the first named first, and listen.

        Raises:
            PluginError: there is no such plugin, or it is broken or disabled.
        """
        for name in names:
            plugins = self.load(name)
            if not plugins:
                known = ", ".join(sorted({plugin.name for plugin in self.plugins()})) or "none"
                raise PluginError(f"no plugin named {name!r} is installed; installed are: {known}")
            for plugin in plugins:
                if plugin.status != "ok":
                    raise PluginError(f"{plugin.provenance} cannot be enabled: it is {plugin.status}") from plugin.error
                if plugin.module not in self._enabled:
                    self._enabled.append(plugin.module)
                    self._enabled_names.append(name)

    @property
    def enabled(self) -> tuple[str, ...]:
        """Names of the plugins that decide, the first to be asked first."""
        return tuple(dict.fromkeys(self._enabled_names))

    @property
    def configs(self) -> tuple[Mapping[str, Any], ...]:
        """The settings that plugins were told, for another process that is to hear the same."""
        return tuple(self._configs)

    def configure(self, config: Mapping[str, Any]) -> None:
        """Tell all plugins, also those loaded later, the run's settings (`gem_configure`).

        Raises:
            PluginError: a plugin refused them.
        """
        try:
            self._hooks.hook.gem_configure.call_historic(kwargs={"config": config})
        except (Exception, SystemExit) as error:
            raise PluginError(f"a plugin refused the settings {dict(config)!r}: {error}") from error
        self._configs.append(config)

    def decide(self, hook: str, **arguments: Any) -> Any:
        """The first answer that is not `None` from the plugins that `enable()` named, asked in that order."""
        # Not through pluggy, which asks in the order of loading: an earlier `make` must not change who decides.
        for module in self._enabled:
            for implementation in self._implementations(hook, of=module):
                answer = _call(implementation, arguments)
                if answer is not None:
                    return answer
        return None

    def notify(self, hook: str, **arguments: Any) -> None:
        """Tell every listener; an exception is logged against its plugin and goes no further."""
        for implementation in self._implementations(hook):
            try:
                _call(implementation, arguments)
            except Exception:
                _log.exception("plugin %r failed in %s; the run goes on", implementation.plugin_name, hook)


def _call(implementation: pluggy.HookImpl, arguments: Mapping[str, Any]) -> Any:
    try:
        return implementation.function(*(arguments[name] for name in implementation.argnames))
    except SystemExit as error:  # a plugin ends no process
        hook = implementation.function.__name__
        raise PluginError(f"plugin {implementation.plugin_name!r} called sys.exit({error}) in {hook}") from error


def _installed_entry_points() -> Iterable[importlib.metadata.EntryPoint]:
    return importlib.metadata.entry_points(group=GROUP)


def _own_version() -> str:
    return importlib.metadata.version("gem-core")


def _provenance(entry: importlib.metadata.EntryPoint) -> Provenance:
    distribution = entry.dist
    if distribution is None:
        return Provenance(entry.name, "unknown", "0")
    return Provenance(entry.name, distribution.name, distribution.version)


def _allowed(provenance: Provenance) -> bool:
    allow, block = (_names(os.environ.get(key, "")) for key in ("GEM_PLUGINS", "GEM_DISABLE_PLUGINS"))
    names = {provenance.plugin, provenance.distribution}
    return not names & block and (not allow or bool(names & allow))


def _names(value: str) -> set[str]:
    return {name.strip() for name in value.split(",") if name.strip()}


def _import(entry: importlib.metadata.EntryPoint, plugin: Plugin) -> Any:
    try:
        module = entry.load()
    except (Exception, SystemExit) as error:  # a module that is a script exits
        raise PluginLoadError(
            f"{plugin.provenance}: importing {entry.value!r} failed: {type(error).__name__}: {error}"
        ) from error
    wanted = getattr(module, "GEM_PLUGIN_API", None)
    if wanted is not None:
        _check_api(wanted, plugin.provenance)
    return module


def _check_api(wanted: Any, provenance: Provenance) -> None:
    from packaging.specifiers import SpecifierSet

    try:
        agrees = hookspecs.PLUGIN_API in SpecifierSet(wanted)
    except Exception as error:  # a text that is no range, or no text
        raise PluginApiError(
            f"{provenance}: GEM_PLUGIN_API = {wanted!r} is no range of versions. Write one such as '>=1,<2'."
        ) from error
    if not agrees:
        raise PluginApiError(
            f"{provenance} wants plugin API {wanted!r}, this release has {hookspecs.PLUGIN_API}. "
            f"Install versions of gem-core and {provenance.distribution} that agree."
        )


def _check_spec(spec: object, kind: type[Spec], hook: str, provenance: Provenance) -> None:
    if not isinstance(spec, kind):
        raise PluginLoadError(f"{provenance}: {hook} gave {spec!r}, which is not a {kind.__name__}")
    builtin = provenance.plugin == hookspecs.PROJECT
    if not builtin and kind is not AdapterSpec and spec.namespace != provenance.plugin:
        raise PluginLoadError(
            f"{provenance}: id {spec.id!r} is outside its namespace; its ids start with {provenance.plugin + ':'!r}"
        )


manager = PluginManager()
"""The plugins of this process."""
