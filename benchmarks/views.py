"""Cost of an attention page in a real browser, compared with BertViz on the same attention.

python benchmarks/views.py                          # 6x12 heads at 16 to 512 tokens, 12x12 at 512
python benchmarks/views.py --tokens 16 64           # a quick look
python benchmarks/views.py --marks report.html      # instead: a report and a page of 505 tokens x 144 heads beside
                                                    # their marks, by wall-clock and processor time
python benchmarks/views.py --bertviz NODE_MODULES   # also BertViz, if installed; its d3, jquery and requirejs
                                                    # are read from NODE_MODULES instead of the network
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from playwright.sync_api import Browser, CDPSession, Page, Route

ROOT = Path(__file__).parents[1]
MODEL = ROOT.parent / "shared" / "models" / "gte-small"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
TIMEOUT_MS = 120_000
TARGETS = {(6, 512): (12.0, 1.5), (12, 512): (15.0, 2.0)}
NEXT_FRAME = "new Promise(done => requestAnimationFrame(() => setTimeout(() => done(performance.now()), 0)))"
LIBRARIES = {
    "require.min.js": "requirejs/require.js",
    "d3.min.js": "d3/dist/d3.min.js",
    "jquery.min.js": "jquery/dist/jquery.min.js",
}
REPETITIONS = 5

Attention = NDArray[np.float32]


@dataclass(frozen=True)
class Tool:
    """How to write a page, when it is painted, and scripts that hover over a token or switch the layer."""

    name: str
    write: Callable[[Attention, list[str], str, Path], None]
    painted: str
    hover: str
    layer: str


VIEW_ROOT = "document.querySelector('[data-bertology-view]').shadowRoot"
HOVER = f"""async time => {{
  const root = {VIEW_ROOT}, start = performance.now();
  root.querySelectorAll('ol.from button')[5 + time].dispatchEvent(new MouseEvent('mouseover', {{ bubbles: true }}));
  const selected = `ol.from [data-position="${{5 + time}}"].selected`;
  while (!root.querySelector(selected)) await new Promise(done => setTimeout(done, 0));
  return await {NEXT_FRAME} - start;
}}"""
LAYER = f"""async time => {{
  const root = {VIEW_ROOT}, views = root.querySelector('.views'), before = views.dataset.shown;
  const start = performance.now();
  root.querySelector(`[aria-label="${{time % 2 ? 'Previous' : 'Next'}} layer"]`).click();
  while (views.dataset.shown === before) await new Promise(done => setTimeout(done, 0));
  return await {NEXT_FRAME} - start;
}}"""
BERTVIZ_HOVER = f"""async time => {{
  const start = performance.now();
  const token = document.querySelectorAll('svg text')[5 + time].parentNode;
  token.dispatchEvent(new MouseEvent('mouseover', {{ bubbles: true }}));
  return await {NEXT_FRAME} - start;
}}"""
BERTVIZ_LAYER = f"""async time => {{
  const start = performance.now(), select = document.querySelector('#layer');
  select.value = String(1 - time % 2);
  select.dispatchEvent(new Event('change', {{ bubbles: true }}));
  return await {NEXT_FRAME} - start;
}}"""


def write_bertology(attention: Attention, tokens: list[str], view: str, path: Path) -> None:
    from bertology import head_view, model_view

    page = head_view(list(attention), tokens, layer=0) if view == "head" else model_view(list(attention), tokens)
    page.save(path)


def write_bertviz(attention: Attention, tokens: list[str], view: str, path: Path) -> None:
    import torch
    from bertviz import head_view, model_view  # pyright: ignore[reportMissingImports]

    draw: Any = head_view if view == "head" else model_view
    page = draw([torch.from_numpy(layer[None]) for layer in attention], tokens, html_action="return").data
    path.write_text(f"<!doctype html><meta charset=utf-8>{page}", "utf-8")


BERTOLOGY = Tool("bertology", write_bertology, ".views:not([data-ready=''])", HOVER, LAYER)
BERTVIZ = Tool("BertViz", write_bertviz, "svg text", BERTVIZ_HOVER, BERTVIZ_LAYER)


@dataclass(frozen=True)
class PageCost:
    """The cost of one page; `hover` and `layer` are wall-clock and processor time in milliseconds."""

    megabytes: float
    paint: tuple[float, float]  # wall-clock and processor time of all renderers, in seconds
    hover: tuple[float, float]
    layer: tuple[float, float]
    peak_megabytes: float


def measure_page(
    browser: Browser, tool: Tool, attention: Attention, tokens: list[str], view: str, libraries: Path | None
) -> PageCost:
    """Measure one page; values are NaN if it was not painted in time."""
    from playwright.sync_api import Error

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "page.html"
        tool.write(attention, tokens, view, path)
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        page = context.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        page.route("http*://**/*", lambda route: _from_npm(route, libraries))
        session = browser.new_browser_cdp_session()
        before = _processor_seconds(session)
        size = path.stat().st_size / 1e6
        unknown = (float("nan"), float("nan"))
        try:
            page.goto(path.as_uri(), wait_until="commit")
            page.wait_for_selector(tool.painted)
            painted = float(page.evaluate(f"() => {NEXT_FRAME}")) / 1e3  # since the page was asked for
        except Error:  # too slow, or the renderer crashed
            return PageCost(size, unknown, unknown, unknown, _peak(session))
        paint = painted, _processor_seconds(session) - before
        hover = _latency(session, page, tool.hover) if view == "head" else unknown
        layer = _latency(session, page, tool.layer) if view == "head" else unknown
        cost = PageCost(size, paint, hover, layer, _peak(session))
        context.close()
    return cost


def _from_npm(route: Route, libraries: Path | None) -> None:
    name = route.request.url.rsplit("/", 1)[-1]
    if libraries is None or name not in LIBRARIES:
        route.abort()
    else:
        route.fulfill(path=libraries / LIBRARIES[name], content_type="text/javascript")


def _latency(session: CDPSession, page: Page, program: str) -> tuple[float, float]:
    """Milliseconds from the event to the next frame: median wall-clock time and mean processor time."""
    before = _processor_seconds(session)
    times = [float(page.evaluate(program, time)) for time in range(REPETITIONS)]
    return statistics.median(times), 1e3 * (_processor_seconds(session) - before) / REPETITIONS


def _renderers(session: CDPSession) -> Sequence[Any]:
    return [
        process for process in session.send("SystemInfo.getProcessInfo")["processInfo"] if process["type"] == "renderer"
    ]


def _processor_seconds(session: CDPSession) -> float:
    """Processor time of all renderers: a new page may get a new one."""
    return sum(process["cpuTime"] for process in _renderers(session))


def _peak(session: CDPSession) -> float:
    """Peak memory of a renderer in megabytes; NaN if not on Linux."""
    peaks = [float("nan")]
    for process in _renderers(session):
        status = Path(f"/proc/{process['id']}/status")
        lines = status.read_text().splitlines() if status.exists() else []
        peaks += [int(line.split()[1]) / 1e3 for line in lines if line.startswith("VmHWM")]
    return max(peaks[1:], default=peaks[0])


@dataclass(frozen=True)
class Mark:
    """What a page must reach: at most `limit`, in wall-clock time, or in processor time if the machine is busy."""

    name: str
    limit: float
    unit: str


LOAD, SCROLL = Mark("report: load", 1.0, "s"), Mark("report: longest task while scrolling", 100, "ms")
SIZE = Mark("505 tokens x 144 heads: size", 15, "MB")
FIRST, NEXT = Mark("  first picture", 2.0, "s"), Mark("  next layer", 150, "ms")
HOVERED = Mark("  hover", 50, "ms")
LONG_TOKENS, LONG_LAYERS = 505, 12
TASK = "RunTask"
"""The event of one task of a thread in a trace of Chromium."""
SCROLL_THROUGH = """async () => {
  for (let y = 0; y < document.documentElement.scrollHeight; y += 400) {
    scrollTo(0, y);
    await new Promise(done => setTimeout(done, 50));
  }
  await new Promise(done => setTimeout(done, 300));
}"""


def measure_report(browser: Browser, path: Path) -> dict[Mark, tuple[float, float]]:
    """The load of a report, and the longest task while it is scrolled, in wall-clock and processor time."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.set_default_timeout(TIMEOUT_MS)
    session = browser.new_browser_cdp_session()
    before = _processor_seconds(session)
    page.goto(path.absolute().as_uri())
    load = float(page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")) / 1e3
    load_processor = _processor_seconds(session) - before
    page.evaluate(f"() => {NEXT_FRAME}")
    browser.start_tracing(page=page, categories=["toplevel"])
    page.evaluate(SCROLL_THROUGH)
    tasks = _main_thread_tasks(json.loads(browser.stop_tracing()))
    page.close()
    longest = max(tasks, key=lambda task: task[1], default=(0.0, 0.0))
    return {LOAD: (load, load_processor), SCROLL: (max((wall for wall, _ in tasks), default=0.0), longest[1])}


def _main_thread_tasks(trace: dict[str, Any]) -> list[tuple[float, float]]:
    """Wall-clock and processor time in milliseconds of each task of the renderer's main thread."""
    events: list[dict[str, Any]] = trace["traceEvents"]
    threads = {
        (event["pid"], event["tid"])
        for event in events
        if event.get("name") == "thread_name" and event["args"].get("name") == "CrRendererMain"
    }
    return [
        (event["dur"] / 1e3, event.get("tdur", event["dur"]) / 1e3)
        for event in events
        if event.get("ph") == "X" and TASK in event.get("name", "") and (event["pid"], event["tid"]) in threads
    ]


def print_marks(report: Path, chromium: str) -> None:
    """Every mark with its limit, the wall-clock time, the processor time, and whether it is reached."""
    from playwright.sync_api import sync_playwright

    n_cores, load = os.cpu_count() or 1, os.getloadavg()[0]
    is_busy = load > 0.5 * n_cores
    if is_busy:
        print(f"The machine is busy (load {load:.1f} on {n_cores} cores): wall-clock times are too long.")
        print("Judge by processor time.")
    print(f"{'':<40}{'at most':>10}{'wall':>9}{'processor':>11}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        measured = measure_report(browser, report)
        browser.close()
        attention, tokens = load_attention(LONG_TOKENS, LONG_LAYERS)
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        cost = measure_page(browser, BERTOLOGY, attention, tokens, "head", None)
        browser.close()
    sizes = (cost.megabytes, cost.megabytes)
    measured |= {SIZE: sizes, FIRST: cost.paint, NEXT: cost.layer, HOVERED: cost.hover}
    for mark, (wall, processor) in measured.items():
        limit = f"{mark.limit:g} {mark.unit}"
        print(f"{mark.name:<40}{limit:>10}{wall:>9.2f}{processor:>11.2f}  {_reached(mark, wall, processor)}")
    print(f"(the report has {report.stat().st_size / 1e6:.2f} MB; load and picture: processor time of all threads)")


def _reached(mark: Mark, wall: float, processor: float) -> str:
    if wall <= mark.limit:
        return "reached"
    return "reached by processor time only" if processor <= mark.limit else "missed"


def load_attention(n_tokens: int, layers: int) -> tuple[Attention, list[str]]:
    """Attention of gte-small if it is present, otherwise random rows of similar entropy."""
    if MODEL.is_dir():
        import bertology
        from bertology.recording.plan import RecordingConfig

        encoder = bertology.load(str(MODEL))
        text = " ".join(path.read_text("utf-8") for path in sorted((ROOT / "docs").glob("*.md")))
        config = RecordingConfig(overflow="truncate", max_length=n_tokens)
        recording = bertology.record(encoder, bertology.corpus([text]), ["attention"], config=config)
        attention = np.asarray(recording["attention"][0][:layers], np.float32)
        return attention, list(recording.inputs[0].tokens.tokens)
    print("no encoder in ../shared/models: random attention is used", file=sys.stderr)
    rows = np.random.default_rng(0).dirichlet(np.full(n_tokens, 0.05), size=(layers, 12, n_tokens))
    return rows.astype(np.float32), [f"token{i}" for i in range(n_tokens)]


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, nargs="+", default=[16, 64, 128, 256, 512], help="tokens per page")
    parser.add_argument("--bertviz", type=Path, metavar="NODE_MODULES", help="compare with BertViz")
    parser.add_argument(
        "--bertviz-max-tokens", type=int, default=128, help="maximum tokens for BertViz; 256 take minutes"
    )
    parser.add_argument(
        "--marks", type=Path, metavar="REPORT", help="measure this report and a long page by their marks"
    )
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        print("no Chromium found, nothing measured")
        return
    if options.marks is not None:
        print_marks(options.marks, chromium)
        return
    sizes = [(6, n_tokens) for n_tokens in options.tokens] + ([(12, 512)] if 512 in options.tokens else [])
    print("hover and layer: milliseconds, wall-clock / processor time")
    print(
        f"{'':<11}{'heads':>6}{'tokens':>7}{'view':>7}{'MB':>8}{'paint s':>9}{'hover':>16}{'layer':>16}{'peak MB':>9}"
    )
    with sync_playwright() as playwright:
        for layers, n_tokens in sizes:
            attention, tokens = load_attention(n_tokens, layers)
            tools = [BERTOLOGY] + ([BERTVIZ] if options.bertviz and n_tokens <= options.bertviz_max_tokens else [])
            for tool in tools:
                for view in ("head", "model"):
                    browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
                    cost = measure_page(browser, tool, attention, tokens, view, options.bertviz)
                    browser.close()
                    _print_row(tool, layers, n_tokens, view, cost)


def _print_row(tool: Tool, layers: int, n_tokens: int, view: str, cost: PageCost) -> None:
    latencies = [
        f"{wall:.0f} / {processor:.0f}" if view == "head" else "" for wall, processor in (cost.hover, cost.layer)
    ]
    max_megabytes, max_seconds = TARGETS.get((layers, n_tokens), (None, None))
    targets = (
        ("size", cost.megabytes, max_megabytes),
        ("paint", cost.paint[1], max_seconds),
        ("hover", cost.hover[0], 50.0),
        ("layer", cost.layer[0], 150.0),
    )
    missed = [name for name, value, target in targets if tool is BERTOLOGY and target is not None and value > target]
    note = f"  over target: {', '.join(missed)}" if missed else ""
    note += f"  not painted within {TIMEOUT_MS // 1000} s" if np.isnan(cost.paint[1]) else ""
    page = f"{tool.name:<11}{f'{layers}x12':>6}{n_tokens:>7}{view:>7}"
    numbers = f"{cost.megabytes:>8.2f}{cost.paint[1]:>9.2f}{latencies[0]:>16}{latencies[1]:>16}"
    print(f"{page}{numbers}{cost.peak_megabytes:>9.0f}{note}", flush=True)


if __name__ == "__main__":
    main()
