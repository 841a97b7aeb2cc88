"""What the matches have in common: moves in a box, and the price of an answer without one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from gem_core.match import MatchStep
from gem_core.responses import last_box

_Move = TypeVar("_Move")
_MAX_LENGTH = 200
"""Characters of a move."""


def boxed(content: object) -> str:
    """`\\boxed{content}`."""
    return f"\\boxed{{{content}}}"


def read_moves(
    actions: Mapping[str, str], read: Callable[[str, str], _Move | None]
) -> tuple[dict[str, _Move], list[str]]:
    """The moves of agents, and the agents whose answer has no allowed move.

    Args:
        actions: the answers.
        read: from agent and content of its last box, in lower case, to the move; `None` if that is not allowed now.
    """
    boxes = {agent: last_box(action) for agent, action in actions.items()}
    said = {agent: box.lower() for agent, box in boxes.items() if box is not None and len(box) <= _MAX_LENGTH}
    moves = {agent: move for agent, box in said.items() if (move := read(agent, box)) is not None}
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
