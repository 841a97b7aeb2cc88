"""`gem-core new KIND NAME`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from gem_core.errors import GemError, near_matches
from gem_scaffold._project import KINDS, Project


def new(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=f"{', '.join(KINDS)}; `plugin` has one of each.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="For example maze: its ids start with maze:")],
    folder: Annotated[
        Path | None, typer.Option(help="Where to write it: a new or empty folder. By default ./gem-NAME.")
    ] = None,
) -> None:
    """Start an environment, tool, estimator or plugin of your own."""
    if kind not in KINDS:
        raise GemError(f"there is no kind {kind!r}.{near_matches(kind, KINDS)} Give one of: {', '.join(KINDS)}")
    project = Project(kind, name)
    target = Path(project.distribution) if folder is None else folder
    for path in project.write(target):
        typer.echo(f"wrote {path}")
    typer.echo(f"\nNext:\n  cd {shlex.quote(str(target))}\n  pip install -e '.[test]'\n  pytest")
    for id_ in project.ids:
        typer.echo(f"  gem-core check {id_}")
