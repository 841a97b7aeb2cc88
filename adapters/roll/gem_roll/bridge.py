"""Our environments for ROLL's own environment managers, which make theirs with `gem.make`."""

from __future__ import annotations

from typing import Any

from gem_core.failures import DEFAULT_TIMEOUT, FailurePolicy
from gem_core.vector import Autoreset, Task, make_vec

BRIDGE = "gem-core"
"""The id in `gem`: `env_type: gem-core` in ROLL's yaml, and `env_config: {env: game:Corridor-v0}` says which of ours.

One id for all of them, as `gem` has environments of its own under names that are ours as well.
"""


def register_bridge() -> None:
    """Make the bridge known to the `gem` that is installed, or to the stand-in. Safe to call twice.

    Raises:
        ModuleNotFoundError: there is no `gem`; see `gem_roll.stand_in`.
    """
    import gem

    try:
        gem.register(BRIDGE, entry_point=_bridged_class(gem.Env))
    except ValueError:  # gem's answer to an id that it has
        return


class Bridged:
    """An environment of ours as ROLL's managers play it: one that fails, hangs or dies is an episode that ends
    truncated.

    Args:
        env: the id.
        timeout: seconds that one reset or step may take; `None` waits for ever.
        kwargs: of the environment.

    Raises:
        NotFoundError, EnvKwargsError, MissingExtraError, EnvError: as `gem_core.make`.
    """

    def __init__(self, env: str, timeout: float | None = DEFAULT_TIMEOUT, **kwargs: Any) -> None:
        # A manager is a thread and has an environment of its own, in another thread for the sake of the timeout.
        self._vec = make_vec(
            env,
            1,
            backend="thread",
            autoreset=Autoreset.DISABLED,
            seed=0,  # what ROLL gives at each reset decides the episode
            env_kwargs=kwargs,
            failures=FailurePolicy(timeout),
        )

    def reset(self, seed: int | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode; the same one for the same seed, in every environment."""
        number = seed or 0
        self._vec.send_reset([0], tasks=[Task(number, self._vec.env_ids[0], number)])
        opening = self._vec.recv()[0]
        return opening.observation, _roll_info(opening.info)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Play one turn."""
        self._vec.send({0: action})
        one = self._vec.recv()[0]
        return one.observation, one.reward, one.terminated, one.truncated, _roll_info(one.info)

    def close(self) -> None:
        """Close the environment."""
        self._vec.close()


def _bridged_class(base: type) -> type:
    """A class that `gem` takes for one of its own."""
    return type("GemCoreEnv", (Bridged, base), {})


def _roll_info(info: Any) -> dict[str, Any]:
    """With what ROLL's managers read; the rest is for people."""
    kept = {key: info[key] for key in ("success", "error") if key in info}
    return {**kept, "env_instruction": "", "suffix": "", "metrics": {"success": float(info.get("success", False))}}
