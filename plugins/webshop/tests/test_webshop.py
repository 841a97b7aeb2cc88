"""The shop of this project, its pages, and the reward of a purchase."""

from __future__ import annotations

import hashlib
import json
import pickle
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import gem_core
from gem_core.errors import EnvError
from gem_core.plugins import manager
from gem_testing import check_env
from gem_webshop._generation import generated_shop
from gem_webshop._goods import Goal, Product
from gem_webshop._reward import likeness, purchase_reward, type_factor
from gem_webshop.env import WebShop

IDS = [registration.spec.id for registration in manager.registrations("gem_envs", "webshop")]
SPLITS = pytest.mark.parametrize("split", ["train", "test"])


def search(words: str) -> str:
    return f"\\boxed{{search[{words}]}}"


def click(label: str) -> str:
    return f"\\boxed{{click[{label}]}}"


def shopping(**kwargs: Any) -> WebShop:
    env = WebShop(**kwargs)
    env.reset(seed=0, data_index=0)
    return env


def buttons(info: dict[str, Any]) -> list[str]:
    """The buttons that the suffix names."""
    return re.findall(r"click\[([^\]]*)\]", info["suffix"])


def test_the_ids() -> None:
    forms = ("html", "text", "text_rich")
    assert sorted(IDS) == sorted(f"webshop:{split}-{form}" for split in ("train", "test") for form in forms)


@pytest.mark.parametrize("env_id", ["webshop:train-html", "webshop:test-text", "webshop:train-text_rich"])
def test_they_keep_the_contract(env_id: str) -> None:
    check_env(env_id)


# -- the generated shop ----------------------------------------------------------------------------------------------


def test_what_there_is() -> None:
    shop = generated_shop()
    assert (len(shop.products), len(shop.train), len(shop.test)) == (1120, 240, 80)
    assert len({goal.instruction for goal in [*shop.train, *shop.test]}) == 320
    assert not {goal.asin for goal in shop.train} & {goal.asin for goal in shop.test}
    for product in shop.products.values():
        values = [value for group in product.options.values() for value in group]
        assert len(values) == len({*values})  # so that a click says which option is meant
        assert product.price > 0
        assert len({*product.attributes}) == 4


def test_it_is_the_same_everywhere() -> None:
    shop = generated_shop()
    goals = [[goal.asin, goal.instruction, goal.price_limit, sorted(goal.nouns)] for goal in [*shop.train, *shop.test]]
    products = [[one.asin, one.name, one.description, one.price, dict(one.options)] for one in shop.products.values()]
    assert hashlib.sha256(json.dumps([goals, products]).encode()).hexdigest()[:16] == "495df2b21384a68a"


@SPLITS
def test_every_goal_can_be_reached_and_a_lazy_shopper_gets_less(split: str) -> None:
    env = WebShop(split=split)
    lazy: list[float] = []
    for task in range(env.data_size):
        env.reset(data_index=task)
        goal = env.goal
        _, _, _, _, info = env.step(search(" ".join(goal.attributes) + goal.instruction.partition(" that ")[0]))
        while goal.asin.lower() not in buttons(info):
            info = env.step(click("Next >"))[4]  # the last page has none, and then this is no way to find it
            assert "invalid_action" not in info
        for label in [goal.asin, *goal.options.values()]:
            assert "invalid_action" not in env.step(click(label))[4]
        assert env.step(click("Buy Now"))[1:4] == (1.0, True, False)
        lazy.append(first_of(env, task))
    assert max(lazy) < 1.0
    assert sum(lazy) / len(lazy) < 0.6


def first_of(env: WebShop, task: int) -> float:
    """What it pays to search for the instruction, and to buy the first result as it is."""
    _, info = env.reset(data_index=task)
    info = env.step(search(env.goal.instruction))[4]
    env.step(click(next(label for label in buttons(info) if re.fullmatch("b0[a-z0-9]{8}", label))))
    return env.step(click("buy now"))[1]


# -- pages -----------------------------------------------------------------------------------------------------------


def test_ways_through_the_pages() -> None:
    env = shopping()
    info = env.step(search("rain jacket"))[4]
    assert buttons(info)[:2] == ["back to search", "next >"]
    assert len(buttons(info)) == 12
    first = buttons(info)[2]
    info = env.step(click("next >"))[4]
    assert buttons(info)[:3] == ["back to search", "< prev", "next >"]
    assert first not in buttons(info)
    second = buttons(info)[3]
    env.step(click(second.upper()))
    for page in ("description", "features", "reviews", "attributes"):
        assert buttons(env.step(click(page))[4]) == ["back to search", "< prev"]
        assert "buy now" in buttons(env.step(click("< prev"))[4])
    assert second in buttons(env.step(click("< prev"))[4])  # the page of results that it was on
    assert first in buttons(env.step(click("< prev"))[4])
    assert env.step(click("back to search"))[4]["suffix"] == "Possible actions: search[words]"


def test_the_last_page_of_results_has_no_next_one() -> None:
    env = shopping()
    env.step(search("rain jacket"))
    assert ["next >" in buttons(env.step(click("next >"))[4]) for _ in range(2)] == [True, False]
    assert "Page 3 (Total results: 28)" in env.render()
    env.step(click("back to search"))
    assert (
        "Page 1 (Total results: 50)" in env.step(search("rain jacket, sleeping bag, camping chair"))[0]
    )  # the best 50


def test_chosen_values_are_shown_and_replaced_and_forgotten() -> None:
    env = shopping(form="text_rich")
    product = env.shop.products[env.goal.asin]
    one, other = next(iter(product.options.values()))[:2]
    env.step(search(product.name))
    env.step(click(product.asin))
    assert f"[clicked button] {one} [clicked button_]" in env.step(click(one))[0]
    shown = env.step(click(other))[0]
    assert f"[clicked button] {other} [clicked button_]" in shown
    assert f"[button] {one} [button_]" in shown
    assert f"[clicked button] {other}" in (env.step(click("features")), env.step(click("< prev")))[1][0]
    env.step(click("< prev"))
    assert "[clicked button]" not in env.step(click(product.asin))[0]


def test_forms_of_a_page() -> None:
    pages = {form: shopping(form=form).step(search("desk lamp"))[0] for form in ("html", "text", "text_rich")}
    assert pages["html"].startswith("<html>\n<body>\n<p>Instruction:</p>")
    assert "<button>Next &gt;</button>" in pages["html"]
    assert pages["text"].startswith("Instruction: [SEP] ")
    assert " [SEP] Next > [SEP] " in pages["text"]
    assert "\n[button] Next > [button_]\n" in pages["text_rich"]


def test_a_search_without_results() -> None:
    env = shopping()
    observation, reward, *_, info = env.step(search("qqqq zzzz"))
    assert "Total results: 0" in observation
    assert (reward, buttons(info)) == (0.0, ["back to search"])


# -- actions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "action",
    [
        "",
        "search[mug]",
        r"\boxed{}",
        r"\boxed{search[]}",
        r"\boxed{click[Search]}",
        r"\boxed{click[buy now]}",
        r"\boxed{buy}",
    ],
)
def test_what_is_invalid_on_the_search_page(action: str) -> None:
    observation, reward, terminated, truncated, info = shopping().step(action)
    assert (reward, terminated, truncated, info["invalid_action"]) == (-0.1, False, False, True)
    assert "not possible" in observation


def test_the_last_box_of_the_form_counts() -> None:
    env = shopping()
    observation = env.step(search("hand cream") + " or " + search("garden hose") + r" is \boxed{42}")[0]
    assert "Garden Hose" in observation
    assert env.step(search("garden hose"))[1] == -0.1  # no page but the first has a search


def test_limits() -> None:
    env = shopping(max_turns=2)
    assert env.step(search("mug"))[2:4] == (False, False)
    assert env.step(click("back to search"))[1:4] == (0.0, True, True)
    env = shopping(tolerance=3)
    assert [env.step("?")[2:4] for _ in range(3)] == [(False, False), (False, False), (True, False)]
    env = shopping(max_turns=3)
    product = env.goal.asin
    env.step(search(env.shop.products[product].name))
    env.step(click(product))
    assert env.step(click("Buy Now"))[2:4] == (True, True)


@pytest.mark.parametrize(
    ("kwargs", "says"),
    [
        ({"split": "dev"}, "no split 'dev'"),
        ({"form": "json"}, "no form 'json'"),
        ({"max_turns": 0}, "at least 1"),
        ({"tolerance": 0}, "at least 1"),
    ],
)
def test_arguments_that_cannot_work(kwargs: dict[str, Any], says: str) -> None:
    with pytest.raises(EnvError, match=says):
        WebShop(**kwargs)


def test_hostile_actions() -> None:
    for text in (
        "\\boxed{" * 20_000,
        "\\boxed{search[" * 10_000,
        "\\boxed{search[\0\ud800]}",
        "\\boxed{click[" + "a" * 99,
    ):
        _, reward, *_, info = shopping().step(text)
        assert reward <= 0.0
        assert "success" in info


def test_tasks_are_all_goals_in_turn_and_seeds_draw_them() -> None:
    env = WebShop(split="test")
    seen = Counter()
    for task in range(160):
        env.reset(data_index=task)
        seen[env.goal.instruction] += 1
    assert {*seen.values()} == {2}
    assert len({(env.reset(seed=seed), env.goal.asin)[1] for seed in range(200)}) > 60


def test_snapshots_are_small_and_bring_everything_back() -> None:
    env = gem_core.make("webshop:train-text")
    env.reset(seed=3)
    env.step(search("water bottle"))
    state = env.get_state()
    assert len(pickle.dumps(state)) < 8_000  # not the shop
    shown = env.step(click("next >"))
    twin = gem_core.make("webshop:train-text")
    twin.reset(seed=9)
    twin.set_state(state)
    assert twin.step(click("next >")) == shown
    env.set_state(state)
    assert env.step(click("next >")) == shown


# -- the reward ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "percent"),
    [
        ("caffè latte", "caff latte", 100), ("naïve", "naive", 89), ("é", "e", 0), ("abcde ™ fg", "abcde fg", 100),
        ("men\u2019s shirt", "mens shirt", 95), ("dark-blue", "blue dark", 100),
        ("100% cotton", "cotton", 100), ("", "", 0),
        ("", "x", 0), ("!!", "a", 0), ("machine wash", "machine washable", 86), ("long sleeve", "short sleeve", 71),
        ("water resistant", "waterproof", 40), ("x-large", "large", 100),
    ],
)  # fmt: skip
def test_likeness_is_thefuzz_s(one: str, other: str, percent: int) -> None:
    assert likeness(one, other) == percent


def product(**changes: Any) -> Product:
    values: dict[str, Any] = {
        "asin": "B000000001", "name": "Blue cotton shirt for summer", "query": "shirt",
        "categories": frozenset({"Clothing", "Tops", "Shirts"}),
        "description": "A light shirt.", "features": ("Button down collar",), "attributes": ("machine washable",),
        "options": {"color": ("blue", "red"), "size": ("small", "large")}, "price": 25.0,
    }  # fmt: skip
    return Product(**{**values, **changes})


GOAL = Goal(
    "B000000001",
    "",
    ("machine wash", "light"),
    {"color": "blue", "size": "large"},
    30.0,
    frozenset({"shirt", "cotton"}),
)
RIGHT = {"color": "blue", "size": "large"}


@pytest.mark.parametrize(
    ("changes", "chosen", "reward"),
    [
        ({}, RIGHT, 5 / 5),
        ({}, {}, 3 / 5),
        ({}, {"color": "red", "size": "large"}, 4 / 5),
        ({"price": 30.0}, RIGHT, 5 / 5),
        ({"price": 30.01}, RIGHT, 4 / 5),
        ({"attributes": ("waterproof",)}, RIGHT, 4 / 5),  # light stands in the description
        ({"attributes": ("waterproof",), "description": "Machine wash only"}, RIGHT, 4 / 5),
        ({"name": "A hat"}, RIGHT, 0.0),  # no noun
    ],
)
def test_rewards_by_hand(changes: dict[str, Any], chosen: dict[str, str], reward: float) -> None:
    assert purchase_reward(GOAL, product(), product(**changes), chosen) == pytest.approx(reward)


def test_without_a_limit_any_price_is_right() -> None:
    goal = Goal("B000000001", "", (), {}, None, frozenset({"shirt"}))
    assert purchase_reward(goal, product(), product(price=1e6), {}) == 1.0


@pytest.mark.parametrize(
    ("found", "of", "changes", "factor"),
    [
        (0, 5, {}, 0.0),
        (1, 11, {}, 0.1),
        (1, 5, {}, 1.0),  # the same kind
        (1, 5, {"query": "hat", "categories": frozenset({"Toys"})}, 0.5),
        (1, 5, {"query": "hat", "categories": frozenset({"Clothing", "Shirts"})}, 1.0),  # two categories
        (1, 5, {"query": "hat", "categories": frozenset({"Clothing", "Hats"})}, 0.5),
        (1, 4, {"query": "hat", "categories": frozenset({"Toys"})}, 1.0),  # enough nouns
    ],
)
def test_the_factor_of_the_type(found: int, of: int, changes: dict[str, Any], factor: float) -> None:
    nouns = [f"noun{number}" for number in range(of)]
    goal = Goal("B000000001", "", (), {}, None, frozenset(nouns))
    assert type_factor(goal, product(), product(name=" ".join(nouns[:found]) + " thing", **changes)) == factor


# -- the original data -----------------------------------------------------------------------------------------------


def original(folder: Path, **changes: Any) -> Path:
    """Files as WebShop has them, with products of our own."""
    rows: list[dict[str, Any]] = [
        {
            "asin": f"b00000000{number}", "name": f"Garden Spade number {number}", "query": "garden spade",
            "product_category": "Garden \u203a Tools \u203a Spades",
            "full_description": "For digging.", "category": "garden",
            "small_description": ["steel blade", "ash handle"],
            "pricing": ["$12.50 to $1,020.00", "$8", "", None][number % 4],
            "customization_options": {"Color": [{"value": "Red/Black"}, {"value": " green "}], "Size": None},
        }
        for number in range(6)
    ]  # fmt: skip
    told = {
        row["asin"]: {"attributes": ["steel blade", "long handle"], "instruction": "I want a garden spade.",
                      "instruction_attributes": ["steel blade"]} for row in rows[:5]
    }  # fmt: skip
    rows[0] |= changes
    (folder / "items_shuffle_1000.json").write_text(json.dumps(rows))
    (folder / "items_ins_v2_1000.json").write_text(json.dumps(told))
    return folder


def test_the_original_data(tmp_path: Path) -> None:
    env = WebShop(split="train", data=original(tmp_path))
    shop = env.shop
    assert (len(shop.products), len(shop.train), len(shop.test), shop.exact) == (6, 3, 2, False)
    assert [one.price for one in shop.products.values()] == [12.5, 8.0, 0.0, 0.0, 12.5, 8.0]
    assert {one.options["color"] for one in shop.products.values()} == {("red | black", "green")}
    limits = {shop.products[goal.asin].price: goal.price_limit for goal in [*shop.train, *shop.test]}
    assert limits == {12.5: 20.0, 8.0: 10.0, 0.0: None}
    for task in range(env.data_size):
        env.reset(data_index=task)
        env.step(search("garden spade"))
        for label in [env.goal.asin, *env.goal.options.values()]:
            env.step(click(label))
        *_, info = result = env.step(click("buy now"))
        assert (result[1], info["success"], info["approximate_type"]) == (1.0, True, True)
    with gem_core.make("webshop:test-text", data=str(tmp_path)) as made:
        assert "garden spade" in made.reset(seed=1)[0]


def test_the_conformance_of_the_original_data(tmp_path: Path) -> None:
    check_env("webshop:train-text_rich", data=str(original(tmp_path)))


def test_data_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(EnvError, match=r"has no items_shuffle.json with items_ins_v2.json. Next: download"):
        WebShop(data=tmp_path)
    original(tmp_path, customization_options=[1])
    with pytest.raises(EnvError, match="cannot read the product"):
        WebShop(data=tmp_path)
    (tmp_path / "items_ins_v2_1000.json").write_text("{}")
    original(tmp_path)
    (tmp_path / "items_ins_v2_1000.json").write_text("{}")
    with pytest.raises(EnvError, match="0 instructions"):
        WebShop(data=tmp_path)
    (tmp_path / "items_shuffle_1000.json").write_text("[")
    with pytest.raises(EnvError, match=r"cannot read .*items_shuffle_1000.json"):
        WebShop(data=tmp_path)
    (tmp_path / "items_shuffle_1000.json").write_text("{}")
    with pytest.raises(EnvError, match="holds a dict and not a list"):
        WebShop(data=tmp_path)
