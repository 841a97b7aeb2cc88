"""The line that installs an extra, for every way in which gem-core can have come here."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

from gem_core.installation import install_line, missing_from

REQUIRES = """\
Requires-Dist: packaging>=23
Requires-Dist: no-such-solver[fast]>=2; extra == 'maths'
Requires-Dist: pytest>=8; extra == 'maths'
Requires-Dist: not-for-this-python; python_version < '3' and extra == 'maths'
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The metadata of an installed gem-core."""
    info = tmp_path / "gem_core-9.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: gem-core\nVersion: 9.0\n{REQUIRES}")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    return info


def came_from(installed: Path, **origin: object) -> None:
    (installed / "direct_url.json").write_text(json.dumps(origin))


def test_from_an_index(installed: Path) -> None:
    assert install_line("maths") == 'pip install "gem-core[maths]"'


def test_from_a_clone(installed: Path, tmp_path: Path) -> None:
    clone = tmp_path / "a clone"
    clone.mkdir()
    came_from(installed, url=clone.as_uri(), dir_info={"editable": True})
    assert install_line("maths") == f'pip install -e "{clone}[maths]"'
    came_from(installed, url=clone.as_uri(), dir_info={})
    assert install_line("maths") == f'pip install "{clone}[maths]"'


def test_from_a_wheel_and_after_it_was_removed(installed: Path, tmp_path: Path) -> None:
    wheel = tmp_path / "gem_core-9.0-py3-none-any.whl"
    wheel.touch()
    came_from(installed, url=wheel.as_uri(), archive_info={})
    assert install_line("maths") == f'pip install "{wheel}[maths]"'
    wheel.unlink()
    assert install_line("maths") == 'pip install "no-such-solver[fast]>=2" "pytest>=8"'


def test_from_a_repository_and_from_a_page(installed: Path) -> None:
    came_from(installed, url="https://host/gem.git", vcs_info={"vcs": "git", "commit_id": "abc"})
    assert install_line("maths") == 'pip install "gem-core[maths] @ git+https://host/gem.git@abc"'
    came_from(installed, url="https://host/gem_core-9.0-py3-none-any.whl", archive_info={})
    assert install_line("maths") == 'pip install "gem-core[maths] @ https://host/gem_core-9.0-py3-none-any.whl"'


def test_what_is_missing_of_an_extra(installed: Path) -> None:
    assert missing_from("maths") == ["no-such-solver"]
    assert missing_from("no-such-extra") == []


def other(installed: Path, *requires: str) -> Path:
    """The metadata of another distribution, gem-maze."""
    info = installed.with_name("gem_maze-1.0.dist-info")
    info.mkdir()
    lines = ["Metadata-Version: 2.1", "Name: gem-maze", "Version: 1.0", *(f"Requires-Dist: {one}" for one in requires)]
    (info / "METADATA").write_text("\n".join([*lines, ""]))
    importlib.invalidate_caches()
    return info


def test_an_extra_of_another_distribution(installed: Path, tmp_path: Path) -> None:
    info = other(installed, "no-such-pen>=1; extra == 'maths'")
    assert install_line("maths", "gem-maze") == 'pip install "gem-maze[maths]"'
    assert missing_from("maths", "gem-maze") == ["no-such-pen"]
    came_from(info, url=tmp_path.as_uri(), dir_info={"editable": True})
    assert install_line("maths", "gem-maze") == f'pip install -e "{tmp_path}[maths]"'
    assert install_line("maths") == 'pip install "gem-core[maths]"'


def test_a_distribution_installed_without_its_dependencies(installed: Path) -> None:
    other(installed, "pytest", "no-such-pen>=1", "no-such-ink; extra == 'maths'", "not-here; python_version < '3'")
    assert missing_from(None, "gem-maze") == ["no-such-pen"]
    assert install_line(None, "gem-maze") == 'pip install "no-such-pen>=1"'
    assert missing_from("maths", "gem-maze") == ["no-such-ink"]


def test_a_distribution_without_metadata_or_with_invalid_requirements(installed: Path) -> None:
    other(installed, "no such pen, >= one")
    for distribution in ("gem-maze", "no-such-distribution", "<in-process>"):
        assert missing_from("maths", distribution) == missing_from(None, distribution) == []
        assert install_line("maths", distribution) == f'pip install "{distribution}[maths]"'
