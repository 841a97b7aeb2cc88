"""The environment that `gem.json` names, with the interface of OpenEnv."""

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import EnvironmentMetadata, State

import gem_core

try:
    from ..models import TextAction, TextObservation
except ImportError:  # started as `uvicorn server.app:app` from the folder of the package
    from models import TextAction, TextObservation

MADE_FROM: dict[str, Any] = json.loads(Path(__file__).with_name("gem.json").read_text())


class TextEnvironment(Environment[TextAction, TextObservation, State]):
    """Plays an environment of gem-core. Same seed, same actions, same transitions."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._env = gem_core.make(MADE_FROM["id"], **MADE_FROM["kwargs"])
        self._state = State()

    def reset(self, seed: int | None = None, episode_id: str | None = None, **options: Any) -> TextObservation:
        """Start an episode; options are those of the environment."""
        try:
            text, info = self._env.reset(seed=seed, **options)
        except Exception as error:
            raise _named(error) from error
        self._state = State(episode_id=episode_id or uuid4().hex)
        return TextObservation(text=text, info=info)

    def step(self, action: TextAction, timeout_s: float | None = None, **_: Any) -> TextObservation:
        """Play a turn."""
        try:
            text, reward, terminated, truncated, info = self._env.step(action.text)
        except Exception as error:
            raise _named(error) from error
        self._state.step_count += 1
        return TextObservation(
            text=text,
            reward=float(reward),
            done=terminated or truncated,
            terminated=terminated,
            truncated=truncated,
            info=info,
        )

    @property
    def state(self) -> State:
        """The episode, and its number of turns."""
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        """What is played here."""
        return EnvironmentMetadata(
            name=MADE_FROM["name"], description=f"{MADE_FROM['id']} of gem-core", version=MADE_FROM["version"]
        )

    def close(self) -> None:
        """Release what the environment holds."""
        self._env.close()


def _named(error: Exception) -> Exception:
    """An error whose text names its type: clients get no more than the text."""
    return RuntimeError(f"{type(error).__name__}: {error}")
