"""Our tools and those of gem-llm 0.1.0, in one run: the Python tool, search, MCP.

    python benchmarks/tools.py [--only python search mcp] [--quick] [--json out.json]

Run it in the environment of `nox -s parity`, on an otherwise idle machine. Times are until the result, in alternating
blocks of ours and upstream's, so that changes of the host's speed affect both. A ratio is the factor by which ours is
better. Upstream's Python tool runs programs without a sandbox; ours runs them in the sandbox that `gem-core doctor`
shows.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import tools_mcp
import tools_search
from gem.tools.python_code_tool import PythonCodeTool
from report import Line, report, with_ratio

from gem_core.tools import Toolbox, ToolSession
from gem_core.tools._calls import find_call
from gem_python.tool import PythonTool

TITLES = {"python": "the Python tool", "search": "search", "mcp": "MCP"}
PROGRAM = "<python>print(6 * 7)</python>"
CALLERS = 16
FLOOD_BYTES = 200_000_000


def main() -> None:
    options = _options()
    logging.disable(logging.INFO)  # importing gem turns INFO on for every library
    # Upstream runs `python` from the path; this puts the real interpreter there, not pyenv's script.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    report({TITLES[name]: partial(MEASURES[name], options.quick) for name in options.only}, options.json)


# -- Python --------------------------------------------------------------------------------------------------------


def python(quick: bool) -> list[Line]:
    """One caller, many callers, a program that does not end, a program that prints too much."""
    rounds = 2 if quick else 6
    with _Interpreter() as ours:
        upstream = PythonCodeTool(timeout=5)
        pairs = [(_latencies(ours, 50), _latencies(_upstream(upstream), 10)) for _ in range(rounds)]
        medians = [[statistics.median(block) for block in side] for side in zip(*pairs, strict=True)]
        p50 = _line("one call, p50, ms", *medians)
        p50.target, p50.met = "<= 5 ms", p50.ours <= 5
        p95 = _line("one call, p95, ms", [_p95(one) for one, _ in pairs], [_p95(other) for _, other in pairs])
        rates = [(_rate(ours, 400), _rate(_upstream(upstream), 60)) for _ in range(rounds)]
        many = Line(
            f"{CALLERS} callers, calls per second",
            statistics.median(one for one, _ in rates),
            statistics.median(other for _, other in rates),
            statistics.median(one / other for one, other in rates),
            target=">= 400",
        )
        many.met = many.ours >= 400
    return [p50, p95, many, *_preloaded(rounds), _overrun(), _flood()]


def _preloaded(rounds: int) -> list[Line]:
    with _Interpreter(preload=("numpy", "sympy")) as ours:
        program = "<python>import numpy, sympy\nprint(numpy.arange(3).sum(), sympy.sqrt(8))</python>"
        upstream = _upstream(PythonCodeTool(timeout=10))
        mine = [statistics.median(_latencies(ours, 20, program)) for _ in range(rounds)]
        theirs = [statistics.median(_latencies(upstream, 2, program)) for _ in range(rounds)]
    return [_line("numpy and sympy preloaded, p50, ms", mine, theirs)]


def _overrun() -> Line:
    """Seconds that an endless program takes beyond its limit of one second."""
    program = "<python>while True: pass</python>"
    with _Interpreter(timeout=1.0) as ours:
        ours("<python>print(1)</python>")
        mine = max(_seconds(ours, program) for _ in range(3)) - 1.0
    line = with_ratio(
        Line("beyond a limit of 1 s, s", mine, _seconds(_upstream(PythonCodeTool(timeout=1)), program) - 1.0)
    )
    line.target, line.met = "<= 0.2 s", mine <= 0.2
    return line


def _flood() -> Line:
    """Growth of the caller when a program prints 200 MB, each in a separate process, because memory is rarely freed."""
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as fresh:
        ours, upstream = (fresh.apply(_growth, (side,)) for side in ("ours", "upstream"))
    line = with_ratio(Line("the caller's growth at 200 MB of output, MB", ours, upstream))
    line.target, line.met = "< 20 MB", ours < 20
    return line


def _growth(side: str) -> float:
    """MB, at least one."""
    with _Interpreter(timeout=60.0) as ours:
        call = ours if side == "ours" else _upstream(PythonCodeTool(timeout=60))
        call("<python>print(1)</python>")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        call(f"<python>print('a' * {FLOOD_BYTES})</python>")
        return max(1.0, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)


class _Interpreter:
    """Our tool, called as `ToolEnv` calls it."""

    def __init__(self, *, timeout: float = 5.0, preload: Sequence[str] = ()) -> None:
        self._session = ToolSession(Toolbox([PythonTool(timeout=timeout, preload=preload)]))

    def __enter__(self) -> _Interpreter:
        self._session.begin()
        self("<python>print(1)</python>")
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def __call__(self, response: str) -> object:
        call = find_call(response, self._session.functions, "text")
        assert call is not None
        return self._session.call(call)


def _upstream(tool: PythonCodeTool) -> Callable[[str], object]:
    return tool.execute_action


def _latencies(call: Callable[[str], object], count: int, response: str = PROGRAM) -> list[float]:
    return [1000 * _seconds(call, response) for _ in range(count)]


def _seconds(call: Callable[[str], object], response: str) -> float:
    begin = time.perf_counter()
    call(response)
    return time.perf_counter() - begin


def _rate(call: Callable[[str], object], count: int) -> float:
    with ThreadPoolExecutor(CALLERS) as callers:
        begin = time.perf_counter()
        list(callers.map(call, [PROGRAM] * count))
        return count / (time.perf_counter() - begin)


def _p95(values: Sequence[float]) -> float:
    return sorted(values)[int(0.95 * len(values))]


def _line(measure: str, ours: Sequence[float], upstream: Sequence[float]) -> Line:
    line = Line(measure, statistics.median(ours), statistics.median(upstream))
    line.ratio = statistics.median(theirs / mine for mine, theirs in zip(ours, upstream, strict=True))
    return line


MEASURES: dict[str, Callable[[bool], list[Line]]] = {
    "python": python,
    "search": tools_search.measure,
    "mcp": tools_mcp.measure,
}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=[*MEASURES])
    parser.add_argument("--quick", action="store_true", help="fewer calls")
    parser.add_argument("--json", type=Path, help="where the figures are written")
    return parser.parse_args()


if __name__ == "__main__":
    main()
