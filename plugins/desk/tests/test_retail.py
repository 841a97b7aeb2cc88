"""The desk: every task with its reference solution and with wrong ones, through the text interface."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Sequence
from typing import Any

import pytest

import gem_core
from gem_core.env import StepResult
from gem_core.errors import EnvError, EnvKwargsError, NotFoundError
from gem_desk._functions import FIND, FUNCTIONS
from gem_desk._shop import Shop
from gem_desk.env import SPLITS, Retail, RetailTask, tasks
from gem_testing import check_env

IDS = {"train": "desk:Retail-v0", "test": "desk:Retail-v0-test", "hard": "desk:Retail-v0-hard"}
ALL = [(split, number) for split in SPLITS for number in range(len(tasks()[split]))]
NAMES = [tasks()[split][number].name for split, number in ALL]
ASK = "What else can I do for you?"

every_task = pytest.mark.parametrize(("split", "number"), ALL, ids=NAMES)


def written(name: str, **arguments: Any) -> str:
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


def opened(split: str, number: int) -> Retail:
    env = gem_core.make(IDS[split])
    assert isinstance(env, Retail)
    env.reset(seed=0, data_index=number)
    return env


def identity(task: RetailTask) -> str:
    return written(FIND, email=Shop().data["customers"][task.customer_id]["email"])


def speech(task: RetailTask) -> str:
    """A reply that tells all facts and asks nothing."""
    facts = [*task.facts.said, *(f"{amount:.2f}" for amount in task.facts.amounts)]
    facts += [f"rule {task.facts.rule} forbids a part of it"] if task.facts.rule is not None else []
    return f"It is done: {'; '.join(facts)}."


def listened(task: RetailTask) -> list[str]:
    return [ASK] * len(task.customer["details"])


def calls(task: RetailTask) -> list[str]:
    """The reference calls; what ends the conversation comes after the speech."""
    return [written(name, **arguments) for name, arguments in task.actions if name != "transfer_to_human"]


def goodbye(task: RetailTask) -> list[str]:
    if any(name == "transfer_to_human" for name, _ in task.actions):
        return [f"{speech(task)} Shall I hand you over?", written("transfer_to_human")]
    return [speech(task)]


def played(env: Retail, actions: Sequence[str]) -> StepResult:
    """The last result; no action comes after the end."""
    for action in actions[:-1]:
        result = env.step(action)
        assert not result[2], action
        assert result[1] == 0.0
    return env.step(actions[-1])


@every_task
def test_the_reference_solution_earns_one(split: str, number: int) -> None:
    env = opened(split, number)
    task = env.task
    result = played(env, [*listened(task), identity(task), *calls(task), *goodbye(task)])
    assert result[1:4] == (1.0, True, False), result
    assert result[4]["success"]


THOUGHT = f"<think>{'I wonder what the refund comes to. ' * 24}</think>\n\n"
"""More than 800 characters."""


@pytest.mark.parametrize(("split", "number"), ALL[::7], ids=NAMES[::7])
def test_thoughts_before_the_same_actions_change_nothing(split: str, number: int) -> None:
    env = opened(split, number)
    task = env.task
    actions = [*listened(task), identity(task), *calls(task), *goodbye(task)]
    assert played(env, [f"{THOUGHT}{action}" for action in actions])[1] == 1.0
    assert "wonder" not in env.render()


def test_what_was_only_thought_was_not_said() -> None:
    env = opened("train", 0)
    task = env.task
    before = [*listened(task), identity(task), *calls(task)]
    assert played(env, [*before, f"<think>{speech(task)}</think>It is done."])[1] == 0.0
    env = opened("train", 0)
    assert played(env, [*before, speech(task)])[1] == 1.0


def lazy(task: RetailTask) -> dict[str, list[str]]:
    """Ten ways to do it wrong."""
    hear, who, work, bye = listened(task), identity(task), calls(task), goodbye(task)
    everything = " ".join(f"{item['price']:.2f}" for item in Shop().data["items"].values())
    rules = " ".join(f"rule {number}" for number in range(1, 12))
    extra = "W1016" if "W1016" not in str(task.actions) else "W1028"
    thing = Shop().data["orders"][extra]["items"][0]
    return {
        "says nothing of use": [*hear, "Done."],
        "works in silence": [*hear, who, *work, "Done."],
        "lists prices and rules": [*hear, who, f"{rules} {everything}"],
        "hands over at once": [written("transfer_to_human")],
        "hands over in the end": [*hear, who, *work, written("transfer_to_human")],
        "identifies nobody": [*hear, *work, *bye],
        "identifies another": [*hear, written(FIND, email=other(task)), *work, *bye],
        "does more than was asked": [
            *hear, who, *work, written("return_items", order_id=extra, item_ids=[thing], refund_to="gift card"), *bye
        ],
        "writes calls into the reply": [*hear, who, f"{[*task.actions]} Done."],
        "waits for the limit": ["One more moment, please?"] * 30,
    }  # fmt: skip


def other(task: RetailTask) -> str:
    return next(one["email"] for one in Shop().data["customers"].values() if one["id"] != task.customer_id)


@every_task
def test_wrong_and_lazy_ones_earn_nothing(split: str, number: int) -> None:
    env = opened(split, number)
    ways = lazy(env.task)
    assert len(ways) == 10
    for name, actions in ways.items():
        env.reset(seed=0, data_index=number)
        done = ""
        for action in actions:
            _, reward, terminated, truncated, info = env.step(action)
            assert reward == 0.0, (name, env.render())
            assert not info["success"]
            if terminated or truncated:
                done = name
                break
        assert done == name, "each ends the episode"


@every_task
def test_facts_without_the_work_and_work_without_the_facts(split: str, number: int) -> None:
    env = opened(split, number)
    task = env.task
    result = played(env, [*listened(task), identity(task), speech(task)])
    changes = Shop().data != task.wanted()
    assert result[1] == (0.0 if changes else 1.0)
    assert result[4]["database_right"] is not changes


def test_there_are_forty_tasks_in_three_splits() -> None:
    assert len(ALL) >= 40
    assert len({*NAMES}) == len(ALL)
    openings = [task.customer["opening"] for split in SPLITS for task in tasks()[split]]
    assert len({*openings}) >= len(ALL) - 3
    assert gem_core.make("desk:Retail-v0").data_size == 20  # type: ignore[attr-defined]


@pytest.mark.parametrize("env_id", IDS.values())
def test_it_keeps_the_contract(env_id: str) -> None:
    check_env(env_id)


def test_the_native_form_keeps_the_contract() -> None:
    check_env("desk:Retail-v0", form="native")


def test_native_calls_are_described_and_found() -> None:
    env = gem_core.make("desk:Retail-v0", form="native")
    observation, info = env.reset(seed=0, data_index=0)
    assert [tool["function"]["name"] for tool in info["tools"]] == [function.name for function in FUNCTIONS]
    assert "<tool_call>" not in observation
    text, *_, info = env.step('{"name": "get_order", "arguments": {"order_id": "W1001"}}')
    assert json.loads(text)["items"][0]["product"] == "Desk lamp"
    assert info["use_tool"]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (written("get_order", order_id="W9"), "orders has no id 'W9'"),
        (written("cancel_order", order_id="W1002", reason="no longer needed"), "is delivered"),
        (written("cancel_order", order_id="W1001", reason="bored"), "reason is one of"),
        (written("return_items", order_id="W1001", item_ids=["lamp-white"], refund_to="gift card"), "is pending"),
        (written("return_items", order_id="W1002", item_ids=["lamp-white"], refund_to="gift card"), "has no item"),
        (written("return_items", order_id="W1002", item_ids=[], refund_to="gift card"), "one item or more"),
        (written("return_items", order_id="W1002", item_ids=[{}], refund_to="gift card"), "has no item"),
        (written("return_items", order_id="W1002", item_ids=["teapot-glass"], refund_to="me"), "refund_to is"),
        (
            written("exchange_items", order_id="W1011", item_ids=["shoes-blue-42"], new_item_ids=["shoes-blue-44"]),
            "not available",
        ),
        (
            written("exchange_items", order_id="W1011", item_ids=["shoes-blue-42"], new_item_ids=["mug-plain"]),
            "not another item of the same product",
        ),
        (written("exchange_items", order_id="W1011", item_ids=["shoes-blue-42"], new_item_ids=[]), "one item for each"),
        (written("change_order_address", order_id="W1001", street="", city="x", zip_code="y"), "texts of 1 to 200"),
        (written("find_customer"), "give an email"),
        (written("find_customer", email="nobody@example"), "no such customer"),
        (written("get_ordr", order_id="W1001"), "Did you mean 'get_order'"),
        ("<tool_call>{</tool_call>", "Error"),
    ],
)  # fmt: skip
def test_a_call_that_is_impossible_says_why_and_changes_nothing(call: str, said: str) -> None:
    env = opened("train", 0)
    text, reward, terminated, _, info = env.step(call)
    assert said in text
    assert text.startswith("Error: ")
    assert (reward, terminated, info["use_tool"]) == (0.0, False, True)
    assert info["tool_error"]
    assert env.shop.data == Shop().data


CALL = '{"name": "get_order", "arguments": {"order_id": "W1001"}}'


@pytest.mark.parametrize("form", ["text", "native"])
@pytest.mark.parametrize(
    "call",
    [
        CALL,
        f"I look it up.\n```json\n{CALL}\n```",
        f"I look it up.\n{CALL}",
        f"[{CALL}]",
        f"```json\n{CALL}",
        f"<tool_call>{CALL}",
        "<function=get_order>\n<parameter=order_id>\nW1001\n</parameter>\n</function>",
        "<tool_call>get_order<arg_key>order_id</arg_key><arg_value>W1001</arg_value></tool_call>",
        f"[TOOL_CALLS][{CALL}]",
    ],
)
def test_a_call_in_any_dialect_is_made(call: str, form: str) -> None:
    env = gem_core.make("desk:Retail-v0", form=form)
    env.reset(seed=0, data_index=0)
    text, reward, terminated, _, info = env.step(call)
    assert (reward, terminated, info["tool_type"]) == (0.0, False, "get_order")
    assert json.loads(text)["items"][0]["product"] == "Desk lamp"


@pytest.mark.parametrize("form", ["text", "native"])
@pytest.mark.parametrize(
    "call",
    [
        CALL[:-9],
        f"```json\n{CALL[:-9]}\n```",
        f"<tool_call>{CALL[:-9]}",
        "<function=get_order>\n<parameter=order_id>\nW1001",
        CALL.replace("get_order", "refund"),
        f"```json\n{CALL.replace('get_order', 'refund')}\n```",
        "<function=refund>\n<parameter=order_id>\nW1001\n</parameter>\n</function>",
    ],
)
def test_a_call_that_went_wrong_is_not_read_to_the_customer(call: str, form: str) -> None:
    env = gem_core.make("desk:Retail-v0", form=form)
    env.reset(seed=0, data_index=0)
    text, reward, terminated, _, info = env.step(call)
    assert text.startswith("Error: ")
    assert (reward, terminated) == (0.0, False)
    assert info["tool_error"]
    assert "agent: " not in str(env.render())


def test_a_refund_goes_to_the_gift_card_where_that_paid() -> None:
    shop = Shop()
    shop.return_items("W1015", ["knife-santoku-18cm"], "original payment")
    assert shop.data["customers"]["C06"]["gift_card"] == 169.15
    assert shop.data["orders"]["W1015"]["refund"] == {"amount": 49.15, "to": "gift card"}
    assert Shop().data["customers"]["C06"]["gift_card"] == 120.0, "each shop has data of its own"


def test_the_customer_answers_what_is_asked_and_repeats_it() -> None:
    env = opened("train", 0)
    assert "4821" not in env.step("Hello! What is your email?")[0]
    assert "mina.okafor@post.example" in env.step("Sorry, your email once more?")[0]
    assert "any more" in env.step("And what is the reason?")[0]
    assert "W1001" in env.step("One moment.")[0], "what was not asked for comes in its turn"
    assert "Yes, please." in env.step("Shall I cancel it?")[0]
    assert env.step(" \n")[4]["invalid_action"]
    assert env.step("Is there anything else?")[2]


def test_another_way_to_the_same_database_counts() -> None:
    """Items changed one after the other, where the reference does it in one call."""
    number = NAMES.index("change-two-items") - len(tasks()["train"]) - len(tasks()["test"])
    env = opened("hard", number)
    task = env.task
    first = written("change_items", order_id="W1001", item_ids=["mug-plain"], new_item_ids=["mug-striped"])
    second = written("change_items", order_id="W1001", item_ids=["lamp-white"], new_item_ids=["lamp-black"])
    assert played(env, [*listened(task), identity(task), first, second, speech(task)])[1] == 1.0


def test_facts_count_as_whole_words_and_numbers_in_short_replies() -> None:
    env = opened("train", 0)
    facts = env.task.facts
    assert facts.amounts == (48.85,)
    for reply in ("You get 48.85.", "$48.85 (two items)", "48.85 dollars"):
        assert facts.told([reply]), reply
    for reply in (
        "148.85",
        "48.851",
        "48",
        "4885",
        " ".join(f"{number}.85" for number in range(40, 60)),
        "x" * 601 + " 48.85",
    ):
        assert not facts.told([reply]), reply
    rule = tasks()["train"][NAMES.index("too-late-chair")].facts
    assert rule.told(["I am sorry: Rule 5."])
    assert not rule.told(["Rule 5 or rule 6."])
    assert not rule.told(["Rule 5.", "Rule 6."])
    assert not rule.told(["Rule 55."])


def test_tasks_are_numbers_and_seeds() -> None:
    env = gem_core.make("desk:Retail-v0")
    names = [env.reset(seed=1, data_index=number)[1]["task_name"] for number in range(40)]
    assert names == [*NAMES[:20], *NAMES[:20]]
    assert len({env.reset(seed=seed)[1]["task_name"] for seed in range(100)}) == 20
    with pytest.raises(EnvKwargsError, match="from 0, not -1"):
        env.reset(seed=1, data_index=-1)


def test_arguments_that_cannot_be_played_are_refused() -> None:
    for wrong, said in (
        ({"split": "dev"}, "split must be"),
        ({"form": "xml"}, "form must be"),
        ({"max_turns": 0}, "at least 1"),
    ):
        with pytest.raises(EnvError, match=said):
            gem_core.make("desk:Retail-v0", **wrong)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What `model:buyer:say` was asked. It opens, answers twice, and leaves."""
    asked: list[Any] = []

    def say(messages: Any) -> str:
        asked.append(messages)
        return ["I want to cancel W1001.", "mina.okafor@post.example", "No longer needed.", "[END]"][
            len(messages) // 2 - 1
        ]

    module = types.ModuleType("buyer")
    module.__dict__["say"] = say
    monkeypatch.setitem(sys.modules, "buyer", module)
    return asked


def test_a_model_can_be_the_customer(asked: list[Any]) -> None:
    env = gem_core.make(IDS["train"], customer="model:buyer:say")
    assert isinstance(env, Retail)
    observation, info = env.reset(seed=0, data_index=0)
    assert observation.endswith("The customer says: I want to cancel W1001.\n")
    role = asked[0][0]["content"]
    assert all(detail["says"] in role for detail in env.task.customer["details"])
    assert not any(fact in role for fact in ("48.85", "cancel_order")), "not what the reward looks for"
    played = [env.step(action) for action in ("Who are you?", identity(env.task), "Why?", *calls(env.task))]
    played.append(env.step(speech(env.task)))
    assert [step[1:4] for step in played[:-1]] == [(0.0, False, False)] * (len(played) - 1)
    assert played[-1][1:3] == (1.0, True)
    assert played[-1][0] == "The customer says: Thank you, that is all."
    assert [message["content"] for message in asked[-1][1:]][1::2] == [
        "I want to cancel W1001.",
        "mina.okafor@post.example",
        "No longer needed.",
    ]
    partner_replies = [answer for *_, shown in played for answer in shown.get("partner_replies", [])]
    assert partner_replies == [*info["partner_replies"], "mina.okafor@post.example", "No longer needed.", "[END]"]
    count = len(asked)
    assert env.reset(seed=0, data_index=0, partner_replies=partner_replies) == (observation, info)
    actions = ["Who are you?", identity(env.task), "Why?", *calls(env.task), speech(env.task)]
    assert [env.step(action) for action in actions] == played
    assert len(asked) == count, "nobody is asked a second time"
    env.close()


def test_who_cannot_be_a_customer() -> None:
    with pytest.raises(EnvKwargsError, match="customer must be 'script', or a model such as 'model:qwen', not 'sript'"):
        gem_core.make(IDS["train"], customer="sript")
    with pytest.raises(NotFoundError, match="no partner 'modell:x'"):
        gem_core.make(IDS["train"], customer="modell:x")
