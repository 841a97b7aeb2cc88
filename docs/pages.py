"""Writes docs/environments/: a page per namespace, from the environments' own docstrings and from playing them.

python docs/pages.py            # write the pages that are there
python docs/pages.py maze       # and one more
python docs/pages.py --check    # fail if a page is not what it would write
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import gem_core
from gem_core.env import Env, shown_text
from gem_core.errors import GemError
from gem_core.plugins import manager
from gem_core.specs import EnvSpec

FOLDER = Path(__file__).parent / "environments"
ROOT = FOLDER.parents[1]
SERVERS = {"postgres": "PostgreSQL and an MCP server"}
"""What an episode of a namespace needs beside Python packages; the page of its package shows one."""
SEED = 0
TURNS = 3
PACKAGED = "package:"
"""What the name of a data set in this distribution begins with."""
MAX_LENGTH = 1500
"""Characters of one observation; a longer one is cut in the transcript."""
SHOWN_IDS = 40
"""Ids of one class; of more, only the names are listed."""


def page(namespace: str) -> str:
    """The page of a namespace, as Markdown."""
    specs: list[EnvSpec] = [registration.spec for registration in manager.registrations("gem_envs", namespace)]
    parts = [f"# {namespace}", "<!-- Written by docs/pages.py; change the docstrings instead. -->"]
    shared: dict[str, str] = {}
    for entry_point, group in groupby(specs, key=lambda spec: spec.entry_point):
        own = list(group)
        parts += section(str(entry_point).rpartition(":")[2], own)
        shared |= dict(re.findall(r"see `([\w.]+)\.(\w+)`", docstring(own[0].resolve())))
    for module, name in shared.items():
        parts += [f"## {name}", *prose(docstring(getattr(importlib.import_module(module), name)))]
    return "\n\n".join(parts) + "\n"


def section(name: str, specs: list[EnvSpec]) -> Iterator[str]:
    """What there is to say about one class: its ids, its docstring, an episode."""
    yield f"## {name}"
    yield names(specs) if len(specs) > SHOWN_IDS else table(specs)
    yield from prose(docstring(specs[0].resolve()))
    yield transcript(specs)


def docstring(of: object) -> str:
    """What a class says about itself."""
    return inspect.getdoc(of) or ""


def table(specs: list[EnvSpec]) -> str:
    """Ids and their arguments."""
    rows = [f"| `{spec.id}` | {arguments(spec)} |" for spec in specs]
    return "\n".join(["| id | arguments |", "| --- | --- |", *rows]) + extra(specs[0])


def arguments(spec: EnvSpec) -> str:
    """Those that the id sets, and those that it leaves to be given."""
    parameters = inspect.signature(spec.resolve()).parameters.values()
    open_ones = [one.name for one in parameters if one.default is one.empty and one.name not in spec.kwargs]
    named = [f"`{key}={value!r}`" for key, value in spec.kwargs.items()]
    return ", ".join([*named, *(f"`{name}` has to be given" for name in open_ones)]) or "defaults"


def extra(spec: EnvSpec) -> str:
    """What to install."""
    return f"\n\nThe extra `{spec.extra}` installs all that these may need." if spec.extra else ""


def names(specs: list[EnvSpec]) -> str:
    """Ids alone, where they are many."""
    return ", ".join(f"`{spec.id}`" for spec in specs) + "." + extra(specs[0])


def prose(docstring: str) -> Iterator[str]:
    """A docstring as Markdown; its sections of arguments and errors become lists."""
    for part in re.split(r"\n\n(?=\S)", docstring):
        title, _, body = part.partition("\n")
        if title not in ("Args:", "Raises:", "Example:"):
            yield part
        elif title == "Args:":
            items = re.split(r"\n(?=\S)", textwrap.dedent(body))
            yield "Arguments:\n\n" + "\n".join(re.sub(r"^([a-z][\w, ]*):", r"- `\1`:", item) for item in items)


def home(spec: EnvSpec) -> str:
    """The page of the package that has a class, from a page of this folder."""
    package = str(spec.entry_point).partition(".")[0]
    [folder] = ROOT.glob(f"plugins/*/{package}")
    return f"../../{folder.parent.relative_to(ROOT).as_posix()}/README.md"


def transcript(specs: list[EnvSpec]) -> str:
    """The first turns of an episode, with random valid actions, of the first id that needs nothing from elsewhere."""
    namespace = specs[0].id.partition(":")[0]
    if namespace in SERVERS:
        return f"No episode is shown, as it needs {SERVERS[namespace]}: see [the page on them]({home(specs[0])})."
    for spec in specs:
        dataset = str(spec.kwargs.get("dataset", ""))
        if "/" in dataset and not dataset.startswith(PACKAGED):  # of the hub
            continue
        try:
            with gem_core.make(spec.id) as env:
                shown = "\n".join(turns(env))
        except GemError:  # it has to be told what data to read
            continue
        return f"First turns of `{spec.id}`, seed {SEED}, random actions:\n\n{fenced(shown)}"
    return "No episode is shown, as the data is not part of this package."


def fenced(text: str) -> str:
    """A block of text that may hold fences of its own."""
    fence = "`" * (max(map(len, re.findall("`{3,}", text)), default=2) + 1)
    return f"{fence}text\n{text}\n{fence}"


def turns(env: Env) -> Iterator[str]:
    """Observations, actions and rewards, a line or more each."""
    observation, info = env.reset(seed=SEED)
    yield cut(shown_text(observation, info))
    for _ in range(TURNS):
        action = env.sample_random_action()
        observation, reward, terminated, truncated, info = env.step(action)
        yield f"> {action}"
        yield f"[reward {reward:.3g}{', the end' if terminated or truncated else ''}]"
        yield cut(shown_text(observation, info))
        if terminated or truncated:
            return


def cut(text: str) -> str:
    """A text that is not too long to read, without white space at line ends."""
    short = text if len(text) <= MAX_LENGTH else f"{text[:MAX_LENGTH]} [...]"
    return "\n".join(line.rstrip() for line in short.rstrip().split("\n"))


def main(arguments: list[str]) -> None:
    stale = []
    for namespace in sorted({path.stem for path in FOLDER.glob("*.md")} | {*arguments} - {"--check"}):
        path, text = FOLDER / f"{namespace}.md", page(namespace)
        if not path.exists() or path.read_text() != text:
            stale.append(path.name)
            if arguments != ["--check"]:
                path.write_text(text)
    if stale and arguments == ["--check"]:
        sys.exit(f"{', '.join(stale)} in {FOLDER} are out of date. Next: python docs/pages.py")


if __name__ == "__main__":
    main(sys.argv[1:])
