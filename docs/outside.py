"""A hook of MkDocs: reads the tree, so that mkdocs.yml names no package.

Every Markdown file right inside a folder of adapters/ or plugins/ is a page of the site. A `*` in the navigation stands
for all pages that match, and the API reference finds the modules of every package.

A link such as `../examples/plugin` works on a code host. In the site it leads to a page that shows the file or the
folder, so every link is checked and none needs a code host. README.md is the home page.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
DOCS = "docs/"
KINDS = ("adapters", "plugins")
"""Folders whose folders are packages."""
HOME = "README.md"
"""The page of a package, or of the repository."""
NAMED = {HOME: "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"} | {
    page.relative_to(ROOT).as_posix(): page.relative_to(ROOT).with_name(page.name.replace(HOME, "index.md")).as_posix()
    for kind in KINDS
    for page in sorted(ROOT.glob(f"{kind}/*/*.md"))
}
"""Files outside docs/ that the navigation has, and their pages."""
SHOWN = "repository/"
"""Folder of the site for all others."""
LANGUAGES = {".md": "markdown", ".py": "python", ".toml": "toml", ".txt": "text", ".yaml": "yaml", ".yml": "yaml"}
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|[#/])(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?(?=\))")


@event_priority(100)  # mkdocstrings reads its paths in the same event
def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill in the navigation, and the folders where the API reference finds modules."""
    config.nav = config.nav and [*_filled(config.nav)]
    reference = config.plugins.get("mkdocstrings")
    if reference:
        packages = sorted(path.parent for kind in KINDS for path in ROOT.glob(f"{kind}/*/gem_*"))
        reference.config["handlers"]["python"]["paths"] = [str(ROOT), *map(str, packages)]
    return config


def _filled(entries: list[Any]) -> Iterator[Any]:
    """Entries of the navigation, with pages in place of patterns, which count from docs/."""
    for entry in entries:
        if isinstance(entry, str) and "*" in entry:
            found = ROOT.glob(posixpath.normpath(DOCS + entry))
            yield from sorted(_page(path.relative_to(ROOT).as_posix()) for path in found)
        elif isinstance(entry, dict):
            yield {title: [*_filled(below)] if isinstance(below, list) else below for title, below in entry.items()}
        else:
            yield entry


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each file and folder outside docs/ that a page of the site links to."""
    waiting = [*NAMED]
    for file in files.documentation_pages():
        waiting += _linked(file.content_string, _path(file.src_uri))
    while waiting:
        path = waiting.pop()
        if path.startswith(DOCS) or files.get_file_from_path(_page(path)):
            continue
        text = _text(path)
        inclusion = InclusionLevel.INCLUDED if path in NAMED else InclusionLevel.NOT_IN_NAV
        files.append(File.generated(config, _page(path), content=text, inclusion=inclusion))
        waiting += _linked(text, path)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to the pages of what they name. MkDocs reports those that name nothing."""
    path, folder = _path(page.file.src_uri), posixpath.dirname(page.file.src_uri)

    def led(link: re.Match[str]) -> str:
        target = _target(link, path)
        return link[0] if target is None else posixpath.relpath(_page(target), folder or ".") + (link["anchor"] or "")

    return LINK.sub(led, markdown)


def _linked(markdown: str, path: str) -> Iterator[str]:
    """What the text of the file at this path links to."""
    targets = (_target(link, path) for link in LINK.finditer(markdown))
    return (target for target in targets if target is not None)


def _target(link: re.Match[str], path: str) -> str | None:
    """The path from the root of the repository of what a link names, or None if it names nothing there."""
    folder = path if (ROOT / path).is_dir() else posixpath.dirname(path)
    target = posixpath.normpath(posixpath.join(folder, link["path"]))
    if f"{target}/{HOME}" in NAMED:
        return f"{target}/{HOME}"
    return target if not target.startswith("..") and (ROOT / target).exists() else None


def _page(path: str) -> str:
    """The page in the site for a file or folder of the repository."""
    if path.startswith(DOCS):
        return path.removeprefix(DOCS)
    return NAMED.get(path, f"{SHOWN}{path}.md")


def _path(page: str) -> str:
    """The file or folder of the repository that a page of the site shows."""
    for path, named in NAMED.items():
        if page == named:
            return path
    return page.removeprefix(SHOWN).removesuffix(".md") if page.startswith(SHOWN) else DOCS + page


def _text(path: str) -> str:
    """A file or a folder as Markdown."""
    here = ROOT / path
    if here.is_dir():
        readme = here / HOME
        head = readme.read_text() if readme.exists() else f"# `{path}`\n"
        return f"{head}\n## Files\n\n" + "".join(f"- [`{name}`]({name})\n" for name in _files(here))
    if here.suffix == ".md":
        return here.read_text()
    return f"# `{path}`\n\n````````{LANGUAGES[here.suffix]}\n{here.read_text()}\n````````\n"


def _files(folder: Path) -> list[str]:
    """The text files in a folder and its folders, by their paths from there."""
    found: list[str] = []
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__" and not name.startswith("."))
        found += [Path(parent, name).relative_to(folder).as_posix() for name in sorted(names)]
    return [name for name in found if Path(name).suffix in LANGUAGES]
