"""Frameworks: which version is here, and whether it fits."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gem_core.errors import AdapterError, FrameworkVersionError
from gem_core.installation import install_line
from gem_core.specs import AdapterSpec
from gem_train import installed_version, is_supported, require
from gem_train.versions import remedy

if TYPE_CHECKING:
    from gem_support.core_fixtures import Site

SPEC = AdapterSpec("gymlab", "gem_gymlab", distribution="gym-lab", supported=">=1.16,<2", extra="gymlab")


@pytest.mark.parametrize(
    ("version", "supported"),
    [
        ("1.15.9", False),
        ("1.16", True),
        ("1.16.0", True),
        ("1.16.0.dev0", False),
        ("1.17.0rc1", True),
        ("1.99.3+cu128", True),
        ("2.0", False),
        ("2.0.0rc1", False),
    ],
)
def test_the_range_decides_and_prereleases_count_by_their_number(version: str, supported: bool) -> None:
    assert is_supported(SPEC, version) is supported


def test_a_missing_framework_says_what_to_install() -> None:
    assert installed_version(SPEC) is None
    with pytest.raises(FrameworkVersionError) as caught:
        require(SPEC)
    assert "gym-lab>=1.16,<2" in str(caught.value)
    assert "not installed" in str(caught.value)
    assert install_line("gymlab") in str(caught.value)
    assert isinstance(caught.value, AdapterError)
    assert isinstance(caught.value, ImportError)


def test_what_an_extra_needs_first_comes_first() -> None:
    built = replace(SPEC, before=("--no-deps torch",))
    assert remedy(built) == f"pip install --no-deps torch && {install_line('gymlab')}"


def test_an_extra_for_another_python_says_so() -> None:
    other, here = "2.7", ".".join(map(str, sys.version_info[:2]))
    assert remedy(replace(SPEC, python=here)) == install_line("gymlab")
    words = f"in an environment with Python {other}, which gym-lab needs (this is {here}): {install_line('gymlab')}"
    assert remedy(replace(SPEC, python=other)) == words


def test_the_extra_is_that_of_the_distribution_which_declares_the_adapter() -> None:
    assert remedy(replace(SPEC, declared_by="gem-lab")) == 'pip install "gem-lab[gymlab]"'


def test_an_installed_framework_in_range_is_fine(site: Site) -> None:
    site.declare("unused", "unused", distribution="gym-lab", version="1.20.1")
    assert installed_version(SPEC) == "1.20.1"
    require(SPEC)


def test_a_framework_out_of_range_is_named_with_its_version(site: Site) -> None:
    site.declare("unused", "unused", distribution="gym-lab", version="2.1")
    with pytest.raises(FrameworkVersionError, match=r"supports gym-lab>=1\.16,<2, but 2\.1 is installed"):
        require(SPEC)


CLONED = AdapterSpec(
    "gymlab", "gem_gymlab", distribution="gymlab", supported=">=0.3,<0.4", clone="https://x.org/gymlab"
)


def clone(folder: Path, monkeypatch: pytest.MonkeyPatch, setup: str | None) -> None:
    """A package `gymlab` on the path, and beside it what its repository has."""
    (folder / "gymlab").mkdir()
    (folder / "gymlab" / "__init__.py").touch()
    if setup is not None:
        (folder / "setup.py").write_text(setup)
    monkeypatch.syspath_prepend(folder)


def test_a_clone_is_of_the_version_that_its_setup_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clone(tmp_path, monkeypatch, "from setuptools import setup\nsetup(\n    name='gymlab',\n    version='0.3.7',\n)\n")
    assert installed_version(CLONED) == "0.3.7"
    require(CLONED)


@pytest.mark.parametrize(
    "setup", [None, "import setuptools\n", "setup(name='another', version='0.3.7')", "setup(name=n)"]
)
def test_another_project_of_that_name_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setup: str | None
) -> None:
    clone(tmp_path, monkeypatch, setup)
    assert installed_version(CLONED) is None
    with pytest.raises(FrameworkVersionError, match=r"Next: git clone https://x\.org/gymlab, and put it on"):
        require(CLONED)


def test_a_clone_of_another_version_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clone(tmp_path, monkeypatch, "setup(name='gymlab', version='0.4.0')")
    with pytest.raises(FrameworkVersionError, match=r"but 0\.4\.0 is installed"):
        require(CLONED)


def test_a_folder_that_is_no_package_is_no_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gymlab").mkdir()
    (tmp_path / "setup.py").write_text("setup(name='gymlab', version='0.3.7')")
    monkeypatch.syspath_prepend(tmp_path)
    assert installed_version(CLONED) is None
