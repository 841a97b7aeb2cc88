"""What importing costs: nothing but the standard library until something is used."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path

import pytest

import gem_core

_REPORT = "import json, sys; before = set(sys.modules); {code}; print(json.dumps(sorted(set(sys.modules) - before)))"


def modules_imported_by(code: str) -> set[str]:
    """Names of the modules that `code` adds to a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", _REPORT.format(code=code)], capture_output=True, text=True, timeout=240, check=True
    )
    return set(json.loads(done.stdout))


def packages(modules: set[str]) -> set[str]:
    """Top-level names outside the standard library."""
    return {name.partition(".")[0] for name in modules} - set(sys.stdlib_module_names)


def test_the_version_is_that_of_the_distribution() -> None:
    assert gem_core.__version__ == importlib.metadata.version("gem-core")


def test_importing_the_core_imports_nothing_else() -> None:
    imported = modules_imported_by("import gem_core")
    assert packages(imported) == {"gem_core"}
    assert "importlib.metadata" not in imported


def test_what_a_plugin_module_imports_is_light_and_reads_no_metadata() -> None:
    # Entry points are listed by importlib.metadata.entry_points, metadata is read through distribution().
    watch = (
        "import importlib.metadata as m; "
        "m.entry_points = m.distribution = m.version = lambda *a, **k: 1 / 0; "
        "from gem_core import hookimpl, Env, Wrapper, EnvSpec, ToolSpec, AdvantageSpec, AdapterSpec, make, make_vec"
    )
    assert packages(modules_imported_by(watch)) == {"gem_core", "pluggy"}


def test_making_an_environment_loads_its_own_plugin_only() -> None:
    imported = packages(modules_imported_by('import gem_core; gem_core.make("game:Corridor-v0").reset(seed=0)'))
    assert imported <= {"gem_core", "gem_games", "pluggy", "packaging"}
    assert "gem_games" in imported


def test_command_line_and_arrays_wait_until_they_are_used() -> None:
    imported = packages(modules_imported_by("import gem_core.registry, gem_core.vector, gem_core.wrappers"))
    assert not imported & {"numpy", "torch", "msgspec", "typer", "rich", "packaging", "transformers"}


def test_a_worker_process_reads_no_metadata() -> None:
    """It would take a sixth longer to start."""
    assert "importlib.metadata" not in modules_imported_by("import gem_core.vector._worker, gem_core.registry")


def test_rollouts_need_no_framework() -> None:
    imported = packages(modules_imported_by("import gem_train.rollout"))
    assert not imported & {"torch", "transformers", "tokenizers", "typer", "rich"}
    assert {name for name in imported if name.startswith("gem_")} == {"gem_core", "gem_train"}


def test_every_module_can_be_imported_first() -> None:
    """On one Python before all others; circles of imports are the same on each. Elsewhere they can be imported."""
    code = """
import importlib, pkgutil, sys
import gem_core
names = [one.name for one in pkgutil.walk_packages(gem_core.__path__, "gem_core.")]
names = [name for name in names if not name.endswith("__main__")]
first = sys.version_info[:2] == (3, 11)
for name in names:
    for loaded in [one for one in sys.modules if first and one.partition(".")[0] == "gem_core"]:
        del sys.modules[loaded]
    try:
        importlib.import_module(name)
    except ImportError as error:
        if type(error).__name__ != "MissingExtraError":  # it says what to install
            raise
"""
    subprocess.run([sys.executable, "-c", code], timeout=240, check=True)


@pytest.mark.skipif(sys.version_info[:2] == (3, 11), reason="the plugins' own tests run on this Python")
def test_every_module_of_a_plugin_can_be_imported() -> None:
    """But for those whose requirements are not installed here; `tests/lint` knows that they are declared."""
    code = """
import importlib, importlib.util, pkgutil
from importlib.metadata import distribution
points = [point for point in distribution("gem-core").entry_points if point.group == "gem_core.plugins"]
names = sorted({point.module.partition(".")[0] for point in points})
imported = []
while names:
    try:
        module = importlib.import_module(name := names.pop())
    except ImportError as error:
        package = str(error.name).partition(".")[0]
        is_absent = isinstance(error, ModuleNotFoundError) and importlib.util.find_spec(package) is None
        if (is_absent and not package.startswith("gem_")) or type(error).__name__ == "MissingExtraError":
            continue
        raise
    imported.append(name)
    inside = [one.name for one in pkgutil.iter_modules(getattr(module, "__path__", []), name + ".")]
    names += [one for one in inside if not one.endswith("__main__")]
assert len(imported) > 100, imported
"""
    subprocess.run([sys.executable, "-c", code], timeout=240, check=True)


def test_public_names_resolve() -> None:
    assert all(callable(getattr(gem_core, name)) for name in gem_core.__all__)
    assert set(gem_core.__all__) <= set(dir(gem_core))


@pytest.mark.parametrize(
    "use",
    [
        "gem_core.plugins.manager.plugins()",
        "gem_core.registry.make_tool",
        "gem_core.errors.GemError",
        "gem_core.advantages.TurnBatch",
    ],
)
def test_modules_are_loaded_on_first_use_as_the_documentation_writes_them(use: str) -> None:
    subprocess.run([sys.executable, "-c", f"import gem_core; {use}"], timeout=240, check=True)


def test_a_module_that_cannot_be_imported_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gem_core_test_part.py").write_text("import a_module_that_is_not_there\n")
    monkeypatch.setattr(gem_core, "__path__", [*gem_core.__path__, str(tmp_path)])
    with pytest.raises(ModuleNotFoundError, match="a_module_that_is_not_there"):
        _ = gem_core.gem_core_test_part


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = gem_core.no_such_name
    assert not hasattr(gem_core, "no_such_name")
    assert not hasattr(gem_core, "no_such.name")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("gem_core.rollout", "gem_train.rollout"),
        ("gem_core.training.rows", "gem_train.rows"),
        ("gem_core.records", "gem_train.records"),
        ("gem_core.testing", "gem_testing"),
        ("gem_core.compat", "gem_compat"),
        ("gem_core.interop", "gem_compat.interop"),
    ],
)
def test_a_module_that_has_moved_answers_under_its_old_name_with_a_warning(old: str, new: str) -> None:
    code = f"import importlib, {old}; assert {old} is importlib.import_module({new!r})"
    done = subprocess.run([sys.executable, "-c", code], timeout=240, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"<string>:1: FutureWarning: {old} is now {new}" in done.stderr
