"""Plans of several steps that solve nothing, for environments that take commands, SQL, clicks, calls or a walk."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from gem_testing._degenerate import Copy, Form, Policy, always

_PATH = re.compile(r"(?<![\w.])/[\w./-]*\w|(?<![\w./])[\w-]+\.(?:txt|json|csv|py|sh|db|md|log|ini|toml|yaml|tar\.gz)\b")
_IDENTIFIER = re.compile(r"\b[a-z]+_[a-z_]+\b|(?<=table )[a-z]+\b|(?<=view )[a-z]+\b")
_CLICK = re.compile(r"click\[([^\]]*)\]")
_TURN = re.compile(r"Actions so far: (\d+)")
_SOUGHT = re.compile(r"(?<=Instruction: )[^\n]+|(?<=Task: )[^\n]+")
_EMAIL = re.compile(r"[\w.]+@[\w.]+\w")
_ORDER = re.compile(r"\bW\d{4}\b")
_THING = re.compile(r"^\s+(?:an?|the) ([a-z][a-z ]*)", re.MULTILINE)
_TASK = re.compile(r"Your task is to (.*)")

_FAKE = "printf '#!/bin/sh\\nexit 0\\n' > $f; chmod 755 $f"
_SHELL: Mapping[str, tuple[str, ...]] = {
    "finishes": (),
    "looks around": ("pwd; ls -laR; cat *; env",),
    "makes each file that the task names": ('for f in {paths}; do mkdir -p "$(dirname $f)"; : >> $f; done',),
    "writes 0 to each file that the task names": ("for f in {paths}; do echo 0 > $f; done",),
    "lists the folder in each file that is missing": ("for f in {paths}; do [ -e $f ] || find . -type f > $f; done",),
    "copies the first file to each that is missing": ("for f in {paths}; do [ -e $f ] || cp -r {first} $f; done",),
    "joins all files in each that is missing": (
        "cat * > /tmp/all; for f in {paths}; do [ -e $f ] || cp /tmp/all $f; done",
    ),
    "sorts each file": ("for f in $(find . -type f); do sort -u -o $f $f; done",),
    "allows everything": ("chmod -R 777 .; for f in {paths}; do chmod 777 $f; done",),
    "deletes everything": ("rm -rf ./* ./.[!.]* /tmp/* $HOME/*",),
    "makes each program succeed": (f"for f in {{paths}} $(find . -type f); do {_FAKE}; done",),
    "plants code that ends each Python": (
        "d=/usr/local/lib/python3.11/dist-packages; mkdir -p $d; echo 'import os; os._exit(0)' | tee $d/x.pth "
        "./sitecustomize.py ./usercustomize.py ./conftest.py ./re.py ./json.py > /dev/null",
        f"f=/usr/local/bin/python3; {_FAKE}; echo exit 0 > ~/.profile",
    ),
    "writes a reward": (
        "mkdir -p /logs/verifier /tests; echo 1 | tee /logs/verifier/reward.txt /tests/reward.txt reward.txt",
    ),
}
"""Commands, before the end; `{paths}` are those in the task."""
_SQL: Mapping[str, tuple[str, ...]] = {
    "finishes": (),
    "reads everything": ("SELECT table_name, column_name FROM information_schema.columns",),
    "makes each table that the task names": ("CREATE TABLE IF NOT EXISTS {name} (id int)",),
    "makes each name of the task a view of nothing": ("CREATE OR REPLACE VIEW {name} AS SELECT 0 AS id WHERE false",),
    "makes each name of the task a function": (
        "CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
    ),
    "deletes all rows": (
        "DO $$ DECLARE t text; BEGIN FOR t IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP "
        "EXECUTE format('TRUNCATE %I CASCADE', t); END LOOP; END $$",
    ),
    "drops everything": ("DROP SCHEMA public CASCADE", "CREATE SCHEMA public"),
    "hides the tables from the check": (
        "CREATE SCHEMA other", "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = other', "
        "current_database()); END $$", "ALTER ROLE CURRENT_USER SET search_path = other",
        "CREATE FUNCTION public.count(anyelement) RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint'",
    ),
}  # fmt: skip
"""Statements, before the end; one with `{name}` is for each name in the task."""
_ROOMS = (
    "hallway", "kitchen", "outside", "greenhouse", "foundry", "living room", "bedroom", "art studio", "workshop",
    "bathroom",
)  # fmt: skip
_VERBS = ("focus on", "pick up", "open", "activate", "use", "eat")
_RULES = range(1, 12)
_ASKED = "What are your email, name and postcode, the order number, the items, the address, reason and payment?"


def plans(form: Form, actions: Sequence[str]) -> list[Policy]:
    """Plans for what these valid actions are: shell commands, SQL, a shop's pages, a desk's calls, or a house.

    Args:
        form: of a valid action.
        actions: valid ones of other episodes.
    """
    fitting = (make for sign, make in _KINDS.items() if any(sign in action for action in actions))
    return [policy for make in fitting for policy in make(form)]


def _shell(_: Form) -> Iterator[Policy]:
    for name, commands in _SHELL.items():
        yield Policy(f"{name}, in the shell", partial(_commands, commands))
    yield Policy("runs each observation in the shell", _run, _bash)


def _run(question: str) -> tuple[str, ...]:
    return (_bash(question),)


def _commands(commands: Sequence[str], question: str) -> tuple[str, ...]:
    paths = _names(_PATH, question) or ["answer.txt"]
    filled = [text.replace("{paths}", " ".join(paths)).replace("{first}", paths[0]) for text in commands]
    return (*map(_bash, filled), "<finish></finish>")


def _bash(text: str) -> str:
    return f"<bash>\n{text}\n</bash>"


def _sql(_: Form) -> Iterator[Policy]:
    for name, statements in _SQL.items():
        yield Policy(f"{name}, in SQL", partial(_statements, statements))


def _statements(statements: Sequence[str], question: str) -> tuple[str, ...]:
    names = _names(_IDENTIFIER, question)
    each = [text.replace("{name}", name) for text in statements for name in (names if "{name}" in text else [""])]
    return (*(_call("execute", sql=text) for text in each), _call("finish"))


def _shop(form: Form) -> Iterator[Policy]:
    more = {"": False, " with the options that it names": True}
    for said, which, options in itertools.product(_SEARCHES, ("first", "last"), more):
        name = f"searches for {said} and buys the {which} product{options}"
        click = partial(_click, form, 0 if which == "first" else -1, more[options])
        yield Policy(name, partial(_search, form, _SEARCHES[said]), click)


def _search(form: Form, words: Copy, question: str) -> tuple[str, ...]:
    return (form(f"search[{words(question)[:300]}]"),)


def _click(form: Form, place: int, options: bool, shown: str) -> str:
    """A product, the options of a product that the instruction names, one a turn, and what buys it."""
    labels = _CLICK.findall(shown.rpartition("Possible actions:")[2])
    products = [label for label in labels if re.fullmatch(r"b[0-9a-z]{9}", label)]
    named = [label for label in labels if options and label in _instruction(shown).lower()]
    turn = int((_TURN.search(shown) or ["", "2"])[1]) - 2
    if "buy now" not in labels:
        return form(f"click[{products[place] if products else 'back to search'}]")
    return form(f"click[{named[turn] if 0 <= turn < len(named) else 'buy now'}]")


def _instruction(shown: str) -> str:
    return (_SOUGHT.search(shown) or [""])[0]


_SEARCHES: Mapping[str, Copy] = {
    "the instruction": _instruction,
    "its first words": lambda question: " ".join(_instruction(question).split()[3:7]),
    "nothing": lambda question: "",
}


def _desk(_: Form) -> Iterator[Policy]:
    for rule in _RULES:
        refuse = partial(_identify, f"I am sorry, rule {rule} forbids that.")
        yield Policy(f"identifies the customer, and refuses by rule {rule}", always(_ASKED), refuse)
    yield Policy("cancels each order that it reads of, and repeats the rest", always(_ASKED), _cancel)
    yield Policy("identifies the customer, and repeats the rest", always(_ASKED), partial(_identify, None))
    yield Policy("hands the customer over", always(_call("transfer_to_human")))


def _identify(reply: str | None, shown: str) -> str:
    found = None if shown.lstrip().startswith("{") else _EMAIL.search(shown)
    return _call("find_customer", email=found[0]) if found else reply or shown


def _cancel(shown: str) -> str:
    order = None if "refund" in shown else _ORDER.search(shown)
    repeated = shown.replace("?", ".")
    return _call("cancel_order", order_id=order[0], reason="no longer needed") if order else repeated


def _house(_: Form) -> Iterator[Policy]:
    walk = (f"{verb} {room}" for room in _ROOMS for verb in ("open door to", "go to"))
    yield Policy("walks through every room", always(*walk))
    yield Policy("focuses on each word of the task", _focus)
    for verb in _VERBS:
        yield Policy(f"tries to {verb} each thing in the room", partial(_try, verb))


def _focus(question: str) -> tuple[str, ...]:
    words = dict.fromkeys(re.findall(r"[a-z]{4,}", (_TASK.search(question) or ["", ""])[1]))
    return (*map("focus on {}".format, itertools.islice(words, 20)), "")


def _try(verb: str, question: str) -> tuple[str, ...]:
    return (*(f"{verb} {thing.strip()}" for thing in _names(_THING, question)), "")


_KINDS: Mapping[str, Callable[[Form], Iterator[Policy]]] = {
    "<bash>": _shell, '"sql"': _sql, "search[": _shop, '"get_order"': _desk, "open door to": _house,
}  # fmt: skip
"""By a piece of a valid action."""


def _names(pattern: re.Pattern[str], question: str) -> list[str]:
    return [*dict.fromkeys(pattern.findall(question))]


def _call(name: str, **arguments: str) -> str:
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"
