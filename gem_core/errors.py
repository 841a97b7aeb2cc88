"""Every error this project raises, named by the boundary that failed.

    GemError
    ├── PluginError                a plugin could not be found, read or trusted
    │   ├── PluginLoadError        importing or registering it raised
    │   │   └── NamespaceError     it declares an id outside its namespace
    │   ├── PluginApiError         it wants another version of the plugin API
    │   └── DuplicateIdError       two distributions claim one id
    ├── NotFoundError              no environment, tool, estimator or adapter of that name
    ├── MissingExtraError          an optional dependency is not installed
    ├── EnvError                   an environment
    │   ├── EnvKwargsError         was given an argument it does not have
    │   ├── ResetNeededError       was stepped before `reset()`, or after the end of an episode
    │   ├── AgentError             was given actions of agents that may not act
    │   ├── EnvFailure             failed: it raised, hung, died or returned garbage
    │   └── ClosedError            was used after `close()`
    ├── ToolError                  a tool could not be built, opened or called
    ├── PolicyError                the model side of a rollout broke its contract
    ├── TemplateError              a chat template cannot carry a conversation
    ├── RecordsError               there are no records, or they cannot be read
    ├── AdvantageError             turns that no advantage can be computed from
    └── AdapterError               a training framework
        ├── FrameworkVersionError  is missing or outside the supported range
        └── SettingsError          was given settings that would silently change the algorithm

A message says what happened, what was given and what to do next.
"""

from __future__ import annotations

import difflib
import errno
import re
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from enum import Enum

OUT_OF_ROOM = frozenset({errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN})
"""`OSError.errno` where the machine or the process has no memory, descriptors or processes left, maybe for a moment."""


# Control characters except newline and tab, which could drive the terminal; bidirectional overrides, which could
# disguise a line; lone surrogates, which no encoding can write.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class GemError(Exception):
    """Base of every error of this project."""


class PluginError(GemError):
    """A plugin could not be found, read or trusted."""


class PluginLoadError(PluginError):
    """Importing or registering a plugin raised; the original error is the cause."""


class NamespaceError(PluginLoadError):
    """A plugin declares an id outside its namespace."""

    def __init__(self, message: str, spec_id: str) -> None:
        super().__init__(message)
        self.spec_id = spec_id
        """The id that was refused."""


class PluginApiError(PluginError):
    """A plugin asks for a version of the plugin API that this release does not have."""


class DuplicateIdError(PluginError):
    """Two distributions claim the same id."""


class NotFoundError(GemError, LookupError):
    """Nothing of that name is registered."""


class MissingExtraError(GemError, ImportError):
    """An optional dependency is not installed."""


class EnvError(GemError):
    """An environment could not be built or run."""


class EnvKwargsError(EnvError, TypeError):
    """An environment was given a keyword argument that it does not have, or lacks one that it needs."""


class ResetNeededError(EnvError):
    """An environment was stepped before `reset()`, or after the end of an episode."""


class AgentError(EnvError):
    """An agent of a match acted whose turn it was not, or one whose turn it was did not."""


class FailureKind(str, Enum):
    """How an environment failed."""

    RAISED = "raised"
    """The environment raised an exception, or called `sys.exit`."""
    INVALID = "invalid"
    """The environment returned no valid reset or step result, or an info that cannot be sent to another process."""
    TIMEOUT = "timeout"
    """A call exceeded the time limit."""
    LOST = "lost"
    """The environment's process or actor died during its call."""
    DIVERGED = "diverged"
    """The process was lost in another environment's call, and a replay in a new process differed from the original."""
    TOO_MANY = "too_many"
    """More episodes failed than the failure policy allows."""
    NO_TURNS = "no_turns"
    """Too many episodes in a row ended before their first turn."""


class EnvFailure(EnvError):
    """An environment failed.

    Args:
        env_id: the environment.
        seed: of the episode; `None` where several episodes are meant.
        kind: how it failed, for programs.
        cause: what happened, for people; for an exception its type and text.
        slot, episode: in a vector, the slot, and the number of the episode in it.
        task_id: in a vector, the number of the task in the run.
        attempt: in a vector, failures of this episode so far, this one included.
    """

    def __init__(
        self,
        env_id: str,
        seed: int | None,
        kind: FailureKind,
        cause: str,
        slot: int = 0,
        episode: int = 0,
        task_id: int = 0,
        attempt: int = 1,
    ) -> None:
        # All arguments, or the error could not be pickled.
        super().__init__(env_id, seed, kind, cause, slot, episode, task_id, attempt)
        self.env_id, self.seed, self.kind, self.cause = env_id, seed, kind, cause
        self.slot, self.episode, self.task_id, self.attempt = slot, episode, task_id, attempt

    def __str__(self) -> str:
        episode = "" if self.seed is None else f" (seed {self.seed})"
        return f"{self.env_id}{episode} failed: {self.cause}"


def described(error: BaseException) -> str:
    """Type and text of an exception, even of one whose `__str__` raises."""
    try:
        text = str(error)
    except KeyboardInterrupt:
        raise
    except BaseException:
        text = "(its own __str__ raised)"
    return f"{type(error).__name__}: {text}"


class ClosedError(EnvError):
    """An environment was used after `close()`."""


class ToolError(GemError):
    """A tool cannot be built or opened as requested. If raised within a call, its message is the observation."""


class PolicyError(GemError):
    """A policy returned something other than one completion per prompt."""


class RecordsError(GemError, ValueError):
    """There are no records where some were expected, or they cannot be read."""


class TemplateError(GemError, ValueError):
    """A tokenizer's chat template cannot carry the conversation."""


class AdvantageError(GemError, ValueError):
    """The requested advantages cannot be computed from the given turns."""


class AdapterError(GemError):
    """A training framework cannot be used as requested."""


class FrameworkVersionError(AdapterError, ImportError):
    """The training framework is missing, or its version is outside the supported range."""


class SettingsError(AdapterError, ValueError):
    """Settings that cannot work, or that would silently change the algorithm."""


def printable(text: str) -> str:
    """The text with the characters that control a terminal written as escapes, such as `\\x1b`."""
    return _UNPRINTABLE.sub(lambda match: match[0].encode("unicode_escape").decode(), text.replace("\r\n", "\n"))


def near_matches(name: str, known: Iterable[str], *, limit: int = 3) -> str:
    """`" Did you mean 'a' or 'b'?"` for the known names closest to `name`, or an empty string."""
    close = difflib.get_close_matches(name, list(known), n=limit, cutoff=0.6)
    return f" Did you mean {' or '.join(repr(match) for match in close)}?" if close else ""


def hint_for(name: str, known: Iterable[str], instead_of: Mapping[str, str]) -> str:
    """What `instead_of` says about a name, as a sentence; otherwise as `near_matches`."""
    if name not in instead_of:
        return near_matches(name, known)
    sentence = instead_of[name]
    return f" {sentence}" if sentence.endswith(".") else f" {sentence}."


@contextmanager
def convert_errors(
    convert: Callable[[BaseException], GemError], *, passing: tuple[type[GemError], ...] = (GemError,)
) -> Generator[None]:
    """Turn whatever foreign code raises within the block into the error that `convert` makes from it.

    Errors of the types in `passing` stay as they are, and so does `KeyboardInterrupt`, which belongs to the user.
    Everything else is converted, including what is not an `Exception`: `SystemExit`, pytest's `Skipped`, asyncio's
    `CancelledError`.
    """
    try:
        yield
    except (*passing, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise convert(error) from error


def located(error: BaseException) -> str:
    """The end of a sentence such as `"importing 'maze' failed"`: `" at maze.py:3: ValueError: no exit"`.

    See `raised_at` for the place; without one, the result starts with the colon.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f" at {error.filename}:{error.lineno}: {type(error).__name__}: {error.msg}"
    place = raised_at(error)
    return f"{f' at {place}' if place else ''}: {described(error)}"


_MACHINERY = frozenset({"importlib", "pluggy", "gem_core", "gem_commands"})
"""Packages that call foreign code; a place inside them does not help its author."""


def raised_at(error: BaseException) -> str:
    """`file:line` where an error passed through foreign code, or an empty string.

    Foreign code is the first package that is not ours; the place is the innermost in that package, not in a library
    that it calls.
    """
    place, author, traceback = "", None, error.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        generated = frame.f_code.co_filename.startswith("<")
        if author is None and not generated and package not in _MACHINERY:
            author = package
        if package == author and not generated:
            place = f"{frame.f_code.co_filename}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return place
