"""The application: `uvicorn server.app:app` from the folder of the package."""

import argparse

import uvicorn
from openenv.core.env_server.http_server import create_app

try:
    from ..models import TextAction, TextObservation
except ImportError:
    from models import TextAction, TextObservation

from .environment import MADE_FROM, TextEnvironment

app = create_app(TextEnvironment, TextAction, TextObservation, env_name=MADE_FROM["name"], max_concurrent_envs=256)


def main() -> None:
    """Serve it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    given = parser.parse_args()
    uvicorn.run(app, host=given.host, port=given.port)


if __name__ == "__main__":
    main()
