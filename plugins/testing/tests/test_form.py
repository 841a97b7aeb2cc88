"""The check that the text which is shown first says the form of an action."""

from __future__ import annotations

from typing import Any

import pytest

import gem_core
from gem_core.env import Env, Info
from gem_testing._play import Subject
from gem_testing.checks import form


class Shows(Env):
    """Shows a text, and has these random actions; no turn ends it."""

    def __init__(self, text: str, info: Info, *actions: str) -> None:
        self.text, self.info, self.actions = text, info, actions

    def reset(self, seed: int | None = None, **options: Any) -> Any:
        super().reset(seed=seed)
        return self.text, dict(self.info)

    def step(self, action: str) -> Any:
        return "Go on.", 0.0, False, False, {}

    def sample_random_action(self) -> str:
        return self.rng.choice(self.actions)


class Negotiates(Shows):
    """Two agents, of which the second is shown another text."""

    agents = ("seller", "buyer")

    def reset(self, seed: int | None = None, **options: Any) -> Any:
        text, info = super().reset(seed=seed)
        return text, {**info, "agent": "seller"}

    def step(self, action: str) -> Any:
        return self.info["second"], 0.0, False, False, {"agent": "buyer"}


def problems(monkeypatch: pytest.MonkeyPatch, env: Env, *tags: str) -> list[str]:
    spec = gem_core.EnvSpec("demo:Shows-v0", lambda: env, tags=tags)
    monkeypatch.setattr("gem_testing.checks._form.spec", lambda _: spec)
    monkeypatch.setattr(Subject, "make", lambda *_: env)
    return [*form(Subject("demo:Shows-v0"))]


CALL = '<tool_call>{"name":"look_up","arguments":{"id":"7"}}</tool_call>'
TOOL = [{"type": "function", "function": {"name": "look_up", "parameters": {}}}]
UNSAID = [
    ("2 + 3 = ?", {}, ["\\boxed{5}"], "\\boxed{"),
    ("Box your answer: boxed{5}", {}, ["\\boxed{5}"], "\\boxed{"),
    ("Write a program.", {}, ["```python\nprint(1)\n```"], "```"),
    ("Say <finish></finish> at the end.", {}, ["<bash>\nls\n</bash>", "<finish></finish>"], "<bash>"),
    ("Answer in <ans> and </ans>.", {}, ["<answer>Oslo</answer>"], "<answer>"),
    ("Use \\boxed{...}.", {}, ["\\boxed{search[cup]}", "\\boxed{search[mug]}"], "search"),
    ("Use \\boxed{...}.", {}, ["\\boxed{flag 1 2}", "\\boxed{flag 2 2}"], "flag"),
    ("Choose a button.", {}, ["[red]", "[blue]"], "["),
    ("Walk to the door.", {}, ["west", "east"], "what the actions are"),
    ("How many?", {}, ["7", "12"], "what the actions are"),
    ("Send a message.", {}, ['{"message":"hello"}'], '"message"'),
    ("Call functions in <tool_call>.", {}, [CALL], "look_up"),
    ("Call look_up.", {}, [CALL, "What is it, please?"], "<tool_call>"),
    ("Help.", {"tools": [{"function": {"name": "other"}}]}, [CALL], "look_up"),
]
SAID = [
    ("2 + 3 = ?", {"suffix": "Put it in \\boxed{}."}, ["\\boxed{5}"]),
    ("2 + 3 = ?", {"prefix": "Put it in $\\boxed{...}$."}, ["\\boxed{ 5 }"]),
    ("Guess a word, for example \\boxed{crane}.", {}, ["\\boxed{house}", "\\boxed{plant}", "\\boxed{to be}"]),
    ("Put a program into ```python\n...\n```", {}, ["So:\n```\nprint(1)\n```"]),
    ("Commands in <bash>ls</bash>, then <finish></finish>.", {}, ["<bash>\nls\n</bash>", "<finish></finish>"]),
    ("In a box: \\boxed{search[words]}, \\boxed{click[label]}", {}, ["\\boxed{search[cup]}", "\\boxed{click[Buy]}"]),
    ("Answer \\boxed{Reveal row column} or \\boxed{flag row column}", {}, ["\\boxed{reveal 1 2}", "\\boxed{flag 2 2}"]),
    ("Press a button, as in [red].", {}, ["[red]", "[blue]"]),
    ("You may go east or west.", {}, ["west", "east"]),
    ("A number from 1 to 9?", {}, ["7", "12"]),
    ("What would you say to a friend?", {}, ["I do not know what to say to you."]),
    ('Write JSON: {"message": "..."}', {}, ['{"message":"hello"}']),
    ("Call functions in <tool_call>, such as look_up.", {}, [CALL, "What is it, please?"]),
    ("Help the customer.", {"tools": TOOL}, [CALL, "What?"]),
]


@pytest.mark.parametrize(("text", "info", "actions", "mark"), UNSAID, ids=[each[-1] for each in UNSAID])
def test_a_form_that_is_not_said_is_found(
    text: str, info: Info, actions: list[str], mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    [problem] = problems(monkeypatch, Shows(text, info, *actions))
    assert mark in problem.replace("\\\\", "\\")
    assert 'info["suffix"]' in problem
    assert problems(monkeypatch, Shows(text, info, *actions), "bare") == [], "a published text is declared"


@pytest.mark.parametrize(("text", "info", "actions"), SAID, ids=[each[-1][0][:20] for each in SAID])
def test_a_form_that_is_said_is_no_problem(
    text: str, info: Info, actions: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert problems(monkeypatch, Shows(text, info, *actions)) == []


def test_every_agent_has_to_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Name a price, for example \\boxed{5}."
    assert problems(monkeypatch, Negotiates(text, {"second": text}, "\\boxed{5}")) == []
    [problem] = problems(monkeypatch, Negotiates(text, {"second": "He wants 5."}, "\\boxed{5}"))
    assert "\\\\boxed{" in problem
