"""The desks of tau-bench, from a clone."""

from __future__ import annotations

from collections.abc import Sequence

from gem_core.partner import PartnerSetting
from gem_core.tool import Function, ToolResult
from gem_core.tools import Form, ParsedCall, written
from gem_desk._customer import Customer
from gem_desk._desk import SCRIPT, Desk
from gem_desk._model_customer import END
from gem_desk.clone import Domain, Reference, domain, folder_of

TRANSFER = "transfer_to_human_agents"
"""The call that ends a conversation, in both domains."""
CALCULATE = "calculate"
_MAX_EXPRESSION_LENGTH = 1000
"""Characters. tau-bench has Python evaluate an expression, and a power or a deep nesting would stop the process."""

_ROLE = f"""You are a customer and write to a service desk. Stay in this role.
Write one short message at a time, as a person would. Do not tell everything at once: begin with your wish, and tell the
rest when the desk asks for it, or when it is needed next. You know only what stands below, and use words of your own.
If the desk asks for something else, say that you do not know or do not have it.
Once the desk has done what you want, has handed you over, or has said that it cannot, answer with {END} and nothing
else.

Who you are, what you want, and what you know:
"""


class TauBench(Desk):
    """The desks of tau-bench, `retail` and `airline`, and others of the same form, read from a clone of its repository
    (plugins/desk/README.md). Making one runs the Python code of the clone.

    Action: a call, `<tool_call>{"name": "get_order_details", "arguments": {"order_id": "#W1001"}}</tool_call>`, or any
    other text, which is a reply to the customer. In the native form, calls are written as a chat template shows them.

    | action | reward | episode |
    | --- | --- | --- |
    | a call, also one that fails | 0 | continues |
    | a reply | 0 | continues; the customer answers |
    | a reply after which the customer leaves | 1 or 0 | terminated |
    | the call of `transfer_to_human_agents` | 1 or 0 | terminated |
    | an empty reply | 0 | continues; the customer waits |
    | on the last turn, any that does not terminate | 0 | truncated |

    The reward is tau-bench's: 1 if the final database equals the one after the task's reference calls, and each output
    of the task occurs in a reply, in any case and without commas. Reference calls are never searched for outputs. Where
    the reference changes nothing and the task has no outputs, an agent that does nothing earns 1, as in tau-bench.

    | `info` key | type | meaning |
    | --- | --- | --- |
    | `use_tool`, `tool_type`, `tool_error` | bool, str, str | on a call, as `gem_core.tools.ToolEnv` has them |
    | `database_right`, `outputs_told` | bool | at the end: the parts of the reward |
    | `task_name` | str | on a reset: the split and the number of the task |
    | `tools` | list of dict | on a reset, in the native form |
    | `partner_replies` | list of str | with a model as the customer: what it said; see `gem_core.partner` |
    | `partner_thoughts` | list of str | what it thought before each of these, if it thought before any |

    Args:
        domain: a folder of the clone's `tau_bench/envs`.
        split: of the domain's tasks: `test`; for `retail` also `train` and `dev`.
        home: the folder of the clone. By default the variable `TAU_BENCH_HOME` names it.
        max_turns: the limit, over calls and replies; tau-bench's is 30.
        form: `text`, or `native` for models whose chat template describes the functions.
        customer: a model, for example `model:qwen`, as tau-bench has it; or `script`, who reads the whole instruction
            out at once and agrees to everything, which is another task than tau-bench's.

    Raises:
        EnvError: no clone, or not with such a domain or split; its code raises; no such form, or fewer than one turn.
        EnvKwargsError, NotFoundError: no such customer.
    """

    def __init__(
        self,
        domain: str = "retail",
        split: str = "test",
        home: str | None = None,
        max_turns: int = 30,
        form: Form = "text",
        customer: PartnerSetting = SCRIPT,
    ) -> None:
        super().__init__(max_turns, form, customer)
        self.domain, self.split, self.home = domain, split, folder_of(home)
        _ = self._domain  # an error comes now

    @property
    def _domain(self) -> Domain:
        return domain(self.home, self.domain, self.split)

    @property
    def data_size(self) -> int:
        """Tasks of the split."""
        return len(self._domain.tasks)

    @property
    def task(self) -> Reference:
        """The task of this episode."""
        return self._domain.tasks[self.place]

    @property
    def task_name(self) -> str:
        """Its split and number."""
        return self.task.name

    @property
    def functions(self) -> Sequence[Function]:
        """The functions of the clone."""
        return self._domain.functions

    @property
    def policy(self) -> str:
        """The clone's `wiki.md`."""
        return self._domain.policy

    def open(self) -> None:
        """Set up a database of its own."""
        self.data = self._domain.data()

    def scripted(self) -> Customer:
        """Reads the instruction out."""
        return Customer(self.task.instruction, ())

    def role(self) -> tuple[str, str]:
        """The instruction as a role."""
        return _ROLE + self.task.instruction, "Hello."

    def call(self, call: ParsedCall) -> ToolResult:
        """Carry out a call by the clone's code."""
        if call.problem is not None:
            return ToolResult(f"Error: {call.problem}", error=True)
        expression = str(call.arguments.get("expression", ""))
        if call.function == CALCULATE and ("**" in expression or len(expression) > _MAX_EXPRESSION_LENGTH):
            return ToolResult(f"Error: no powers, and at most {_MAX_EXPRESSION_LENGTH} characters", error=True)
        text = self._domain.invoke(self.data, call.function, call.arguments)
        return ToolResult(text, error=text.startswith("Error"))

    def ends(self, call: ParsedCall) -> bool:
        """Handing over ends the conversation."""
        return call.function == TRANSFER

    def verdict(self) -> dict[str, bool]:
        """The final database, and the outputs."""
        right = self._domain.is_wanted(self.data, self.place)
        said = [reply.lower().replace(",", "") for reply in self.replies]
        told = all(any(output.lower() in reply for reply in said) for output in self.task.outputs)
        return {"success": right and told, "database_right": right, "outputs_told": told}

    def sample_random_action(self) -> str:
        """A call that computes, or a question to the customer."""
        by_name = {function.name: function for function in self.functions}
        if CALCULATE in by_name and self.rng.random() < 0.5:
            expression = f"{self.rng.randrange(100)} * {self.rng.randrange(100)}"
            return written(by_name[CALCULATE], {"expression": expression}, self.form)
        return "Could you tell me more, please?"
