"""Cost of an attention page in a real browser, compared with BertViz on the same attention.

python benchmarks/views.py                          # 6x12 heads at 16 to 512 tokens, 12x12 at 512
python benchmarks/views.py --tokens 16 64           # a quick look
python benchmarks/views.py --bertviz NODE_MODULES   # BertViz too, where it is installed; its d3, jquery and requirejs
                                                    # are read from NODE_MODULES instead of the network
"""

from __future__ import annotations

import argparse
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
PATIENCE = 120_000
TARGETS = {(6, 512): (12.0, 1.5), (12, 512): (25.0, None)}
FRAME = "new Promise(done => requestAnimationFrame(() => setTimeout(() => done(performance.now()), 0)))"
LIBRARIES = {
    "require.min.js": "requirejs/require.js",
    "d3.min.js": "d3/dist/d3.min.js",
    "jquery.min.js": "jquery/dist/jquery.min.js",
}
TIMES = 5

Maps = NDArray[np.float32]


@dataclass(frozen=True)
class Tool:
    """Writes a page, and knows when it is painted and how to point at a token or switch the layer."""

    name: str
    write: Callable[[Maps, list[str], str, Path], None]
    painted: str
    hover: str
    layer: str


OURS_ROOT = "document.querySelector('[data-bertology-view]').shadowRoot"
HOVER = f"""async time => {{
  const root = {OURS_ROOT}, start = performance.now();
  root.querySelectorAll('ol.from button')[5 + time].dispatchEvent(new MouseEvent('mouseover', {{ bubbles: true }}));
  const mine = `ol.from [data-place="${{5 + time}}"].mine`;
  while (!root.querySelector(mine)) await new Promise(done => setTimeout(done, 0));
  return await {FRAME} - start;
}}"""
LAYER = f"""async time => {{
  const root = {OURS_ROOT}, views = root.querySelector('.views'), before = views.dataset.shown;
  const start = performance.now();
  root.querySelector(`[aria-label="${{time % 2 ? 'Previous' : 'Next'}} layer"]`).click();
  while (views.dataset.shown === before) await new Promise(done => setTimeout(done, 0));
  return await {FRAME} - start;
}}"""
BERTVIZ_HOVER = f"""async time => {{
  const start = performance.now();
  const token = document.querySelectorAll('svg text')[5 + time].parentNode;
  token.dispatchEvent(new MouseEvent('mouseover', {{ bubbles: true }}));
  return await {FRAME} - start;
}}"""
BERTVIZ_LAYER = f"""async time => {{
  const start = performance.now(), select = document.querySelector('#layer');
  select.value = String(1 - time % 2);
  select.dispatchEvent(new Event('change', {{ bubbles: true }}));
  return await {FRAME} - start;
}}"""


def ours(maps: Maps, tokens: list[str], view: str, path: Path) -> None:
    from bertology import head_view, model_view

    (head_view if view == "head" else model_view)(list(maps), tokens).save(path)


def bertviz(maps: Maps, tokens: list[str], view: str, path: Path) -> None:
    import torch
    from bertviz import head_view, model_view  # pyright: ignore[reportMissingImports]

    draw: Any = head_view if view == "head" else model_view
    page = draw([torch.from_numpy(layer[None]) for layer in maps], tokens, html_action="return").data
    path.write_text(f"<!doctype html><meta charset=utf-8>{page}", "utf-8")


OURS = Tool("bertology", ours, ".views:not([data-ready=''])", HOVER, LAYER)
BERTVIZ = Tool("BertViz", bertviz, "svg text", BERTVIZ_HOVER, BERTVIZ_LAYER)


@dataclass(frozen=True)
class Cost:
    """What one page costs; `hover` and `layer` are milliseconds, by the clock and of processor."""

    megabytes: float
    paint_seconds: float  # of processor, all renderers
    hover: tuple[float, float]
    layer: tuple[float, float]
    peak_megabytes: float


def measured(browser: Browser, tool: Tool, maps: Maps, tokens: list[str], view: str, libraries: Path | None) -> Cost:
    """NaN for what could not be measured because the page was not painted in time."""
    from playwright.sync_api import Error

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        tool.write(maps, tokens, view, path)
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.route("http*://**/*", lambda route: _from_npm(route, libraries))
        session = browser.new_browser_cdp_session()
        before = _seconds(session)
        size = path.stat().st_size / 1e6
        unknown = (float("nan"), float("nan"))
        try:
            page.goto(path.as_uri(), wait_until="commit")
            page.wait_for_selector(tool.painted)
            page.evaluate(f"() => {FRAME}")
        except Error:  # too slow, or the renderer gave up
            return Cost(size, float("nan"), unknown, unknown, _peak(session))
        paint = _seconds(session) - before
        hover = _latency(session, page, tool.hover) if view == "head" else unknown
        layer = _latency(session, page, tool.layer) if view == "head" else unknown
        cost = Cost(size, paint, hover, layer, _peak(session))
        context.close()
    return cost


def _from_npm(route: Route, libraries: Path | None) -> None:
    name = route.request.url.rsplit("/", 1)[-1]
    if libraries is None or name not in LIBRARIES:
        route.abort()
    else:
        route.fulfill(path=libraries / LIBRARIES[name], content_type="text/javascript")


def _latency(session: CDPSession, page: Page, program: str) -> tuple[float, float]:
    """Milliseconds from the event to the next frame: by the clock, the median; of processor, the mean."""
    before = _seconds(session)
    times = [float(page.evaluate(program, time)) for time in range(TIMES)]
    return statistics.median(times), 1e3 * (_seconds(session) - before) / TIMES


def _renderers(session: CDPSession) -> Sequence[Any]:
    return [one for one in session.send("SystemInfo.getProcessInfo")["processInfo"] if one["type"] == "renderer"]


def _seconds(session: CDPSession) -> float:
    """Of all renderers: a page that is opened may get a new one."""
    return sum(one["cpuTime"] for one in _renderers(session))


def _peak(session: CDPSession) -> float:
    """The most memory that a renderer has held, in megabytes; known on Linux."""
    peaks = [float("nan")]
    for one in _renderers(session):
        status = Path(f"/proc/{one['id']}/status")
        lines = status.read_text().splitlines() if status.exists() else []
        peaks += [int(line.split()[1]) / 1e3 for line in lines if line.startswith("VmHWM")]
    return max(peaks[1:], default=peaks[0])


def attention(n_tokens: int, layers: int) -> tuple[Maps, list[str]]:
    """Real attention of an encoder with 12 heads where it is there, else made rows of the same sharpness."""
    if MODEL.is_dir():
        import bertology
        from bertology.recording.plan import RecordingConfig

        encoder = bertology.load(str(MODEL))
        text = " ".join(path.read_text("utf-8") for path in sorted((ROOT / "docs").glob("*.md")))
        policy = RecordingConfig(overflow="truncate", max_length=n_tokens)
        recording = bertology.record(encoder, bertology.corpus_from_texts(text), ["attention"], config=policy)
        maps = np.asarray(recording["attention"][0][:layers], np.float32)
        return maps, list(recording.inputs[0].tokens.tokens)
    print("no encoder in ../shared/models: the attention is made", file=sys.stderr)
    rows = np.random.default_rng(0).dirichlet(np.full(n_tokens, 0.05), size=(layers, 12, n_tokens))
    return rows.astype(np.float32), [f"piece{i}" for i in range(n_tokens)]


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, nargs="+", default=[16, 64, 128, 256, 512])
    parser.add_argument("--bertviz", type=Path, metavar="NODE_MODULES")
    parser.add_argument("--bertviz-up-to", type=int, default=128, help="tokens; 256 and more take minutes")
    given = parser.parse_args()
    program = next((found for name in ("chromium", "google-chrome") if (found := shutil.which(name))), None)
    if program is None:
        print("no Chromium on this machine: nothing measured")
        return
    sizes = [(6, n_tokens) for n_tokens in given.n_tokens] + ([(12, 512)] if 512 in given.n_tokens else [])
    print("hover and layer: milliseconds by the clock / of processor")
    print(
        f"{'':<11}{'heads':>6}{'n_tokens':>7}{'view':>7}{'MB':>8}{'paint s':>9}{'hover':>16}{'layer':>16}{'peak MB':>9}"
    )
    with sync_playwright() as playwright:
        for layers, n_tokens in sizes:
            maps, tokens = attention(n_tokens, layers)
            tools = [OURS] + ([BERTVIZ] if given.bertviz and n_tokens <= given.bertviz_up_to else [])
            for tool in tools:
                for view in ("head", "model"):
                    browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
                    cost = measured(browser, tool, maps, tokens, view, given.bertviz)
                    browser.close()
                    _print(tool, layers, n_tokens, view, cost)


def _print(tool: Tool, layers: int, n_tokens: int, view: str, cost: Cost) -> None:
    latencies = [
        f"{clock:.0f} / {processor:.0f}" if view == "head" else "" for clock, processor in (cost.hover, cost.layer)
    ]
    size, seconds = TARGETS.get((layers, n_tokens), (None, None))
    marks = (
        ("size", cost.megabytes, size),
        ("paint", cost.paint_seconds, seconds),
        ("hover", cost.hover[0], 50.0),
        ("layer", cost.layer[0], 150.0),
    )
    missed = [what for what, value, mark in marks if tool is OURS and mark is not None and value > mark]
    told = f"  over its target: {', '.join(missed)}" if missed else ""
    told += f"  not painted within {PATIENCE // 1000} s" if np.isnan(cost.paint_seconds) else ""
    place = f"{tool.name:<11}{f'{layers}x12':>6}{n_tokens:>7}{view:>7}"
    numbers = f"{cost.megabytes:>8.2f}{cost.paint_seconds:>9.2f}{latencies[0]:>16}{latencies[1]:>16}"
    print(f"{place}{numbers}{cost.peak_megabytes:>9.0f}{told}", flush=True)


if __name__ == "__main__":
    main()
