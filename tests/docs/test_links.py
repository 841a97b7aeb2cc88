"""Links of a small repository: those out of docs/ get pages, and one that leads nowhere fails the build."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONFIG = """\
site_name: small
hooks: [docs/outside.py]
exclude_docs: "*.py"
validation: {links: {anchors: warn}}
nav:
  - index.md
  - guide.md
  - Plugins: [../plugins/*/*.md]
"""
FILES = {
    "mkdocs.yml": CONFIG,
    "README.md": "# Home\n\n[guide](docs/guide.md) and [changes](CHANGELOG.md#changes)\n",
    "CONTRIBUTING.md": "# Contributing\n",
    "CHANGELOG.md": "# Changes\n",
    "examples/maze/README.md": "# Maze\n\nThe [guide](../../docs/guide.md) has more.\n",
    "examples/maze/plugin.py": 'print("maze")\n',
    "plugins/walls/README.md": "# Walls\n\nOf [the maze](../../examples/maze); [more](doors.md), [code](gem_walls)\n",
    "plugins/walls/doors.md": "# Doors\n\n[Back](../walls)\n",
    "plugins/walls/gem_walls/door.py": "OPEN = True\n",
    "docs/guide.md": "# Guide\n[Maze](../examples/maze), [code](../examples/maze/plugin.py) and [home](../README.md)\n",
}


def build(folder: Path, further: str = "") -> subprocess.CompletedProcess[str]:
    """Build the site of `FILES` with a further line in its guide."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    with (folder / "docs" / "guide.md").open("a") as guide:
        guide.write(f"\n{further}\n")
    shutil.copy(ROOT / "docs" / "outside.py", folder / "docs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=280)


def test_files_and_folders_outside_docs_have_pages(tmp_path: Path) -> None:
    done = build(tmp_path)
    assert done.returncode == 0, done.stderr
    guide = (tmp_path / "site" / "guide" / "index.html").read_text()
    for link in ("../repository/examples/maze/", "../repository/examples/maze/plugin.py/", 'href=".."'):
        assert link in guide
    folder = (tmp_path / "site" / "repository" / "examples" / "maze" / "index.html").read_text()
    assert "../../../guide/" in folder
    assert "plugin.py/" in folder
    code = (tmp_path / "site" / "repository" / "examples" / "maze" / "plugin.py" / "index.html").read_text()
    assert "maze" in code


def test_the_pages_of_a_package_are_found_and_in_the_navigation(tmp_path: Path) -> None:
    done = build(tmp_path, "The [walls](../plugins/walls)")
    assert done.returncode == 0, done.stderr
    guide = (tmp_path / "site" / "guide" / "index.html").read_text()
    assert guide.count("../plugins/walls/") > 1  # the link, and the navigation
    assert "../plugins/walls/doors/" in guide
    walls = (tmp_path / "site" / "plugins" / "walls" / "index.html").read_text()
    for link in ("doors/", "../../repository/examples/maze/", "../../repository/plugins/walls/gem_walls/"):
        assert f'href="{link}"' in walls
    assert 'href="../"' in (tmp_path / "site" / "plugins" / "walls" / "doors" / "index.html").read_text()


def test_links_that_lead_nowhere_fail_the_build(tmp_path: Path) -> None:
    links = ["../examples/nothing.py", "../../above.md", "nowhere.md", "guide.md#nothing", "../CHANGELOG.md#none"]
    done = build(tmp_path, " ".join(f"[a link]({link})" for link in links))
    assert done.returncode == 1
    warnings = [line.lower() for line in done.stderr.splitlines() if line.startswith("WARNING")]
    assert len(warnings) == len(links), done.stderr
    for link in links:
        assert any(link.rpartition("/")[2].lower() in line for line in warnings), link
