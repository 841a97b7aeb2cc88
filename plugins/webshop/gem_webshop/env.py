"""Shopping for what an instruction describes."""

from __future__ import annotations

import functools
import os
import re
from typing import Any, cast, get_args

from gem_core.env import Env, Info, ResetResult, StepResult
from gem_core.errors import EnvError
from gem_core.responses import boxes
from gem_webshop._generation import generated_shop
from gem_webshop._goods import Goal, Shop
from gem_webshop._loading import load_shop
from gem_webshop._pages import DETAILS, Form, Part, Visit, labels, parts, written
from gem_webshop._reward import purchase_reward

INVALID_REWARD = -0.1
_ACTION = re.compile(r"(search|click)\[([^\n]{0,300})\]", re.IGNORECASE)
_RULES = (
    "You are shopping on a web site. Find a product that fits the instruction, choose its options, and buy it. "
    "Each action stands in a box: \\boxed{search[words]} on the search page, and \\boxed{click[label]} for a button of "
    "the page. Clicking 'Buy Now' ends the task.\n"
)


class WebShop(Env):
    r"""Find a product in a shop, choose its options, and buy it, as an instruction says.

    Action: the last `\boxed{search[words]}` or `\boxed{click[label]}`; capital letters do not matter.

    | page | actions |
    | --- | --- |
    | search | `search[words]` shows the 50 best products, ten a page |
    | results | `click` on a product, `next >`, `< prev`, `back to search` |
    | product | `click` on a value of an option, `description`, `features`, `reviews`, `attributes`, `< prev`, `back to search`, `buy now` |
    | details | `< prev`, `back to search` |

    | turn | reward | episode |
    | --- | --- | --- |
    | valid | 0 | continues |
    | no action, or not possible on this page | -0.1 | continues; the 15th ends it |
    | `buy now` | from 0 to 1 | terminated |
    | the last | as above | terminated and truncated |

    The reward of a purchase is a factor times `(attributes + options + price) / all of these that are wanted`: wanted
    attributes and options that match, and a price within the limit. The factor is 1 for a product of the wanted kind, and
    0.5, 0.1 or 0 for others (plugins/webshop/README.md).

    Args:
        split: `train` or `test`.
        form: how pages are written: `html`, `text` (texts with [SEP] between them), or `text_rich` (with marked buttons).
        data: a folder with WebShop's own `items_shuffle.json` and `items_ins_v2.json`. `None` is the shop of this
            project, with 1,120 products and 320 goals.
        max_turns: turn limit.
        tolerance: the invalid action that ends the episode.

    Raises:
        EnvError: a split or form that does not exist, limits below 1, or data that cannot be read.
    """  # noqa: E501 - tables

    takes_data_index = True

    def __init__(
        self,
        *,
        split: str = "train",
        form: str = "text_rich",
        data: str | os.PathLike[str] | None = None,
        max_turns: int = 15,
        tolerance: int = 15,
    ) -> None:
        if split not in ("train", "test"):
            raise EnvError(f"there is no split {split!r}; use 'train' or 'test'")
        if form not in get_args(Form):
            raise EnvError(f"there is no form {form!r} of pages; use one of {', '.join(get_args(Form))}")
        if max_turns < 1 or tolerance < 1:
            raise EnvError(f"max_turns and tolerance must be at least 1, not {max_turns} and {tolerance}")
        self._data = None if data is None else os.path.abspath(data)
        self._split = split
        self._form: Form = cast("Form", form)
        self._max_turns, self._tolerance = max_turns, tolerance
        self._goal = 0
        self._visit = Visit()
        self._turn = self._invalid = 0
        _shop(self._data)

    @property
    def data_size(self) -> int:
        """Number of goals in the split."""
        return len(self.shop.goals(self._split))

    @property
    def shop(self) -> Shop:
        """The products and goals, which all environments with the same data share."""
        return _shop(self._data)

    @property
    def goal(self) -> Goal:
        """What is wanted in this episode."""
        return self.shop.goals(self._split)[self._goal]

    def reset(self, seed: int | None = None, data_index: int | None = None, **options: Any) -> ResetResult:
        """Start an episode on the search page.

        Args:
            seed: draws the goal if there is no `data_index`.
            data_index: number of the goal, modulo the number of goals.
        """
        super().reset(seed=seed)
        self._goal = (self.rng.randrange(self.data_size) if data_index is None else data_index) % self.data_size
        self._visit, self._turn, self._invalid = Visit(), 0, 0
        observation, info = self._shown()
        return f"{_RULES}{observation}", info

    def step(self, action: str) -> StepResult:
        """Search, or click a button."""
        self._turn += 1
        last = self._turn >= self._max_turns
        found = [each for content in boxes(action) if (each := _ACTION.fullmatch(content))]
        verb, words = (found[-1][1].lower(), found[-1][2].strip().lower()) if found else ("", "")
        if verb == "click" and words == "buy now" and self._visit.page == "item":
            return self._buy(last)
        if not self._moved(verb, words):
            self._invalid += 1
            observation, info = self._shown()
            over = last or self._invalid >= self._tolerance
            message = "That action is not possible here.\n"
            return message + observation, INVALID_REWARD, over, last, {**info, "invalid_action": True, "success": False}
        observation, info = self._shown()
        return observation, 0.0, last, last, {**info, "success": False}

    def sample_random_action(self) -> str:
        """A search for some words of the instruction, or a click on any button."""
        if self._visit.page == "search":
            words = re.findall(r"[a-z]{4,}", self.goal.instruction.lower())
            return f"\\boxed{{search[{' '.join(self.rng.sample(words, min(3, len(words))))}]}}"
        return f"\\boxed{{click[{self.rng.choice([*labels(self._page())])}]}}"

    def render(self) -> str:
        """The page, for a person."""
        return written(self.goal.instruction, self._page(), "text_rich")

    def _page(self) -> list[Part]:
        return parts(self.shop, self._visit)

    def _shown(self) -> tuple[str, Info]:
        page = self._page()
        names = ["search[words]"] if self._visit.page == "search" else [f"click[{label}]" for label in labels(page)]
        prefix = f"Task: {self.goal.instruction}\nActions so far: {self._turn} of {self._max_turns}.\n"
        info: Info = {"prefix": prefix, "suffix": f"Possible actions: {', '.join(names)}"}
        return written(self.goal.instruction, page, self._form), info

    def _buy(self, last: bool) -> StepResult:
        shop, goal = self.shop, self.goal
        bought = shop.products[self._visit.asin]
        reward = purchase_reward(goal, shop.products[goal.asin], bought, self._visit.chosen)
        info: Info = {"success": reward == 1.0, "approximate_type": not shop.exact}
        return f"You have bought {bought.name}. Your score is {reward:.2f} of 1.", reward, True, last, info

    def _moved(self, verb: str, words: str) -> bool:
        """Whether the action was possible; if so, the visit is where it leads."""
        visit = self._visit
        if verb == "search":
            if visit.page != "search" or not words:
                return False
            self._visit = Visit("results", self.shop.search(words))
            return True
        if verb != "click" or visit.page == "search" or words not in (buttons := labels(self._page())):
            return False
        if words == "back to search":
            self._visit = Visit()
        elif visit.page == "results":
            self._leaf(buttons[words])
        elif visit.page != "item":
            visit.page = "item"
        elif words == "< prev":
            self._visit = Visit("results", visit.found, visit.number)
        elif words in DETAILS:
            visit.page = words
        else:
            self._choose(words)
        return True

    def _leaf(self, button: str) -> None:
        visit = self._visit
        if button in ("< Prev", "Next >"):
            visit.number += 1 if button == "Next >" else -1
        else:
            self._visit = Visit("item", visit.found, visit.number, button)

    def _choose(self, value: str) -> None:
        options = self.shop.products[self._visit.asin].options
        name = next(name for name, values in options.items() if value in values)
        self._visit.chosen[name] = value


@functools.lru_cache(maxsize=2)
def _shop(data: str | None) -> Shop:
    return generated_shop() if data is None else load_shop(data)
