"""Models whose weights are here, sampled with transformers."""

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
from gem_core.rollout import ChatTemplate
from gem_evaluation.conversation import Prompt, Reply, Usage
from gem_evaluation.errors import ModelError, ModelSetupError
from gem_evaluation.models import installed

MAX_TOKENS = 1024
"""Token limit of a response that has no other."""
BATCH = 32
"""Prompts at a time where none are asked for."""
GATHERING = 0.01
"""Seconds in which prompts of one batch gather."""


@dataclass
class _Waiting:
    """A prompt that waits for its response."""

    ids: list[int]
    response: asyncio.Future[_Sampled]


@dataclass(frozen=True)
class _Sampled:
    """The tokens of a response."""

    ids: list[int]
    truncated: bool


class LocalModel:
    """A model from a folder or from the hub of Hugging Face, sampled in batches.

    Prompts are built as in training: what was sampled is not encoded again, and text of environments has no control
    tokens.

    Args:
        path: a folder as `save_pretrained` writes it, with the tokenizer; or a name on the hub.
        options: `temperature` (0 takes the likeliest token), `top_p`, `top_k`, `max_tokens`.
        batch: prompts at a time.
        device: of torch; `None` takes a GPU where there is one.
    """

    wrappers: Sequence[Callable[[Env], Env]] = ()

    def __init__(
        self,
        path: str | Path,
        options: Mapping[str, Any] | None = None,
        batch: int | None = None,
        device: str | None = None,
    ) -> None:
        self.name = Path(path).name
        self.most_at_once = batch or BATCH
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
            "versions": installed("torch", "transformers"),
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
        limit = getattr(self._model.config, "max_position_embeddings", None)
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
        system = messages.pop(0).content if messages[0].role == "system" else None
        template = self._templates.get(system)
        if template is None:
            template = self._templates[system] = ChatTemplate(self._tokenizer, system_prompt=system)
        if prompt.tools:
            template = template.with_tools(prompt.tools)
        ids = template.opening(messages[0].content, messages[0].role)
        for response, message in zip(messages[1::2], messages[2::2], strict=True):
            ids += self._ids_of(response.content, episode) + template.glue(message.content, message.role)
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

    def _load(self) -> None:
        try:
            import torch
            from transformers import AutoModelForCausalLM, AutoTokenizer
        except ImportError as error:
            raise MissingExtraError(
                f'a local model needs {error.name}, which is not installed. Run: pip install "gem-core[eval-local]"'
            ) from error
        try:
            self._tokenizer = cast("Any", AutoTokenizer).from_pretrained(self._path)
            model = cast("Any", AutoModelForCausalLM).from_pretrained(self._path, dtype="auto")
        except Exception as error:  # these libraries raise what they like
            raise ModelSetupError(f"the model {self._path} cannot be loaded: {described(error)}") from error
        device = self._device or ("cuda" if torch.cuda.is_available() else "cpu")
        self._model: Any = model.to(device).eval()

    async def _serve(self) -> None:
        """Answer prompts in batches, until it is cancelled."""
        while True:
            batch = [await self._waiting.get()]
            await asyncio.sleep(GATHERING)
            while len(batch) < self.most_at_once and not self._waiting.empty():
                batch.append(self._waiting.get_nowait())
            batch = [one for one in batch if not one.response.done()]
            try:
                found = await asyncio.to_thread(self._sample, [one.ids for one in batch]) if batch else []
            except Exception as error:
                for one in batch:
                    one.response.set_exception(ModelError(f"{self.name}: sampling raised {described(error)}"))
                continue
            for one, sampled in zip(batch, found, strict=True):
                if not one.response.done():
                    one.response.set_result(sampled)

    def _sample(self, prompts: Sequence[Sequence[int]]) -> list[_Sampled]:
        import torch

        longest, ends = max(map(len, prompts)), self._ends
        # Generation pads what has ended with the padding token, so it has to be one that ends a response.
        pad = ends[0] if ends else 0
        ids = torch.tensor([[pad] * (longest - len(one)) + [*one] for one in prompts])
        mask = torch.tensor([[0] * (longest - len(one)) + [1] * len(one) for one in prompts])
        with torch.inference_mode():
            output = self._model.generate(
                input_ids=ids.to(self._model.device),
                attention_mask=mask.to(self._model.device),
                max_new_tokens=self._options["max_tokens"],
                pad_token_id=pad,
                eos_token_id=ends or None,
                **self._sampling,
            )
        return [_until_end(one, {*ends}) for one in output[:, longest:].tolist()]

    @property
    def _sampling(self) -> dict[str, Any]:
        temperature = self._options["temperature"]
        if temperature == 0:
            return {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
        limits = {"top_p": self._options.get("top_p", 1.0), "top_k": self._options.get("top_k", 0)}
        return {"do_sample": True, "temperature": temperature, **limits}

    @property
    def _ends(self) -> list[int]:
        """Tokens that end a response."""
        configured = self._model.generation_config.eos_token_id
        found = cast("list[int | None]", configured if isinstance(configured, list) else [configured])
        return [*dict.fromkeys(one for one in [*found, self._tokenizer.eos_token_id] if one is not None)]


def _until_end(ids: list[int], ends: set[int]) -> _Sampled:
    for place, token in enumerate(ids):
        if token in ends:
            return _Sampled(ids[: place + 1], truncated=False)
    return _Sampled(ids, truncated=True)


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
