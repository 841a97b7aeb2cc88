"""Models by name."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

from gem_core.errors import MissingExtraError, described
from gem_core.installation import install_line
from gem_evaluation._baselines import BuiltInPlayer, ExpertActions, HumanModel, RandomActions
from gem_evaluation._endpoints import DEFAULT_FILE, DEFAULT_KEY, Endpoint, find_endpoint
from gem_evaluation._engines import EngineName
from gem_evaluation._errors import ModelSetupError
from gem_evaluation._local import LocalModel
from gem_evaluation._models import AnswerFunction, FunctionModel, Model
from gem_train.models import model_folder, model_names

_PLAYERS: Mapping[str, Callable[[], Model]] = {
    "random": partial(BuiltInPlayer, "random", RandomActions),
    "expert": partial(BuiltInPlayer, "expert", ExpertActions),
    "human": HumanModel,
}
_NEEDED = {"openai": "eval", "tenacity": "eval", "scipy": "eval"}


def load_model(
    name: str,
    *,
    base_url: str | None = None,
    endpoints: Path | None = None,
    options: Mapping[str, Any] | None = None,
    concurrency: int | None = None,
    timeout: float = 600.0,
    engine: EngineName | None = None,
) -> Model:
    """A model by name.

    | name | model |
    | --- | --- |
    | `random` | random valid actions |
    | `expert` | the best known play, of environments that have an expert |
    | `human` | a person at the terminal |
    | an alias of the endpoints file | that endpoint |
    | a folder, or `hf:` and a name | weights, loaded here; the folder may have a LoRA adapter alone |
    | a name that a package declares, such as `smollm2` | its weights, loaded here |
    | `package.module:name` | a Python function of messages, or an object with the methods of `Model` |
    | any other, or any with a `base_url` | a chat endpoint's model |

    Args:
        name: see above.
        base_url: where the endpoint is; usually ends in `/v1`. `None`: OpenAI's own.
        endpoints: the endpoints file; `None`: `endpoints.toml` in the current folder, if there is one.
        options: fields of each request, for example `{"temperature": 0.7, "max_tokens": 512}`.
        concurrency: requests at a time; `None` finds out.
        timeout: seconds that one request may take.
        engine: what samples local weights; `None` takes vLLM where it is installed, otherwise transformers.

    Raises:
        ModelSetupError: there is no such model, or it cannot have these options or this URL.
        EvaluationError: the endpoints file cannot be read.
        MissingExtraError: something that the model needs is not installed.
        GemError: as `gem_train.models.model_folder`.
    """
    local = None if base_url is not None else _local_name(name, endpoints)
    if engine is not None and local is None:
        raise ModelSetupError(f"{name} is no folder of weights and no hf:NAME, so there is no engine to choose")
    if base_url is None:
        if name in _PLAYERS:
            _check_no_options(name, options)
            return _PLAYERS[name]()
        if local is not None:
            return LocalModel(model_folder(local), options, concurrency, engine=engine)
        if (endpoint := find_endpoint(name, endpoints)) is not None:
            return _chat(endpoint, options, concurrency, timeout)
        module, colon, attribute = name.partition(":")
        if colon and module.replace(".", "").isidentifier():
            _check_no_options(name, options)
            return _object(module, attribute, concurrency)
    elif endpoints is not None or find_endpoint(name, None) is not None:
        raise ModelSetupError(
            f"{name!r} would have its URL from the endpoints file {endpoints or DEFAULT_FILE}, and {base_url} was "
            "given as well. Leave out --base-url (base_url=...), or the file or its alias"
        )
    return _chat(Endpoint(name, base_url, DEFAULT_KEY), options, concurrency, timeout)


def _local_name(name: str, endpoints: Path | None) -> str | None:
    """The folder or name of weights that are loaded here; `None` for any other model."""
    if name.startswith("hf:"):
        return name.removeprefix("hf:")
    declared = name in model_names() and find_endpoint(name, endpoints) is None
    return name if declared or Path(name).is_dir() else None


def _check_no_options(name: str, options: Mapping[str, Any] | None) -> None:
    if options:
        given = ", ".join(f"{option}={value!r}" for option, value in options.items())
        raise ModelSetupError(f"the model {name} takes no options, so {given} would change nothing. Leave it out")


def _chat(endpoint: Endpoint, options: Mapping[str, Any] | None, concurrency: int | None, timeout: float) -> Model:
    check_extra()
    from gem_evaluation._chat import ChatModel

    return ChatModel(endpoint, options, concurrency, timeout)


def check_extra() -> None:
    """Raises `MissingExtraError` where the extra `eval` is not installed."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingExtraError(f"evaluation needs {' and '.join(missing)}. Run: {install_line('eval')}")


def _object(module: str, attribute: str, concurrency: int | None) -> Model:
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module), attribute)
    except Exception as error:
        raise ModelSetupError(f"{module}:{attribute} cannot be imported: {described(error)}") from error
    finally:
        sys.path.remove(str(Path.cwd()))
    if hasattr(found, "respond"):
        return found
    if not callable(found):
        raise ModelSetupError(f"{module}:{attribute} is {type(found).__name__}, not a function of messages")
    return FunctionModel(cast("AnswerFunction", found), f"{module}:{attribute}", concurrency or 16)
