"""Frameworks: which version is here, and whether it fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gem_core.adapters import installed_version, is_supported, require
from gem_core.errors import AdapterError, FrameworkVersionError
from gem_core.specs import AdapterSpec

if TYPE_CHECKING:
    from conftest import Site

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
    assert 'pip install "gem-core[gymlab]"' in str(caught.value)
    assert isinstance(caught.value, AdapterError)
    assert isinstance(caught.value, ImportError)


def test_an_installed_framework_in_range_is_fine(site: Site) -> None:
    site.declare("unused", "unused", distribution="gym-lab", version="1.20.1")
    assert installed_version(SPEC) == "1.20.1"
    require(SPEC)


def test_a_framework_out_of_range_is_named_with_its_version(site: Site) -> None:
    site.declare("unused", "unused", distribution="gym-lab", version="2.1")
    with pytest.raises(FrameworkVersionError, match=r"supports gym-lab>=1\.16,<2, but 2\.1 is installed"):
        require(SPEC)
