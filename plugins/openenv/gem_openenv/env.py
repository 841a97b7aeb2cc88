"""An environment that an OpenEnv server plays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gem_core.errors import EnvError
from gem_openenv.fields import Fields
from gem_openenv.session import OpenEnvSession, schemas_of
from gem_remote.elsewhere import EnvElsewhere


class OpenEnvEnv(EnvElsewhere):
    """Plays the environment of an OpenEnv server.

    `terminated` and `truncated` are the server's where its observations or their metadata have these fields. Otherwise
    the end of an episode is `terminated`. Whether a seed repeats an episode is up to the server.

    Args:
        url: `http://host:port` or `https://...`.
        action: the field of an action that takes the policy's text. By default the only field, if it is a text;
            otherwise the policy writes a JSON object.
        observation: the field of an observation that is shown. By default the only field, if it is a text; otherwise a
            JSON object of all.
        patience: seconds for which `reset()` tries to reach a server that is starting or full.
    """

    def __init__(
        self, url: str, *, action: str | None = None, observation: str | None = None, patience: float = 30.0
    ) -> None:
        super().__init__()
        if not url.startswith(("http://", "https://")):
            raise EnvError(f"openenv:{url} names no server; write openenv:http://host:port")
        self._url = url.rstrip("/")
        self._names = action, observation
        self._patience = patience
        self._fields: Fields | None = None

    def _opened(self) -> OpenEnvSession:
        return OpenEnvSession(self._url, self._known_fields(), self._patience)

    def _known_fields(self) -> Fields:
        if self._fields is None:
            try:
                self._fields = Fields(schemas_of(self._url, self._patience), *self._names)
            except ValueError as error:
                raise EnvError(f"{self!r}: {error}") from error
        return self._fields

    def sample_random_action(self) -> str:
        """An action that the server's schema allows; its rules may call it invalid."""
        return self._known_fields().random_action(self.rng)

    def _check_options(self, options: Mapping[str, Any]) -> None:
        """The server checks them."""
