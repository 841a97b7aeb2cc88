"""Every package has a page, and the Python of a plugin's page runs as it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from gem_support.commands import ROOT
from gem_support.tutorials import python_of, run_page

PACKAGES = sorted(path.parent for kind in ("adapters", "plugins") for path in ROOT.glob(f"{kind}/*/gem_*"))
PAGES = [page for page in sorted(ROOT.glob("plugins/*/*.md")) if python_of(page)]
NOT_INSTALLED = ("MissingExtraError: ", "ModuleNotFoundError: ")


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda folder: folder.name)
def test_a_package_has_a_page_with_a_title(folder: Path) -> None:
    assert (folder / "README.md").read_text().startswith("# ")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_the_python_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    try:
        run_page(page, tmp_path)
    except AssertionError as error:
        if any(name in str(error) for name in NOT_INSTALLED):
            pytest.skip("an extra of this page is not installed here")
        raise
