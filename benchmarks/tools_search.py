"""Search over 100,000 passages, from client to server and back over loopback: our client and gem-llm's.

    python benchmarks/tools_search.py [--quick] [--json out.json]

Both clients use our server, because gem-llm's needs a GPU or Java. No query is repeated, so caches do not help.
Passages have 100 words, with frequencies as uneven as in natural language; a query is six words of a passage.
"""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import os
import random
import re
import statistics
import string
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from report import Line, report

from gem_core.tools import Toolbox, ToolSession
from gem_core.tools._calls import find_call
from gem_search.tool import SearchTool

PASSAGES, WORDS = 100_000, 50_000
CALLERS = 16
Search = Callable[[str], object]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the passages and short runs")
    parser.add_argument("--json", type=Path, help="file for the figures")
    options = parser.parse_args()
    report({"search over 100,000 passages": lambda: measure(options.quick)}, options.json)


def measure(quick: bool) -> list[Line]:
    """Latencies of one caller and of many, their rate, and the server's memory."""
    from gem.tools.search_tool import SearchTool as UpstreamTool

    logging.getLogger("httpx2").setLevel(logging.WARNING)  # gem-llm turns all logs on

    blocks, size = (2, 50) if quick else (4, 200)
    with tempfile.TemporaryDirectory() as folder:
        queries = _corpus(Path(folder) / "corpus.jsonl", PASSAGES // 10 if quick else PASSAGES)
        with _server(Path(folder)) as (url, process), _ours(url) as ours:
            theirs = UpstreamTool(search_url=url)
            clients: tuple[Search, Search] = (ours, lambda query: theirs.execute_action(f"<search>{query}</search>"))
            for client in clients:
                client(next(queries))
            one = [[_latencies(client, queries, 1, size) for client in clients] for _ in range(blocks)]
            many = [[_latencies(client, queries, CALLERS, 4 * size) for client in clients] for _ in range(blocks)]
            memory = _megabytes(process.pid)
    return [
        *_lines("one caller", one),
        *_lines(f"{CALLERS} callers", many),
        Line("the server's memory, index on the disk, MB", memory),
    ]


def _lines(who: str, blocks: list[list[tuple[list[float], float]]]) -> Iterator[Line]:
    for name, figure in (("p50", statistics.median), ("p95", _p95)):
        pairs = [[1000 * figure(latencies) for latencies, _ in block] for block in blocks]
        ours, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
        ratio = statistics.median(their / my for my, their in pairs)
        yield Line(f"{who}, {name}, ms", ours, theirs, ratio)
    rates = [[len(latencies) / seconds for latencies, seconds in block] for block in blocks]
    ours, theirs = (statistics.median(side) for side in zip(*rates, strict=True))
    yield Line(f"{who}, queries per second", ours, theirs, statistics.median(my / their for my, their in rates))


def _latencies(search: Search, queries: Iterator[str], callers: int, count: int) -> tuple[list[float], float]:
    """Seconds of each query, and of all."""
    asked = [*itertools.islice(queries, count)]

    def timed(query: str) -> float:
        begin = time.perf_counter()
        search(query)
        return time.perf_counter() - begin

    begin = time.perf_counter()
    with ThreadPoolExecutor(callers) as pool:
        latencies = [*pool.map(timed, asked)]
    return latencies, time.perf_counter() - begin


def _p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


@contextmanager
def _ours(url: str) -> Iterator[Search]:
    """Our tool, called as `ToolEnv` calls it."""
    session = ToolSession(Toolbox([SearchTool(url, cache=0, timeout=60)]))
    session.begin()

    def search(query: str) -> None:
        call = find_call(f"<search>{query}</search>", session.functions, "text")
        assert call is not None
        result = session.call(call)
        assert not result.error, result

    try:
        yield search
    finally:
        session.close()


@contextmanager
def _server(folder: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    # Built by another process, so that the memory for building is not counted as the server's.
    index = ["--corpus", str(folder / "corpus.jsonl"), "--index", str(folder / "index")]
    subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from pathlib import Path; from gem_search._index import open_index;"
            "from gem_search._bm25 import Bm25; open_index(Path(sys.argv[2]), Bm25(), Path(sys.argv[4]))",
            *index,
        ],
        check=True,
    )
    program = [sys.executable, "-c", "from gem_core.cli import main; main()", "search-server", "--port", "0", *index]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, env={**os.environ, "NO_COLOR": "1"}) as process:
        try:
            assert process.stdout is not None
            line = next(line for line in process.stdout if line.startswith("export"))
            yield line.strip().partition("=")[2], process
        finally:
            process.terminate()


def _corpus(path: Path, passages: int) -> Iterator[str]:
    """Write a corpus. Returns an endless iterator of queries."""
    rng = random.Random(0)
    words = ["".join(rng.choices(string.ascii_lowercase, k=rng.randint(3, 9))) for _ in range(WORDS)]
    weights = [*itertools.accumulate(1 / (rank + 10) for rank in range(WORDS))]
    with path.open("w") as file:
        for _ in range(passages):
            text = rng.choices(words, cum_weights=weights, k=100)
            file.write(json.dumps({"contents": f"{' '.join(text[:4])}\n{' '.join(text[4:])}"}) + "\n")
    return (" ".join(rng.choices(words, cum_weights=weights, k=6)) for _ in itertools.count())


def _megabytes(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    resident, of_files = (int(re.search(rf"{name}:\s+(\d+)", status)[1]) for name in ("VmRSS", "RssFile"))  # pyright: ignore[reportOptionalSubscript]
    return (resident - of_files) / 1024


if __name__ == "__main__":
    main()
