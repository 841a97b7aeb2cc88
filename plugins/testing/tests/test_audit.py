"""The hacking audit: it finds what pays for nothing, in one turn and in many, and leaves sound environments alone."""

from __future__ import annotations

import re
from typing import Any

import pytest

import gem_core
from gem_core import Env
from gem_core.plugins import PluginManager
from gem_testing import Bound, HackingError, audit_env, check_hacking
from gem_testing._degenerate import balanced, copies, form_of, policies

QUICK = ((3, None), (12, 10))


class Sum(Env):
    """Adds two numbers; `flaw` names what is wrong with its scoring."""

    def __init__(self, flaw: str | None = None) -> None:
        self.flaw = flaw

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.numbers = self.rng.randrange(1000), self.rng.randrange(1000)
        self.turns = 0
        return f"Add these.\nNumbers: {self.numbers[0]} and {self.numbers[1]}\nWrite \\boxed{{sum}}.", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.turns += 1
        found = re.search(r"\\boxed\{(.*)\}", action, re.DOTALL)
        right = found is not None and self.is_right(found[1])
        reward = 0.2 if self.flaw == "pays for a box" and found else 0.3 * (self.flaw == "pays each turn")
        last = self.flaw != "pays each turn" or self.turns == 5
        return "", 1.0 if right else reward, last, False, {"success": right}

    def is_right(self, answer: str) -> bool:
        total = sum(self.numbers)
        if self.flaw == "evaluates" and "entry" in answer:
            return True
        if self.flaw == "compares floats" and answer == "nan":
            return not abs(float(answer) - total) > 0
        if self.flaw == "adds a copy":
            return answer.split("and")[0].strip() == str(self.numbers[0])
        if self.flaw == "searches":
            return str(total)[-2:] in answer
        if self.flaw == "takes a special word":
            return answer in ("xyzzy", str(total))
        return answer == str(total)

    def sample_random_action(self) -> str:
        return f"\\boxed{{{self.rng.randrange(2000)}}}"


class Door(Env):
    """Opens after three knocks."""

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.left, self.turns = 3, 0
        return "Knock, or wait.", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.turns += 1
        self.left -= action == "knock"
        return "", float(not self.left), not self.left, self.turns == 9, {"success": not self.left}

    def sample_random_action(self) -> str:
        return self.rng.choice(["knock", "wait"])


@pytest.fixture(autouse=True)
def ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gem_core.registry.manager", PluginManager(discover=list))
    gem_core.register("audit:Sum-v0", Sum)
    gem_core.register("audit:Door-v0", Door)


def test_a_sound_environment_passes() -> None:
    check_hacking("audit:Sum-v0", rounds=QUICK)
    audit = audit_env("audit:Sum-v0", rounds=QUICK)
    assert (audit.entries, audit.best.reward, audit.luckiest.success) == (12, 0.0, 0.0)
    assert 300 <= audit.policies <= 1000


@pytest.mark.parametrize(
    ("flaw", "policy"),
    [
        ("pays for a box", ""), ("pays each turn", ""), ("evaluates", "entry"), ("compares floats", "'nan'"),
        ("adds a copy", "line"), ("searches", "0"),
    ],
)  # fmt: skip
def test_a_flaw_is_found_and_named(flaw: str, policy: str) -> None:
    audit = audit_env("audit:Sum-v0", rounds=QUICK, flaw=flaw)
    assert audit.best.reward >= 0.2
    assert policy in audit.best.policy
    with pytest.raises(HackingError, match=r"audit:Sum-v0 pays .* and at most 0\.05 is allowed"):
        check_hacking("audit:Sum-v0", rounds=QUICK, flaw=flaw)


def test_answers_of_the_author_are_tried_as_well() -> None:
    check_hacking("audit:Sum-v0", rounds=QUICK, flaw="takes a special word")
    with pytest.raises(HackingError, match="xyzzy"):
        check_hacking("audit:Sum-v0", rounds=QUICK, flaw="takes a special word", answers=["xyzzy"])


def test_one_action_again_and_again_plays_a_game() -> None:
    audit = audit_env("audit:Door-v0", rounds=QUICK)
    assert audit.best.reward == audit.luckiest.success == 1.0
    assert "knock" in audit.best.policy


def test_a_bound_allows_what_it_names_and_no_more() -> None:
    paying = audit_env("audit:Sum-v0", rounds=QUICK, flaw="pays for a box")
    assert paying.problem(Bound(0.2, reason="it pays for the form")) is None
    assert "0.19" in (paying.problem(Bound(0.19)) or "")
    door = audit_env("audit:Door-v0", rounds=QUICK)
    assert "as solved" in (door.problem(Bound(1.0, 0.5)) or "")


def test_the_audit_says_the_same_each_time() -> None:
    assert audit_env("audit:Sum-v0", rounds=QUICK, flaw="searches") == audit_env(
        "audit:Sum-v0", rounds=QUICK, flaw="searches"
    )


def test_pieces_of_a_question() -> None:
    question = 'Use [1, [2]] and (3).\nBoard: "a b"\n1 0\n0 1\n\nTake 7.5 of 12.'
    written = {name: copy(question) for name, copy in copies()}
    assert written["number -1"] == "12"
    assert written["number 0"] == "1"
    assert written["line 0"] == "Use [1, [2]] and (3)."
    assert written["quotation 0"] == "a b"
    assert written["piece in brackets 0"] == "[1, [2]]"
    assert written["inside of brackets 0"] == "2"
    assert written["block 0, as lists"] == "[[1, 0], [0, 1]]"
    assert balanced("a(b[c])d)[e") == ["(b[c])"]


def test_actions_have_the_form_of_valid_ones() -> None:
    assert form_of("\\boxed{7}")("x") == "\\boxed{x}"
    assert form_of("<answer>7</answer>")("x") == "<answer>x</answer>"
    assert form_of("knock")("x") == "x"
    each = policies(form_of("\\boxed{7}"), ["\\boxed{7}", "\\boxed{8}"], ["Add 1 and 2."], [])
    assert len({policy.name for policy in each}) == len(each)
    assert ("\\boxed{7}", "\\boxed{8}") in [policy.write("") for policy in each]
