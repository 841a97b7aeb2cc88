"""A model as the partner of environments. All environments of a process that name the same model share one session."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError, Future
from typing import Any, ClassVar, cast

from gem_core.errors import EnvError, EnvKwargsError
from gem_evaluation._conversation import Message, Prompt, Reply
from gem_evaluation._errors import EvaluationError, ModelError, ModelSetupError
from gem_evaluation._models import Model
from gem_evaluation._naming import load_model


class ModelPartner:
    """A model that an environment asks.

    Args:
        name: as for `load_model`, for example an alias of `endpoints.toml` or a folder of weights.
        options: fields of each request, for example `max_tokens`; of `load_model`.

    Raises:
        ModelSetupError: there is no such model, or it cannot have these options or answer conversations.
        EvaluationError, MissingExtraError: as `load_model`.
        EnvKwargsError: options that are not JSON.
    """

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self._name, self._options = name, dict(options)
        try:
            self._settings = json.dumps([name, self._options], sort_keys=True)
        except TypeError as error:
            raise EnvKwargsError(f"the options {self._options!r} of model:{name} are not JSON: {error}") from error
        _model(name, self._options)  # what cannot answer is refused before the first question
        self._joining = threading.Lock()
        self._line: SharedSession | None = None

    def answer(self, messages: Sequence[Mapping[str, str]], episode: str) -> str:
        """Ask the model; see `gem_core.partner.Partner`. A thought that the endpoint gives apart is before the answer.

        Raises:
            EnvError: there is no answer, or the conversation does not fit the model's context.
        """
        prompt = Prompt([Message(cast("Any", one["role"]), one["content"]) for one in messages])
        try:
            reply = self._joined().ask(prompt, episode)
        except (EvaluationError, ModelError, CancelledError) as error:
            raise EnvError(f"model:{self._name} gave no answer: {error}") from error
        if reply.context_full:
            raise EnvError(
                f"model:{self._name}: the conversation with {len(messages)} messages does not fit its context. Lower "
                "max_tokens, play fewer turns, or take a model with a longer context"
            )
        thought = reply.reasoning.text if reply.reasoning is not None else ""
        return f"<think>\n{thought}\n</think>\n\n{reply.text}" if thought else reply.text

    def close(self) -> None:
        """End the session if no other environment uses it. Safe to call twice; a later question opens another."""
        with self._joining:
            line, self._line = self._line, None
        if line is not None and line.owner == os.getpid():
            line.leave()

    def _joined(self) -> SharedSession:
        with self._joining:
            if self._line is None or self._line.owner != os.getpid():  # a fork has none of its parent's threads
                self._line = SharedSession.joined(self._settings, self._name, self._options)
            return self._line

    def __reduce__(self) -> tuple[Any, ...]:
        """Its settings: another process has a session of its own."""
        return ModelPartner, (self._name, self._options)

    def __deepcopy__(self, memo: object) -> ModelPartner:
        """The same partner: a copy of an environment asks whom the environment asks."""
        return self


class SharedSession:
    """A model with its session, which a thread holds open from the first question to the last user's leaving."""

    _lines: ClassVar[dict[tuple[int, str], SharedSession]] = {}
    _lock = threading.Lock()

    def __init__(self, key: tuple[int, str], model: Model) -> None:
        self._key = key
        self.owner = key[0]
        """The process whose thread holds the session."""
        self._model = model
        self._users = 0
        self._session: _PartnerSession | None = None

    @classmethod
    def joined(cls, settings: str, name: str, options: Mapping[str, Any]) -> SharedSession:
        """The line of these settings in this process, with one more user."""
        key = os.getpid(), settings
        with cls._lock:
            line = cls._lines.get(key)
            if line is None:
                line = cls._lines[key] = cls(key, _model(name, options))
            line._users += 1
            return line

    def leave(self) -> None:
        """One user less."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
            del self._lines[self._key]
            session, self._session = self._session, None
        if session is not None:
            session.end()

    def ask(self, prompt: Prompt, episode: str) -> Reply:
        """The model's response. Raises as `Model.session` and `Model.respond`."""
        with self._lock:
            if self._session is None:
                self._session = _PartnerSession(self._model)
            session = self._session
        try:
            session.opened.result()
        except BaseException:
            with self._lock:  # the next question tries again, unless this one was interrupted
                if session.opened.done() and self._session is session:
                    self._session = None
            raise
        return session.ask(prompt, episode)


class _PartnerSession:
    """A model's session, open in an event loop of its own."""

    def __init__(self, model: Model) -> None:
        self.opened: Future[None] = Future()
        """Done once questions can be asked."""
        self._model = model
        self._over: Future[None] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True, name="gem-partner")
        self._thread.start()

    def ask(self, prompt: Prompt, episode: str) -> Reply:
        future = asyncio.run_coroutine_threadsafe(self._model.respond(prompt, episode), self._loop)
        try:
            return future.result()
        except BaseException:  # Ctrl-C, too
            future.cancel()
            raise

    def end(self) -> None:
        """Close the session, once it is open; questions under way are cancelled."""
        self._over.set_result(None)
        self._thread.join()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            async with self._model.session():
                self.opened.set_result(None)
                await asyncio.wrap_future(self._over)
        except BaseException as error:
            if self.opened.done():
                raise
            self.opened.set_exception(error)


def _model(name: str, options: Mapping[str, Any]) -> Model:
    model = load_model(name, options=options)
    if model.wrappers:
        raise ModelSetupError(
            f"model:{name} plays an environment and answers no conversations. For random actions, name the opponent "
            "'random'"
        )
    return model
