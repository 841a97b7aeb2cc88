"""What every desk has in common: turns, calls, replies, and a customer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, get_args

from gem_core.env import Env, Info, ResetResult, StepResult
from gem_core.errors import EnvError, EnvKwargsError
from gem_core.partner import Partner, PartnerLog, PartnerSetting
from gem_core.registry import find_partner
from gem_core.tool import Function, ToolResult
from gem_core.tools import Form, ParsedCall, find_call, listed
from gem_desk._customer import GOODBYE, Customer
from gem_desk._model_customer import ModelCustomer

SCRIPT = "script"
"""The customer that each task brings along."""


class Desk(Env):
    """An agent between a customer and a database. Subclasses say which tasks, functions and data there are.

    Args:
        max_turns: the limit, over calls and replies.
        form: how calls are written.
        customer: `script`, or a model.

    Raises:
        EnvError: no such form, or fewer than one turn.
        EnvKwargsError, NotFoundError: no such customer.
    """

    takes_data_index = True

    def __init__(self, max_turns: int, form: Form, customer: PartnerSetting) -> None:
        if form not in get_args(Form):
            raise EnvError(f"form must be one of {', '.join(get_args(Form))}, not {form!r}")
        if max_turns < 1:
            raise EnvError(f"max_turns must be at least 1, not {max_turns}")
        self.max_turns = max_turns
        self.form: Form = form
        self._partner = None if customer == SCRIPT else _partner(customer)

    @property
    @abstractmethod
    def data_size(self) -> int:
        """How many tasks there are."""

    @property
    @abstractmethod
    def task_name(self) -> str:
        """The name of this episode's task."""

    @property
    @abstractmethod
    def functions(self) -> Sequence[Function]:
        """What an agent may call."""

    @property
    @abstractmethod
    def policy(self) -> str:
        """The rules that an agent is told."""

    @abstractmethod
    def open(self) -> None:
        """Set up the database as it is in the morning, for the task `self.place`."""

    @abstractmethod
    def scripted(self) -> Customer:
        """The customer of the task, with a script."""

    @abstractmethod
    def role(self) -> tuple[str, str]:
        """The role of a model as the customer, and the first words of one that has none."""

    @abstractmethod
    def call(self, call: ParsedCall) -> ToolResult:
        """Carry out a call."""

    @abstractmethod
    def ends(self, call: ParsedCall) -> bool:
        """Whether a call that succeeded ends the conversation."""

    @abstractmethod
    def verdict(self) -> dict[str, bool]:
        """`success`, and the parts of the reward, once the conversation has ended."""

    def reset(
        self,
        seed: int | None = None,
        *,
        data_index: int | None = None,
        partner_replies: Sequence[str] = (),
        **options: Any,
    ) -> ResetResult:
        """Open the desk, and let a customer in.

        Args:
            seed: draws the task if no `data_index` is given.
            data_index: task `data_index % data_size` of the split.
            partner_replies: what a model as the customer said, for a replay; see `gem_core.partner`.

        Raises:
            EnvKwargsError: a number below 0.
            EnvError: a model as the customer gave no answer.
        """
        super().reset(seed=seed)
        if data_index is not None and data_index < 0:
            raise EnvKwargsError(f"data_index must be a number from 0, not {data_index}")
        self.place = self.rng.randrange(self.data_size) if data_index is None else data_index % self.data_size
        self.turn = 0
        self.open()
        self._partner_log = PartnerLog(partner_replies)
        self.customer = self._customer()
        self.replies: list[str] = []
        self.messages = [f"customer: {self.customer.opening}"]
        info: Info = {"task_name": self.task_name, **self._partner_log.shown()}
        if self.form == "native":
            info["tools"] = [function.schema for function in self.functions]
        return f"{self._rules()}\nThe customer says: {self.customer.opening}\n", info

    def step(self, action: str) -> StepResult:
        """Make a call, or reply. Raises `EnvError` where a model as the customer gave no answer."""
        observation, reward, terminated, truncated, info = self._played(action)
        return observation, reward, terminated, truncated, {**info, **self._partner_log.taken()}

    def close(self) -> None:
        """Part from the model, if it was the customer."""
        if self._partner is not None:
            self._partner.close()

    def render(self) -> str:
        """The conversation so far."""
        return "\n".join(self.messages)

    def _customer(self) -> Customer | ModelCustomer:
        if self._partner is None:
            return self.scripted()
        role, opening = self.role()
        return ModelCustomer(role, opening, self._partner, f"{self.rng.getrandbits(64):016x}", self._partner_log)

    def _rules(self) -> str:
        if self.form == "native":
            return self.policy
        return "\n".join([self.policy, *listed(self.functions), f"There are {self.max_turns} turns.", ""])

    def _played(self, action: str) -> StepResult:
        self.turn += 1
        call = find_call(action, self.functions, self.form, any_name=True)
        if call is not None:
            return self._call(call, action)
        if not action.strip():
            return self._result("The customer waits.\n", {"invalid_action": True})
        return self._reply(action)

    def _call(self, call: ParsedCall, action: str) -> StepResult:
        result = self.call(call)
        self.messages += [f"agent calls {call.function}", f"desk: {result.text}"]
        info: Info = {"use_tool": True, "tool_type": call.function, "parsed_action": action[: call.end]}
        info |= {"tool_error": result.text} if result.error else {}
        if not result.error and self.ends(call):
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
        verdict = self.verdict()
        return observation, float(verdict["success"]), True, False, {**info, **verdict}

    def _result(self, observation: str, info: Info) -> StepResult:
        return observation, 0.0, False, self.turn >= self.max_turns, {**info, "success": False}


def _partner(customer: PartnerSetting) -> Partner:
    if isinstance(customer, str) and ":" not in customer:
        raise EnvKwargsError(f"customer must be {SCRIPT!r}, or a model such as 'model:qwen', not {customer!r}")
    return find_partner(customer)
