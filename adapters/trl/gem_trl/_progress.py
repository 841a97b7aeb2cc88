"""The run report as a callback of the Hugging Face trainer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from gem_train.report import RunReport
from gem_train.rollout import EpisodeSummary
from gem_train.settings import RunSettings


class ProgressCallback(TrainerCallback):
    """Live progress, `metrics.jsonl` with each update and evaluation, and `curve.png` at the end.

    The files are in the folder `args.report`, by default the output folder.

    Set `logging_steps=1` to include every update.

    Args:
        title: shown next to the progress bar and above the curve.
        quiet: write nothing and show only warnings. Plugins that listen get the metrics in any case.
    """

    def __init__(self, title: str, *, quiet: bool = False) -> None:
        self._title = title
        self.quiet = quiet
        self.report: RunReport | None = None

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Start the display."""
        first = state.is_world_process_zero
        # Only one process writes files and tells metrics.
        shown = first and not self.quiet
        folder = (getattr(args, "report", None) or args.output_dir) if shown else None
        settings = args if first and isinstance(args, RunSettings) else None
        self.report = RunReport(
            state.max_steps,
            self._title,
            done=state.global_step,
            live=shown,
            folder=folder,
            reporter=settings and settings.reporter(state.global_step),
            words=settings and settings.stall_words(),
        )
        self.report.__enter__()

    def see(self, episodes: Sequence[EpisodeSummary]) -> None:
        """Look at the episodes that are trained on next, for what warnings quote."""
        if self.report is not None:
            self.report.see(episodes)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **_: Any,
    ) -> None:
        """Add the metrics of a training log or an evaluation; the final summary is neither."""
        if self.report is None or not logs:
            return
        numbers = {name: float(value) for name, value in logs.items() if isinstance(value, int | float)}
        if "episode/return" in logs:
            self.report.update(state.global_step, numbers)
        elif "eval_episode/return" in logs:
            self.report.amend(state.global_step, numbers)

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Stop the display and write the files."""
        if self.report is None:
            return
        self.report.__exit__(None, None, None)
        self.report.save()
