"""Environments by name: what is found, what is refused, and what the refusal says."""

from __future__ import annotations

import importlib.metadata
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

import gem_core
from gem_core import Env, EnvSpec, hookimpl
from gem_core.errors import (
    DuplicateIdError,
    EnvError,
    EnvKwargsError,
    MissingExtraError,
    NotFoundError,
    PluginError,
    PluginLoadError,
)
from gem_core.installation import install_line
from gem_core.plugins import PluginManager
from gem_core.registry import advantage_spec, build, provenance
from gem_testing import IsolatedPluginManager

if TYPE_CHECKING:
    from gem_support.core_fixtures import Site


class Counter(Env):
    """Counts to `target`."""

    def __init__(self, target: int = 3, label: str = "count") -> None:
        if target < 1:
            raise ValueError(f"cannot count to {target}")
        self.target = target
        self.label = label
        self.count = 0

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.count = 0
        return f"{self.label} 0", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.count += 1
        done = self.count >= self.target
        return f"{self.label} {self.count} {self.rng.random():.3f}", 1.0, done, False, {"success": done}

    def sample_random_action(self) -> str:
        return "on"


class Flexible(Counter):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)


@pytest.fixture(autouse=True)
def _nothing_installed(in_force: Callable[[], PluginManager]) -> None:
    in_force()


# -- make --------------------------------------------------------------------------------------------------------------


def test_make_builds_with_the_specs_arguments_and_overrides_one_by_one() -> None:
    gem_core.register("demo:Counter-v0", Counter, kwargs={"target": 5, "label": "n"})
    env = gem_core.make("demo:Counter-v0", target=2)
    assert isinstance(env, Counter)
    assert (env.target, env.label) == (2, "n")
    assert env.spec is not None
    assert env.spec.id == "demo:Counter-v0"
    assert env.spec.kwargs == {"target": 2, "label": "n"}
    # The id itself is as it was.
    assert gem_core.spec("demo:Counter-v0").kwargs == {"target": 5, "label": "n"}


def test_make_takes_a_spec() -> None:
    env = gem_core.make(EnvSpec("demo:Unregistered-v0", Counter, {"target": 4}))
    assert env.target == 4


def test_an_entry_point_may_be_a_string(site: Site) -> None:
    (site.folder / "gem_registry_by_name.py").write_text(
        "from test_registry import Counter\nclass Named(Counter):\n    pass\n"
    )
    gem_core.register("demo:Named-v0", "gem_registry_by_name:Named")
    assert type(gem_core.make("demo:Named-v0")).__name__ == "Named"


def test_an_unknown_argument_names_the_near_match_and_what_there_is() -> None:
    gem_core.register("demo:Counter-v0", Counter)
    with pytest.raises(EnvKwargsError) as caught:
        gem_core.make("demo:Counter-v0", targt=2)
    message = str(caught.value)
    assert "demo:Counter-v0" in message
    assert "'targt'" in message
    assert "Did you mean 'target'?" in message
    assert "target, label" in message
    assert isinstance(caught.value, TypeError)


def test_an_unknown_argument_of_the_spec_is_an_error_too() -> None:
    gem_core.register("demo:Counter-v0", Counter, kwargs={"labell": "x"})
    with pytest.raises(EnvKwargsError, match="Did you mean 'label'"):
        gem_core.make("demo:Counter-v0")


def test_a_missing_argument_is_named_with_what_there_is() -> None:
    class Folder(Counter):
        def __init__(self, tasks: str, *, places: int, target: int = 3) -> None:
            super().__init__(target)

    gem_core.register("demo:Folder-v0", Folder)
    with pytest.raises(EnvKwargsError, match=r"Folder-v0 needs a value for places\. It takes: tasks, places, target"):
        gem_core.make("demo:Folder-v0", tasks="here")
    with pytest.raises(EnvKwargsError, match=r"needs a value for tasks, places\."):
        gem_core.make("demo:Folder-v0")
    assert gem_core.make("demo:Folder-v0", tasks="here", places=2).target == 3


def test_a_constructor_that_passes_arguments_on_is_called() -> None:
    gem_core.register("demo:Flexible-v0", Flexible)
    assert gem_core.make("demo:Flexible-v0", target=7).target == 7
    with pytest.raises(EnvError, match=r"demo:Flexible-v0.*nonsense"):
        gem_core.make("demo:Flexible-v0", nonsense=7)


def test_what_a_constructor_raises_is_an_environment_error_with_its_arguments() -> None:
    gem_core.register("demo:Counter-v0", Counter)
    with pytest.raises(EnvError, match=r"demo:Counter-v0.*'target': 0.*ValueError: cannot count to 0") as caught:
        gem_core.make("demo:Counter-v0", target=0)
    assert isinstance(caught.value.__cause__, ValueError)


def test_what_is_no_environment_is_refused() -> None:
    gem_core.register("demo:Dict-v0", lambda: {"not": "an environment"})
    with pytest.raises(EnvError, match=r"demo:Dict-v0.*not a gem_core\.Env"):
        gem_core.make("demo:Dict-v0")


# -- what is missing ---------------------------------------------------------------------------------------------------


def test_a_missing_module_names_the_extra_to_install() -> None:
    spec = EnvSpec("demo:Heavy-v0", "a_module_that_is_not_there.env:Heavy", extra="kiwix")
    with pytest.raises(MissingExtraError) as caught:
        gem_core.make(spec)
    assert "demo:Heavy-v0" in str(caught.value)
    assert "a_module_that_is_not_there" in str(caught.value)
    assert install_line("kiwix") in str(caught.value)
    assert isinstance(caught.value, ImportError)


def test_a_module_missed_by_the_constructor_names_the_extra_too() -> None:
    def lazily(**kwargs: Any) -> Env:
        import a_module_that_is_not_there  # pyright: ignore[reportMissingImports] # noqa: F401

        return Counter()

    with pytest.raises(MissingExtraError, match=rf"a_module_that_is_not_there.*{re.escape(install_line('kiwix'))}"):
        gem_core.make(EnvSpec("demo:Heavy-v0", lazily, extra="kiwix"))


def test_a_missing_module_without_an_extra_names_the_module() -> None:
    with pytest.raises(MissingExtraError, match="install the package that provides 'a_module_that_is_not_there'"):
        gem_core.make(EnvSpec("demo:Heavy-v0", "a_module_that_is_not_there:Heavy"))


THIRD_PARTY = """
from gem_core import ToolSpec
@hookimpl
def gem_envs():
    yield EnvSpec("maze:Drawn-v0", "no_such_pen:Maze", extra="render")
    yield EnvSpec("maze:Plain-v0", "no_such_ink:Maze")
@hookimpl
def gem_find_env(env_id):
    return EnvSpec(env_id, "no_such_pen:Maze", extra="render")
@hookimpl
def gem_tools():
    yield ToolSpec("maze:pen", "no_such_pen:Pen", extra="render")
"""


def test_a_missing_module_names_the_extra_of_the_distribution_that_declared_it(
    site: Site, in_force: Callable[[], PluginManager]
) -> None:
    site.add("maze", THIRD_PARTY, requires=["gem-core", "no-such-pen; extra == 'render'"])
    in_force()
    for make, name in [
        (gem_core.make, "maze:Drawn-v0"),
        (gem_core.make, "maze:OnDemand-v0"),
        (gem_core.make_tool, "maze:pen"),
    ]:
        with pytest.raises(MissingExtraError) as caught:
            make(name)
        assert str(caught.value).endswith('Next: pip install "gem-maze[render]"')
    assert gem_core.spec("maze:Drawn-v0").declared_by == "gem-maze"
    with pytest.raises(MissingExtraError, match="Next: install the package that provides 'no_such_ink'"):
        gem_core.make("maze:Plain-v0")


def test_a_missing_module_of_a_distribution_without_its_dependencies_names_what_it_lacks(
    site: Site, in_force: Callable[[], PluginManager]
) -> None:
    site.add("maze", THIRD_PARTY, requires=["gem-core", "no-such-ink>=2", "no-such-pen; extra == 'render'"])
    in_force()
    with pytest.raises(MissingExtraError, match=r'Next: pip install "no-such-ink>=2"$'):
        gem_core.make("maze:Plain-v0")


def test_a_missing_module_of_a_plugin_without_metadata_is_named() -> None:
    class Plugin:
        @hookimpl
        def gem_envs(self) -> list[EnvSpec]:
            return [EnvSpec("demo:A-v0", "no_such_ink:Maze"), EnvSpec("demo:B-v0", "no_such_pen:Maze", extra="render")]

    isolated = IsolatedPluginManager()
    isolated.add_plugin("demo", Plugin(), distribution="no-such-distribution")
    plain, drawn = (one.spec for one in isolated.registrations("gem_envs", "demo"))
    with pytest.raises(MissingExtraError, match="install the package that provides 'no_such_ink'"):
        gem_core.make(plain)
    # Nobody knows what would install it: there is no such extra.
    with pytest.raises(MissingExtraError, match="install the package that provides 'no_such_pen'"):
        gem_core.make(drawn)


def test_a_module_missing_in_an_installed_package_is_a_matter_of_versions(site: Site) -> None:
    package = site.folder / "gem_registry_badep"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (site.folder / "gem_registry_user.py").write_text("x = 1\nimport gem_registry_badep.nosuch\n")
    with pytest.raises(MissingExtraError) as caught:
        gem_core.make(EnvSpec("demo:Heavy-v0", "gem_registry_user:Heavy"))
    assert str(caught.value) == (
        "demo:Heavy-v0 needs the module 'gem_registry_badep.nosuch' "
        f"(imported at {site.folder}/gem_registry_user.py:2), "
        "which the installed package 'gem_registry_badep' does not have. "
        "Next: install the version of 'gem_registry_badep' that this plugin was written for"
    )


def test_an_entry_point_that_names_no_module_is_the_plugins_mistake(site: Site) -> None:
    (site.folder / "gem_registry_mazes").mkdir()
    (site.folder / "gem_registry_mazes" / "__init__.py").write_text("")
    with pytest.raises(PluginError, match=r"'gem_registry_mazes\.frok:Fork' names the module .* which does not exist"):
        gem_core.make(EnvSpec("demo:Fork-v0", "gem_registry_mazes.frok:Fork"))


def test_a_wrapper_that_fails_or_gives_no_environment_is_an_environment_error() -> None:
    spec = EnvSpec("demo:Counter-v0", Counter)

    def failing(env: Env) -> Env:
        raise OSError("no frame")

    with pytest.raises(EnvError, match=r"demo:Counter-v0: wrapping it with .*failing.* failed: OSError: no frame"):
        build(spec, {}, [failing])
    with pytest.raises(EnvError, match=r"demo:Counter-v0: the wrapper .* returned 3, which is not a gem_core\.Env"):
        build(spec, {}, [lambda env: 3])  # type: ignore[arg-type,return-value]


def test_a_module_that_raises_names_the_environment(site: Site) -> None:
    (site.folder / "gem_registry_raises.py").write_text("raise RuntimeError('no display')")
    with pytest.raises(PluginLoadError, match=r"demo:Broken-v0.*gem_registry_raises.*no display"):
        gem_core.make(EnvSpec("demo:Broken-v0", "gem_registry_raises:Env"))


def test_an_unknown_id_names_near_matches_of_its_namespace(site: Site) -> None:
    site.add("maze", "@hookimpl\ndef gem_envs():\n    yield EnvSpec('maze:Labyrinth-v0', 'm:A')\n")
    with pytest.raises(NotFoundError) as caught:
        gem_core.make("maze:Labyrint-v0")
    assert "Did you mean 'maze:Labyrinth-v0'?" in str(caught.value)
    assert "gem-core list" in str(caught.value)
    assert isinstance(caught.value, LookupError)


def test_an_unknown_namespace_names_what_is_installed_and_where_the_id_is(site: Site) -> None:
    site.add("maze", "@hookimpl\ndef gem_envs():\n    yield EnvSpec('maze:Labyrinth-v0', 'm:A')\n")
    with pytest.raises(NotFoundError) as caught:
        gem_core.make("labyrinths:Labyrinth-v0")
    assert "No plugin named 'labyrinths' is installed (installed: maze)" in str(caught.value)
    assert "Did you mean 'maze:Labyrinth-v0'?" in str(caught.value)


def test_an_id_without_its_namespace_finds_it(site: Site) -> None:
    site.add("maze", "@hookimpl\ndef gem_envs():\n    yield EnvSpec('maze:Labyrinth-v0', 'm:A')\n")
    with pytest.raises(NotFoundError, match="Did you mean 'maze:Labyrinth-v0'"):
        gem_core.make("Labyrinth-v0")


ON_DEMAND = """
@hookimpl
def gem_find_env(env_id):
    size = env_id.removeprefix("maze:Square-")
    if size == "huge":
        raise OSError("no room")
    if size == "big":
        raise gem_core.errors.NotFoundError("no maze is that big")
    if size == "odd":
        return EnvSpec("bank:Square-odd", "m:A")
    if size.isdecimal():
        return EnvSpec(env_id, "m:A", {"size": int(size)}, libraries=("pluggy", "gem-nowhere"))
"""


def test_a_plugin_finds_ids_that_it_does_not_list(site: Site) -> None:
    site.add("maze", ON_DEMAND, version="2.5")
    assert gem_core.spec("maze:Square-7").kwargs == {"size": 7}
    assert str(provenance("maze:Square-7")) == (
        f"gem-maze 2.5 (plugin 'maze', pluggy {importlib.metadata.version('pluggy')}, gem-nowhere (not installed))"
    )
    with pytest.raises(NotFoundError, match="no environment 'maze:Square-none'"):
        gem_core.spec("maze:Square-none")
    with pytest.raises(NotFoundError, match="no maze is that big"):
        gem_core.spec("maze:Square-big")
    with pytest.raises(PluginError, match=r"gem-maze 2.5 .*: finding 'maze:Square-huge' failed.*OSError: no room"):
        gem_core.spec("maze:Square-huge")
    with pytest.raises(PluginError, match="outside its namespace"):
        gem_core.spec("maze:Square-odd")


def test_only_the_plugin_of_the_namespace_is_asked(site: Site) -> None:
    site.add("maze", ON_DEMAND)
    with pytest.raises(NotFoundError):
        gem_core.spec("bank:Square-7")
    with pytest.raises(NotFoundError):
        gem_core.spec("7")


def test_an_unknown_estimator_names_those_there_are() -> None:
    with pytest.raises(NotFoundError) as caught:
        advantage_spec("rebm")
    assert "Did you mean 'rebn'" in str(caught.value)
    assert "grpo" in str(caught.value)
    assert advantage_spec("grpo").needs_groups


# -- register ----------------------------------------------------------------------------------------------------------


def test_registering_again_replaces() -> None:
    gem_core.register("demo:Counter-v0", Counter, kwargs={"target": 1})
    gem_core.register("demo:Counter-v0", Counter, kwargs={"target": 2}, tags=("b",))
    assert gem_core.make("demo:Counter-v0").target == 2
    assert gem_core.spec("demo:Counter-v0").tags == ("b",)


@pytest.mark.parametrize("env_id", ["Counter-v0", "demo:", ":Counter-v0", ""])
def test_ids_without_a_namespace_or_name_are_refused(env_id: str) -> None:
    with pytest.raises(EnvError, match="namespace:Name"):
        gem_core.register(env_id, Counter)


def test_an_id_of_an_installed_plugin_cannot_be_taken_over(site: Site) -> None:
    site.add("maze", "@hookimpl\ndef gem_envs():\n    yield EnvSpec('maze:A-v0', 'm:A')\n", version="2.5")
    with pytest.raises(EnvError, match=r"'maze:A-v0' belongs to gem-maze 2\.5"):
        gem_core.register("maze:A-v0", Counter)
    gem_core.register("maze:B-v0", Counter)
    assert gem_core.make("maze:B-v0").target == 3


def test_a_plugin_that_claims_a_registered_id_later_is_a_duplicate(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.add("maze", "@hookimpl\ndef gem_envs():\n    yield EnvSpec('maze:A-v0', 'm:A')\n")
    gem_core.registry.manager.add("gem_envs", EnvSpec("maze:A-v0", Counter))
    with pytest.raises(DuplicateIdError, match=r"<in-process>.*gem-maze 1\.0|gem-maze 1\.0.*<in-process>"):
        gem_core.make("maze:A-v0")


def test_provenance_is_the_distribution_and_its_version(site: Site) -> None:
    site.add("maze", "@hookimpl\ndef gem_envs():\n    yield EnvSpec('maze:A-v0', 'm:A')\n", version="2.5")
    assert str(provenance("maze:A-v0")) == "gem-maze 2.5 (plugin 'maze')"
    gem_core.register("demo:Counter-v0", Counter)
    assert "<in-process>" in str(provenance("demo:Counter-v0"))
    with pytest.raises(NotFoundError):
        provenance("demo:Nothing-v0")


# -- spawn -------------------------------------------------------------------------------------------------------------


def test_spawn_builds_another_of_the_same_kind() -> None:
    gem_core.register("demo:Counter-v0", Counter, kwargs={"target": 5})
    env = gem_core.make("demo:Counter-v0", label="n")
    env.reset(seed=0)
    env.step("on")
    twin = env.spawn()
    assert (twin.target, twin.label, twin.count) == (5, "n", 0)
    assert env.spawn(target=9).target == 9
    assert env.target == 5
    with pytest.raises(EnvKwargsError):
        env.spawn(targt=9)


def test_spawn_in_the_same_state_goes_on_alike_and_apart() -> None:
    gem_core.register("demo:Counter-v0", Counter, kwargs={"target": 50})
    env = gem_core.make("demo:Counter-v0")
    env.reset(seed=0)
    env.step("on")
    twin, third = env.spawn(same_state=True), env.spawn(same_state=True)
    ahead = [env.step("on") for _ in range(5)]
    assert [twin.step("on") for _ in range(5)] == ahead
    assert [third.step("on") for _ in range(5)] == ahead


def test_spawn_needs_an_environment_that_was_made() -> None:
    with pytest.raises(EnvError, match=r"not built by gem_core\.make"):
        Counter().spawn()


def test_the_first_party_games_come_from_this_distribution() -> None:
    before = gem_core.registry.manager
    gem_core.registry.manager = PluginManager()
    try:
        assert gem_core.make("game:GuessTheNumber-v0-easy").spec.kwargs["max_turns"] == 4
        assert provenance("game:Corridor-v0").distribution == "gem-core"
    finally:  # before the fixture puts the process's own back
        gem_core.registry.manager = before


def test_a_constructor_or_module_that_exits_is_an_error(site: Site) -> None:
    class Exits(Env):
        def __init__(self) -> None:
            sys.exit(3)

        def reset(self, seed: int | None = None, **options: Any) -> Any: ...
        def step(self, action: str) -> Any: ...
        def sample_random_action(self) -> Any: ...

    gem_core.register("demo-registry:Exits-v0", Exits)
    with pytest.raises(EnvError, match=r"Exits-v0 could not be built with {}: SystemExit: 3"):
        gem_core.make("demo-registry:Exits-v0")
    module = site.add("script", "import sys\nsys.exit(3)\n")
    gem_core.register("demo-registry:Script-v0", f"{module}:Maze")
    with pytest.raises(PluginLoadError, match="SystemExit: 3"):
        gem_core.make("demo-registry:Script-v0")
