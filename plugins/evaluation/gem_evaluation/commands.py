"""`gem-core eval`, with `regrade` and `export`."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import typer
from typer.core import TyperGroup

from gem_core.cli import print_table, say, warn
from gem_core.errors import NotFoundError, near_matches
from gem_core.registry import spec
from gem_core.specs import namespace_of
from gem_evaluation._errors import EvaluationError

RUN = "run"


class _RunByDefault(TyperGroup):
    """`gem-core eval ID` is `gem-core eval run ID`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Name the command where none is named. Raises `EvaluationError` for what is neither a command nor an id."""
        if args and args[0] not in {*self.commands, "-h", "--help"}:
            if not args[0].startswith("-") and not namespace_of(args[0]):
                self._check_id(args[0])
            args = [RUN, *args]
        return super().parse_args(ctx, args)

    def _check_id(self, name: str) -> None:
        try:
            spec(name)
        except NotFoundError as error:
            raise EvaluationError(
                f"there is no command and no environment {name!r}.{near_matches(name, self.commands)} Commands are "
                f"{', '.join(self.commands)}; `gem-core list` shows environments"
            ) from error


app = typer.Typer(
    cls=_RunByDefault,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Evaluate a model on environments: `gem-core eval ID [ID ...] --model NAME`. All options: "
    "`gem-core eval run -h`.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command(RUN)
def run(
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID ...]", help="Ids of environments.")] = None,
    model: Annotated[
        str,
        typer.Option(
            help="A chat model's name, an alias of the endpoints file, a folder of weights or of an adapter, hf:NAME, "
            "smollm2, random, expert, human, or package.module:function."
        ),
    ] = "",
    base_url: Annotated[str | None, typer.Option(help="URL of the endpoint, which usually ends in /v1.")] = None,
    endpoints: Annotated[Path | None, typer.Option(help="The endpoints file; by default ./endpoints.toml.")] = None,
    suite: Annotated[str | None, typer.Option(help="A suite by name, or a TOML file that is one.")] = None,
    tasks: Annotated[int | None, typer.Option(min=1, help="Tasks of each id; all of a data set, or 100.")] = None,
    repeats: Annotated[int | None, typer.Option(min=1, help="Episodes of each task; 1 by default.")] = None,
    output: Annotated[Path | None, typer.Option(help="Folder of the evaluation; by default one in ./evals.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the tasks.")] = 0,
    temperature: Annotated[float | None, typer.Option(min=0.0, help="Sampling temperature.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Token limit of a response.")] = None,
    tools: Annotated[list[str] | None, typer.Option(metavar="ID", help="A tool. Repeat to give several.")] = None,
    tool_form: Annotated[
        Literal["text", "native"], typer.Option(help="Calls in the text, or the endpoint's function calls.")
    ] = "text",
    max_tool_uses: Annotated[int, typer.Option(min=0, help="Tool calls of an episode.")] = 10,
    system_prompt: Annotated[str | None, typer.Option(help="System message of each conversation.")] = None,
    history: Annotated[int | None, typer.Option(min=1, help="Show the last observations only; by default all.")] = None,
    thoughts: Annotated[
        Literal["keep", "drop"], typer.Option(help="Whether later prompts have the thoughts of earlier responses.")
    ] = "keep",
    env_kwargs: Annotated[str, typer.Option(metavar="JSON", help="Arguments of the environments.")] = "{}",
    concurrency: Annotated[str, typer.Option(metavar="auto|N", help="Requests at a time.")] = "auto",
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds that a request may take.")] = 600.0,
    engine: Annotated[
        Literal["transformers", "vllm"] | None,
        typer.Option(help="What samples local weights; vLLM where it is installed."),
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Play failed episodes again.")] = False,
    fail_on_error: Annotated[
        float,
        typer.Option(min=0.0, max=1.0, help="Share of failed episodes above which there is no estimate of success."),
    ] = 0.05,
    track: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="wandb, tensorboard or trackio. Repeat to give several.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Play environments with a model, and estimate how good it is.

    Run the same command again to continue where it stopped. Exit status: 1 if more episodes failed than
    --fail-on-error allows, or none could be finished.
    """
    from gem_evaluation._baselines import HumanModel
    from gem_evaluation._evaluation import evaluate, folder_of
    from gem_evaluation._naming import check_extra, load_model
    from gem_evaluation._report import table, warnings
    from gem_evaluation._settings import Entry
    from gem_evaluation._suites import load_suite

    check_extra()
    if not model:
        raise EvaluationError("say which model: --model NAME. --model random is the simplest one")
    entries = [
        Entry(
            id=one,
            tasks=tasks,
            repeats=repeats or 1,
            env_kwargs=_object(env_kwargs),
            tools=tools or [],
            tool_form=tool_form,
            max_tool_uses=max_tool_uses,
            system_prompt=system_prompt,
            history=history,
            thoughts=thoughts,
        )
        for one in ids or []
    ]
    if suite is not None:
        entries += load_suite(suite, tasks, repeats)
    options = {"temperature": temperature, "max_tokens": max_tokens}
    player = load_model(
        model,
        base_url=base_url,
        endpoints=endpoints,
        options={name: value for name, value in options.items() if value is not None},
        concurrency=_concurrency(concurrency),
        timeout=timeout,
        engine=engine,
    )
    if any(one.repeats > 1 for one in entries) and "seed" in player.identity.get("options", {}):
        warn(
            "the endpoint's options have a seed, so all repeats of a task are the same request, and pass@k is pass@1. "
            "Leave seed out"
        )
    folder = output or folder_of(entries, player, seed)
    say(f"{folder}", err=True)
    try:
        shown = not isinstance(player, HumanModel)  # a line that changes would hide what a person types
        results = evaluate(
            entries,
            player,
            seed=seed,
            output=folder,
            retry_failed=retry_failed,
            progress=shown,
            track=track or [],
            fail_on_error=fail_on_error,
        )
    except KeyboardInterrupt:
        say(f"\nInterrupted. {folder} has the finished episodes; the same command plays the others.", err=True)
        raise typer.Exit(130) from None
    if json:
        typer.echo(msgspec.json.format(msgspec.json.encode(results)).decode())
    else:
        print_table(f"{player.name}: {folder / 'report.md'}", table(results))
    for text in warnings(results, folder):
        warn(text)
    if failed := results.together.episodes.failed:
        why = f"The most common error: {results.together.most_common_error:.300}"
        next_step = f"{folder / 'report.md'} lists them; --retry-failed plays them again"
        said = f"{failed} episodes failed. Success has a range that includes them; no other number does. {why}"
        say(f"{said}\n{next_step}.", err=True, fg="yellow")
        if any(one.success is None or one.success.too_many for one in (*results.environments, results.together)):
            raise typer.Exit(1)


@app.command()
def regrade(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of an evaluation.")],
    trust: Annotated[
        bool, typer.Option("--trust", help="Load what run.json chooses: code, paths, addresses and permissions.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the contents of regraded.json.")] = False,
) -> None:
    """Grade again: replay the recorded actions in the environments that are installed now.

    Asks no model. Writes DIR/regraded.json, and leaves the episodes as they are.

    Exit status: 0 where nothing changed; 1 where a grade changed, an episode cannot be graded again, or there is none.
    """
    from gem_evaluation._naming import check_extra
    from gem_evaluation._regraded import REGRADED, changes, not_graded, overview
    from gem_evaluation.regrading import regrade as regrade_folder
    from gem_evaluation.regrading import trusted_parts

    check_extra()
    for label, parts in trusted_parts(folder).items():
        warn(f"{folder} {'loads' if trust else 'would load'}, for {label}: {', '.join(parts)}")
    found = regrade_folder(folder, trust=trust)
    if json:
        typer.echo(msgspec.json.format(msgspec.json.encode(found)).decode())
    else:
        print_table(f"Graded again: {folder / REGRADED}", overview(found))
        print_table("Changed episodes, the first ones", changes(found))
        print_table("Not graded again, by reason", not_graded(found))
    if not found.episodes:
        say(f"{folder} has no finished episode, so nothing was graded again", err=True, fg="yellow")
    if not found.same or not found.episodes:
        raise typer.Exit(1)


@app.command()
def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of an evaluation.")],
    inspect: Annotated[
        Path, typer.Option("--inspect", metavar="FILE.eval", help="Write a log for inspect_ai, as for `inspect view`.")
    ],
) -> None:
    """Write the finished episodes in the format of another program."""
    if inspect.suffix != ".eval":
        raise typer.BadParameter(f"{inspect} does not end in .eval", param_hint="--inspect")
    from gem_evaluation._inspect_log import export as export_to_inspect

    export_to_inspect(folder, inspect)
    say(f"{inspect}", err=True)


@app.command()
def compare(
    first: Annotated[Path, typer.Argument(metavar="A", help="Folder of an evaluation.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Folder of an evaluation of the same tasks.")],
    json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
) -> None:
    """Compare two evaluations task by task: how much better is B?"""
    from gem_evaluation._naming import check_extra
    from gem_evaluation.comparing import compare, tables

    check_extra()
    comparison = compare(first, second)
    if json:
        typer.echo(msgspec.json.format(msgspec.json.encode(comparison)).decode())
    else:
        for title, rows in tables(comparison):
            print_table(title, rows)
    for warning in comparison.warnings:
        say(warning, err=True, fg="yellow")


def _object(text: str) -> dict[str, Any]:
    try:
        found = jsonlib.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is no JSON: {error}", param_hint="--env-kwargs") from None
    if not isinstance(found, dict):
        raise typer.BadParameter(f"{text!r} is no JSON object", param_hint="--env-kwargs")
    return found  # pyright: ignore[reportUnknownVariableType]


def _concurrency(text: str) -> int | None:
    if text == "auto":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise typer.BadParameter(f"{text!r} is neither auto nor a number from 1", param_hint="--concurrency")
    return int(text)
