"""The command line, `gem-core`. Importing this package imports neither typer nor rich."""

from __future__ import annotations


def main() -> None:
    """Run the command line; the entry point of the console script."""
    from gem_core.cli.app import app
    from gem_core.cli.terminal import prepare

    prepare()
    app(prog_name="gem-core")
