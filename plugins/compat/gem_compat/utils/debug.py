"""Watching an episode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def run_and_print_episode(
    env: Any, policy: Callable[[Any], Any], ignore_done: bool = False, max_steps: float = 1e9
) -> None:
    """Play an environment or a vector, and print every turn.

    Args:
        env: an environment, or a vector.
        policy: gives an action for an observation; for a vector, a list for a list.
        ignore_done: play on after the end of an episode, as a vector can.
        max_steps: turns after which to stop.
    """
    observation, _ = env.reset()
    step, done = 0, False
    while step < max_steps and (ignore_done or not done):
        step += 1
        action = policy(observation)
        after, reward, terminated, truncated, _ = env.step(action)
        print(f"== step {step}\nobservation: {observation}\naction: {action}\nreward: {reward}")
        print(f"terminated: {terminated}, truncated: {truncated}")
        observation, done = after, bool(np.all(np.logical_or(terminated, truncated)))
