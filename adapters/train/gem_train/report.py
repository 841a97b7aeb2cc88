"""The report of a run for people: a live line in the terminal, and the learning curve as an image."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from bisect import bisect_left
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from gem_train._samples import SampleFolder
from gem_train.rollout import EpisodeSummary, Reporter, Stall, StallDetector, StallWords

SHOWN = {"episode/success": "success", "episode/return": "return", "episode/turns": "turns"}
"""Metrics on the live line and on the curve, and their names there."""

_FAULTS = {"turn/truncated": "cut off", "turn/invalid": "invalid"}
"""Shares of turns that the live line has where they are not 0."""

_MORE = 'See "A run that does not learn" in adapters/train/README.md.'
_METRICS = "metrics.jsonl"
_CURVE = "curve.png"


class RunReport:
    """Collects the metrics of each update; shows the newest, keeps all, and tells them to listeners.

    If standard output is not a terminal, a line is printed after every tenth of the run instead. A run that cannot
    learn gets a warning, once for each reason (`gem_train.rollout.StallDetector`).

    Args:
        updates: number of updates of the whole training.
        title: what is being trained.
        done: number of updates before this run, if it resumes; their lines in metrics.jsonl are kept.
        live: show progress; on in one process only.
        folder: folder of metrics.jsonl, which gets a line per update, and of the files of `save`. Without it nothing
            is kept.
        reporter: tells the metrics to listeners; in one process only.
        words: for warnings; in one process only. Without them there are none.

    Raises:
        OSError: the run resumes, and its metrics.jsonl cannot be read.
    """

    def __init__(
        self,
        updates: int,
        title: str,
        *,
        done: int = 0,
        live: bool = True,
        folder: str | Path | None = None,
        reporter: Reporter | None = None,
        words: StallWords | None = None,
    ) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self.updates = updates
        self.title = title
        self._folder = Path(folder) if folder is not None else None
        self.history = _read(self._folder / _METRICS, done) if self._folder and done > 0 else []
        self._words = words
        self._detector = StallDetector()
        self._examples: dict[str, str] = {}
        """Of each environment, the first response that was of no use, or the first error."""
        for line in self.history:
            self._detector.add(int(line["step"]), line)
        self._behind = True
        """Whether metrics.jsonl lacks some of the history besides the newest line, so that it must be rewritten."""
        self._live = live
        self._console = Console()
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[shown]}", markup=False),
            console=self._console,
            disable=not (live and self._console.is_terminal),
        )
        self._task = self._progress.add_task(title, total=updates, shown="")
        self._reporter = reporter
        self._samples = SampleFolder.of(reporter.source) if reporter is not None else None
        if self._samples is not None:
            self._samples.open()
        if reporter is not None:
            reporter.begin()

    def __enter__(self) -> RunReport:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def see(self, episodes: Iterable[EpisodeSummary]) -> None:
        """Look at the episodes of the next update, for what a warning quotes."""
        for episode in episodes:
            example = episode.unread if episode.error is None else episode.error.strip().rpartition("\n")[2]
            if example is not None:
                self._examples.setdefault(episode.env_id, example)

    def update(self, step: int, metrics: Mapping[str, float]) -> None:
        """Add the metrics of update `step`, counted from 1 over a run and the runs that resume it."""
        self._add(step, metrics)
        shown = "  ".join(_shown(metrics))
        self._progress.update(self._task, completed=step, shown=shown)
        tenth = max(1, self.updates // 10)
        if self._live and not self._console.is_terminal and (step == 1 or step % tenth == 0):
            line = f"update {step:>4}/{self.updates}  {shown}"
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)
        self._warn(self._detector.add(step, metrics))
        stalled = self._detector.stalled
        kept = {env_id: text for env_id, text in self._examples.items() if stalled & {env_id, ""}}
        self._examples = kept  # those of other environments are of no stall

    def amend(self, step: int, metrics: Mapping[str, float]) -> None:
        """Add later metrics, such as an evaluation's, to those of update `step`; 0 is before the first update."""
        self._add(step, metrics)
        self._warn(self._detector.add(step, metrics))

    def _add(self, step: int, metrics: Mapping[str, float]) -> None:
        """Tell the metrics, and add them to the line of this update, or start a line; warn if they show a stall."""
        if self._reporter is not None:
            self._reporter.report(step, metrics, self._samples.take() if self._samples is not None else ())
        if self._folder is None:
            return
        at = bisect_left(self.history, step, key=itemgetter("step"))
        newest = at == len(self.history)
        if newest or self.history[at]["step"] != step:
            self.history.insert(at, {"step": float(step)})
        self.history[at].update(metrics)
        self._store(newest=newest)

    def _store(self, *, newest: bool) -> None:
        """Write all metrics, or append only the newest line, whose cost does not depend on their number."""
        assert self._folder is not None
        try:
            if self._behind or not newest:
                _replace(self._folder / _METRICS, self.history)
            else:
                _write(self._folder / _METRICS, self.history[-1:], "a")
            self._behind = False
        except OSError as error:
            self._behind = True
            self._console.print(f"The metrics could not be written: {error}", markup=False, highlight=False)

    def _warn(self, found: Iterable[Stall]) -> None:
        """Print what keeps the run from learning, whether progress is shown or not."""
        if self._words is None:
            return
        for stall in found:
            text = f"Warning: {stall.text(self._words, self._example(stall))} {_MORE}"
            encoding = self._console.encoding
            shown = text.encode(encoding, "backslashreplace").decode(encoding)
            self._console.print(shown, style="yellow", markup=False, highlight=False, soft_wrap=True)

    def _example(self, stall: Stall) -> str | None:
        """The first useless response. Evaluations may run in another process, so theirs are unknown."""
        if stall.evaluation:
            return None
        return self._examples.get(stall.env_id) if stall.env_id else next(iter(self._examples.values()), None)

    def save(self) -> None:
        """Write curve.png and metrics.jsonl to the folder if there was an update, and print a message; tell the end.

        A file that cannot be written is reported and raises nothing: the trained model must not be lost for it.
        """
        if self._samples is not None:
            self._samples.close()
        if self._reporter is not None:
            self._reporter.close()
        self._warn(self._detector.end())
        if not self.history or self._folder is None:
            return
        try:
            if self._behind:
                _replace(self._folder / _METRICS, self.history)
        except OSError as error:
            said = f"The report could not be written to {self._folder}/: {error}"
        else:
            said = _save_curve(self._folder, self.title, self.history)
            if (self._folder / "records").exists():
                said += f"\nTo look at the run: {_command()} view {self._folder} --export page.html"
        self._console.print(said, markup=False, highlight=False, soft_wrap=True)


def _shown(metrics: Mapping[str, float]) -> list[str]:
    """The parts of the live line."""
    shown = [f"{name} {metrics[key]:.2f}" for key, name in SHOWN.items() if key in metrics]
    return shown + [f"{name} {metrics[key]:.2f}" for key, name in _FAULTS.items() if metrics.get(key, 0.0) >= 0.005]


def _command() -> str:
    """The command `gem-core` as it works in the user's shell, which may not know the environment of this process."""
    found = shutil.which("gem-core")
    if found is None:
        return f"{sys.executable} -m gem_core"
    # nox has its own PATH, which ends with it.
    return os.path.relpath(found) if "NOX_CURRENT_SESSION" in os.environ else "gem-core"


@contextmanager
def curve_at_the_end(folder: str | Path | None, title: str) -> Generator[None, None, None]:
    """Draw the curve of a training whose report is in another process, however the training ends.

    After Ctrl-C, Ray and Launchpad kill the process of the report before it can `save`. By then metrics.jsonl has every
    update, so the process that the user stopped draws curve.png from it, if curve.png is missing or older.

    Args:
        folder: folder of the report; `None` if there is no report.
        title: what is being trained.
    """
    try:
        yield
    finally:
        if folder is not None:
            _catch_up(Path(folder), title)


def _catch_up(folder: Path, title: str) -> None:
    """Draw curve.png if metrics.jsonl is newer."""
    metrics, curve = folder / _METRICS, folder / _CURVE
    try:
        if metrics.exists() and not (curve.exists() and curve.stat().st_mtime >= metrics.stat().st_mtime):
            print(_save_curve(folder, title, _read(metrics)), flush=True)
    except OSError as error:  # must not hide the error that ended the training
        print(f"{curve} could not be drawn: {error}", flush=True)


def _save_curve(folder: Path, title: str, history: Sequence[Mapping[str, float]]) -> str:
    """Draw curve.png atomically and return a message. Raises nothing, see `RunReport.save`."""
    try:
        from matplotlib.figure import Figure  # not pyplot: no display, no global state

        keys = [key for key in SHOWN if any(key in line for line in history)]
        figure: Any = Figure(figsize=(4 * max(len(keys), 1), 3.2), layout="constrained")
        figure.suptitle(title)
        for position, key in enumerate(keys):
            _draw(figure.add_subplot(1, len(keys), position + 1), history, key)
        new = folder / f"{_CURVE}.{os.getpid()}"  # another process may be drawing it, too
        figure.savefig(new, dpi=120, format="png")
        new.replace(folder / _CURVE)
    except ModuleNotFoundError:
        return f"{folder}/{_CURVE} could not be drawn without matplotlib. Next: pip install matplotlib"
    except OSError as error:
        return f"{folder}/{_CURVE} could not be written: {error}"
    return f"Wrote {_CURVE} and {_METRICS} to {folder}/"


def _read(path: Path, updates: float = math.inf) -> list[dict[str, float]]:
    """The lines of metrics.jsonl up to this update, including an evaluation before the first one."""
    try:
        text = path.read_text(errors="replace")
    except FileNotFoundError:
        return []
    lines = {line["step"]: line for line in map(_decoded, text.splitlines()) if line.get("step", math.nan) <= updates}
    return [lines[step] for step in sorted(lines)]


def _write(path: Path, lines: Sequence[Mapping[str, float]], mode: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open(mode) as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def _replace(path: Path, lines: Sequence[Mapping[str, float]]) -> None:
    """Replace the file atomically."""
    new = path.with_suffix(".new")
    _write(new, lines, "w")
    new.replace(path)


def _decoded(line: str) -> dict[str, float]:
    """A line of metrics; empty if the line is invalid, for example because the run was killed while writing it."""
    try:
        return msgspec.convert(json.loads(line), dict[str, float])  # msgspec's own decoder refuses NaN
    except ValueError:
        return {}


def _draw(axes: Any, history: Sequence[Mapping[str, float]], key: str) -> None:
    steps = [line["step"] for line in history if key in line]
    values = [line[key] for line in history if key in line]
    axes.plot(steps, values, color="tab:blue", alpha=0.3, linewidth=1)
    axes.plot(steps, _smooth(values, max(1, len(values) // 20)), color="tab:blue", linewidth=2)
    axes.set_xlabel("update")
    axes.set_title(SHOWN[key])
    axes.grid(alpha=0.3)
    if key == "episode/success":
        axes.set_ylim(-0.02, 1.02)


def _smooth(values: list[float], window: int) -> list[float]:
    """Mean of the last `window` values at each point."""
    recent = [values[max(0, end - window) : end] for end in range(1, len(values) + 1)]
    return [sum(part) / len(part) for part in recent]
