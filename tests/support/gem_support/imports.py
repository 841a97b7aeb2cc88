"""The imports of packages, read from their sources: nothing is imported, and nothing needs to be installed.

Imports inside functions and for type checking count, and so do names in strings that code loads later:
`importlib.import_module("yaml")` and entry points such as `"package.module:Name"`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ENTRY_POINT = re.compile(r"[A-Za-z_]\w*(\.\w+)+(:\w+)?|[A-Za-z_]\w*:\w+")
"""A string that may name code; whether it does is a question of its first word."""
Graph = Mapping[str, set[str]]
"""Modules, and those that each imports."""


@dataclass(frozen=True)
class Import:
    """One import of a module.

    Attributes:
        importer: the module that imports.
        name: what it imports: `numpy.typing.NDArray` for `from numpy.typing import NDArray`.
        file, line: where.
        at_once: whether importing the module imports it, too: not in a function, and not for type checking alone.
        is_text: whether only a string names it.
    """

    importer: str
    name: str
    file: Path
    line: int
    at_once: bool = True
    is_text: bool = False

    @property
    def package(self) -> str:
        """The top-level package."""
        return self.name.partition(".")[0]


def modules_of(package: Path, skip: Callable[[Path], bool] = lambda _: False) -> dict[str, Path]:
    """The modules of a package by their full name."""
    found: dict[str, Path] = {}
    for file in sorted(package.rglob("*.py")):
        if not skip(file):
            parts = file.relative_to(package.parent).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imports_of(module: str, file: Path) -> Iterator[Import]:
    """The imports of a module, in no particular order."""
    within = module if file.name == "__init__.py" else module.rpartition(".")[0]
    pending: list[tuple[ast.AST, bool]] = [(ast.parse(file.read_text(), str(file)), True)]
    while pending:
        node, at_once = pending.pop()
        line = getattr(node, "lineno", 0)
        yield from (Import(module, name, file, line, at_once) for name in _imported(node, within))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and ENTRY_POINT.fullmatch(node.value):
            yield Import(module, node.value.replace(":", "."), file, line, at_once=False, is_text=True)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            at_once = False
        typed = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        later = node.body if typed and isinstance(node, ast.If) else []
        pending += [(child, at_once and child not in later) for child in ast.iter_child_nodes(node)]


def _imported(node: ast.AST, within: str) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (one.name for one in node.names)
    elif isinstance(node, ast.ImportFrom):
        above = within.split(".")[: len(within.split(".")) - node.level + 1] if node.level else []
        start = ".".join([*above, *([node.module] if node.module else [])])
        yield from (f"{start}.{one.name}" for one in node.names)
    elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "import_module":
        given = [*ast.walk(node.args[0])] if node.args else []
        if not any(isinstance(one, ast.JoinedStr) for one in given):
            yield from (one.value for one in given if isinstance(one, ast.Constant) and isinstance(one.value, str))


def graph_of(packages: Iterable[Path], skip: Callable[[Path], bool] = lambda _: False) -> dict[str, set[str]]:
    """Who imports whom among the modules of some packages; what only a string names is left out."""
    modules = {name: file for package in packages for name, file in modules_of(package, skip).items()}
    graph: dict[str, set[str]] = {name: set() for name in modules}
    for name, file in modules.items():
        found = {_module(one.name, modules) for one in imports_of(name, file) if not one.is_text}
        graph[name] = {one for one in found if one} - {name}
    return graph


def _module(name: str, modules: Mapping[str, Path]) -> str:
    """The module in a name: `a.b` for `a.b.Class`; empty for one that is not known."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name


def chain(graph: Graph, start: str, end: str) -> list[str]:
    """The shortest way from one module to another; empty if there is none."""
    ways: dict[str, list[str]] = {start: [start]}
    waiting = [start]
    for one in waiting:
        for other in sorted(graph.get(one, ())):
            if other == end:
                return [*ways[one], end]
            if other not in ways:
                ways[other] = [*ways[one], other]
                waiting.append(other)
    return []


def circles(graph: Graph) -> list[str]:
    """For each import that closes a circle, the shortest one."""
    ways = (chain(graph, imported, module) for module in sorted(graph) for imported in sorted(graph[module]))
    return [" -> ".join((way[-1], *way)) for way in ways if way]


def against_layers(package: Path, layers: Sequence[str]) -> list[str]:
    """Imports in a package that do not lead down, and parts that no layer names.

    Args:
        package: its folder.
        layers: from the top down. In a layer, `|` keeps parts apart, and `:` lets them import each other. The layer
            `*` has all parts that no other layer names; they may import each other.
    """
    rows = {part: row for row, layer in enumerate(layers) for part in re.split(r"\W+", layer)}
    together = {row for row, layer in enumerate(layers) if ":" in layer or layer == "*"}
    graph = graph_of([package])
    parts = {module: module.split(".")[1] for module in graph if "." in module}
    unnamed = {*parts.values()} - {*rows}
    if "*" in layers:
        rows |= dict.fromkeys(unnamed, layers.index("*"))
        unnamed = set()
    wrong = [f"{part} is in no layer" for part in sorted(unnamed)]
    for module, imported in sorted(graph.items()):
        for other in sorted(imported):
            mine, theirs = parts.get(module), parts.get(other)
            if mine != theirs and mine in rows and theirs in rows:
                is_down = rows[mine] < rows[theirs] or (rows[mine] == rows[theirs] and rows[mine] in together)
                wrong += [] if is_down else [f"{module} -> {other}"]
    return wrong
