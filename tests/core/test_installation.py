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
