"""A client with types; `GenericEnvClient` works as well."""

from typing import Any

from openenv.core import EnvClient
from openenv.core.client_types import StepResult
from openenv.core.env_server.types import State

from .models import TextAction, TextObservation


class TextEnv(EnvClient[TextAction, TextObservation, State]):
    """Plays the environment of a server.

    Example:
        with TextEnv(base_url="http://localhost:8000").sync() as env:
            print(env.reset(seed=1).observation.text)
            print(env.step(TextAction(text="hello")).reward)
    """

    def _step_payload(self, action: TextAction) -> dict[str, Any]:
        return {"text": action.text}

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[TextObservation]:
        reward, done = payload.get("reward"), payload.get("done", False)
        observation = TextObservation(**payload["observation"], reward=reward, done=done)
        return StepResult(observation=observation, reward=reward, done=done)

    def _parse_state(self, payload: dict[str, Any]) -> State:
        return State(**payload)
