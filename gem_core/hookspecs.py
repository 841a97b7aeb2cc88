"""The hooks. A plugin implements any of them with `@gem_core.hookimpl` in the module its entry point names.

    [project.entry-points."gem_core.plugins"]
    maze = "my_mazes.plugin"

The entry point's name (`maze`) is the namespace of its ids. The module imports `gem_core` and nothing heavy, and
returns data; classes are named as strings. It may set `GEM_PLUGIN_API = ">=1,<2"` to be refused by a release that
speaks another version of these hooks.

Collect hooks return what a plugin offers. Notify hooks hear what happened: an exception in one is logged against
its plugin and never fails a run. Deciding hooks (`firstresult`) are asked only of plugins that `enable()` named,
so that what happens to be installed cannot change a result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pluggy

from gem_core.specs import Ability, AdapterSpec, AdvantageSpec, EnvSpec, ToolSpec

if TYPE_CHECKING:
    import typer

    from gem_core.advantages import TurnBatch
    from gem_core.env import Env
    from gem_core.errors import EnvFailure
    from gem_core.failures import ErrorAction
    from gem_core.rollout import Episode, Run

PROJECT = "gem_core"
PLUGIN_API = "1.0"
"""Version of the hooks in this file: the major number changes when an implementation could break."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def gem_envs() -> Iterable[EnvSpec]:  # type: ignore[empty-body]
    """Environments this plugin offers.

    Example:
        @hookimpl
        def gem_envs():
            yield EnvSpec("maze:Small-v0", "my_mazes.env:Maze", {"size": 5}, tags=("game", "multi-turn"))
    """


@hookspec
def gem_tools() -> Iterable[ToolSpec]:  # type: ignore[empty-body]
    """Tools this plugin offers.

    Example:
        @hookimpl
        def gem_tools():
            yield ToolSpec("calc:add", "my_tools.add:AddTool")
    """


@hookspec
def gem_advantages() -> Iterable[AdvantageSpec]:  # type: ignore[empty-body]
    """Advantage estimators this plugin offers, chosen by name in a run's settings.

    Example:
        @hookimpl
        def gem_advantages():
            yield AdvantageSpec("lab:clipped", "my_lab.advantages:clipped")
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
def gem_commands(cli: typer.Typer) -> None:
    """Add commands to `gem-core`.

    Example:
        @hookimpl
        def gem_commands(cli):
            cli.command("draw-maze")(draw_maze)
    """


@hookspec
def gem_doctor(abilities: list[Ability]) -> None:
    """Add what this plugin needs of a machine, and whether it is here, to `gem-core doctor`. Looks only.

    Example:
        @hookimpl
        def gem_doctor(abilities):
            abilities.append(Ability("maze printer", printer.exists(), "on /dev/lp0"))
    """


@hookspec(historic=True)
def gem_configure(config: Mapping[str, Any]) -> None:
    """Hear the run's settings; a plugin loaded later still hears them.

    Example:
        @hookimpl
        def gem_configure(config):
            colours.enabled = config.get("maze.colours", False)
    """


@hookspec(firstresult=True)
def gem_make_env(spec: EnvSpec, kwargs: Mapping[str, Any]) -> Env | None:
    """Build an environment elsewhere, for example in a container; `None` leaves it to the next.

    Example:
        @hookimpl
        def gem_make_env(spec, kwargs):
            return RemoteEnv(spec.id, kwargs) if "remote" in spec.tags else None
    """


@hookspec(firstresult=True)
def gem_env_error(error: EnvFailure, spec: EnvSpec | None, episode: Episode, attempt: int) -> ErrorAction | None:
    """Say what becomes of an episode whose environment failed; `None` leaves it to the next.

    `attempt` counts the failures of that episode, from 1; it is above 1 only after `ErrorAction.RETRY`. Asked in the
    process that drives the rollout, wherever the environment runs. `episode` has the turns so far.

    Example:
        @hookimpl
        def gem_env_error(error, spec, episode, attempt):
            return ErrorAction.RETRY if error.kind is FailureKind.TIMEOUT and attempt < 3 else None
    """


@hookspec
def gem_rollout_start(run: Run) -> None:
    """A collector or runner starts.

    Example:
        @hookimpl
        def gem_rollout_start(run):
            store.begin(run.id, run.provenance)
    """


@hookspec
def gem_rollout_end(run: Run, error: BaseException | None) -> None:
    """A collector or runner is closed; `error` is what ended it early.

    Example:
        @hookimpl
        def gem_rollout_end(run, error):
            store.finish(run.id, failed=error is not None)
    """


@hookspec
def gem_episode_end(episode: Episode) -> None:
    """An episode of a collector or runner ended: by its environment, a limit or a failure, kept or dropped.

    Not called for environments and vectors that a program plays itself: nobody records their turns.

    Example:
        @hookimpl
        def gem_episode_end(episode):
            lengths.append(len(episode.turns))
    """


@hookspec
def gem_batch(batch: TurnBatch, metrics: dict[str, float]) -> None:
    """Advantages of a batch were computed. Arrays are read-only; metrics may be added.

    Example:
        @hookimpl
        def gem_batch(batch, metrics):
            metrics["maze/longest_episode"] = float(batch.turn.max() + 1)
    """
