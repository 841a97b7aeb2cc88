"""The desk: an agent between a customer and a database."""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from gem_core.env import Env, Info, ResetResult, StepResult
from gem_core.errors import EnvError, EnvKwargsError
from gem_core.partner import Heard, Partner, PartnerSetting
from gem_core.registry import find_partner
from gem_core.tools.calls import Call, Form, find_call, written
from gem_core.tools.env import listed
from gem_desk.customer import GOODBYE, Customer
from gem_desk.functions import FIND, FUNCTIONS, TRANSFER, called
from gem_desk.model_customer import ModelCustomer
from gem_desk.scoring import Facts
from gem_desk.shop import Record, Shop

SPLITS = ("train", "test", "hard")
SCRIPT = "script"
"""The customer that each task brings along."""


@dataclass(frozen=True)
class Task:
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
            result = called(shop, Call(name, 0, dict(arguments)))
            if result.error:
                raise EnvError(f"the reference of the task {self.name} fails at {name}: {result.text}")
        return shop.data


@functools.lru_cache(maxsize=1)
def tasks() -> Mapping[str, tuple[Task, ...]]:
    """All tasks by split."""
    text = importlib.resources.files("gem_desk").joinpath("tasks.jsonl").read_text(encoding="utf-8")
    found: dict[str, list[Task]] = {split: [] for split in SPLITS}
    for row in map(json.loads, text.splitlines()):
        facts = Facts(tuple(row.get("said", ())), tuple(row.get("amounts", ())), row.get("rule"))
        actions = [(name, arguments) for name, arguments in row["actions"]]
        found[row["split"]].append(Task(row["name"], row["customer_id"], row["customer"], actions, facts))
    return {split: tuple(rows) for split, rows in found.items()}


@functools.lru_cache(maxsize=1)
def policy() -> str:
    """The rules that an agent is told."""
    return importlib.resources.files("gem_desk").joinpath("policy.txt").read_text(encoding="utf-8")


class Retail(Env):
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
    | `heard` | list of str | with a model as the customer: what it said; see `gem_core.partner` |

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

    takes_task = True

    def __init__(
        self,
        split: str = "train",
        max_turns: int = 30,
        form: Form = "text",
        customer: PartnerSetting = SCRIPT,
    ) -> None:
        if split not in SPLITS:
            raise EnvError(f"split must be one of {', '.join(SPLITS)}, not {split!r}")
        if form not in get_args(Form):
            raise EnvError(f"form must be one of {', '.join(get_args(Form))}, not {form!r}")
        if max_turns < 1:
            raise EnvError(f"max_turns must be at least 1, not {max_turns}")
        self.split, self.max_turns = split, max_turns
        self.form: Form = form
        self._partner = None if customer == SCRIPT else _partner(customer)

    @property
    def num_tasks(self) -> int:
        """Tasks of the split."""
        return len(tasks()[self.split])

    def reset(
        self, seed: int | None = None, *, task: int | None = None, heard: Sequence[str] = (), **options: Any
    ) -> ResetResult:
        """Open the shop, and let a customer in.

        Args:
            seed: draws the task where no number is given.
            task: task `task % num_tasks` of the split.
            heard: what a model as the customer said, for a replay; see `gem_core.partner`.

        Raises:
            EnvKwargsError: a number below 0.
            EnvError: a model as the customer gave no answer.
        """
        super().reset(seed=seed)
        if task is not None and task < 0:
            raise EnvKwargsError(f"task must be a number from 0, not {task}")
        rows = tasks()[self.split]
        self.place = self.rng.randrange(len(rows)) if task is None else task % len(rows)
        self.turn = 0
        self.shop = Shop()
        self._heard = Heard(heard)
        self.customer = self._customer()
        self.replies: list[str] = []
        self.identified = False
        self.messages = [f"customer: {self.customer.opening}"]
        info: Info = {"task_name": self.task.name, **self._heard.shown()}
        if self.form == "native":
            info["tools"] = [function.schema for function in FUNCTIONS]
        return f"{self._rules()}\nThe customer says: {self.customer.opening}\n", info

    @property
    def task(self) -> Task:
        """The task of this episode."""
        return tasks()[self.split][self.place]

    def step(self, action: str) -> StepResult:
        """Make a call, or reply. Raises `EnvError` where a model as the customer gave no answer."""
        observation, reward, terminated, truncated, info = self._played(action)
        return observation, reward, terminated, truncated, {**info, **self._heard.taken()}

    def close(self) -> None:
        """Part from the model, if it was the customer."""
        if self._partner is not None:
            self._partner.close()

    def _customer(self) -> Customer | ModelCustomer:
        if self._partner is None:
            return Customer.of(self.task.customer)
        return ModelCustomer(self.task.customer, self._partner, f"{self.rng.getrandbits(64):016x}", self._heard)

    def _played(self, action: str) -> StepResult:
        self.turn += 1
        call = find_call(action, FUNCTIONS, self.form)
        if call is not None:
            return self._call(call, action)
        if not action.strip():
            return self._result("The customer waits.\n", {"invalid_action": True})
        return self._reply(action)

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

    def render(self) -> str:
        """The conversation so far."""
        return "\n".join(self.messages)

    def _rules(self) -> str:
        if self.form == "native":
            return policy()
        return "\n".join([policy(), *listed(FUNCTIONS), f"There are {self.max_turns} turns.", ""])

    def _call(self, call: Call, action: str) -> StepResult:
        result = called(self.shop, call)
        if call.function == FIND and not result.error:
            self.identified |= json.loads(result.text)["id"] == self.task.customer_id
        self.messages += [f"agent calls {call.function}", f"desk: {result.text}"]
        info: Info = {"use_tool": True, "tool_type": call.function, "parsed_action": action[: call.end]}
        info |= {"tool_error": result.text} if result.error else {}
        if call.function == TRANSFER and not result.error:
            return self._end(result.text, info)
        return self._result(f"{result.text}\n", info)

    def _reply(self, reply: str) -> StepResult:
        self.replies.append(reply)
        answer = self.customer.answer(reply)
        self.messages += [f"agent: {reply}", f"customer: {GOODBYE if answer is None else answer}"]
        if answer is None:
            return self._end(f"The customer says: {GOODBYE}", {})
        return self._result(f"The customer says: {answer}\n", {})

    def _end(self, observation: str, info: Info) -> StepResult:
        right = self.shop.data == self.task.wanted()
        told = self.task.facts.told(self.replies)
        success = right and told and self.identified
        info |= {"success": success, "database_right": right, "facts_told": told, "identified": self.identified}
        return observation, float(success), True, False, info

    def _result(self, observation: str, info: Info) -> StepResult:
        return observation, 0.0, False, self.turn >= self.max_turns, {**info, "success": False}


def _partner(customer: PartnerSetting) -> Partner:
    if isinstance(customer, str) and ":" not in customer:
        raise EnvKwargsError(f"customer must be {SCRIPT!r}, or a model such as 'model:qwen', not {customer!r}")
    return find_partner(customer)
