"""The desk of our own shop."""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gem_core.errors import EnvError
from gem_core.partner import PartnerSetting
from gem_core.tool import Function, ToolResult
from gem_core.tools import Form, ParsedCall, written
from gem_desk._customer import Customer
from gem_desk._desk import SCRIPT, Desk
from gem_desk._functions import FIND, FUNCTIONS, TRANSFER, called
from gem_desk._model_customer import role_of
from gem_desk._scoring import Facts
from gem_desk._shop import Record, Shop

SPLITS = ("train", "test", "hard")


@dataclass(frozen=True)
class RetailTask:
    """A customer with a wish, and what has to come of it."""

    name: str
    customer_id: str
    customer: Mapping[str, Any]
    """The script; see `Customer.of`."""
    actions: Sequence[tuple[str, Mapping[str, Any]]]
    """Calls that lead to the wanted database. Only their effect counts; other calls may lead there, too."""
    facts: Facts

    def wanted(self) -> Record:
        """The database as it has to be in the end."""
        shop = Shop()
        for name, arguments in self.actions:
            result = called(shop, ParsedCall(name, 0, dict(arguments)))
            if result.error:
                raise EnvError(f"the reference of the task {self.name} fails at {name}: {result.text}")
        return shop.data


@functools.lru_cache(maxsize=1)
def tasks() -> Mapping[str, tuple[RetailTask, ...]]:
    """All tasks by split."""
    text = importlib.resources.files("gem_desk").joinpath("tasks.jsonl").read_text(encoding="utf-8")
    found: dict[str, list[RetailTask]] = {split: [] for split in SPLITS}
    for row in map(json.loads, text.splitlines()):
        facts = Facts(tuple(row.get("said", ())), tuple(row.get("amounts", ())), row.get("rule"))
        actions = [(name, arguments) for name, arguments in row["actions"]]
        found[row["split"]].append(RetailTask(row["name"], row["customer_id"], row["customer"], actions, facts))
    return {split: tuple(rows) for split, rows in found.items()}


@functools.lru_cache(maxsize=1)
def policy() -> str:
    """The rules that an agent is told."""
    return importlib.resources.files("gem_desk").joinpath("policy.txt").read_text(encoding="utf-8")


class Retail(Desk):
    """The service desk of a shop: a customer reveals a wish bit by bit, and the agent looks things up, changes the
    database by calls, and replies. The idea is tau-bench's; shop, policy, customers and tasks are ours.

    Action: a call, `<tool_call>{"name": "get_order", "arguments": {"order_id": "W1001"}}</tool_call>`, or any other
    text, which is a reply to the customer. In the native form, calls are written as a chat template shows them.

    | action | reward | episode |
    | --- | --- | --- |
    | a call, also one that fails | 0 | continues |
    | a reply | 0 | continues; the customer answers |
    | a reply that ends the conversation, see below | 1 or 0 | terminated |
    | the call of `transfer_to_human` | 1 or 0 | terminated |
    | an empty reply | 0 | continues; the customer waits |
    | on the last turn, any that does not terminate | 0 | truncated |

    The conversation ends once the customer has said everything and the reply asks nothing, or asks for anything else.
    The reward is 1 if the final database equals the one after the task's reference calls, the customer was told all
    facts of the task (amounts, names, or the number of the rule that forbids the wish), and was identified by
    `find_customer`. Only replies are searched for facts, never calls. An agent that does nothing earns 0.

    | `info` key | type | meaning |
    | --- | --- | --- |
    | `use_tool`, `tool_type`, `tool_error` | bool, str, str | on a call, as `gem_core.tools.ToolEnv` has them |
    | `database_right`, `facts_told`, `identified` | bool | at the end: the parts of the reward |
    | `task_name` | str | on a reset: the name of the task |
    | `tools` | list of dict | on a reset, in the native form |
    | `partner_replies` | list of str | with a model as the customer: what it said; see `gem_core.partner` |
    | `partner_thoughts` | list of str | what it thought before each of these, if it thought before any |

    Args:
        split: `train`, `test` or `hard`. Hard tasks have several wishes, or wishes that a rule forbids.
        max_turns: the limit, over calls and replies.
        form: `text`, or `native` for models whose chat template describes the functions.
        customer: `script`, or a model that gets the script as its role, for example `model:qwen`, or
            `{"model": "model:qwen", "temperature": 0.7}`. A model ends the conversation when it wants to.

    Raises:
        EnvError: no such split or form, or fewer than one turn.
        EnvKwargsError, NotFoundError: no such customer.
    """

    def __init__(
        self,
        split: str = "train",
        max_turns: int = 30,
        form: Form = "text",
        customer: PartnerSetting = SCRIPT,
    ) -> None:
        if split not in SPLITS:
            raise EnvError(f"split must be one of {', '.join(SPLITS)}, not {split!r}")
        super().__init__(max_turns, form, customer)
        self.split = split

    @property
    def data_size(self) -> int:
        """Tasks of the split."""
        return len(tasks()[self.split])

    @property
    def task(self) -> RetailTask:
        """The task of this episode."""
        return tasks()[self.split][self.place]

    @property
    def task_name(self) -> str:
        """Its name."""
        return self.task.name

    @property
    def functions(self) -> Sequence[Function]:
        """What can be done to the shop."""
        return FUNCTIONS

    @property
    def policy(self) -> str:
        """The rules of the shop."""
        return policy()

    def open(self) -> None:
        """Open the shop."""
        self.shop = Shop()
        self.identified = False

    def scripted(self) -> Customer:
        """Reveals the wish bit by bit."""
        return Customer.of(self.task.customer)

    def role(self) -> tuple[str, str]:
        """The script as a role."""
        return role_of(self.task.customer), self.task.customer["opening"]

    def call(self, call: ParsedCall) -> ToolResult:
        """Carry out a call, and note whom it found."""
        result = called(self.shop, call)
        if call.function == FIND and not result.error:
            self.identified |= json.loads(result.text)["id"] == self.task.customer_id
        return result

    def ends(self, call: ParsedCall) -> bool:
        """Handing over ends the conversation."""
        return call.function == TRANSFER

    def verdict(self) -> dict[str, bool]:
        """The final database, the facts, and who was identified."""
        right = self.shop.data == self.task.wanted()
        told = self.task.facts.told(self.replies)
        success = right and told and self.identified
        return {"success": success, "database_right": right, "facts_told": told, "identified": self.identified}

    def sample_random_action(self) -> str:
        """A call that reads, or a question to the customer."""
        by_name = {function.name: function for function in FUNCTIONS}
        if self.rng.random() < 0.5:
            return "Could you tell me more, please?"
        if self.rng.random() < 0.5:
            order = self.rng.choice([*self.shop.data["orders"]])
            return written(by_name["get_order"], {"order_id": order}, self.form)
        product = self.rng.choice([*self.shop.data["products"]])
        return written(by_name["get_product"], {"product_id": product}, self.form)
