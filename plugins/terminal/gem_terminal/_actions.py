"""What a response of a policy asks for: a command, or the end.

In the text form the first closed tag counts, as in gem-llm's terminal, but for one in a string of the command:

    <bash>                  <bash>                      <finish>
    cmd: ls -l              ls -l                       </finish>
    timeout_secs: 10        </bash>
    </bash>

What is no YAML with a `cmd` is the command itself; either may stand in a fenced block. In the native form it is a call
of `bash` or `finish`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, cast

import yaml

from gem_core.responses import blocks, element
from gem_core.tool import Function
from gem_core.tools import Form, find_call, written

_MAX_YAML_LENGTH = 20_000
"""Characters. A longer text is taken for the command itself: reading YAML takes long."""
_MAX_LENGTH = 200_000
"""Characters of a command."""
_CMD = re.compile(r"""^\s*\{?\s*["']?cmd["']?\s*:""", re.MULTILINE)

BASH = Function(
    name="bash",
    description="Runs a command in the terminal and shows what it prints. Variables and the working directory stay.",
    parameters={
        "type": "object",
        "properties": {
            "cmd": {"type": "string", "description": "The command, in bash's language."},
            "timeout_secs": {"type": "number", "description": "Seconds after which it is ended."},
        },
        "required": ["cmd"],
    },
)
FINISH = Function(
    name="finish",
    description="Says that the task is done. The result is then tested, once.",
    parameters={"type": "object", "properties": {}},
)
FUNCTIONS = (BASH, FINISH)


@dataclass(frozen=True)
class Command:
    """A command to run."""

    text: str
    seconds: float | None = None
    """As the response asks for."""


@dataclass(frozen=True)
class Finish:
    """The end."""


@dataclass(frozen=True)
class Unclear:
    """A response that asks for nothing that can be done."""

    problem: str


@dataclass(frozen=True)
class Action:
    """What a response asks for, and the part of it that counts."""

    asked: Command | Finish | Unclear
    text: str


def read(response: str, form: Form) -> Action:
    """What a response asks for."""
    return _native(response) if form == "native" else _tagged(response)


def command(text: str, form: Form) -> str:
    """A response that asks for a command."""
    return written(BASH, {"cmd": text}, form) if form == "native" else f"<bash>\n{text}\n</bash>"


def finish(form: Form) -> str:
    """A response that asks for the end."""
    return written(FINISH, {}, form) if form == "native" else "<finish></finish>"


def _tagged(response: str) -> Action:
    found = [one for one in (element(response, "bash"), element(response, "finish")) if one is not None]
    if not found:
        return Action(Unclear("no <bash>...</bash> and no <finish></finish> was found"), response)
    first = min(found, key=lambda one: one.start)
    is_command = response.startswith("<bash>", first.start)
    return Action(_command(first.text) if is_command else Finish(), response[: first.end])


def _native(response: str) -> Action:
    call = find_call(response, FUNCTIONS, "native")
    if call is None:
        return Action(Unclear("no call of bash or finish was found"), response)
    used = response[: call.end]
    if call.problem is not None:
        return Action(Unclear(call.problem), used)
    if call.function == FINISH.name:
        return Action(Finish(), used)
    return Action(_checked(call.arguments.get("cmd"), call.arguments.get("timeout_secs")), used)


def _command(text: str) -> Command | Unclear:
    fenced = blocks(text)
    if len(fenced) == 1 and text.strip() == text[fenced[0].start : fenced[0].end]:
        text = fenced[0].text
    if len(text) > _MAX_YAML_LENGTH or not _CMD.search(text):
        return _checked(text.strip("\n"), None)
    try:
        fields: Any = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return Unclear(f"what is between the tags is not valid YAML: {str(error).splitlines()[0]}")
    if not isinstance(fields, dict) or "cmd" not in fields:
        return _checked(text.strip("\n"), None)  # a command with that word in it
    values = cast("dict[str, Any]", fields)
    return _checked(values["cmd"], values.get("timeout_secs"))


def _checked(text: Any, seconds: Any) -> Command | Unclear:
    if not isinstance(text, str) or not text.strip():
        return Unclear("the command must be a text, and not empty")
    if "\0" in text:
        return Unclear("a command cannot have the character 0")
    if len(text) > _MAX_LENGTH:
        return Unclear(f"a command has at most {_MAX_LENGTH:,} characters")
    if seconds is None:
        return Command(text)
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not math.isfinite(seconds) or seconds <= 0:
        return Unclear("timeout_secs must be a number of seconds above 0")
    return Command(text, float(seconds))
