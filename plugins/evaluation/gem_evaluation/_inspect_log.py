"""Exports an evaluation as a log of inspect_ai, for `inspect view` and other programs that read such logs."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from gem_core.episode import Episode, Turn
from gem_core.errors import MissingExtraError
from gem_core.installation import install_line
from gem_core.responses import PAIRS, read_response, written_calls
from gem_evaluation._errors import EvaluationError
from gem_evaluation._records import UNREADABLE, EvaluatedEpisode, Result
from gem_evaluation._statistics import Estimate
from gem_evaluation._store import EPISODES, RUN, read_episodes, read_identity
from gem_evaluation.results import RESULTS, Episodes, Summary, summary_of

try:
    # No types, and too large to install wherever types are checked.
    log: Any = importlib.import_module("inspect_ai.log")
    model: Any = importlib.import_module("inspect_ai.model")
    scorer: Any = importlib.import_module("inspect_ai.scorer")
    tool: Any = importlib.import_module("inspect_ai.tool")
except ModuleNotFoundError as error:
    raise MissingExtraError(
        f"this export needs inspect-ai, which is not installed. Run: {install_line('inspect')}"
    ) from error

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"


def export(folder: Path, file: Path) -> None:
    """Write the finished episodes of an evaluation as a log of inspect_ai, all at once from memory.

    Args:
        folder: of the evaluation.
        file: ends in `.eval`; replaced if it exists.

    Raises:
        EvaluationError: the folder cannot be read, or the file cannot be written.
    """
    saved, identity = _saved(folder), read_identity(folder)
    settings: dict[str, Any] = identity["environments"]
    samples: list[Any] = []
    finished: dict[str, list[Result]] = {label: [] for label in settings}
    for played in read_episodes(folder):
        samples.append(_sample(played, settings[played.key.entry], saved.model, several=len(settings) > 1))
        finished[played.key.entry].append(played.result)
    together = summary_of("", [*chain.from_iterable(finished.values())])
    began, ended = _changed(folder / RUN), _changed(folder / EPISODES)
    document = log.EvalLog(
        status="success" if saved.complete else "cancelled",
        eval=_spec(saved, identity, samples, began),
        results=_results(together, [summary_of(label, results) for label, results in finished.items() if results]),
        stats=log.EvalStats(started_at=began, completed_at=ended, model_usage={saved.model: _total(together)}),
        samples=samples,
    )
    try:
        log.write_eval_log(document, str(file), format="eval")
    except OSError as error:
        raise EvaluationError(f"{file} cannot be written: {error}") from error


class _Together(msgspec.Struct):
    episodes: Episodes


class _Saved(msgspec.Struct):
    """What `results.json` knows and the episodes do not."""

    model: str
    together: _Together

    @property
    def complete(self) -> bool:
        """All that was planned is finished."""
        return self.together.episodes.finished == self.together.episodes.planned


def _saved(folder: Path) -> _Saved:
    try:
        return msgspec.json.decode((folder / RESULTS).read_bytes(), type=_Saved)
    except (OSError, *UNREADABLE) as error:
        raise EvaluationError(
            f"{folder / RESULTS} cannot be read: {error}. It is written when an evaluation ends or is interrupted"
        ) from error


def _changed(path: Path) -> str:
    """When a file was last changed."""
    try:
        seconds = path.stat().st_mtime
    except OSError as error:
        raise EvaluationError(f"{path} cannot be read: {error}") from error
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat()


def _spec(saved: _Saved, identity: dict[str, Any], samples: Sequence[Any], created: str) -> Any:
    ids = list(dict.fromkeys(sample.id for sample in samples))
    name = ", ".join(identity["environments"])
    return log.EvalSpec(
        created=created,
        task=name,
        model=saved.model,
        dataset=log.EvalDataset(name=name, samples=len(ids), sample_ids=ids),
        config=log.EvalConfig(epochs=max((sample.epoch for sample in samples), default=1)),
        packages={"gem-core": version("gem-core")},
        metadata={"identity": identity, "failed_episodes": saved.together.episodes.failed},
    )


def _sample(played: EvaluatedEpisode, settings: Mapping[str, Any], model_name: str, several: bool) -> Any:
    key, episode = played.key, played.episode
    usage = _usage(
        sum(one.prompt_tokens for one in played.usage), sum(one.completion_tokens for one in played.usage), played.cost
    )
    output = _output(episode, model_name)
    output.usage = usage
    return log.EvalSample(
        # Tasks are numbered in each environment, and ids must differ in the log.
        id=f"{key.entry} task {key.task_id}" if several else key.task_id,
        epoch=key.repeat + 1,
        input=episode.turns[0].observation if episode.turns else episode.final_observation,
        target="",
        messages=[*_messages(episode, settings["system_prompt"], model_name)],
        output=output,
        scores={
            "success": scorer.Score(value=float(episode.success), explanation=episode.final_observation),
            "return": scorer.Score(value=episode.total_reward),
        },
        model_usage={model_name: usage},
        total_time=played.seconds,
        metadata={
            "environment": key.entry,
            "env_id": episode.env_id,
            "provenance": episode.provenance,
            "task_id": key.task_id,
            "repeat": key.repeat,
            "seed": episode.seed,
            "stop_reason": episode.stop_reason.value,
            "turns": len(episode.turns),
            "requests": sum(one.requests for one in played.usage),
        },
        uuid=f"{key.entry} {key.task_id} {key.repeat}",
    )


def _output(episode: Episode, model_name: str) -> Any:
    """The last response."""
    if not episode.turns:
        return model.ModelOutput(model=model_name)
    last = episode.turns[-1]
    content = _content(last, last.response)
    return model.ModelOutput.from_content(model_name, content, stop_reason="max_tokens" if last.truncated else "stop")


def _content(turn: Turn, response: str) -> str | list[Any]:
    """A response as inspect_ai has it: its text, or parts if the model thought before."""
    thought, speech = read_response(response)
    thoughts = [text for text in (turn.reasoning, _without_marks(thought)) if text]
    if not thoughts:
        return speech
    return [*(model.ContentReasoning(reasoning=text) for text in thoughts), model.ContentText(text=speech)]


def _without_marks(thought: str) -> str:
    thought = thought.strip()
    for opening, closing in PAIRS.items():
        thought = thought.removeprefix(opening).removesuffix(closing)
    return thought.strip()


def _messages(episode: Episode, system_prompt: str | None, model_name: str) -> Iterator[Any]:
    if system_prompt is not None:
        yield model.ChatMessageSystem(content=system_prompt)
    call: Any = None
    before: Turn | None = None
    for number, turn in enumerate(episode.turns, 1):
        yield _observation(turn.observation, before, call)
        call, before = _call(turn, number), turn
        # Without a native call, which the response ends with.
        said = turn.response.removesuffix(turn.action) if _is_native(turn) else turn.response
        yield model.ChatMessageAssistant(
            content=_content(turn, said),
            tool_calls=None if call is None else [call],
            model=model_name,
            metadata={"turn": number, "reward": turn.reward, "invalid": turn.invalid, "truncated": turn.truncated},
        )
    if episode.final_observation or call is not None:
        yield _observation(episode.final_observation, before, call)


def _observation(text: str, before: Turn | None, call: Any) -> Any:
    """An observation as the answer to the call of the turn before, if there was one."""
    if before is None or call is None:
        return model.ChatMessageUser(content=text)
    failed = before.info.get("tool_error")
    return model.ChatMessageTool(
        content=text,
        tool_call_id=call.id,
        function=call.function,
        error=None if failed is None else tool.ToolCallError("unknown", str(failed)),
    )


def _call(turn: Turn, number: int) -> Any:
    """The tool call of a turn; `None` where no tool answered."""
    if not turn.tool_call:
        return None
    name, written = turn.info.get("tool_type", ""), turn.info.get("parsed_action", turn.action)
    return tool.ToolCall(id=f"call_{number}", function=name or "unknown", arguments=_arguments(written))


def _is_native(turn: Turn) -> bool:
    """The endpoint gave the call apart from the text; the record has it after the text."""
    return turn.tool_call and turn.action.startswith(_OPEN) and turn.action.endswith(_CLOSE)


def _arguments(written: str) -> dict[str, Any]:
    """The arguments of a call by name; of a call in tags or a block, its text."""
    call = next(written_calls(written), None)
    found: Any = None if call is None else call.arguments
    return found if isinstance(found, dict) else {"call": written}  # pyright: ignore[reportUnknownVariableType]


def _usage(prompt_tokens: int, completion_tokens: int, cost: float) -> Any:
    return model.ModelUsage(
        input_tokens=prompt_tokens,
        output_tokens=completion_tokens,
        total_tokens=prompt_tokens + completion_tokens,
        total_cost=cost,
    )


def _total(summary: Summary) -> Any:
    return _usage(summary.prompt_tokens, summary.completion_tokens, summary.cost)


def _results(together: Summary, environments: Sequence[Summary]) -> Any:
    scores = [*_scores("", together)]
    if len(environments) > 1:
        scores += [score for one in environments for score in _scores(f" of {one.label}", one)]
    count = together.episodes.finished
    return log.EvalResults(total_samples=count, completed_samples=count, scores=scores)


def _scores(suffix: str, summary: Summary) -> Iterator[Any]:
    shares = {f"pass@{k}": one.value for k, one in summary.pass_at.items()}
    shares |= {f"pass^{k}": one.value for k, one in summary.pass_all.items()}
    for name, estimate, more in (("success", summary.success, shares), ("return", summary.total_reward, {})):
        yield log.EvalScore(
            name=f"{name}{suffix}",
            scorer=name,
            scored_samples=summary.episodes.finished,
            metrics={
                metric: log.EvalMetric(name=metric, value=value)
                for metric, value in (_interval(estimate) | more).items()
            },
        )


def _interval(estimate: Estimate | None) -> dict[str, float]:
    """A mean and its interval; the interval is left out where it is the whole line, which JSON has no numbers for."""
    if estimate is None:
        return {}
    numbers = {"mean": estimate.value, "ci_low": estimate.low, "ci_high": estimate.high}
    return {name: number for name, number in numbers.items() if math.isfinite(number)}
