"""`gem-core check`: the conformance kit on one environment, tool or estimator, with a verdict."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from gem_core.cli import Row, parse_settings, plugins_at_work, print_json, print_table, say
from gem_core.errors import GemError
from gem_core.plugins import manager
from gem_core.registry import advantage_spec, kind_of, make, make_tool, spec
from gem_core.vector import backend_spec
from gem_testing import checks
from gem_testing._conformance import Result, results
from gem_testing._play import Subject
from gem_testing.checks import _estimators as estimators
from gem_testing.checks import _tools as tools


def check(
    id_: Annotated[str, typer.Argument(metavar="ID", help="An environment, a tool or an advantage estimator.")],
    backend: Annotated[
        str | None,
        typer.Option(help="Also play the environment in a vector of this backend: sync, thread, process or ray."),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="How many seeds of the environment to play, from 0. By default 5.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set an argument. Repeat to set several.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check an environment, a tool or an estimator. Fails if it does not keep its contract."""
    from gem_testing.command import show_verdict

    if not show_verdict(id_, parse_settings(settings or []), seeds, backend, json):
        raise typer.Exit(1)


def show_verdict(id_: str, kwargs: Mapping[str, Any], seeds: int | None, backend: str | None, as_json: bool) -> bool:
    """Run the checks of this id and print what they found. Returns `False` if one found a problem.

    Args:
        id_: an environment, a tool or an advantage estimator.
        kwargs: override its keyword arguments.
        seeds: how many seeds to play, from 0; `None` for the kit's own number.
        backend: also play in a vector of this backend.
        as_json: print JSON.

    Raises:
        GemError: there is no such id, it cannot be imported, or an option does not fit it.
    """
    _check_backend(backend)
    with plugins_at_work(manager):
        kind = kind_of(id_)
        found = [*_with_progress(_results(kind, id_, kwargs, seeds, backend))]
    passed = not any(result.problems for result in found)
    seconds = sum(result.seconds for result in found)
    if as_json:
        records = [
            {"check": one.check, "status": _status(one), "seconds": one.seconds, "problems": [*one.problems]}
            for one in found
        ]
        print_json({"id": id_, "kind": kind, "passed": passed, "seconds": seconds, "checks": records})
        return passed
    print_table(f"{id_} ({kind})", [_row(result) for result in found])
    for result in found:
        for problem in result.problems:
            say(f"{result.check}: {problem}", fg="red")
    say(_verdict(found, seconds), bold=True, fg="green" if passed else "red")
    return passed


def _results(
    kind: str, id_: str, kwargs: Mapping[str, Any], seeds: int | None, backend: str | None
) -> Iterator[Result]:
    if kind == "environment":
        spec(id_).resolve()  # an import that fails is one message, not one for each check
        if kwargs:
            make(id_, **kwargs).close()  # so is a wrong argument
        played: dict[str, Any] = {"seeds": seeds, "backend": backend}
        subject = Subject(id_, kwargs, **{name: value for name, value in played.items() if value is not None})
        return results(subject, checks.FIRST, [*checks.OTHERS, *([checks.vector] if backend else [])])
    if seeds is not None or backend is not None:
        raise GemError(f"{id_} is of the kind {kind!r}; --seeds and --backend are for environments")
    if kind == "tool":
        make_tool(id_, **kwargs)
        return results(tools.ToolSubject(id_, kwargs), tools.FIRST, tools.OTHERS)
    if kwargs:
        raise GemError(f"{id_} is of the kind {kind!r}; --set is for environments and tools")
    advantage_spec(id_).resolve()
    return results(estimators.EstimatorSubject(id_), estimators.FIRST, estimators.OTHERS)


def _check_backend(backend: str | None) -> None:
    if backend is not None:
        try:
            backend_spec(backend)
        except ValueError as error:
            raise GemError(str(error)) from None


def _with_progress(found: Iterator[Result]) -> Iterator[Result]:
    """The same results; a terminal shows how many there are so far."""
    from rich.console import Console

    console = Console(stderr=True)
    with console.status("checking ...") if console.is_terminal else contextlib.nullcontext() as status:
        for number, result in enumerate(found, 1):
            if status is not None:
                status.update(f"{number} checks done, the last one: {result.check}")
            yield result


def _row(result: Result) -> Row:
    return {
        "check": result.check,
        "status": _status(result),
        "seconds": "" if result.skipped else f"{result.seconds:.2f}",
    }


def _status(result: Result) -> str:
    return "not run" if result.skipped else "failed" if result.problems else "ok"


def _verdict(found: list[Result], seconds: float) -> str:
    failed = sum(bool(result.problems) for result in found)
    count = "1 check" if len(found) == 1 else f"{len(found)} checks"
    return f"{'failed' if failed else 'passed'}: {f'{failed} of ' if failed else ''}{count}, {seconds:.1f} s"
