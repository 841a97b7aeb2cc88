"""What the page of the package index needs: addresses of the project, and links that work outside of the repository."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import tomllib

ROOT = Path(__file__).parents[2]
NOTE = "There is no public repository yet"


def problems(urls: Mapping[str, str], readme: str, contributing: str) -> list[str]:
    """What is wrong; without addresses, CONTRIBUTING.md says so, and with them the README's links are absolute."""
    relative = [link for link in re.findall(r"\]\(([^)]+)\)", readme) if not re.match(r"https://|#", link)]
    if not urls:
        return [] if NOTE in contributing else ["no [project.urls], and CONTRIBUTING.md does not say so"]
    found = [f"[project.urls] lacks {name}" for name in ("Repository", "Issues", "Documentation") if name not in urls]
    found += [f"README.md has a relative link, which the package index cannot follow: {link}" for link in relative]
    return [*found, *(["CONTRIBUTING.md says that there is no repository"] if NOTE in contributing else [])]


def test_addresses_and_links_fit() -> None:
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"].get("urls", {})
    assert not problems(urls, (ROOT / "README.md").read_text(), (ROOT / "CONTRIBUTING.md").read_text())


def test_every_relative_link_of_the_readme_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", (ROOT / "README.md").read_text())
    relative = [link for link in links if "://" not in link]
    assert not [link for link in relative if not (ROOT / link).exists()]


def test_what_is_missing_is_found() -> None:
    urls = dict.fromkeys(("Repository", "Issues", "Documentation"), "https://example.org")
    assert problems({}, "", "") == ["no [project.urls], and CONTRIBUTING.md does not say so"]
    assert not problems({}, "[a](docs/a.md)", NOTE)
    assert not problems(urls, "[a](https://example.org/docs/a.md) [b](#part)", "")
    assert len(problems({"Repository": "https://example.org"}, "[a](docs/a.md)", NOTE)) == 4
