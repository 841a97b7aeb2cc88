"""Serves exported packages, and an environment written for OpenEnv, in one process. Arguments: a port and a folder."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any, Literal

import uvicorn
from openenv.core.env_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State
from starlette.applications import Starlette
from starlette.routing import Mount


class Move(Action):
    """Two fields, so a policy writes JSON."""

    direction: Literal["north", "south"]
    steps: int = 1


class Place(Observation):
    """Two fields, so a policy reads JSON, and two optional ones that this environment leaves empty."""

    row: int
    words: str = ""
    terminated: bool | None = None
    truncated: bool | None = None


class Field(Environment[Move, Place, State]):
    """Ends at row 3; a `done` is all it says, apart from its metadata after many steps."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def reset(self, seed: int | None = None, episode_id: str | None = None, start: int = 0, **_: Any) -> Place:
        self._row, self._state = start, State(episode_id=episode_id)
        return Place(row=start, words="go north")

    def step(self, action: Move, timeout_s: float | None = None, **_: Any) -> Place:
        if action.steps == 13:
            raise ValueError("the ground gives way")
        self._row += action.steps * (1 if action.direction == "north" else -1)
        cut = abs(self._row) > 10
        metadata = {"truncated": True} if cut else {}
        return Place(row=self._row, done=self._row == 3 or cut, reward=float(self._row), metadata=metadata)

    @property
    def state(self) -> State:
        return State()


def main(port: int, folder: Path) -> None:
    sys.path.insert(0, str(folder))
    names = [path.name for path in sorted(folder.iterdir())]
    routes = [Mount(f"/{name}", importlib.import_module(f"{name}.server.app").app) for name in names]
    field = create_fastapi_app(Field, Move, Place, max_concurrent_envs=1)
    uvicorn.run(Starlette(routes=[*routes, Mount("/field", field)]), port=port, log_level="error")


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
