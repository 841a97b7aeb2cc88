"""Plugins: found late, loaded one by one, never able to harm each other."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import gem_core
import gem_core.errors
from gem_core import hookspecs
from gem_core.advantages import TurnBatch
from gem_core.advantages._compute import compute_advantages
from gem_core.errors import (
    DuplicateIdError,
    EnvFailure,
    FailureKind,
    MissingExtraError,
    NotFoundError,
    PluginApiError,
    PluginError,
    PluginLoadError,
)
from gem_core.failures import ErrorAction, FailurePolicy
from gem_core.hookspecs import hookimpl
from gem_core.plugins import PluginManager
from gem_core.vector._failures import decide_failure
from gem_train.rollout import Episode, StopReason

if TYPE_CHECKING:
    from gem_support.core_fixtures import Site

ENVS = """
class Echo(gem_core.Env):
    def reset(self, seed=None, **options):
        return {name!r}, {{}}
    def step(self, action):
        return action, 1.0, True, False, {{"success": True}}
    def sample_random_action(self):
        return "hello"

@hookimpl
def gem_envs():
    yield EnvSpec("{name}:Echo-v0", f"{{__name__}}:Echo")
"""


def echo(name: str) -> str:
    """Source of a plugin that offers `<name>:Echo-v0`."""
    return ENVS.format(name=name)


def ids(manager: PluginManager) -> list[str]:
    return [registration.spec.id for registration in manager.all_registrations("gem_envs")]


def status(manager: PluginManager) -> dict[str, str]:
    return {plugin.name: plugin.status for plugin in manager.load_all()}


# -- loading -----------------------------------------------------------------------------------------------------------


def test_an_id_loads_its_namespace_and_no_other(site: Site, in_force: Callable[[], PluginManager]) -> None:
    maze, bank = site.add("maze", echo("maze")), site.add("bank", echo("bank"))
    manager = in_force()
    assert gem_core.make("maze:Echo-v0").reset() == ("maze", {})
    assert maze in sys.modules
    assert bank not in sys.modules
    assert [(plugin.name, plugin.status) for plugin in manager.plugins()] == [("bank", "not loaded"), ("maze", "ok")]


def test_listing_plugins_loads_none(site: Site) -> None:
    module = site.add("maze", echo("maze"))
    assert [plugin.name for plugin in site.manager().plugins()] == ["maze"]
    assert module not in sys.modules


def test_discovery_happens_once_and_late(site: Site) -> None:
    site.add("maze", echo("maze"))
    calls: list[int] = []

    def discover() -> Any:
        calls.append(1)
        return site.entry_points()

    manager = PluginManager(discover)
    assert not calls
    for _ in range(3):
        manager.plugins()
        assert manager.find("gem_envs", "maze:Echo-v0")
    assert calls == [1]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise RuntimeError('no display')", "RuntimeError: no display"),
        ("import a_module_that_is_not_there", "a_module_that_is_not_there"),
        ("def broken(:", "SyntaxError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("@hookimpl\ndef gem_envs():\n    yield 'maze:A'", "not a EnvSpec"),
        ("@hookimpl\ndef gem_envs():\n    return None", "TypeError"),
        ("@hookimpl\ndef gem_envs():\n    yield EnvSpec(3, 'm:A')", "must be a string, not 3"),
        ("@hookimpl\ndef gem_envs():\n    yield EnvSpec('broken:A', 'm:A', tags='game')", "tuple of strings"),
        ("@hookimpl\ndef gem_env_error(nonsense):\n    return None", "nonsense"),
        (
            "@hookimpl\ndef gem_envs():\n    yield EnvSpec('broken:A-v0', 'm:A')\n    raise OSError('half way')",
            "OSError: half way",
        ),
    ],
)
def test_a_broken_plugin_breaks_no_other(
    site: Site, caplog: pytest.LogCaptureFixture, source: str, reason: str
) -> None:
    site.add("broken", source, version="3.4")
    site.add("maze", echo("maze"))
    site.add("after", echo("after"))
    manager = site.manager()
    with caplog.at_level(logging.WARNING, "gem_core.plugins"):
        assert ids(manager) == ["after:Echo-v0", "maze:Echo-v0"]
    assert status(manager) == {"after": "ok", "broken": "broken", "maze": "ok"}
    [broken] = manager.load("broken")
    assert isinstance(broken.error, PluginError)
    assert reason in str(broken.error)
    assert "gem-broken 3.4 (plugin 'broken')" in caplog.text
    # And the manager goes on: nothing of the broken plugin is left in it, others can still decide and listen.
    manager.enable("maze")
    manager.notify("gem_rollout_end", run=None, error=None)
    assert manager.find("gem_envs", "broken:A-v0") is None


def test_a_plugin_that_hears_hooks_and_then_breaks_is_deaf_afterwards(site: Site) -> None:
    module = site.add(
        "broken",
        """
heard = []
@hookimpl
def gem_rollout_start(run):
    heard.append(run)
@hookimpl
def gem_envs():
    yield EnvSpec("elsewhere:A-v0", "m:A")
""",
    )
    manager = site.manager()
    assert status(manager) == {"broken": "broken"}
    manager.notify("gem_rollout_start", run="a run")
    assert site.module(module).heard == []


def test_one_module_behind_two_names_harms_neither_the_first_nor_its_hooks(site: Site) -> None:
    source = "\nheard = []\n@hookimpl\ndef gem_rollout_start(run):\n    heard.append(run)\n"
    module = site.add("alpha", source)
    site.declare("beta", module)
    manager = site.manager()
    assert status(manager) == {"alpha": "ok", "beta": "broken"}
    manager.notify("gem_rollout_start", run="a run")
    assert site.module(module).heard == ["a run"]


def test_strict_mode_raises_what_is_broken(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.add("broken", "1 / 0")
    manager = site.manager()
    monkeypatch.setenv("GEM_STRICT_PLUGINS", "1")
    with pytest.raises(PluginLoadError, match="ZeroDivisionError") as caught:
        manager.load("broken")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(PluginLoadError):  # and again, whoever asks
        manager.load_all()


def test_threads_that_ask_for_one_plugin_at_once_load_it_once(site: Site) -> None:
    module = site.add("slow", "import time\ntime.sleep(0.05)\n" + echo("slow"))
    manager = site.manager()
    barrier = threading.Barrier(8)

    def ask(_: int) -> Any:
        barrier.wait()
        return manager.find("gem_envs", "slow:Echo-v0")

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(8)))
    assert all(one is not None and one.spec.entry_point == f"{module}:Echo" for one in found)
    assert status(manager) == {"slow": "ok"}


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("x = 1\n1 / 0", 4),
        ("import json\njson.loads('{')", 4),  # not the line of the library
        ("x = 1\ndef broken(:", 4),
        ("import a_module_that_is_not_there", 3),
        ("EnvSpec(3, 'm:A')", 3),
        ("@hookimpl\ndef gem_envs():\n    raise OSError('no disk')", 5),
    ],
)
def test_a_broken_plugin_is_reported_with_file_and_line(site: Site, source: str, line: int) -> None:
    module = site.add("broken", source)
    [broken] = site.manager().load("broken")
    assert f" failed at {site.folder / module}.py:{line}: " in str(broken.error)


def test_a_module_that_is_not_there_has_no_place(site: Site) -> None:
    site.declare("ghost", "a_module_that_is_not_there")
    [ghost] = site.manager().load("ghost")
    assert str(ghost.error) == (
        "gem-ghost 1.0 (plugin 'ghost'): importing 'a_module_that_is_not_there' failed: "
        "ModuleNotFoundError: No module named 'a_module_that_is_not_there'"
    )


# -- selection ---------------------------------------------------------------------------------------------------------


def test_allowed_plugins_are_the_only_ones(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = {name: site.add(name, echo(name)) for name in ("a", "b", "c")}
    monkeypatch.setenv("GEM_PLUGINS", "a, c")
    manager = site.manager()
    assert ids(manager) == ["a:Echo-v0", "c:Echo-v0"]
    assert status(manager) == {"a": "ok", "b": "disabled", "c": "ok"}
    assert modules["b"] not in sys.modules


def test_blocked_plugins_are_not_imported(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    module = site.add("a", "raise RuntimeError('was imported')")
    monkeypatch.setenv("GEM_DISABLE_PLUGINS", "a")
    monkeypatch.setenv("GEM_STRICT_PLUGINS", "1")
    assert status(site.manager()) == {"a": "disabled"}
    assert module not in sys.modules


def test_blocking_is_stronger_than_allowing(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.add("a", echo("a"))
    site.add("b", echo("b"))
    monkeypatch.setenv("GEM_PLUGINS", "a,b")
    monkeypatch.setenv("GEM_DISABLE_PLUGINS", "b")
    assert status(site.manager()) == {"a": "ok", "b": "disabled"}


@pytest.mark.parametrize("variable", ["GEM_PLUGINS", "GEM_DISABLE_PLUGINS"])
def test_a_name_that_fits_nothing_installed_is_reported(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, variable: str
) -> None:
    site.add("search", echo("search"), distribution="gem-finder")
    monkeypatch.setenv(variable, "serach, gem-finder")
    manager = site.manager()
    with caplog.at_level(logging.WARNING, "gem_core.plugins"):
        manager.plugins()
    expected = f"{variable} names 'serach', which is neither an installed plugin nor a distribution of one."
    assert manager.selection_problems() == [f"{expected} Did you mean 'search'?"]
    assert expected in caplog.text


@pytest.mark.parametrize("wanted", [">=1,<2", "~=1.0", ">=0.9", ""])
def test_a_plugin_for_this_api_loads(site: Site, wanted: str) -> None:
    site.add("maze", f"GEM_PLUGIN_API = {wanted!r}\n" + echo("maze"))
    assert status(site.manager()) == {"maze": "ok"}


@pytest.mark.parametrize("wanted", [">=2,<3", "<1", "==0.*"])
def test_a_plugin_for_another_api_is_refused_before_it_registers(site: Site, wanted: str) -> None:
    site.add("maze", f"GEM_PLUGIN_API = {wanted!r}\n@hookimpl\ndef gem_envs():\n    raise RuntimeError('asked')\n")
    [plugin] = site.manager().load("maze")
    assert isinstance(plugin.error, PluginApiError)
    assert wanted in str(plugin.error)
    assert "gem-maze" in str(plugin.error)
    assert "asked" not in str(plugin.error)


def test_a_nonsensical_api_range_is_the_plugin_s_own_fault(site: Site) -> None:
    site.add("maze", "GEM_PLUGIN_API = 'one or two'\n" + echo("maze"))
    site.add("other", echo("other"))
    assert status(site.manager()) == {"maze": "broken", "other": "ok"}


@pytest.mark.parametrize("wanted", ["banana", 1])
def test_a_nonsensical_api_range_is_named(site: Site, monkeypatch: pytest.MonkeyPatch, wanted: object) -> None:
    site.add("maze", f"GEM_PLUGIN_API = {wanted!r}\n")
    monkeypatch.setenv("GEM_STRICT_PLUGINS", "1")
    with pytest.raises(PluginApiError, match=rf"gem-maze 1.0 \(plugin 'maze'\): GEM_PLUGIN_API = {wanted!r}"):
        site.manager().load("maze")


# -- ids ---------------------------------------------------------------------------------------------------------------


def test_two_distributions_that_claim_one_id_are_both_named(site: Site) -> None:
    site.add("maze", echo("maze"), distribution="their-mazes", version="1.2")
    site.add("maze", echo("maze"), distribution="our-mazes", version="0.3")
    with pytest.raises(DuplicateIdError) as caught:
        site.manager().find("gem_envs", "maze:Echo-v0")
    assert "their-mazes 1.2" in str(caught.value)
    assert "our-mazes 0.3" in str(caught.value)
    assert "GEM_DISABLE_PLUGINS" in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "value", "chosen"),
    [("GEM_DISABLE_PLUGINS", "their-mazes", "our-mazes"), ("GEM_PLUGINS", "their-mazes", "their-mazes")],
)
def test_naming_a_distribution_settles_a_double_claim(
    site: Site, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, chosen: str
) -> None:
    site.add("maze", echo("maze"), distribution="their-mazes")
    site.add("maze", echo("maze"), distribution="our-mazes")
    monkeypatch.setenv(variable, value)
    registration = site.manager().find("gem_envs", "maze:Echo-v0")
    assert registration is not None
    assert registration.provenance.distribution == chosen


def test_two_distributions_may_share_a_namespace(site: Site) -> None:
    site.add("maze", echo("maze"))
    site.add("maze", echo("maze").replace("Echo-v0", "Other-v0"), distribution="more-mazes", version="7")
    manager = site.manager()
    assert sorted(ids(manager)) == ["maze:Echo-v0", "maze:Other-v0"]
    registration = manager.find("gem_envs", "maze:Other-v0")
    assert registration is not None
    assert (registration.provenance.distribution, registration.provenance.version) == ("more-mazes", "7")


@pytest.mark.parametrize("foreign", ["game:Corridor-v0", "Echo-v0", "mazes:Echo-v0", ":Echo-v0"])
def test_ids_outside_the_namespace_are_refused(site: Site, foreign: str) -> None:
    site.add("maze", f"@hookimpl\ndef gem_envs():\n    yield EnvSpec({foreign!r}, 'm:A')\n")
    [plugin] = site.manager().load("maze")
    assert plugin.status == "broken"
    assert repr(foreign) in str(plugin.error)
    assert "'maze:'" in str(plugin.error)


def test_plugins_offer_tools_estimators_and_adapters_too(site: Site) -> None:
    site.add(
        "lab",
        """
from gem_core import AdapterSpec, AdvantageSpec, ToolSpec
@hookimpl
def gem_tools():
    return [ToolSpec("lab:add", "m:Add")]
@hookimpl
def gem_advantages():
    return [AdvantageSpec("lab:clipped", "m:clipped")]
@hookimpl
def gem_adapters():
    return [AdapterSpec("labtrainer", "m", distribution="labtrainer", supported=">=1")]
""",
    )
    manager = site.manager()
    for hook, name in [("gem_tools", "lab:add"), ("gem_advantages", "lab:clipped")]:
        registration = manager.find(hook, name)
        assert registration is not None
        assert registration.provenance.plugin == "lab"
    # An adapter is called by its framework's name, which is no namespace.
    assert [registration.spec.id for registration in manager.all_registrations("gem_adapters")] == ["labtrainer"]


BACKEND = """
from gem_core.specs import BackendSpec
from gem_core.vector import ThreadVectorEnv, HostedEnv

def build(homes, builders, plan, workers, **settings):
    hosted = lambda slot: HostedEnv(slot, builders[homes[slot].env_id], autoreset=homes[slot].autoreset)
    return ThreadVectorEnv(hosted, plan, workers or 1, **settings)

@hookimpl
def gem_backends():
    yield BackendSpec("{name}", build)
    yield BackendSpec("{name}:far", "no_module_of_this_name:build", extra="far")
"""


def test_a_plugin_adds_a_backend_under_its_name(site: Site, in_force: Callable[[], PluginManager]) -> None:
    site.add("grid", echo("grid") + BACKEND.format(name="grid"), requires=["far-away; extra == 'far'"])
    unused = site.add("other", echo("other"))
    in_force()
    with gem_core.make_vec("grid:Echo-v0", 2, backend="grid", workers=2, seed=3) as vec:
        assert vec.reset()[0] == ["grid", "grid"]
        assert vec.step(["a", "b"])[1].tolist() == [1.0, 1.0]
    assert unused not in sys.modules
    with pytest.raises(MissingExtraError, match=r"grid:far needs the module .* Next: pip install .*gem-grid\[far\]"):
        gem_core.make_vec("grid:Echo-v0", 2, backend="grid:far")


def test_an_unknown_backend_is_named_with_those_there_are(site: Site, in_force: Callable[[], PluginManager]) -> None:
    site.add("grid", echo("grid") + BACKEND.format(name="grid"))
    site.add("broken", "raise OSError('no licence')")
    in_force()
    known = r"\['sync', 'thread', 'process', 'grid', 'grid:far'\]"
    with pytest.raises(ValueError, match=rf"'girid'. Did you mean .*grid.*\? Use one of {known}, or install"):
        gem_core.make_vec("grid:Echo-v0", backend="girid")
    with pytest.raises(ValueError, match=r"no vector backend 'broken': .* is broken: .*no licence"):
        gem_core.make_vec("grid:Echo-v0", backend="broken")


def test_a_backend_has_the_name_of_its_plugin(site: Site) -> None:
    site.add("grid", BACKEND.format(name="ray"))
    manager = site.manager()
    (plugin,) = manager.load("grid")
    assert "outside its namespace" in plugin.reason


def test_built_in_estimators_need_no_plugin() -> None:
    manager = PluginManager(discover=list)
    registration = manager.find("gem_advantages", "rebn")
    assert registration is not None
    assert registration.provenance.distribution == "gem-core"
    assert manager.plugins() == []


# -- notify ------------------------------------------------------------------------------------------------------------


def test_a_failing_listener_is_logged_by_name_and_the_others_hear(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    listening = "\nheard = []\n@hookimpl\ndef gem_rollout_end(run, error):\n    heard.append((run, error))\n"
    first, last = site.add("a_first", listening), site.add("z_last", listening)
    site.add("middle", "@hookimpl\ndef gem_rollout_end(error):\n    raise KeyError('store')\n")
    manager = site.manager()
    manager.load_all()
    with caplog.at_level(logging.ERROR, "gem_core.plugins"):
        manager.notify("gem_rollout_end", run="run", error=None)
    assert site.module(first).heard == site.module(last).heard == [("run", None)]
    [record] = caplog.records
    assert "middle (gem-middle)" in record.getMessage()
    assert "gem_rollout_end" in record.getMessage()
    assert "KeyError: 'store'" in caplog.text


def test_log_lines_hold_no_codes_that_a_terminal_obeys(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.add("broken", r"raise OSError('\x1b[2J gone')")
    site.add("failing", "@hookimpl\ndef gem_rollout_end(error):\n" + r"    raise OSError('\x1b]0;gone')")
    manager = site.manager()
    with caplog.at_level(logging.WARNING, "gem_core.plugins"):
        manager.load_all()
        manager.notify("gem_rollout_end", run="run", error=None)
    assert "\x1b" not in caplog.text
    assert caplog.text.count(r"\x1b") >= 2


def test_a_failing_object_is_logged_by_its_type(caplog: pytest.LogCaptureFixture) -> None:
    class Tracker:
        @hookimpl
        def gem_episode_end(self, episode: Episode) -> None:
            raise OSError("disk full")

    manager = PluginManager(discover=list)
    manager.register(Tracker())
    manager.register(Tracker())
    with caplog.at_level(logging.ERROR, "gem_core.plugins"):
        manager.notify("gem_episode_end", episode=Episode("demo:A", 1))
    assert [("Tracker" in record.getMessage()) for record in caplog.records] == [True, True]


def test_unregistered_objects_hear_nothing() -> None:
    class Ear:
        def __init__(self) -> None:
            self.heard: list[Episode] = []

        @hookimpl
        def gem_episode_end(self, episode: Episode) -> None:
            self.heard.append(episode)

    manager, ear, episode = PluginManager(discover=list), Ear(), Episode("demo:A", 1)
    manager.register(ear)
    manager.notify("gem_episode_end", episode=episode)
    manager.unregister(ear)
    manager.notify("gem_episode_end", episode=episode)
    assert ear.heard == [episode]


BATCH = """
seen = {}
@hookimpl
def gem_batch(batch, metrics):
    seen.update(batch=batch, metrics=dict(metrics))
    metrics["maze/longest"] = float(batch.turn.max() + 1)
"""


def test_the_batch_hook_adds_metrics(site: Site, in_force: Callable[[], PluginManager]) -> None:
    module = site.add("maze", BATCH)
    in_force().load("maze")
    batch = TurnBatch.from_rewards([[0.0, 0.0, 1.0], [0.5]], group_keys=[0, 1])
    advantages, metrics = compute_advantages("rebn", batch)
    assert metrics["maze/longest"] == 3.0
    assert len(advantages) == 4
    assert site.module(module).seen["metrics"]["advantage/turns"] == 4.0


def test_the_batch_hook_cannot_change_the_batch(
    site: Site, in_force: Callable[[], PluginManager], caplog: pytest.LogCaptureFixture
) -> None:
    site.add("vandal", "@hookimpl\ndef gem_batch(batch):\n    batch.rewards[0] = 1000.0\n")
    in_force().load("vandal")
    batch = TurnBatch.from_rewards([[0.0, 0.0, 1.0], [0.5]], group_keys=[0, 1])
    with caplog.at_level(logging.ERROR, "gem_core.plugins"):
        compute_advantages("rebn", batch)
    assert "read-only" in caplog.text
    assert batch.rewards.tolist() == [0.0, 0.0, 1.0, 0.5]


# -- deciding ----------------------------------------------------------------------------------------------------------

REMOTE = """
asked = []
class Remote(gem_core.Env):
    def __init__(self, kwargs):
        self.kwargs = kwargs
    def reset(self, seed=None, **options):
        return "remote", {}
    def step(self, action):
        return "", 0.0, True, False, {}
    def sample_random_action(self):
        return ""

@hookimpl
def gem_make_env(spec, kwargs):
    asked.append(spec.id)
    return Remote(dict(kwargs)) if "remote" in spec.tags else None
"""


class Local(gem_core.Env):
    def __init__(self, size: int = 1) -> None:
        self.size = size

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        return "local", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        return "", 0.0, True, False, {}

    def sample_random_action(self) -> str:
        return ""


def test_only_enabled_plugins_build_environments(site: Site, in_force: Callable[[], PluginManager]) -> None:
    module = site.add("cloud", REMOTE)
    manager = in_force()
    gem_core.register("demo:Remote-v0", Local, tags=("remote",), kwargs={"size": 2})
    gem_core.register("demo:Local-v0", Local)
    manager.load("cloud")
    assert gem_core.make("demo:Remote-v0").reset()[0] == "local"
    assert site.module(module).asked == []

    manager.enable("cloud")
    remote = gem_core.make("demo:Remote-v0", size=5)
    assert remote.reset()[0] == "remote"
    assert remote.kwargs == {"size": 5}
    assert remote.spec is not None
    assert (remote.spec.id, remote.spec.kwargs) == ("demo:Remote-v0", {"size": 5})
    assert gem_core.make("demo:Local-v0").reset()[0] == "local"
    assert site.module(module).asked == ["demo:Remote-v0", "demo:Local-v0"]


def test_what_a_deciding_plugin_raises_names_the_environment(site: Site, in_force: Callable[[], PluginManager]) -> None:
    site.add("cloud", "@hookimpl\ndef gem_make_env(spec):\n    raise ConnectionError('no host')\n")
    manager = in_force()
    gem_core.register("demo:Local-v0", Local)
    manager.enable("cloud")
    with pytest.raises(gem_core.errors.EnvError, match=r"demo:Local-v0 could not be built.*no host"):
        gem_core.make("demo:Local-v0")


def deciding(answer: str) -> str:
    source = "\nasked = []\n@hookimpl\ndef gem_env_error(error, spec, episode, attempt):\n"
    return f"{source}    asked.append((str(error), spec.id, episode.seed, attempt))\n    return {answer}\n"


POLICY = FailurePolicy()
FAILED = Episode("demo:Local-v0", 7, stop_reason=StopReason.ENV_ERROR, error="OSError: gone")


def failure(attempt: int = 1, kind: FailureKind = FailureKind.RAISED) -> EnvFailure:
    return EnvFailure("demo:Local-v0", 7, kind, "OSError: gone", attempt=attempt)


def test_only_enabled_plugins_decide_about_failures(site: Site, in_force: Callable[[], PluginManager]) -> None:
    module = site.add("decider", "from gem_core.failures import ErrorAction\n" + deciding("ErrorAction.DROP"))
    manager = in_force()
    gem_core.register("demo:Local-v0", Local)
    manager.load("decider")
    assert decide_failure(POLICY, failure(), FAILED) is ErrorAction.TRUNCATE
    assert site.module(module).asked == []
    manager.enable("decider")
    assert decide_failure(POLICY, failure(attempt=3), FAILED) is ErrorAction.DROP
    [(error, env_id, seed, attempt)] = site.module(module).asked
    assert "OSError: gone" in error
    assert (env_id, seed, attempt) == ("demo:Local-v0", 7, 3)


def test_a_plugin_may_answer_by_name_or_leave_it_to_the_next(site: Site, in_force: Callable[[], PluginManager]) -> None:
    silent = site.add("silent", deciding("None"))
    site.add("raising", deciding("'raise'"))
    manager = in_force()
    gem_core.register("demo:Local-v0", Local)
    manager.enable("silent", "raising")
    assert decide_failure(POLICY, failure(), FAILED) is ErrorAction.RAISE
    assert len(site.module(silent).asked) == 1


def test_a_retry_that_cannot_help_is_the_policy_s_case(site: Site, in_force: Callable[[], PluginManager]) -> None:
    site.add("patient", deciding("'retry'"))
    manager = in_force()
    gem_core.register("demo:Local-v0", Local)
    retrying, dropping = FailurePolicy(retries=2), FailurePolicy(retries=2, then="drop")  # type: ignore[arg-type]
    assert [decide_failure(retrying, failure(attempt=attempt), FAILED).value for attempt in (1, 2, 3)] == [
        "retry",
        "retry",
        "truncate",
    ]
    assert decide_failure(dropping, failure(attempt=1, kind=FailureKind.DIVERGED), FAILED) is ErrorAction.DROP
    manager.enable("patient")
    assert decide_failure(dropping, failure(attempt=20), FAILED) is ErrorAction.RETRY
    assert decide_failure(dropping, failure(attempt=20, kind=FailureKind.DIVERGED), FAILED) is ErrorAction.DROP
    assert decide_failure(dropping, failure(attempt=1000), FAILED) is ErrorAction.DROP


@pytest.mark.parametrize("loaded_before", [(), ("a",), ("b",), ("b", "a")])
def test_enabled_plugins_are_asked_in_the_order_they_were_named(
    site: Site, in_force: Callable[[], PluginManager], loaded_before: tuple[str, ...]
) -> None:
    # What was loaded earlier, for an environment or a listing, must not change who decides.
    site.add("a", deciding("'drop'"))
    site.add("b", deciding("'truncate'"))
    manager = in_force()
    gem_core.register("demo:Local-v0", Local)
    for name in loaded_before:
        manager.load(name)
    manager.enable("a", "b")
    assert decide_failure(POLICY, failure(), FAILED) is ErrorAction.DROP


def test_an_answer_that_is_none_of_the_actions_is_the_plugin_s_error(
    site: Site, in_force: Callable[[], PluginManager]
) -> None:
    site.add("decider", deciding("'explode'"))
    manager = in_force()
    gem_core.register("demo:Local-v0", Local)
    manager.enable("decider")
    with pytest.raises(PluginError, match="explode"):
        decide_failure(POLICY, failure(), FAILED)


def test_enabling_needs_a_plugin_that_works(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.add("broken", "1 / 0")
    site.add("off", echo("off"))
    monkeypatch.setenv("GEM_DISABLE_PLUGINS", "off")
    manager = site.manager()
    with pytest.raises(PluginError, match=r"no plugin named 'maze'.*broken, off"):
        manager.enable("maze")
    with pytest.raises(PluginError, match=r"gem-broken 1\.0.*broken") as caught:
        manager.enable("broken")
    assert isinstance(caught.value.__cause__, PluginLoadError)
    with pytest.raises(PluginError, match="disabled"):
        manager.enable("off")


# -- what a missing id says --------------------------------------------------------------------------------------------


def test_an_id_of_a_broken_plugin_shows_why(site: Site, in_force: Callable[[], PluginManager]) -> None:
    site.add("maze", "raise RuntimeError('no display')", version="3.4")
    in_force()
    with pytest.raises(NotFoundError, match=r"maze:Echo-v0.*gem-maze 3\.4.*broken.*no display"):
        gem_core.make("maze:Echo-v0")


def test_an_id_of_a_plugin_that_declares_another_namespace_shows_why(
    site: Site, in_force: Callable[[], PluginManager]
) -> None:
    site.add("foo", "@hookimpl\ndef gem_envs():\n    yield EnvSpec('bar:A-v0', 'm:A')\n")
    in_force()
    for env_id in ("bar:A-v0", "foo:A-v0"):
        with pytest.raises(NotFoundError) as caught:
            gem_core.make(env_id)
        assert "gem-foo 1.0 (plugin 'foo'): id 'bar:A-v0' is outside its namespace. Begin the id with 'foo:'" in str(
            caught.value
        )
        assert "No plugin named" not in str(caught.value)


def test_an_id_of_a_disabled_plugin_shows_why(
    site: Site, in_force: Callable[[], PluginManager], monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add("maze", echo("maze"))
    monkeypatch.setenv("GEM_DISABLE_PLUGINS", "maze")
    in_force()
    with pytest.raises(NotFoundError, match=r"gem-maze 1\.0.*disabled.*GEM_DISABLE_PLUGINS"):
        gem_core.make("maze:Echo-v0")


def test_a_misspelt_hook_makes_a_plugin_broken_not_silent(site: Site) -> None:
    site.add("good", echo("good"))
    site.add("typo", "@hookimpl\ndef gem_envz():\n    return []\n")
    manager = PluginManager()
    assert status(manager)["typo"] == "broken"
    assert status(manager)["good"] == "ok"
    [broken] = [plugin for plugin in manager.plugins() if plugin.name == "typo"]
    assert "gem_envz" in str(broken.error)


def test_a_misspelt_hook_of_an_object_is_refused_and_harms_nobody(site: Site) -> None:
    class Typo:
        @hookimpl
        def gem_episode_ended(self, episode: Episode) -> None: ...

    site.add("good", echo("good"))
    manager = site.manager()
    with pytest.raises(PluginError, match=r"'gem_episode_ended'.* Did you mean 'gem_episode_end'"):
        manager.register(Typo())
    assert status(manager) == {"good": "ok"}
    assert manager.find("gem_advantages", "rebn") is not None


def test_an_argument_that_a_hook_does_not_have_is_refused() -> None:
    class Curious:
        @hookimpl
        def gem_episode_end(self, episode: Episode, weather: str) -> None: ...

    manager, curious = PluginManager(discover=list), Curious()
    with pytest.raises(PluginError, match="weather"):
        manager.register(curious)
    manager.notify("gem_episode_end", episode=None)


def test_a_hook_marked_as_optional_need_not_exist() -> None:
    class Ahead:
        @hookimpl(optionalhook=True)
        def gem_of_the_next_release(self) -> None: ...

    PluginManager(discover=list).register(Ahead())


# -- order and wrappers ------------------------------------------------------------------------------------------------

FIRST, LAST = "tryfirst=True", "trylast=True"
ORDERS = {"a_last": LAST, "b_first": FIRST, "c_plain": "", "d_plain": "", "e_first": FIRST}


def test_listeners_are_called_in_the_order_of_pluggy(site: Site) -> None:
    for name, options in ORDERS.items():
        site.add(name, f"@hookimpl({options})\ndef gem_rollout_start(run):\n    run.append({name!r})\n")
    manager = site.manager()
    manager.load_all()

    class Registered:
        @hookimpl
        def gem_rollout_start(self, run: list[str]) -> None:
            run.append("registered")

    manager.register(Registered())
    called: list[str] = []
    manager.notify("gem_rollout_start", run=called)
    assert called == ["e_first", "b_first", "registered", "d_plain", "c_plain", "a_last"]
    called.clear()
    manager._hooks.hook.gem_rollout_start(run=called)  # pyright: ignore[reportPrivateUsage]
    assert called == ["e_first", "b_first", "registered", "d_plain", "c_plain", "a_last"]


def test_those_who_decide_are_asked_first_or_last_if_they_say_so(site: Site) -> None:
    for name, options in ORDERS.items():
        site.add(name, f"@hookimpl({options})\ndef gem_make_env(spec, kwargs):\n    spec.append({name!r})\n")
    manager = site.manager()
    manager.load_all()
    manager.enable(*ORDERS)
    asked: list[str] = []
    assert manager.decide("gem_make_env", spec=asked, kwargs={}) is None
    assert asked == ["b_first", "e_first", "c_plain", "d_plain", "a_last"]


SEVERAL = """
@hookimpl(trylast=True)
def gem_envs():
    yield EnvSpec("maze:Last-v0", "m:A")

@hookimpl(specname="gem_envs", tryfirst=True)
def first_envs():
    yield EnvSpec("maze:First-v0", "m:A")

@hookimpl(trylast=True)
def gem_find_partner(name, options):
    return "last"

@hookimpl(specname="gem_find_partner")
def find_a(name, options):
    return "plain" if name.endswith("a") else None
"""


def test_functions_of_one_plugin_are_called_in_the_order_of_pluggy(site: Site) -> None:
    site.add("maze", SEVERAL)
    manager = site.manager()
    assert ids(manager) == ["maze:First-v0", "maze:Last-v0"]
    assert [manager.partner(name, {}) for name in ("maze:a", "maze:b")] == ["plain", "last"]


HOOKS = [name for name in vars(hookspecs) if name.startswith("gem_")]


@pytest.mark.parametrize("option", ["wrapper", "hookwrapper"])
@pytest.mark.parametrize("hook", HOOKS)
def test_a_wrapper_is_refused_for_every_hook(site: Site, hook: str, option: str) -> None:
    source = f"@hookimpl({option}=True)\ndef {hook}():\n    yield\n"
    site.add("good", echo("good"))
    module = site.add("wrapping", source)
    manager = site.manager()
    message = f"plugin {{!r}} implements {hook!r} as a wrapper, which gem-core does not run. Write a plain"
    assert status(manager) == {"good": "ok", "wrapping": "broken"}
    [wrapping] = manager.load("wrapping")
    assert message.format("wrapping (gem-wrapping)") in wrapping.reason
    with pytest.raises(PluginError, match=message.format(module)):
        manager.register(site.module(module))
    assert manager.listeners(hook) == ([site.module(site.modules[0])] if hook == "gem_envs" else [])


# -- plugins that would end the process --------------------------------------------------------------------------------

EXITING = "import sys\n@hookimpl\ndef {hook}:\n    sys.exit(3)\n"


@pytest.mark.parametrize("ending", ["", "    yield\n"])
def test_a_plugin_that_exits_while_it_is_loaded_is_broken(site: Site, ending: str) -> None:
    site.add("quitter", EXITING.format(hook="gem_envs()") + ending)
    site.add("good", echo("good"))
    manager = site.manager()
    assert status(manager) == {"good": "ok", "quitter": "broken"}


def test_a_plugin_that_exits_in_a_hook_ends_no_run(
    site: Site, in_force: Callable[[], PluginManager], caplog: pytest.LogCaptureFixture
) -> None:
    site.add("good", echo("good"))
    for hook in ("gem_episode_end(episode)", "gem_make_env(spec, kwargs)"):
        site.add(f"exits_{hook[:8]}", EXITING.format(hook=hook))
    manager = in_force()
    manager.load_all()
    with caplog.at_level(logging.ERROR, "gem_core.plugins"):
        manager.notify("gem_episode_end", episode=Episode("demo:A", 1))
    assert "exits_gem_epis" in caplog.text
    manager.enable("exits_gem_make")
    with pytest.raises(PluginError, match=r"exits_gem_make.*failed in gem_make_env at \S+\.py:6: SystemExit: 3"):
        gem_core.make("good:Echo-v0")


# What pytest raises for a skipped test and asyncio for a cancelled task: neither is an Exception.
SKIPPING = "import pytest\npytest.skip('needs a display', allow_module_level=True)\n"
CANCELLING = "import asyncio\n@hookimpl\ndef {hook}:\n    raise asyncio.CancelledError('gone')\n"


@pytest.mark.parametrize("source", [SKIPPING, CANCELLING.format(hook="gem_envs()")])
def test_whatever_a_plugin_raises_while_it_is_loaded_it_is_broken(site: Site, source: str) -> None:
    site.add("odd", source)
    site.add("good", echo("good"))
    manager = site.manager()
    assert ids(manager) == ["good:Echo-v0"]
    assert status(manager) == {"good": "ok", "odd": "broken"}


def test_whatever_a_listener_raises_the_others_hear(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.add("a_odd", CANCELLING.format(hook="gem_episode_end(episode)"))
    heard = site.add("z_last", "\nheard = []\n@hookimpl\ndef gem_episode_end(episode):\n    heard.append(episode)\n")
    manager = site.manager()
    manager.load_all()
    with caplog.at_level(logging.ERROR, "gem_core.plugins"):
        manager.notify("gem_episode_end", episode=Episode("demo:A", 1))
    assert len(site.module(heard).heard) == 1
    assert "CancelledError: gone" in caplog.text


def test_whatever_a_deciding_plugin_raises_is_an_error_of_this_project(
    site: Site, in_force: Callable[[], PluginManager]
) -> None:
    site.add("odd", CANCELLING.format(hook="gem_make_env(spec)"))
    manager = in_force()
    gem_core.register("demo:Local-v0", Local)
    manager.enable("odd")
    with pytest.raises(
        PluginError, match=r"'odd \(gem-odd\)' failed in gem_make_env at \S+\.py:6: CancelledError: gone"
    ):
        gem_core.make("demo:Local-v0")


def test_an_interruption_passes_through(site: Site) -> None:
    site.add("slow", "@hookimpl\ndef gem_envs():\n    raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        site.manager().load("slow")


def test_a_former_hook_says_what_to_use_instead(site: Site, in_force: Callable[[], PluginManager]) -> None:
    site.add("maze", "@hookimpl\ndef gem_commands(cli):\n    pass\n")
    (plugin,) = in_force().load("maze")
    assert "Commands are entry points of the group 'gem_core.commands' now" in plugin.reason


def test_an_object_is_registered_once() -> None:
    class Listener:
        @hookimpl
        def gem_batch(self, batch: Any) -> None: ...

    manager, listener = PluginManager(discover=list), Listener()
    manager.register(listener)
    with pytest.raises(PluginError, match="is registered already"):
        manager.register(listener)
    assert manager.listens("gem_batch")


def test_none_decides_if_one_cannot(site: Site, in_force: Callable[[], PluginManager]) -> None:
    site.add("maze", "")
    site.add("wreck", "raise ValueError")
    manager = in_force()
    with pytest.raises(PluginError, match="wreck"):
        manager.enable("maze", "wreck")
    assert manager.enabled == ()
