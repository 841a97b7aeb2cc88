"""What the shop of `webshop:` costs, and what it pays to buy the first result as it is. Seconds of CPU.

nice -n 5 python benchmarks/webshop.py
"""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable

from gem_webshop._generation import generated_shop
from gem_webshop.env import WebShop

ROUNDS = 300


def main() -> None:
    """Print the costs of the shop and of each form of its pages, and the lazy shopper's rewards."""
    print(f"generating the shop: {seconds(generated_shop) * 1e3:.0f} ms")
    print(f"the index: {seconds(lambda: generated_shop().search('mug')) * 1e3:.0f} ms")
    for form in ("html", "text", "text_rich"):
        env = WebShop(form=form, max_turns=10 * ROUNDS)
        env.reset(data_index=0)
        search = seconds(lambda env=env: play(env, "search[coffee mug]", "click[back to search]")) / ROUNDS
        env.step(r"\boxed{search[coffee mug]}")
        click = seconds(lambda env=env: play(env, "click[next >]", "click[< prev]")) / ROUNDS / 2
        print(f"{form}: a search and back {search * 1e6:.0f} us, a click {click * 1e6:.0f} us")
    for split in ("train", "test"):
        rewards = lazy(WebShop(split=split))
        print(f"{split}: the first result as it is pays {statistics.mean(rewards):.2f}, at most {max(rewards):.2f}")


def seconds(function: Callable[[], object]) -> float:
    """CPU time of a call."""
    started = time.process_time()
    function()
    return time.process_time() - started


def play(env: WebShop, *actions: str) -> None:
    """Take these actions again and again."""
    for _ in range(ROUNDS):
        for action in actions:
            env.step(f"\\boxed{{{action}}}")


def lazy(env: WebShop) -> list[float]:
    """The reward of each goal for its instruction as the search, and the first result."""
    rewards: list[float] = []
    for task in range(env.data_size):
        env.reset(data_index=task)
        info = env.step(f"\\boxed{{search[{env.goal.instruction}]}}")[4]
        first = re.findall(r"click\[(b0\w{8})\]", info["suffix"])[0]
        env.step(f"\\boxed{{click[{first}]}}")
        rewards.append(env.step(r"\boxed{click[buy now]}")[1])
    return rewards


if __name__ == "__main__":
    main()
