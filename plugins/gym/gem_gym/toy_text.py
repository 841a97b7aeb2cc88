"""The toy-text family: actions by name, and a board that a person can read."""

from __future__ import annotations

from typing import Any

from gem_core.errors import EnvError
from gem_gym.codec import Codec

_AGENT = "@"


def _standing_still(env: Any) -> float:
    """What an episode earns at a cost of 1 a turn: no invalid action may be cheaper."""
    return -float(env.spec.max_episode_steps)


def _grid(rows: list[list[str]]) -> str:
    return "\n".join(" ".join(row) for row in rows)


def _place(row: int, column: int) -> str:
    return f"row {row + 1}, column {column + 1}"


class FrozenLake(Codec):
    """The lake as a map with the player in it."""

    actions = ("left", "down", "right", "up")

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        if env.spec.kwargs.get("map_name", "") is None and env.spec.kwargs.get("desc") is None:
            raise EnvError(
                "FrozenLake: map_name=None draws another map in each process, whatever the seed. Give a map: "
                "desc=generate_random_map(seed=...) of gymnasium.envs.toy_text.frozen_lake"
            )

    def task(self) -> str:
        """Goal, signs and ice."""
        return (
            f"Cross a frozen lake. On the map, {_AGENT} is you, S the start, F ice, H a hole, and G the goal. "
            f"Reach the goal and do not fall into a hole. {self._ice()}"
        )

    def observe(self, observation: Any, info: dict[str, Any]) -> str:
        """Where the player is, and what is there if it ends the episode."""
        row, column = divmod(int(observation), self.env.unwrapped.ncol)
        event = {"H": "You fell into a hole", "G": "You reached the goal"}.get(self._tile(int(observation)), "You are")
        return f"{event} at {_place(row, column)}."

    def board(self) -> str:
        """The map."""
        lake = self._lake()
        row, column = divmod(int(self.env.unwrapped.s), self.env.unwrapped.ncol)
        lake[row][column] = _AGENT
        return _grid(lake)

    def succeeded(self, total: float, terminated: bool, info: dict[str, Any]) -> bool:
        """Whether the player is at the goal, whatever that pays."""
        return self._tile(int(self.env.unwrapped.s)) == "G"

    def _tile(self, place: int) -> str:
        row, column = divmod(place, self.env.unwrapped.ncol)
        return self._lake()[row][column]

    def _lake(self) -> list[list[str]]:
        return [[tile.decode() for tile in row] for row in self.env.unwrapped.desc]

    def _ice(self) -> str:
        arguments = self.env.spec.kwargs
        if not arguments.get("is_slippery", True):
            return "The ice is not slippery."
        rate = arguments.get("success_rate", 1 / 3)
        return f"The ice is slippery: {rate:.0%} of your moves go where you want, the others to either side of it."


class CliffWalking(Codec):
    """The cliff as a map with the player on it."""

    actions = ("up", "right", "down", "left")
    max_episode_steps = 100

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.invalid_reward = _standing_still(env)

    def task(self) -> str:
        """Goal, signs and rewards."""
        slippery = " The ground is slippery: a third of your moves go where you want, the others to either side of it."
        return (
            f"Walk along a cliff to the goal. On the map, {_AGENT} is you, C is the cliff, and G the goal. Each move "
            "earns -1. A step into the cliff earns -100 and brings you back to the start."
            f"{slippery if self.env.unwrapped.is_slippery else ''}"
        )

    def observe(self, observation: Any, info: dict[str, Any]) -> str:
        """Where the player is."""
        row, column = divmod(int(observation), self.env.unwrapped.shape[1])
        goal = self._is_goal(row, column)
        return f"You {'reached the goal' if goal else 'are'} at {_place(row, column)}."

    def board(self) -> str:
        """The map."""
        rows, columns = self.env.unwrapped.shape
        here = divmod(int(self.env.unwrapped.s), columns)
        return _grid([[self._sign(row, column, here) for column in range(columns)] for row in range(rows)])

    def succeeded(self, total: float, terminated: bool, info: dict[str, Any]) -> bool:
        """Only the goal ends an episode."""
        return terminated

    def _sign(self, row: int, column: int, here: tuple[int, int]) -> str:
        if (row, column) == here:
            return _AGENT
        if self._is_goal(row, column):
            return "G"
        return "C" if row == self.env.unwrapped.shape[0] - 1 and column else "."

    def _is_goal(self, row: int, column: int) -> bool:
        rows, columns = self.env.unwrapped.shape
        return (row, column) == (rows - 1, columns - 1)


class Taxi(Codec):
    """The town as a map with the taxi in it; passenger and destination in words."""

    actions = ("south", "north", "east", "west", "pickup", "dropoff")
    max_episode_steps = 200

    _STANDS = ("R", "G", "Y", "B")
    _TAXI = "T"

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.invalid_reward = _standing_still(env)

    def task(self) -> str:
        """Goal, signs and rewards."""
        return (
            "Drive a taxi: fetch the passenger, and drop them off at their destination. On the map, "
            f"{self._TAXI} is your taxi, and {', '.join(self._STANDS)} are the stands. A taxi passes : and blanks, but "
            "not |, + or -. Each turn earns -1, a pickup or dropoff in the wrong place -10, and the right dropoff 20."
        )

    def observe(self, observation: Any, info: dict[str, Any]) -> str:
        """Where the taxi is, the passenger, and the destination."""
        row, column, passenger, destination = map(int, self.env.unwrapped.decode(int(observation)))
        riding = passenger == len(self._STANDS)
        where = "sits in the taxi" if riding else f"is at {self._STANDS[passenger]}"
        return (
            f"The taxi is at {_place(row, column)}. The passenger {where}. "
            f"The destination is {self._STANDS[destination]}."
        )

    def board(self) -> str:
        """The map."""
        row, column, _, _ = map(int, self.env.unwrapped.decode(int(self.env.unwrapped.s)))
        town = [[tile.decode() for tile in line] for line in self.env.unwrapped.desc]
        town[row + 1][2 * column + 1] = self._TAXI
        return "\n".join("".join(line) for line in town)

    def succeeded(self, total: float, terminated: bool, info: dict[str, Any]) -> bool:
        """Only the right dropoff ends an episode."""
        return terminated


class Blackjack(Codec):
    """The hand in words."""

    actions = ("stick", "hit")
    invalid_reward = -1.0  # as much as to lose

    def task(self) -> str:
        """Goal and rewards."""
        return (
            "Play a hand of blackjack against the dealer, who draws up to 17. An ace counts 1, or 11 if it is usable. "
            "You lose at once above 21. To win earns 1, to lose -1, a draw 0."
        )

    def observe(self, observation: Any, info: dict[str, Any]) -> str:
        """The sum, the dealer's card and the ace."""
        total, dealer, usable = map(int, observation)
        return f"You have {total}, {'with' if usable else 'without'} a usable ace. The dealer shows {_card(dealer)}."


def _card(number: int) -> str:
    return "an ace" if number == 1 else str(number)
