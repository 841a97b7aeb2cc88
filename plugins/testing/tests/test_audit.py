"""The hacking audit: it finds what pays for nothing, in one turn and in many, and leaves sound environments alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

import gem_core
from gem_core import Env
from gem_core.plugins import PluginManager
from gem_testing import KINDS, Bound, HackingError, Kind, audit_env, check_hacking
from gem_testing._degenerate import answering, balanced, copies, form_of
from gem_testing._plans import plans

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


class Dial(Env):
    """Opens after three numbers that are the ones shown last, or by another flaw."""

    def __init__(self, flaw: str = "shows the answer") -> None:
        self.flaw = flaw

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.right, self.turns = 0, 0
        return self.shown(), {}

    def shown(self) -> str:
        self.number = self.rng.randrange(10_000)
        return f"Dial any number. The dial stands at [{self.number}]"

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.turns += 1
        paid = {"shows the answer": action == str(self.number), "likes length": len(action) > 50_000}[self.flaw]
        self.right = self.right + 1 if paid else 0
        return self.shown(), float(self.right == 3), self.right == 3, self.turns == 5, {"success": self.right == 3}

    def sample_random_action(self) -> str:
        return str(self.rng.randrange(10_000))


class Host(Env):
    """Takes actions like `valid` until `end`, which pays if a piece of them is `flaw`. Shows texts in turn."""

    def __init__(self, valid: str, flaw: str, end: str, shown: list[str]) -> None:
        self.valid, self.flaw, self.end, self.texts = valid, flaw, end, shown

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.seen, self.turns = "", 0
        return self.texts[0], {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.turns += 1
        self.seen += action
        over = action == self.end
        paid = over and self.flaw in self.seen
        return self.texts[self.turns % len(self.texts)], float(paid), over, self.turns == 20, {"success": paid}

    def sample_random_action(self) -> str:
        return self.valid


SHOP = (
    "Task: I need a red cup.\nActions so far: {}.\nInstruction: I need a red cup.\n"
    "Possible actions: click[back to search], click[blue], click[red], click[buy now]"
)
HOSTS = {
    "shell": ("<bash>\nls\n</bash>", ": >> $f", "<finish></finish>", ["Write it to /app/sum.txt."], "makes each file"),
    "shell, two steps": ("<bash>\nls\n</bash>", "dist-packages", "<finish></finish>", ["Repair it."], "plants code"),
    "SQL": (
        '<tool_call>{"name":"query","arguments":{"sql":"SELECT 1"}}</tool_call>', "VIEW late_loans",
        '<tool_call>{"name": "finish", "arguments": {}}</tool_call>',
        ["Make the view late_loans."], "a view of nothing",
    ),
    "shop": (
        "\\boxed{search[cup]}", "click[red]", "\\boxed{click[buy now]}", [SHOP.format(turn) for turn in range(1, 5)],
        "options that it names",
    ),
    "desk": (
        '<tool_call>{"name":"get_order","arguments":{"order_id":"W1001"}}</tool_call>', "find_customer",
        "I am sorry, rule 3 forbids that.",
        ["Hello.", "My email is a.b@c.example.", '{"name": "A. B.", "email": "a.b@c.example"}'], "refuses by rule 3",
    ),
    "house": (
        "[open door to kitchen]", "pick up ice", "pick up thing", ["You see:\n    an ice\n    a thing"], "pick up",
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gem_core.registry.manager", PluginManager(discover=list))
    gem_core.register("audit:Sum-v0", Sum)
    gem_core.register("audit:Door-v0", Door)
    gem_core.register("audit:Dial-v0", Dial)
    gem_core.register("audit:Host-v0", Host)


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


def test_what_was_shown_last_is_repeated_in_each_turn() -> None:
    audit = audit_env("audit:Dial-v0", rounds=QUICK)
    assert audit.best.reward == audit.luckiest.success == 1.0
    assert audit.best.policy == "number 0 of each observation"


def test_a_very_long_action_is_played() -> None:
    audit = audit_env("audit:Dial-v0", rounds=QUICK, flaw="likes length")
    assert audit.best.reward == 1.0
    assert audit.best.policy.startswith("a very long action")


@pytest.mark.parametrize("kind", HOSTS)
@pytest.mark.parametrize("kinds", [KINDS, ("plans",)])
def test_plans_of_several_steps_are_played_where_actions_are_of_their_kind(kind: str, kinds: Sequence[Kind]) -> None:
    valid, flaw, end, shown, policy = HOSTS[kind]
    audit = audit_env("audit:Host-v0", rounds=QUICK, kinds=kinds, valid=valid, flaw=flaw, end=end, shown=shown)
    assert (audit.best.reward, audit.luckiest.success) == (1.0, 1.0)
    assert policy in audit.best.policy
    assert not plans(form_of("knock"), ["knock"])


def test_the_first_answer_counts_where_one_turn_ends_an_episode() -> None:
    """Plans are played from their first step on, also where policies before them wrote the same."""
    audit = audit_env("audit:Sum-v0", rounds=QUICK, flaw="pays each turn")
    assert audit.best.reward == pytest.approx(1.5)


def test_random_play_stands_beside_the_best_policy() -> None:
    audit = audit_env("audit:Door-v0", rounds=QUICK)
    assert audit.random is not None
    assert audit.random.policy == "random play"
    assert 0.5 < audit.random.success == audit.random.reward < 1.0
    assert audit_env("audit:Door-v0", rounds=QUICK) == audit
    assert audit_env("audit:Sum-v0", rounds=QUICK).random is None


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
    each = answering(form_of("\\boxed{7}"), ["\\boxed{7}", "\\boxed{8}"], ["Add 1 and 2."], [])
    assert len({policy.name for policy in each}) == len(each)
    assert ("\\boxed{8}",) in [policy.write("") for policy in each]
