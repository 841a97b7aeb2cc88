"""The viewer's page: its size, how long it takes to open and to use, and the memory of its renderer.

Needs chromium and `pip install playwright psutil`. Writes a made-up run through the real recorder, exports it, and
opens the page in chromium without a network.

    python benchmarks/viewer.py --tokens 30
    python benchmarks/viewer.py --tokens 300 --split
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import CDPSession, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parent.parent / "plugins" / "viewer" / "tests"))

from made_up import Plan, Vocabulary, write_run

from gem_train.records import open_records
from gem_viewer._page import write_page

RARE = next(text.strip() for text in Vocabulary(20_000).texts[5000:] if len(text) > 7)
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]

# Runs before the page's scripts: when the first view is painted, and the longest task.
OBSERVERS = """
  window.longest = 0;
  new PerformanceObserver((list) => {
    for (const one of list.getEntries()) window.longest = Math.max(window.longest, one.duration);
  }).observe({ type: "longtask" });
  new MutationObserver((_, self) => {
    if (!document.documentElement.dataset.ready) return;
    self.disconnect();
    requestAnimationFrame(() => setTimeout(() => { window.firstView = performance.now(); }));
  }).observe(document, { attributes: true, subtree: true });
"""

OPEN = """async ([address, id, mode]) => {
  const head = () => document.querySelector(".episode-head h1 .faint")?.textContent;
  const body = () => document.querySelector(mode === "tokens" ? ".token-body" : ".chat");
  const begin = performance.now();
  location.hash = address;
  while (head() !== id || !body()) {
    if (performance.now() > begin + 20000) throw new Error("waited in vain");
    await new Promise((done) => setTimeout(done));
  }
  document.body.getBoundingClientRect();
  return performance.now() - begin;
}"""

TYPE = """async ([name, value]) => {
  const count = document.querySelector(".count");
  const field = document.querySelector(`.filters [name=${name}]`);
  const before = count.textContent;
  const begin = performance.now();
  field.value = value;
  field.dispatchEvent(new Event(name === "text" ? "change" : "input"));
  while (count.textContent === before || count.textContent.startsWith("Searching")) {
    if (performance.now() > begin + 20000) throw new Error("waited in vain");
    await new Promise((done) => setTimeout(done));
  }
  document.body.getBoundingClientRect();
  return [performance.now() - begin, count.textContent];
}"""

SCROLL = """async () => {
  const table = document.querySelector(".long-table");
  window.longest = 0;
  for (let at = 0; at < 100; at++) {
    table.scrollTop = (table.scrollHeight * ((at * 37) % 100)) / 100;
    await new Promise((done) => requestAnimationFrame(done));
  }
  return window.longest;
}"""


def main() -> None:
    """Write, export, open, measure, and print a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--tokens", type=int, default=30, help="sampled tokens of a turn")
    parser.add_argument("--seen", type=int, default=30, help="tokens of an observation")
    parser.add_argument("--split", action="store_true", help="episodes in a folder beside the page")
    parser.add_argument("--keep", type=Path, help="folder to keep the run and the page in")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        print(json.dumps(measured(folder, options)))


def measured(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """All figures; times in ms, sizes in MB of 10^6 bytes."""
    run, page = folder / "run", folder / "page.html"
    if not run.exists():
        size = 64
        plan = Plan(
            updates=-(-options.episodes // size),
            tasks=8,
            repeats=8,
            turns=(options.turns, options.turns),
            tokens=(options.tokens, options.tokens),
            seen=options.seen,
            vocabulary=Vocabulary(20_000),
            entropies=False,
        )
        write_run(run, plan)
    records = open_records(run)
    begin = time.process_time()
    written = write_page([records], page, split=options.split, done=lambda _: None)
    cpu = time.process_time() - begin
    sizes = {
        "records": sum(one.stat().st_size for one in run.rglob("*") if one.is_file()),
        "page": page.stat().st_size,
        "folder": sum(one.stat().st_size for path in written.paths[1:] for one in path.iterdir()),
    }
    figures = {name: round(size / 1e6, 1) for name, size in sizes.items()}
    episodes = [records.summaries[index].id for index in (5, len(records.summaries) - 7, len(records.summaries) // 2)]
    return {
        "episodes": len(records.summaries),
        **vars(options),
        "keep": None,
        **figures,
        "export_cpu_s": round(cpu, 1),
        **browsed(page, episodes),
    }


def browsed(page: Path, episodes: list[str]) -> dict[str, Any]:
    """The figures of the page in a browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        context = browser.new_context(offline=True, viewport={"width": 1300, "height": 900})
        tab = context.new_page()
        failures: list[str] = []
        tab.on("pageerror", lambda error: failures.append(str(error)))
        tab.add_init_script(OBSERVERS)
        tab.goto(page.resolve().as_uri(), wait_until="commit", timeout=120_000)
        first = until(tab, "window.firstView")
        parsed = until(tab, "document.readyState === 'complete' && performance.now()")
        figures: dict[str, Any] = {"first_view": round(first), "parsed": round(parsed)}
        chat = [opened(tab, one, "chat") for one in episodes]
        tab.keyboard.press("t")
        tab.wait_for_selector(".token-body")
        tokens = [opened(tab, one, "tokens") for one in episodes]
        figures |= {"episode": [round(one) for one in chat], "episode_tokens": [round(one) for one in tokens]}
        tab.evaluate("() => { location.hash = '#episodes'; }")
        tab.wait_for_selector(".long-table tbody tr:not(.space)")
        figures["longest_task_scrolling"] = round(tab.evaluate(SCROLL))
        figures["filter"] = round(tab.evaluate(TYPE, ["update", "3..40"])[0])
        collector = context.new_cdp_session(tab)
        figures["renderer_pss_busy"] = round(renderer_memory() / 1e6)
        figures["renderer_pss"] = settled(collector)
        figures["search"], found = tab.evaluate(TYPE, ["text", RARE])
        figures["renderer_pss_search"] = round(renderer_memory() / 1e6)
        figures["renderer_pss_after_search"] = settled(collector)
        browser.close()
    return {**figures, "search": round(figures["search"]), "found": found, "failures": failures}


def until(tab: Page, expression: str) -> float:
    """The value of an expression once it is true. Not `wait_for_function`, which the page's policy forbids."""
    while not (value := tab.evaluate(expression)):
        time.sleep(0.02)
    return value


def opened(tab: Page, episode: str, mode: str) -> float:
    """Milliseconds until an episode is shown."""
    return tab.evaluate(OPEN, [f"#episode/run/{episode}", episode, mode])


def settled(session: CDPSession) -> int:
    """MB of the renderer after a garbage collection. The browser does one itself, some 20 s after the last action."""
    session.send("HeapProfiler.collectGarbage")
    time.sleep(1)  # it gives pages back to the system afterwards
    return round(renderer_memory() / 1e6)


def renderer_memory() -> int:
    """Proportional set size of the largest renderer, in bytes."""
    children = psutil.Process().children(recursive=True)
    return max(one.memory_full_info().pss for one in children if "--type=renderer" in one.cmdline())


if __name__ == "__main__":
    main()
