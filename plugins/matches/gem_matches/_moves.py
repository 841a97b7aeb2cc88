"""What the matches have in common: moves in a box, and the price of an answer without one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from gem_core.match import MatchStep

_Move = TypeVar("_Move")
_BOX = re.compile(r"\\boxed\{([^{}]{0,200})\}")


def boxed(content: object) -> str:
    """`\\boxed{content}`."""
    return f"\\boxed{{{content}}}"


def last_box(action: str) -> str | None:
    """The content of the last box of an answer, in lower case and without white space at its ends."""
    found = _BOX.findall(action)
    return found[-1].strip().lower() if found else None


def read_moves(
    actions: Mapping[str, str], read: Callable[[str, str], _Move | None]
) -> tuple[dict[str, _Move], list[str]]:
    """The moves of agents, and the agents whose answer has no allowed move.

    Args:
        actions: the answers.
        read: from agent and content of its last box to the move; `None` if that is not allowed now.
    """
    boxes = {agent: last_box(action) for agent, action in actions.items()}
    read_boxes = {agent: None if box is None else read(agent, box) for agent, box in boxes.items()}
    moves = {agent: move for agent, move in read_boxes.items() if move is not None}
    return moves, [agent for agent in actions if agent not in moves]


def forfeit(agents: Sequence[str], invalid: Sequence[str], price: float, form: str) -> MatchStep:
    """The end of a match in which somebody made no allowed move: those pay the price, the others get nothing.

    Nobody succeeds, so that waiting for mistakes of others teaches nothing.
    """
    told = f"The match ends: {' and '.join(invalid)} made no allowed move. A move has the form {form}."
    return MatchStep(
        observations=dict.fromkeys(agents, told),
        rewards={agent: -price if agent in invalid else 0.0 for agent in agents},
        terminated=dict.fromkeys(agents, True),
        infos={agent: {"success": False, **({"invalid_action": True} if agent in invalid else {})} for agent in agents},
    )
