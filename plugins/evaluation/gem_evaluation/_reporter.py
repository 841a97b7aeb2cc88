"""What an evaluation tells listeners, such as trackers, while it runs and at its end (`gem_metrics`)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from gem_core.episode import Episode
from gem_evaluation.results import Results, Summary
from gem_train.rollout import MAX_SAMPLES, Reporter

SECONDS = 10.0
"""Between two reports."""


class EvaluationReporter:
    """Tells the statistics so far, with some of the episodes that ended since the last time.

    Args:
        summary: computes the statistics so far.
        folder: of the evaluation, if it is kept.
        resumed: it had episodes before.
        track: plugins that track it.
    """

    def __init__(
        self, summary: Callable[[], Results], *, folder: str | Path | None, resumed: bool, track: Sequence[str]
    ) -> None:
        self._summary = summary
        before = summary()
        self._reporter = Reporter(
            "evaluation",
            f"{before.model}: {', '.join(one.label for one in before.environments)}",
            settings=before.identity,
            folder=folder,
            resumed=resumed,
            track=track,
        )
        self._samples: list[Episode] = []
        self._told: Results | None = None

    def show(self, episode: Episode) -> None:
        """Keep a finished episode for the next report, if there is room."""
        if self._reporter.source.track and len(self._samples) < MAX_SAMPLES:
            self._samples.append(episode)

    def report(self, results: Results) -> None:
        """Tell these statistics, unless nothing has changed."""
        if self._reporter.has_listeners and results != self._told:
            self._told, samples, self._samples = results, self._samples, []
            self._reporter.report(results.together.episodes.finished, metrics_of(results), samples)

    @asynccontextmanager
    async def meanwhile(self) -> AsyncGenerator[None]:
        """Report every now and then, and announce the end."""
        self._reporter.begin()
        reporting = asyncio.ensure_future(self._report_again())
        try:
            yield
        finally:
            reporting.cancel()
            await asyncio.gather(reporting, return_exceptions=True)
            self._reporter.close()

    async def _report_again(self) -> None:
        pause = SECONDS
        while self._reporter.has_listeners:
            await asyncio.sleep(pause)
            began = time.monotonic()
            self.report(self._summary())
            # Statistics of many episodes take time, in which no request is sent.
            pause = max(SECONDS, 20 * (time.monotonic() - began))


def metrics_of(results: Results) -> dict[str, float]:
    """The statistics as metrics; those that trainings have, too, under the same names (plugins/trackers/README.md)."""
    whole = results.together
    episodes = whole.episodes
    metrics = {
        "eval/finished": float(episodes.finished),
        "eval/left": float(episodes.left),
        "eval/failed_endpoint": float(episodes.failed_endpoint),
        "eval/failed_environment": float(episodes.failed_environment),
        "eval/requests": float(whole.requests),
        "eval/prompt_tokens": float(whole.prompt_tokens),
        "eval/completion_tokens": float(whole.completion_tokens),
        "eval/cost": whole.cost,
    }
    if not episodes.finished:
        return metrics
    metrics |= _estimates(whole, "episode")
    metrics |= {
        "episode/response_tokens": whole.completion_tokens / episodes.finished,
        "episode/tool_calls": whole.tool_calls,
        "turn/invalid": whole.invalid_share,
        "turn/truncated": whole.truncated_share,
        "turn/only_thought": whole.only_thought_share,
        **{f"stop/{reason}": count / episodes.finished for reason, count in whole.stop_reasons.items()},
    }
    if whole.success is not None and not whole.success.too_many:
        metrics |= {f"pass_at/{k}": one.value for k, one in whole.pass_at.items()}
        metrics |= {f"pass_all/{k}": one.value for k, one in whole.pass_all.items()}
    if whole.tool_success_share is not None:
        metrics["tool/success"] = whole.tool_success_share
    if len(results.environments) > 1:
        for one in results.environments:
            metrics |= {
                f"env/{one.label}/episodes": float(one.episodes.finished),
                f"env/{one.label}/invalid": one.invalid_share,
                f"env/{one.label}/truncated": one.truncated_share,
                f"env/{one.label}/only_thought": one.only_thought_share,
                **_estimates(one, f"env/{one.label}"),
            }
    return metrics


def _estimates(summary: Summary, prefix: str) -> dict[str, float]:
    """Success with its interval, return and turns; empty without an episode."""
    if summary.success is None or summary.total_reward is None:
        return {}
    success = summary.success
    known = {"success": success.value, "success_low": success.low, "success_high": success.high}
    failed = {"success_at_least": success.at_least.value, "success_at_most": success.at_most.value}
    shown = ({} if success.too_many else known) | (failed if success.failed else {})
    return {
        **{f"{prefix}/{name}": value for name, value in shown.items()},
        f"{prefix}/return": summary.total_reward.value,
        f"{prefix}/turns": summary.turns,
    }
