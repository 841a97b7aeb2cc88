"""The text that a policy is shown says the form that an action has to have."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, cast

from gem_core.env import Env, Info, shown_text
from gem_core.registry import spec
from gem_testing._play import Subject, random_actions

BARE = "bare"
"""Tag of ids that repeat a published text, which does not say the form."""
_SEEDS, _DRAWS = 3, 8
"""Episodes, and random actions from each first observation."""
_SHORT = 3
"""Words of a move; what is longer is speech."""

_FRAME = re.compile(r"\\boxed\s*\{|```|<[A-Za-z_][\w.:=-]*>")
"""What opens a box, a block or a tag."""
_CALL = re.compile(r"^[A-Za-z_]\w*(?=[\[(])")
_COMMAND = re.compile(r"^([^\W\d_]{2,}) (?=\S)")
_BOX = re.compile(r"^\\boxed\s*\{(.*)\}$", re.DOTALL)
_BRACKETS = re.compile(r"^\[(.*)\]$", re.DOTALL)
_JSON = re.compile(r"\{.*\}", re.DOTALL)
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")


def form(subject: Subject) -> Iterator[str]:
    """The text that an agent is shown first says the form that random actions have."""
    if BARE in spec(subject.env_id).tags:
        return
    env = subject.make()
    for seed in range(min(_SEEDS, subject.seeds)):
        for text, actions in _first_looks(env, seed):
            if missing := next(_unsaid(text, actions), None):
                action, what = missing
                yield (
                    f"sample_random_action() gave {action!r:.80}, and the text that is shown first does not "
                    f"say {what} (seed {seed}). A policy that reads only this text has to know the form of an action: "
                    'say it in the observation, info["prefix"] or info["suffix"]. An id that repeats a published text '
                    f"has the tag {BARE!r}"
                )
                return


def _first_looks(env: Env, seed: int) -> Iterator[tuple[str, list[str]]]:
    """What each agent is shown first, and some of the actions that it then has."""
    observation, info = env.reset(seed=seed)
    looked: set[Any] = set()
    for action in random_actions(env):
        agent = info.get("agent")
        if agent not in looked:
            looked.add(agent)
            yield _shown(observation, info), [action, *(env.sample_random_action() for _ in range(_DRAWS - 1))]
        if len(looked) >= max(1, len(env.agents)):
            return
        observation, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            return


def _shown(observation: str, info: Info) -> str:
    """The text, with the functions that a chat template shows, and the mark of a call that comes with them."""
    tools = info.get("tools")
    native = f"\n<tool_call>\n{json.dumps(tools)}" if tools else ""
    return shown_text(observation, info) + native


def _unsaid(text: str, actions: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Actions that have something that the text does not have, and what it is."""
    framed = {action: [*_marks(action)] for action in actions}
    plain = [action.strip() for action, marks in framed.items() if not marks]
    for action, mark in chain(((one, each) for one in framed for each in framed[one]), _commands(framed)):
        if not _has(text, mark):
            yield action, f"{mark!r}"
    moves = [one for one in plain if len(one.split()) <= _SHORT]
    if moves and len(moves) == len(framed) and not any(_is_told(text, move) for move in moves):
        yield moves[0], "what the actions are"


def _marks(action: str) -> Iterator[str]:
    """What has to be around or in an action, whatever it says: `\\boxed{`, `<bash>`, `search[`, the keys of JSON."""
    yield from (re.sub(r"\s", "", frame) for frame in dict.fromkeys(_FRAME.findall(action)))
    inside = _content(action)
    if inside is not action and not _FRAME.match(action.strip()):
        yield "["
    if call := _CALL.match(inside):
        yield call[0]
    if found := _JSON.search(action):
        yield from _words_of(found[0])


def _words_of(text: str) -> Iterator[str]:
    """The fields of a JSON object, or the name of the function that it calls."""
    try:
        value = cast("object", json.loads(text))
    except ValueError:
        return
    if isinstance(value, dict):
        named = cast("dict[str, Any]", value)
        is_call = isinstance(named.get("name"), str) and "arguments" in named
        yield from [named["name"]] if is_call else map(json.dumps, named)


def _commands(actions: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Words that begin several actions of one moment, as in `reveal 1 2` and `reveal 3 1`."""
    heads: dict[str, set[str]] = defaultdict(set)
    for action in actions:
        if command := _COMMAND.match(_content(action)):
            heads[command[1]].add(action)
    yield from ((min(several), head) for head, several in heads.items() if len(several) > 1)


def _content(action: str) -> str:
    """What is in the box or the brackets that are all of an action, or the action itself."""
    bare = action.strip()
    found = _BOX.match(bare) or _BRACKETS.match(bare)
    return found[1] if found else action


def _has(text: str, mark: str) -> bool:
    if mark[-1].isalnum():
        return re.search(rf"(?<!\w){re.escape(mark)}(?!\w)", text, re.IGNORECASE) is not None
    return mark in text


def _is_told(text: str, move: str) -> bool:
    return _has(text, move) or (
        _NUMBER.fullmatch(move) is not None and re.search(r"number|digit|integer|\d", text, re.IGNORECASE) is not None
    )
