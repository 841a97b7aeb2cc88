"""The hooks. A plugin implements any of them with `@gem_core.hookimpl` in the module that its entry point names.

    [project.entry-points."gem_core.plugins"]
    maze = "my_mazes.plugin"

The name of the entry point (`maze`) is the namespace of the plugin's ids. The module imports `gem_core` and nothing
heavy, and returns data; classes are named as strings. A module that sets `GEM_PLUGIN_API = ">=1,<2"` is refused by a
release with another version of these hooks.

Collect hooks return the specs of a plugin. Notify hooks report events: an exception in one is logged with the name of
its plugin and never fails a run. Deciding hooks (`firstresult`) are called only for plugins that `enable()` named, so
that an installed plugin cannot change a result unless the user asks for it.

Implementations are called in pluggy's order: those with `tryfirst=True`, then the others, then those with
`trylast=True`; among equals the last registered first, and of deciding hooks the first enabled. Wrappers are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pluggy

from gem_core.specs import (
    AdapterSpec,
    AdvantageSpec,
    BackendSpec,
    Capability,
    EnvSpec,
    Isolation,
    RecordSource,
    ToolSpec,
)

if TYPE_CHECKING:
    from pathlib import Path

    from gem_core.env import Env
    from gem_core.episode import Episode, Run, Source
    from gem_core.errors import EnvFailure
    from gem_core.failures import ErrorAction
    from gem_core.partner import Partner
    from gem_core.turn_batch import TurnBatch
    from gem_core.update import Update

PROJECT = "gem_core"
PLUGIN_API = "1.0"
"""Version of the hooks in this file: the major number changes when an implementation could break."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def gem_envs() -> Iterable[EnvSpec]:  # type: ignore[empty-body]
    """The environments of this plugin.

    Example:
        @hookimpl
        def gem_envs():
            yield EnvSpec("maze:Small-v0", "my_mazes.env:Maze", {"size": 5}, tags=("game", "multi-turn"))
    """


@hookspec
def gem_find_env(env_id: str) -> EnvSpec | None:
    """The environment of an id that `gem_envs` does not list, for a namespace with too many ids to list.

    Only the plugin of the id's namespace is asked. It answers quickly and builds nothing. `None` means that there is no
    such environment; an implementation that knows similar ids raises `NotFoundError` with them instead.

    Example:
        @hookimpl
        def gem_find_env(env_id):
            size = env_id.removeprefix("maze:Square-v0-")
            return EnvSpec(env_id, "my_mazes.env:Maze", {"size": int(size)}) if size.isdecimal() else None
    """


@hookspec
def gem_find_partner(name: str, options: Mapping[str, Any]) -> Partner | None:
    """Whom an environment asks under this name, as an opponent or a customer; `None` if there is nobody.

    Only the plugin of the name's namespace is asked. It answers quickly: weights are loaded with the first question.
    Each call gives an object of its own.

    Example:
        @hookimpl
        def gem_find_partner(name, options):
            return Parrot(**options) if name == "zoo:parrot" else None
    """


@hookspec
def gem_tools() -> Iterable[ToolSpec]:  # type: ignore[empty-body]
    """The tools of this plugin.

    Example:
        @hookimpl
        def gem_tools():
            yield ToolSpec("calc:add", "my_tools.add:AddTool")
    """


@hookspec
def gem_advantages() -> Iterable[AdvantageSpec]:  # type: ignore[empty-body]
    """The advantage estimators of this plugin. A run's settings choose one by name.

    Example:
        @hookimpl
        def gem_advantages():
            yield AdvantageSpec("lab:clipped", "my_lab.advantages:clipped")
    """


@hookspec
def gem_backends() -> Iterable[BackendSpec]:  # type: ignore[empty-body]
    """The vector backends of this plugin. The id is the plugin's name, so `make_vec(backend="grid")` loads it alone.

    Example:
        @hookimpl
        def gem_backends():
            yield BackendSpec("grid", "my_grid.vector:GridVectorEnv", extra="grid")
    """


@hookspec
def gem_adapters() -> Iterable[AdapterSpec]:  # type: ignore[empty-body]
    """Adapters to training frameworks; `gem-core doctor` shows them.

    Example:
        @hookimpl
        def gem_adapters():
            yield AdapterSpec("trl", "gem_trl", distribution="trl", supported=">=1.16,<2", extra="trl")
    """


@hookspec
def gem_doctor(capabilities: list[Capability], isolations: list[Isolation]) -> None:
    """Tell `gem-core doctor` what this plugin needs from a machine, and what it confines there.

    An implementation only inspects: it installs and changes nothing, and what it starts ends before it returns. It may
    leave either argument out.

    Example:
        @hookimpl
        def gem_doctor(capabilities, isolations):
            capabilities.append(Capability("maze printer", printer.exists(), "on /dev/lp0"))
            isolations.append(Isolation("mazes that a policy drew", True, "they are printed and never run"))
    """


@hookspec(firstresult=True)
def gem_make_env(spec: EnvSpec, kwargs: Mapping[str, Any]) -> Env | None:
    """Build an environment in another way, for example in a container; `None` defers to the next plugin.

    Example:
        @hookimpl
        def gem_make_env(spec, kwargs):
            return RemoteEnv(spec.id, kwargs) if "remote" in spec.tags else None
    """


@hookspec(firstresult=True)
def gem_env_error(error: EnvFailure, spec: EnvSpec | None, episode: Episode, attempt: int) -> ErrorAction | None:
    """Decide what happens to an episode whose environment failed; `None` defers to the next plugin.

    `attempt` counts the failures of this episode from 1; it is above 1 only after `ErrorAction.RETRY`. `episode` has
    the turns so far. The hook runs in the process that drives the rollout, wherever the environment runs.

    Example:
        @hookimpl
        def gem_env_error(error, spec, episode, attempt):
            return ErrorAction.RETRY if error.kind is FailureKind.TIMEOUT and attempt < 3 else None
    """


@hookspec
def gem_rollout_start(run: Run) -> None:
    """A collector or runner starts."""


@hookspec
def gem_rollout_end(run: Run, error: BaseException | None) -> None:
    """A collector or runner is closed; `error` is the exception that ended it early, or `None`."""


@hookspec
def gem_episode_end(episode: Episode) -> None:
    """An episode of a collector or runner ended: by its environment, a limit or a failure, kept or dropped.

    Not called for environments and vectors that a program plays itself, because their turns are not recorded.

    Example:
        @hookimpl
        def gem_episode_end(episode):
            lengths.append(len(episode.turns))
    """


@hookspec
def gem_update(update: Update) -> None:
    """A process trained on a batch of turns. Called once per update, in each process that trains."""


@hookspec
def gem_record_sources(path: Path, sources: list[RecordSource]) -> None:
    """Say where the episodes of a folder are that this plugin wrote, so that `open_records` reads it.

    Asked once for each folder that is opened.

    Example:
        @hookimpl
        def gem_record_sources(path, sources):
            if (path / "mazes.jsonl").exists():
                sources.append(RecordSource("mazes", path / "mazes.jsonl"))
    """


@hookspec
def gem_batch(batch: TurnBatch, metrics: dict[str, float]) -> None:
    """Advantages of a batch were computed. Arrays are read-only; metrics may be added.

    Example:
        @hookimpl
        def gem_batch(batch, metrics):
            metrics["maze/longest_episode"] = float(batch.turn.max() + 1)
    """


@hookspec
def gem_metrics_start(source: Source) -> None:
    """A training, an evaluation or a rollout will report metrics.

    Called again, with `source.resumed`, if it reports after its end, such as an evaluation after a training.

    Example:
        @hookimpl
        def gem_metrics_start(source):
            if "maze" in source.track:
                plots[source.id] = Plot(source.name)
    """


@hookspec
def gem_metrics(source: Source, step: int, metrics: Mapping[str, float]) -> None:
    """New metrics: of an update or its evaluation, of an evaluation so far, or of a batch of a plain rollout.

    Called in one process per training or evaluation. A step may come several times with different metrics, and after a
    later one. Values may be NaN or infinite.

    Args:
        source: what reports them.
        step: a training's number of updates; an evaluation's number of finished episodes; the number of a rollout's
            batch. From 1, or 0 for an evaluation before the first update.
        metrics: by name. All sources use the names of `episode_metrics`; an evaluation during a training puts `eval_`
            before them. Frameworks add their own.

    Example:
        @hookimpl
        def gem_metrics(source, step, metrics):
            plots[source.id].add(step, metrics["episode/success"])
    """


@hookspec
def gem_samples(source: Source, step: int, episodes: Sequence[Episode]) -> None:
    """Some episodes that ended before these metrics: at most 8, without tokens. Only for a source with `track`."""


@hookspec
def gem_metrics_end(source: Source) -> None:
    """The training, evaluation or rollout is over, or failed. A process that is killed does not call it."""
