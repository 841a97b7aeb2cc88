"""The promises of `gem_core.tools.Tool`, one function each; see `gem_testing.checks`."""

from __future__ import annotations

import asyncio
import pickle
import sys
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from gem_core.errors import EnvError, EnvKwargsError, ToolError
from gem_core.registry import make_tool
from gem_core.tool import Function, Tool, ToolResult
from gem_core.tools import ParsedCall, Toolbox
from gem_testing._adversarial import CANARY, adversarial_actions
from gem_testing._watch import watched

THREADS = 8
_USER = "gem_testing"


@dataclass(frozen=True)
class ToolSubject:
    """The tool under test."""

    tool_id: str
    kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def make(self, **more: Any) -> Tool:
        """Build an instance."""
        return make_tool(self.tool_id, **{**self.kwargs, **more})


def construction(subject: ToolSubject) -> Iterator[str]:
    """The constructor does no network access and starts no process or thread."""
    subject.make()  # the import of modules is not the constructor's doing
    with watched() as deeds, suppress(Exception):
        subject.make()
    for deed in dict.fromkeys(deeds):
        yield f"the constructor {deed}. Do that in functions(), which is called when the tool is first used"


def keyword_arguments(subject: ToolSubject) -> Iterator[str]:
    """An argument that the constructor does not name is an error."""
    with suppress(EnvKwargsError):
        subject.make(no_such_argument=1)
        yield (
            f"make_tool({subject.tool_id!r}, no_such_argument=1) was accepted, so a misspelt argument would be lost "
            "without a word. Name every argument of the constructor and take no **kwargs"
        )


def functions(subject: ToolSubject) -> Iterator[str]:
    """The tool can be opened, and each function has a description that tells a model what it is for."""
    with _opened(subject.make()) as (_, offered):
        for function in offered:
            if not function.description.strip():
                yield f"the function {function.name!r} has no description, so a model cannot know when to call it"


def examples(subject: ToolSubject) -> Iterator[str]:
    """Each example of a function is a call that succeeds."""
    with _opened(subject.make()) as (toolbox, offered):
        for function, arguments in _examples(offered):
            result = _called(toolbox, function, arguments)
            if result.error:
                yield f"the example {arguments!r:.80} of {function.name!r} failed: {result.text:.160}"


def adversarial(subject: ToolSubject) -> Iterator[str]:
    """No text in an argument fails the turn of the environment, and none is evaluated."""
    with _opened(subject.make()) as (toolbox, offered):
        for function in offered:
            for what, arguments in _texts(function):
                sys.modules.pop(CANARY, None)
                try:
                    _called(toolbox, function, arguments)
                except EnvError as error:
                    yield f"{function.name}({what}) failed the turn of the environment: {error!s:.160}. Raise ToolError"
                if CANARY in sys.modules:
                    yield f"{function.name}({what}) was run as Python in this process. Never eval() an argument"


def threads(subject: ToolSubject) -> Iterator[str]:
    """Calls from many threads at once succeed as one call does."""
    with _opened(subject.make()) as (toolbox, offered), ThreadPoolExecutor(THREADS) as pool:
        for function, arguments in _examples(offered):

            def call(number: int, function: Function = function, arguments: dict[str, Any] = arguments) -> ToolResult:
                return _called(toolbox, function, arguments, episode=str(number))

            if failed := [result.text for result in pool.map(call, range(THREADS)) if result.error]:
                yield f"{len(failed)} of {THREADS} calls of {function.name!r} at once failed: {failed[0]:.160}"


def pickling(subject: ToolSubject) -> Iterator[str]:
    """A tool can be sent to another process before its first use, and offers the same there."""
    tool = subject.make()
    try:
        copy: Tool = pickle.loads(pickle.dumps(tool))
    except Exception as error:
        yield (
            f"pickling it before its first use raised {type(error).__name__}: {error}. Define the class at the top of "
            "a module, and open resources in functions()"
        )
        return
    with _opened(tool) as (_, expected):
        pass
    with _opened(copy) as (_, offered):
        if [one.schema for one in offered] != [one.schema for one in expected]:
            yield f"a pickled copy offers {[one.name for one in offered]} with other schemas. Pickle all of the state"


def closing(subject: ToolSubject) -> Iterator[str]:
    """A tool can be closed before its first use and twice, and used again afterwards."""
    tool = subject.make()
    try:
        _close(tool)
        _close(tool)
        with _opened(tool):
            pass  # the toolbox closes it
        _close(tool)
    except ToolError:
        raise
    except Exception as error:
        yield f"close() raised {type(error).__name__}: {error}. Close what is open and forget it"
        return
    with _opened(tool) as (toolbox, offered):
        for function, arguments in _examples(offered):
            result = _called(toolbox, function, arguments)
            if result.error:
                yield f"after close(), {function.name!r} failed: {result.text:.160}. Open resources anew when needed"
                return


ToolCheck = Callable[[ToolSubject], Iterator[str]]

FIRST: tuple[ToolCheck, ...] = (construction, keyword_arguments, functions)
"""The basis of all others."""
OTHERS: tuple[ToolCheck, ...] = (examples, adversarial, threads, pickling, closing)


@contextmanager
def _opened(tool: Tool) -> Generator[tuple[Toolbox, list[Function]]]:
    toolbox = Toolbox([tool])
    try:
        yield toolbox, toolbox.attach(_USER)
    finally:
        toolbox.detach(_USER)


def _examples(offered: list[Function]) -> Iterator[tuple[Function, dict[str, Any]]]:
    for function in offered:
        for arguments in function.examples:
            yield function, dict(arguments)


def _texts(function: Function) -> Iterator[tuple[str, dict[str, Any]]]:
    """Calls with an adversarial text in each parameter that takes one, by what the text is made of."""
    example = dict(function.examples[0]) if function.examples else {}
    properties: Mapping[str, Any] = function.parameters.get("properties", {})
    for name, schema in properties.items():
        if schema.get("type") == "string" and "enum" not in schema:
            for what, text in adversarial_actions(str(example.get(name, "a"))).items():
                yield f"{name}: {what}", {**example, name: text}


def _called(toolbox: Toolbox, function: Function, arguments: dict[str, Any], episode: str = "0") -> ToolResult:
    return toolbox.call(ParsedCall(function.name, 0, dict(arguments)), episode)


def _close(tool: Tool) -> None:
    closed = tool.close()
    if closed is not None:
        asyncio.run(_awaited(closed))


async def _awaited(closed: Awaitable[None]) -> None:
    await closed
