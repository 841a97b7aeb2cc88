"""An evaluation from start to end."""

from __future__ import annotations

import asyncio
import hashlib
import platform
import re
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

from gem_core.plugins import manager
from gem_evaluation._errors import EvaluationError
from gem_evaluation._local import LocalModel
from gem_evaluation._models import AnswerFunction, FunctionModel, Model, installed
from gem_evaluation._playing import Evaluation
from gem_evaluation._progress import Progress
from gem_evaluation._records import FailedEpisode
from gem_evaluation._report import write_report
from gem_evaluation._reporter import EvaluationReporter
from gem_evaluation._settings import Entry, check_entries, identity
from gem_evaluation._store import Store
from gem_evaluation.results import FAIL_ON_ERROR, Results, is_planned, summarized
from gem_train.cleanup import clean_up_after_this_process

RUNS = Path("evals")
"""Where folders go that no `--output` names."""


def evaluate(
    entries: str | Entry | Sequence[str | Entry],
    model: Model | AnswerFunction,
    *,
    tasks: int | None = None,
    repeats: int = 1,
    seed: int = 0,
    output: str | Path | None = None,
    retry_failed: bool = False,
    progress: bool = False,
    track: Sequence[str] = (),
    fail_on_error: float = FAIL_ON_ERROR,
) -> Results:
    """Play environments with a model, and estimate how good it is.

    Args:
        entries: ids of environments, or entries with their settings.
        model: who plays; `load_model` finds one by name. A function takes messages and returns the response.
        tasks, repeats: of each id; an `Entry` has its own.
        seed: of the tasks. Task `i` is the same for every model.
        output: the folder of the evaluation. If it has episodes of the same evaluation, only the others are played.
            `None` keeps nothing.
        retry_failed: play episodes again that failed before.
        progress: show it on stderr.
        track: plugins that get the statistics while it runs, and some episodes: `wandb`, `tensorboard`, `trackio`.
        fail_on_error: share of failed episodes above which success has no estimate, only a range.

    Returns:
        The statistics, also in `output/results.json`.

    Raises:
        EvaluationError: it cannot start or go on; the message says why.
        NotFoundError, EnvKwargsError, MissingExtraError, EnvError, ToolError: an environment or tool cannot be built.
        PluginError: no plugin has a name in `track`.
        RuntimeError: an event loop is at work in this thread; await `evaluate_async` there.
    """
    return asyncio.run(
        evaluate_async(
            entries,
            model,
            tasks=tasks,
            repeats=repeats,
            seed=seed,
            output=output,
            retry_failed=retry_failed,
            progress=progress,
            track=track,
            fail_on_error=fail_on_error,
        )
    )


async def evaluate_async(
    entries: str | Entry | Sequence[str | Entry],
    model: Model | AnswerFunction,
    *,
    tasks: int | None = None,
    repeats: int = 1,
    seed: int = 0,
    output: str | Path | None = None,
    retry_failed: bool = False,
    progress: bool = False,
    track: Sequence[str] = (),
    fail_on_error: float = FAIL_ON_ERROR,
) -> Results:
    """As `evaluate`, for notebooks and other programs with an event loop."""
    given = [entries] if isinstance(entries, str | Entry) else entries
    chosen = [one if isinstance(one, Entry) else Entry(id=one, tasks=tasks, repeats=repeats) for one in given]
    check_entries(chosen)
    manager.require(*track)
    if callable(model):
        model = FunctionModel(model, getattr(model, "__qualname__", type(model).__name__))
    clean_up_after_this_process()
    counts = {entry.label: entry.count() for entry in chosen}
    played = identity(chosen, seed, model.identity, versions())
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(model.session())  # first: a model that cannot answer leaves no folder
        if isinstance(model, LocalModel):
            await asyncio.to_thread(model.check, chosen)
        kept = output
        if output is None:
            output = stack.enter_context(tempfile.TemporaryDirectory(prefix="gem-eval"))
        store = stack.enter_context(Store(Path(output), played))
        planned = {entry.label: (counts[entry.label], entry.repeats) for entry in chosen}

        def failures() -> list[FailedEpisode]:
            return [one for one in store.failures.values() if is_planned(one.key, planned)]

        def summary() -> Results:
            return summarized(model.name, played, planned, store.finished, failures(), fail_on_error)

        reporter = EvaluationReporter(summary, folder=kept, resumed=bool(store.finished or store.failures), track=track)
        evaluation = Evaluation(chosen, counts, model, store, seed, retry_failed, reporter.show)
        await stack.enter_async_context(reporter.meanwhile())
        if progress:
            await stack.enter_async_context(Progress(store, model, planned).shown())
        try:
            await evaluation.play()
        finally:
            results = summary()
            reporter.report(results)
            try:
                results.save(store.folder)
                write_report(results, failures(), store.folder)
            except OSError as error:
                raise EvaluationError(
                    f"{store.folder} cannot be written: {error}. Its episodes are kept; make room and run the same "
                    "command again"
                ) from error
    return results


def folder_of(entries: Sequence[Entry], model: Model, seed: int) -> Path:
    """The folder of an evaluation that has none: the same settings give the same one."""
    played = identity(entries, seed, model.identity, versions())
    digest = hashlib.sha256(msgspec.json.encode(played, order="deterministic")).hexdigest()[:8]
    return RUNS / f"{re.sub(r'[^A-Za-z0-9.-]+', '-', model.name).strip('-')[-60:]}-{digest}"


def versions() -> dict[str, str]:
    """Versions that could change a task, besides those of environments. numpy's generators make some."""
    return {"python": platform.python_version(), **installed("gem-core", "numpy")}
