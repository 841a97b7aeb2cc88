"""The results for people: a table in the terminal, and `report.md`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from gem_core.cli import printable
from gem_evaluation._records import FailedEpisode, PolicyFault
from gem_evaluation._reporter import metrics_of
from gem_evaluation._statistics import Estimate, Success
from gem_evaluation._store import read_episodes
from gem_evaluation.results import Results, Summary
from gem_train.rollout import StallWords, stalls

REPORT = "report.md"
MAX_FAILURES = 20
_WORDS = StallWords(limit="max_tokens", system_prompt="system_prompt")
_SHARES = {"only thought": "only_thought_share", "cut off": "truncated_share", "invalid": "invalid_share"}
"""Columns of the table with shares of turns, which are there where one is not 0."""
_FAULTS: Mapping[PolicyFault, str] = {
    "context_full": "with a full context",
    "only_thought": "with a response that was only thought",
    "cut_off": "with a response that was cut off",
    "unusable": "with a response that the environment could not use",
}


def table(results: Results) -> list[dict[str, str]]:
    """The main numbers, a row for each environment, and one for all if there are several."""
    several = len(results.environments) > 1
    shares = [name for name, field in _SHARES.items() if getattr(results.together, field)]
    return [_row(one, shares) for one in [*results.environments, *([results.together] if several else [])]]


def warnings(results: Results, folder: Path) -> list[str]:
    """Explanations of a score without a success, a sentence each.

    Args:
        results: of the evaluation.
        folder: of the evaluation, for the first response.
    """
    found = stalls(metrics_of(results))
    return [one.text(_WORDS, _first_response(folder, one.env_id)) for one in found]


def _first_response(folder: Path, label: str) -> str | None:
    """In the first finished episode of an environment, or of the only one, if none of it was of use."""
    own = (one.episode.summary() for one in read_episodes(folder) if label in ("", one.key.entry))
    return next((summary.unread for summary in own), None)


def share(part: float) -> str:
    """A share of turns, in percent."""
    return f"{part:.0%} of turns".replace("%", " %", 1)


def _row(summary: Summary, shares: Sequence[str]) -> dict[str, str]:
    """A row of the table, with these columns of `_SHARES`."""
    most = max(summary.pass_at, default=1)
    row = {
        "environment": summary.label,
        "tasks x repeats": f"{summary.tasks} x {summary.repeats}",
        "success [95 %]": success(summary.success),
    }
    if most > 1:
        known = summary.success is not None and not summary.success.too_many
        row |= {
            f"pass@{most}": percent(summary.pass_at[most] if known else None),
            f"pass^{most}": percent(summary.pass_all[most] if known else None),
        }
    row |= {"return": number(summary.total_reward), "turns": f"{summary.turns:.1f}"}
    row |= {name: share(getattr(summary, _SHARES[name])) for name in shares}
    row |= {"policy's fault": str(sum(summary.policy_faults.values())), "failed": str(summary.episodes.failed)}
    return row


def percent(estimate: Estimate | None) -> str:
    """An estimate of a share, in percent."""
    if estimate is None:
        return "-"
    return f"{estimate.value:.1%} [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]".replace("%", " %", 1)


def success(estimate: Success | None) -> str:
    """A success in percent, from the lowest to the highest that it could be if episodes failed."""
    if estimate is None:
        return "-"
    return estimate.written(lambda share: f"{100 * share:.1f}", " %")


def number(estimate: Estimate | None) -> str:
    """An estimate of a number without bounds."""
    return "-" if estimate is None else f"{estimate.value:.3g} [{estimate.low:.3g}, {estimate.high:.3g}]"


def write_report(results: Results, failures: Iterable[FailedEpisode], folder: Path) -> None:
    """Write `report.md`."""
    text = "\n".join(_lines(results, [*failures], warnings(results, folder)))
    (folder / REPORT).write_text(text + "\n", encoding="utf-8", errors="backslashreplace")


def _lines(results: Results, failures: Sequence[FailedEpisode], warned: Sequence[str]) -> Iterator[str]:
    yield f"# {results.model}\n"
    yield from _markdown(table(results))
    yield "\nIntervals are 95 % intervals over tasks. Success has a range if episodes failed: from none of them"
    yield "successful to all of them. No other number includes failed episodes.\n"
    yield from (f"**Warning:** {printable(text)}\n" for text in warned)
    for summary in results.environments:
        yield from _details(summary)
    if failures:
        yield "\n## Failed episodes\n"
        yield from _markdown(
            [
                {
                    "environment": one.key.entry,
                    "task": str(one.key.task_id),
                    "repeat": str(one.key.repeat),
                    "fault of": one.fault,
                    "error": one.error.splitlines()[0][:200] if one.error else "",
                }
                for one in failures[:MAX_FAILURES]
            ]
        )
        if len(failures) > MAX_FAILURES:
            yield f"\n... and {len(failures) - MAX_FAILURES} more in failures.jsonl"
    yield "\n## Settings\n"
    yield "```json"
    yield json.dumps(results.identity, indent=2)
    yield "```"


def _details(summary: Summary) -> Iterator[str]:
    yield f"\n## {summary.label}\n"
    episodes = summary.episodes
    if summary.success is None:
        yield f"No episode is finished; {episodes.failed} failed, {episodes.left} were not played."
        return
    lines = [
        f"episodes: {episodes.finished} finished, {episodes.failed_endpoint} failed by the endpoint, "
        f"{episodes.failed_environment} by the environment, {episodes.left} not played",
        f"success: {success(summary.success)}",
        *(_passes(summary) if not summary.success.too_many else ()),
        f"tokens: {summary.prompt_tokens} of prompts, {summary.completion_tokens} of responses; "
        f"{summary.requests} requests; ${summary.cost:.2f}",
        "ended: " + ", ".join(f"{count} {reason}" for reason, count in summary.stop_reasons.items()),
        f"ended by the policy's own fault, and counted: {_faults(summary)}",
        f"turns: {summary.turns:.2f} an episode; {summary.invalid_share:.1%} invalid, "
        f"{summary.truncated_share:.1%} cut off, {summary.only_thought_share:.1%} only thought",
    ]
    if summary.tool_success_share is not None:
        lines.append(
            f"tool calls: {summary.tool_calls:.2f} an episode, {summary.tool_success_share:.1%} without an error"
        )
    yield from (f"- {line}" for line in lines)


def _passes(summary: Summary) -> Iterator[str]:
    for k, one in summary.pass_at.items():
        if k > 1:  # pass@1 is the success
            yield f"pass@{k}: {percent(one)}; pass^{k}: {percent(summary.pass_all[k])}"


def _faults(summary: Summary) -> str:
    return ", ".join(f"{count} {_FAULTS[fault]}" for fault, count in summary.policy_faults.items()) or "none"


def _markdown(rows: Sequence[dict[str, str]]) -> Iterator[str]:
    if not rows:
        return
    yield "| " + " | ".join(rows[0]) + " |"
    yield "| " + " | ".join("---" for _ in rows[0]) + " |"
    for row in rows:
        yield "| " + " | ".join(_cell(row.get(name, "")) for name in rows[0]) + " |"


def _cell(text: str) -> str:
    return " ".join(printable(text).split()).replace("|", "\\|")
