"""``python -m bench.ui.run``: the timed budgets of the web UI, medians of five, beside what they may be.

Needs a calm machine. The server runs on SQLite in a process of its own; pages are loaded over the loopback.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from bench.ui import page as pages
from tests.ui import browser as browsers
from tests.ui.served import Served

PROGRAM = Path(__file__).with_name("program.py")
TIMES = 5
RUNS = 10_000
ROWS_KEPT = 2_000
"""How many of them the list keeps: its end is reached then."""
ROW_PIXELS_LEAST = 30
STEPS = 50_000
"""Each makes two events."""
LIVE_SECONDS = 60
HEIGHT = "document.querySelector('.runs-scroll').scrollHeight"
WIDE = {"width": 1280, "height": 800}
BARS = {
    "Runs, cold: first paint": (400, "ms"),
    "Runs, cold: rows": (800, "ms"),
    "Runs, again: rows": (300, "ms"),
    "10,000 runs, scrolled: p95 of a frame": (33, "ms"),
    "10,000 runs, scrolled: heap": (60, "MB"),
    "2,000 nodes: first time": (3_000, "ms"),
    "2,000 nodes: known layout": (1_000, "ms"),
    "2,000 nodes: pan and zoom, p95 of a frame": (33, "ms"),
    "100,000 events: useful": (1_500, "ms"),
    "100,000 events: slider to picture, p95": (150, "ms"),
    "100,000 events: jump in the log": (200, "ms"),
    "live at 1,000 events/s: main thread busy": (50, "%"),
    "live at 1,000 events/s: heap gained": (50, "MB"),
    "weft ui to a visible run, cold": (2_500, "ms"),
}


def fill(folder: Path) -> None:
    """Write the runs that are looked at, in a process of its own."""
    store = f"sqlite:///{folder / 'ui.db'}"
    code = f"import asyncio, bench.ui.run as r; asyncio.run(r.write_runs({RUNS}, {STEPS}))"
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "WEFT_URL": store}, check=True)


async def write_runs(runs: int, steps: int) -> None:
    """Make many small runs, a long one, and one of the graph."""
    from bench.ui.program import app  # it opens the store that the environment names

    async with app:
        for start in range(0, runs, 500):
            handles = [await app.start("quick", {"n": n}, id=f"quick-{n}") for n in range(start, start + 500)]
            await asyncio.gather(*(handle.result() for handle in handles))
        await (await app.start("busy", {"steps": steps}, id="long")).result()
        await (await app.start("wide", {}, id="wide")).result()


class Bench:
    """One browser before one server."""

    def __init__(self, browser: Browser, served: Served) -> None:
        self._browser = browser
        self._served = served
        self.found: dict[str, float] = {}

    @contextmanager
    def page(self) -> Iterator[Page]:
        """Yield a page without anything in its cache."""
        with self._context() as context:
            yield context.new_page()

    @contextmanager
    def _context(self) -> Iterator[BrowserContext]:
        context = self._browser.new_context(base_url=self._served.url, viewport=WIDE, reduced_motion="reduce")  # type: ignore[arg-type]
        context.set_default_timeout(pages.WAIT_MS)
        yield context
        context.close()

    def runs(self) -> None:
        painted, cold, again = [], [], []
        for _ in range(TIMES):
            with self.page() as page:
                page.goto("/runs", wait_until="commit")
                cold.append(pages.until_seen(page, "table[aria-label=Runs] tbody tr a"))
                painted.append(float(page.evaluate(pages.FIRST_PAINT)))
                page.reload(wait_until="commit")
                again.append(pages.until_seen(page, "table[aria-label=Runs] tbody tr a"))
        self.found["Runs, cold: first paint"] = statistics.median(painted)
        self.found["Runs, cold: rows"] = statistics.median(cold)
        self.found["Runs, again: rows"] = statistics.median(again)

    def scrolling(self) -> None:
        with self.page() as page:
            session = page.context.new_cdp_session(page)
            page.goto("/runs")
            pages.until_seen(page, "table[aria-label=Runs] tbody tr a")
            took: list[float] = []
            while page.evaluate(HEIGHT) < ROWS_KEPT * ROW_PIXELS_LEAST and len(took) < 20_000:
                took += page.evaluate(pages.SCROLLED, [".runs-scroll", 100, 600])
            took += page.evaluate(pages.SCROLLED, [".runs-scroll", 200, -600])
            self.found["10,000 runs, scrolled: p95 of a frame"] = pages.p95(took)
            self.found["10,000 runs, scrolled: heap"] = pages.heap_mb(session)

    def graph(self) -> None:
        took = []
        for _ in range(TIMES + 1):
            with self.page() as page:
                page.goto("/runs/wide", wait_until="commit")
                took.append(pages.until_seen(page, ".react-flow__node, .outline [role=treeitem], .outline li"))
                if len(took) <= TIMES:
                    continue
                draw = page.get_by_role("button", name="Draw it anyway")
                if draw.count():
                    draw.click()
                pages.until_seen(page, ".react-flow__node")
                self.found["2,000 nodes: pan and zoom, p95 of a frame"] = pages.p95(self._pan(page))
        self.found["2,000 nodes: first time"] = took[0]
        self.found["2,000 nodes: known layout"] = statistics.median(took[1:])

    def _pan(self, page: Page) -> list[float]:
        box = page.locator(".react-flow").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        took: list[float] = []
        for way in (-200, 200, -200, 200, -200):
            page.mouse.wheel(0, way)
            page.mouse.down()
            page.mouse.move(box["x"] + 100, box["y"] + 100, steps=10)
            took += page.evaluate(pages.FRAMES, 20)
            page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=10)
            page.mouse.up()
        return took

    def long_run(self) -> None:
        useful, travelled, jumped = [], [], []
        seq = int(self._served.run("long")["seq"])
        for number in range(TIMES):
            with self.page() as page:
                page.goto("/runs/long?tab=log", wait_until="commit")
                pages.until_seen(page, ".react-flow__node, .outline li, .outline [role=treeitem]")
                useful.append(pages.until_seen(page, '[role=grid][aria-label=Log] [role="row"]'))
                if number == 0:
                    events = [seq * part // 25 for part in range(1, 25)]
                    travelled = page.evaluate(pages.TRAVELLED, events)
                    page.get_by_role("button", name="Back to now").click()
                    jumped = page.evaluate(pages.JUMPED, seq)
        self.found["100,000 events: useful"] = statistics.median(useful)
        self.found["100,000 events: slider to picture, p95"] = pages.p95(travelled)
        self.found["100,000 events: jump in the log"] = statistics.median(jumped)

    def live(self) -> None:
        with self.page() as page:
            session = page.context.new_cdp_session(page)
            session.send("Performance.enable")
            self._served.start("steady", "steady", seconds=LIVE_SECONDS + 30)
            page.goto("/runs/steady?tab=log")
            pages.until_seen(page, '[role=grid][aria-label=Log] [role="row"]')
            page.wait_for_timeout(3_000)
            before, (busy, since) = pages.heap_mb(session), pages.busy_seconds(session)
            first = int(self._served.run("steady")["seq"])
            page.wait_for_timeout(LIVE_SECONDS * 1000)
            busy_now, now = pages.busy_seconds(session)
            rate = (int(self._served.run("steady")["seq"]) - first) / (now - since)
            self.found["live at 1,000 events/s: main thread busy"] = 100 * (busy_now - busy) / (now - since)
            self.found["live at 1,000 events/s: heap gained"] = pages.heap_mb(session) - before
            print(f"the live run made {rate:,.0f} events per second", flush=True)

    def command(self, folder: Path) -> None:
        self._served.stop_server()  # else its address is shown
        took = [self._from_command(folder) for _ in range(TIMES)]
        self.found["weft ui to a visible run, cold"] = statistics.median(took)

    def _from_command(self, folder: Path) -> float:
        weft = str(Path(sys.executable).with_name("weft"))
        environment = {**os.environ, "WEFT_URL": f"sqlite:///{folder / 'ui.db'}"}
        with self._context() as context:
            page = context.new_page()
            began = time.perf_counter()
            asked = [weft, "ui", "quick-1", "--print"]
            process = subprocess.Popen(asked, env=environment, cwd=folder, stdout=subprocess.PIPE, text=True)
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    if found := re.search(r"http://\S+", line):
                        page.goto(found[0], wait_until="commit")
                        pages.until_seen(page, ".run-screen .react-flow__node, .run-screen .outline, .run-screen h1")
                        break
                return (time.perf_counter() - began) * 1000
            finally:
                process.terminate()
                process.wait()


def measure(folder: Path, only: str) -> dict[str, float]:
    """Measure, and return what was found."""
    found = browsers.find()
    served = Served(folder, program=PROGRAM, store=f"sqlite:///{folder / 'ui.db'}")
    served.start_server()
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=found.path, env={**os.environ, **found.environment}, args=list(browsers.ARGUMENTS)
            )
            bench = Bench(browser, served)
            parts: dict[str, Callable[[], None]] = {
                "runs": bench.runs,
                "scrolling": bench.scrolling,
                "graph": bench.graph,
                "long": bench.long_run,
                "live": bench.live,
                "command": lambda: bench.command(folder),
            }
            for name, part in parts.items():
                if not only or name == only:
                    part()
            browser.close()
        return bench.found
    finally:
        served.stop_server()


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m bench.ui.run", description=__doc__)
    parser.add_argument("--only", default="", help="one part: runs, scrolling, graph, long, live or command")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fill(folder)
        found = measure(folder, given.only)
    for what, value in found.items():
        bar, unit = BARS[what]
        print(f"{what:<45} {value:8,.0f} {unit:<3} goal {bar:,} {unit}{'' if value <= bar else '  missed'}")


if __name__ == "__main__":
    main()
