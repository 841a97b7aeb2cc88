"""A task of ScienceWorld."""

from __future__ import annotations

import copy
import json
import os
import re
from collections.abc import Sequence
from typing import Any

from gem_core.env import Env, Info, ResetResult, StepResult
from gem_core.errors import EnvKwargsError, near_matches
from gem_scienceworld._simulator import World, simulator
from gem_scienceworld._tasks import SIMPLIFICATIONS, SPLITS, TASKS, is_electrical, variations

MAX_COMMAND_LENGTH = 200
"""Characters of a command; ScienceWorld's names of things stay below 80."""

_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_CHOICE = re.compile(r"^(\d+):", re.MULTILINE)
_DOOR = re.compile(r"A door to the ([a-z ]+) \(")
_UNKNOWN = "No known action matches that input."
_AMBIGUOUS = "Ambiguous request"
_HOW = (
    "Write one command in a turn, for example [look around]. OBJ stands for a thing, such as: door to kitchen.\n"
    "Commands: {commands}."
)


class ScienceWorld(Env):
    """A house and a garden in which science is done; the content of the last `[...]` of an action is the command.

    | command | reward | episode |
    | --- | --- | --- |
    | understood | what it adds to ScienceWorld's score, from 0 to 1 | continues |
    | not understood, or none | 0 | continues, `info["invalid_action"]` |
    | the task is solved | the rest to 1 | terminated, `info["success"]` |
    | fails the task: focuses on a wrong thing | down to a sum of -1 | terminated |
    | number `max_turns` | as above | truncated |

    So the rewards of an episode add up to ScienceWorld's score. An action without brackets is a command. A command has
    at most 200 printable ASCII characters. After an ambiguous command, the observation lists what it may mean, and the
    next command is a number.

    A seed draws one of the task's variations. The variation and the commands determine the episode.

    Args:
        name: ScienceWorld's name of the task.
        split: the variations to draw from: `train`, `dev` or `test`, as ScienceWorld splits them.
        variation: the number of the only variation to play, in place of a split.
        simplifications: what makes the world easier, of `teleportAction`, `selfWateringFlowerPots`, `openContainers`,
            `openDoors` and `noElectricalAction`.
        max_turns: turns of an episode; ScienceWorld's own limit is 100.

    Raises:
        EnvKwargsError: an unknown task, split, variation or simplification.
    """

    _world: World | None = None
    """The simulation in which the episode is; made again from its commands where there is none."""

    def __init__(
        self,
        name: str,
        split: str = "train",
        variation: int | None = None,
        simplifications: Sequence[str] = (),
        max_turns: int = 100,
    ) -> None:
        _check("task", name, [*TASKS])
        _check("split", split, SPLITS)
        if isinstance(simplifications, str):
            simplifications = tuple(simplifications.split(","))
        for each in simplifications:
            _check("simplification", each, SIMPLIFICATIONS)
        if is_electrical(name) and "noElectricalAction" in simplifications:
            raise EnvKwargsError(
                f"scienceworld: {name!r} cannot be solved with the simplification 'noElectricalAction'"
            )
        if variation is not None and variation not in variations(name):
            raise EnvKwargsError(
                f"scienceworld: {name!r} has variations 0 to {variations(name)[-1]}, not {variation!r}"
            )
        if max_turns < 1:
            raise EnvKwargsError(f"scienceworld: max_turns={max_turns!r} must be at least 1")
        self._name = name
        self._split = split
        self._only = variation
        self._simplifications = ",".join(simplifications)
        self._max_turns = max_turns
        self._variation = 0
        self._commands: list[str] = []
        self._paid = 0.0
        self._told = ""

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Start an episode.

        Raises:
            EnvError: Java is missing, or the simulator fails.
        """
        super().reset(seed=seed)
        choices = variations(self._name, self._split)
        self._variation = self.rng.choice(choices) if self._only is None else self._only
        self._commands = []
        self._paid = 0.0
        self._begin()
        room = self._call("freeActionLook")
        forms = json.loads(self._call("getPossibleActionsWithIDs"))
        commands = ", ".join(sorted({each["action_example"] for each in forms}))
        task = self._call("getTaskDescription")
        self._told = _tidy("\n".join([task, _HOW.format(commands=commands), room]))
        return self._told, {"variation": self._variation}

    def step(self, action: str) -> StepResult:
        """Give a command.

        Raises:
            EnvError: the simulator fails.
        """
        command = _command(action)
        told: str = self._call("step", command)
        self._commands.append(command)
        self._told = _tidy(told)
        score = round(100 * float(self._call("getScore"))) / 100
        reward, self._paid = score - self._paid, score
        info: Info = {}
        if command and _UNKNOWN not in told:
            info["parsed_action"] = f"[{command}]"
        else:
            info["invalid_action"] = True
        terminated = score < 0 or bool(self._call("getCompleted"))
        truncated = not terminated and len(self._commands) >= self._max_turns
        if terminated or truncated:
            info["success"] = score >= 1
        return self._told, reward, terminated, truncated, info

    def sample_random_action(self) -> str:
        """A step of a walk through the house.

        ScienceWorld lists more commands, but under names that depend on what its process has done before.
        """
        if self._told.startswith(_AMBIGUOUS):
            return f"[{self.rng.choice(_CHOICE.findall(self._told))}]"
        doors = _DOOR.findall(self._call("freeActionLook"))
        steps = [f"{verb} {room}" for room in doors for verb in ("open door to", "close door to", "go to")]
        return f"[{self.rng.choice(['look around', 'inventory', 'wait1', *steps])}]"

    def render(self) -> str | None:
        """The room, the inventory and the score."""
        if self._unplayable:
            return self._told or None
        parts = [self._call("freeActionLook"), self._call("freeActionInventory"), f"Score: {self._paid:g}"]
        return _tidy("\n".join(parts))

    def close(self) -> None:
        """Leave the simulator, which ends with the last environment of this process."""
        self._world = None

    def get_state(self) -> Any:
        """A snapshot; restoring it gives the commands of the episode once more."""
        return copy.deepcopy(self.__getstate__())

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if key != "_world"}

    def _call(self, name: str, *arguments: Any) -> Any:
        # A fork must not play in the simulation of its parent.
        world = self._world if self._world is not None and self._world.owner == os.getpid() else self._begin()
        try:
            return world.call(name, *arguments)
        except Exception:
            self._world = None
            raise

    def _begin(self) -> World:
        """Make a simulation in which all commands of the episode were given."""
        # That of the episode before, where there is one: ScienceWorld makes the house anew whenever it loads a task.
        world = self._world if self._world is not None and self._world.usable else simulator().world()
        self._world = None
        world.call("load", self._name, self._variation, self._simplifications, False)
        for command in self._commands:
            world.call("step", command)
        self._world = world
        return world


def _command(action: str) -> str:
    """The content of the last brackets, or the action if it has none; nothing where it cannot be a command."""
    brackets = _BRACKETS.findall(action)
    command = (brackets[-1] if brackets else action).strip()
    return command if len(command) <= MAX_COMMAND_LENGTH and command.isascii() and command.isprintable() else ""


def _tidy(text: str) -> str:
    """With spaces for tabs, and without white space at the ends of lines."""
    return "\n".join(line.rstrip() for line in text.expandtabs(4).splitlines()).strip("\n")


def _check(what: str, given: object, known: Sequence[str]) -> None:
    if given not in known:
        hint = near_matches(str(given), known)
        raise EnvKwargsError(f"scienceworld: unknown {what} {given!r}.{hint} Known: {', '.join(known)}")
