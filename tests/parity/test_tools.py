"""Tool turns, their rewards and their counters agree with upstream's wrapper around its Python tool."""

from __future__ import annotations

import contextlib
import io
import random
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gem_core import Env
from gem_core.tools import CallContext, Function, Tool, ToolEnv, ToolResult

pytest.importorskip("gem", reason="this needs gem-llm, as in `nox -s parity`")

from gem.core import Env as TheirEnv
from gem.tools import python_code_tool
from gem.tools.python_code_tool import PythonCodeTool
from gem.tools.tool_env_wrapper import ToolEnvWrapper

COUNTERS = ("tool_use_counter", "tool_success_counter")
Runner = Callable[[str], tuple[bool, str, str]]


def answered(turn: int, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
    """What both environments do with an action."""
    return f"turn {turn}", 1.0 if "42" in action else 0.25, "42" in action, turn == 4, {}


class Ours(Env):
    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        self.turn = 0
        return "What is it?", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.turn += 1
        return answered(self.turn, action)

    def sample_random_action(self) -> str:
        return "42"


class Theirs(TheirEnv):
    def reset(self, seed: int | None = None) -> tuple[str, dict[str, Any]]:
        self.turn = 0
        return "What is it?", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.turn += 1
        return answered(self.turn, action)


class Python(Tool):
    """Runs code as it is told to, and shows what upstream's tool shows."""

    def __init__(self, run: Runner) -> None:
        self.run = run

    def functions(self) -> Sequence[Function]:
        schema = {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}
        reply = "Code execution result: {}\n"
        return [Function("python", "Runs Python.", schema, tag="python", fence="python", reply=reply)]

    def call(self, function: str, arguments: dict[str, Any], context: CallContext) -> ToolResult:
        good, out, err = self.run(arguments["code"])
        return ToolResult((f"{out}\n{err}" if err else out).lstrip(" \n"), error=not good)


def in_a_process(code: str) -> tuple[bool, str, str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=False)
    return done.returncode == 0, done.stdout, done.stderr


def in_this_process(code: str) -> tuple[bool, str, str]:
    """For many short programs that are known: only `print` of a number, or what is no Python."""
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            exec(code, {})
    except Exception as error:
        return False, out.getvalue(), type(error).__name__
    return True, out.getvalue(), ""


def play(episodes: Iterable[Sequence[str]], run: Runner | None = None, **rewards: Any) -> int:
    """The same responses in both, episode after episode; the number of tool turns, each with the same outcome.

    Responses after an episode's end are left out: ours refuses them.
    """
    theirs = ToolEnvWrapper(Theirs(), [PythonCodeTool(timeout=30)], **rewards)
    uses, played = 0, False
    with ToolEnv(Ours(), [Python(run or in_a_process)], **rewards) as ours:
        for responses in episodes:
            info, wanted = ours.reset(seed=0)[1], theirs.reset(seed=0)[1]
            assert {name: info[name] for name in COUNTERS} == {name: wanted[name] for name in COUNTERS}
            for name in COUNTERS if played else ():  # upstream says zeros before there was an episode
                assert info[f"prev_ep_{name}"] == wanted[f"prev_ep_{name}"]
            played = True
            for response in responses:
                answer = ours.step(response)
                uses += _turn(answer, theirs.step(response), exact=run is not None)
                if answer[2] or answer[3]:
                    break
    return uses


def _turn(ours: Any, theirs: Any, *, exact: bool) -> bool:
    observation, reward, terminated, truncated, info = ours
    seen, wanted, ended, cut, says = theirs
    assert reward == pytest.approx(float(wanted))
    assert (terminated, truncated) == (ended, cut)
    assert {name: info[name] for name in COUNTERS} == {name: says[name] for name in COUNTERS}
    # Upstream says `use_tool` of every turn; a tool's has a type.
    tool_turn = "tool_type" in says
    assert info.get("use_tool", False) is tool_turn
    assert info.get("parsed_action") == says.get("parsed_action")
    last, notice = "last tool call" in observation, "maximum number of tool use" in seen
    assert last is notice
    if exact and not last:
        assert observation == seen
    return tool_turn


# -- real programs -----------------------------------------------------------------------------------------------------

RESPONSES = [
    "<python>print(6 * 7)</python>",
    "Let me see. ```python\nprint(1)\n``` and then <python>print(2)</python>",
    "<python>raise ValueError('no')</python> ignored",
    "```\npython\nprint('a')\n```",
    "no code",
    "<python>print(",
    "<python></python>",
    "the answer is 42",
]


@pytest.mark.parametrize("limit", [1, 3, 10, None])
def test_real_programs_earn_alike(limit: int | None) -> None:
    episodes = [RESPONSES[:7], RESPONSES[2:5], RESPONSES[7:]] if limit == 3 else [RESPONSES[:3], RESPONSES[4:]]
    assert play(episodes, tool_reward=0.5, tool_success_reward=0.125, max_tool_uses=limit) > 0


# -- many made up ------------------------------------------------------------------------------------------------------

PIECES = [
    "<python>", "</python>", "\n```python\nprint(1)\n```\n", "\n```\npython\n1/0\n```\n", "\n```python\nprint(\n```\n",
    "\n```text\nx\n```\n", "\n", " ", "print(1)", "print(", "1/0", "x", "42", "{}",
]  # fmt: skip
"""Fences stand on lines of their own: elsewhere, upstream takes any three backticks for one, and Markdown does not."""
responses = st.lists(st.sampled_from(PIECES), max_size=9).map("".join)


@pytest.fixture(scope="module")
def _both_run_here() -> Any:
    patch = pytest.MonkeyPatch()
    patch.setattr(python_code_tool, "run_python", lambda code, *_, **__: in_this_process(code))
    yield
    patch.undo()


@pytest.mark.usefixtures("_both_run_here")
@settings(max_examples=150)
@given(
    st.lists(st.lists(responses, max_size=6), min_size=1, max_size=3),
    st.sampled_from([0, 1, 2, 5, None]),
    st.sampled_from([0.0, 0.5]),
    st.sampled_from([0.0, -0.25]),
)
def test_any_responses_earn_alike(
    episodes: list[list[str]], limit: int | None, tool_reward: float, success_reward: float
) -> None:
    play(
        episodes,
        in_this_process,
        tool_reward=tool_reward,
        tool_success_reward=success_reward,
        max_tool_uses=limit,
    )


@pytest.mark.usefixtures("_both_run_here")
def test_the_responses_made_up_call_the_tool() -> None:
    rng = random.Random(0)
    episodes = [["".join(rng.choices(PIECES, k=6)) for _ in range(6)] for _ in range(100)]
    assert play(episodes, in_this_process) > 20
