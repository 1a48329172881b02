"""The report page's own drawings, which need no further package: a grid of heads, curves, as SVG.

Every mark carries its number as a tooltip; what could not be measured is a cross, and no line runs through it.

Colours are one hue at varying strength, so they read alike for colour-blind eyes, in print, in light and in dark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape

import numpy as np

from bertology.results.estimate import Estimate, Estimates, Floats
from bertology.results.shapes import Head

CELL = 16
WIDTH, HEIGHT = 420, 220
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 12, 34
GROWS = 30
"""Points that grow by such a factor are drawn along their logarithm."""
MOST_TICKS = 5
"""Steps of an axis from one round number to the next."""
LETTER, LINE = 6.0, 11
"""Width of a letter and height of a line of a label, about."""
LABEL = 24
"""Letters of a label beside a line; a longer one is cut, and its tooltip has it whole."""


def head_grid(name: str, estimates: Estimates, baselines: Mapping[str, Estimates]) -> str:
    """Layers down, heads across; the strongest cell is the highest value of this measure."""
    layers, heads = estimates.shape
    low, high = _extremes(estimates.value)
    spread = high - low or 1.0
    cells: list[str] = []
    for layer in range(layers):
        cells.append(_text(LEFT - 23, layer * CELL + 12, str(layer + 1), "end"))
        for head in range(heads):
            estimate: Estimate = estimates[layer, head]
            if np.isnan(estimate.value):
                cells.append(_gap(LEFT - 13 + head * CELL, layer * CELL + 12, f"head {Head(layer, head)}"))
                continue
            strength = 0.06 + 0.94 * (estimate.value - low) / spread
            beside = "".join(f"; {b}: {baseline[layer, head]}" for b, baseline in baselines.items())
            tip = f"head {Head(layer, head)}: {estimate}, n = {estimate.n}{beside}"
            cells.append(
                f'<rect x="{LEFT - 20 + head * CELL}" y="{layer * CELL}" width="{CELL - 1}" height="{CELL - 1}" '
                f'class="mark" fill-opacity="{strength:.3f}"><title>{escape(tip)}</title></rect>'
            )
    for head in range(heads):
        cells.append(_text(LEFT - 13 + head * CELL, layers * CELL + 12, str(head + 1), "middle"))
    cells.append(_text(LEFT - 20 + heads * CELL / 2, layers * CELL + 25, "head", "middle"))
    cells.append(_text(7, layers * CELL / 2, "layer", "middle", turned=True))
    width, height = LEFT + heads * CELL, layers * CELL + 30
    label = f"{name}: {layers} layers by {heads} heads, from {low:.3g} to {high:.3g}"
    return _svg(width, height, label, cells)


def layer_curve(name: str, estimates: Estimates, baselines: Mapping[str, Estimates], first: int) -> str:
    """The value by layer with its interval as a band; each baseline as a dashed line with its name at its end."""
    places = np.arange(estimates.shape[0], dtype=float)
    return _line(name, estimates, baselines, places, [str(place + first) for place in range(len(places))], "layer")


def curve(name: str, estimates: Estimates, baselines: Mapping[str, Estimates], points: Floats, along: str) -> str:
    """The value along a quantity; points that grow by a factor lie as far apart as their number, others evenly."""
    grows = len(points) > 2 and points.min() > 0 and points.max() / points.min() >= GROWS
    places = np.log(points) if grows else np.asarray(points, float)
    return _line(name, estimates, baselines, places, [f"{point:g}" for point in points], along)


def _line(
    name: str,
    estimates: Estimates,
    baselines: Mapping[str, Estimates],
    places: Floats,
    labels: Sequence[str],
    along: str,
) -> str:
    everything = [estimates, *baselines.values()]
    low, high = _extremes(np.concatenate([np.concatenate([e.low, e.high, e.value]) for e in everything]))
    low, high = (min(low, 0.0), high) if low > 0 and low < 0.3 * high else (low, high)
    spread = high - low or 1.0
    begin, length = float(places.min()), float(np.ptp(places)) or 1.0
    end = WIDTH - RIGHT - LETTER * max((min(LABEL, len(name)) for name in baselines), default=0)

    def x(index: int) -> float:
        return LEFT + (end - LEFT) * (places[index] - begin) / length

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - low) / spread

    marks: list[str] = []
    for tick in ticks(low, high):
        marks.append(f'<path d="M{LEFT} {y(tick):.1f}H{end:.1f}" class="rule"/>')
        marks.append(_text(LEFT - 6, y(tick) + 3.5, f"{tick:.6g}", "end"))
    marks += [
        _text(x(i), HEIGHT - BOTTOM + 16, labels[i], "middle")
        for i in _readable([x(i) for i in range(len(labels))], labels)
    ]
    for line in baselines.values():
        marks += _bands(line, x, y, "beside")
    for index, (baseline, line) in enumerate(baselines.items()):
        dashes = ("6 4", "2 3", "8 3 2 3")[index % 3]
        for run in _runs(line.value):
            points = " ".join(f"{x(i):.1f},{y(line.value[i]):.1f}" for i in run)
            marks.append(
                f'<polyline points="{points}" class="baseline" stroke-dasharray="{dashes}">'
                f"<title>{escape(baseline)}</title></polyline>"
            )
    marks += _bands(estimates, x, y, "band")
    for run in _runs(estimates.value):
        points = " ".join(f"{x(i):.1f},{y(estimates.value[i]):.1f}" for i in run)
        marks.append(f'<polyline points="{points}" class="curve"/>')
    for i, label in enumerate(labels):
        if np.isnan(estimates.value[i]):
            marks.append(_gap(x(i), HEIGHT - BOTTOM - 3, f"{along} {label}"))
            continue
        tip = escape(f"{along} {label}: {estimates[i]}, n = {estimates[i].n}")
        marks.append(
            f'<circle cx="{x(i):.1f}" cy="{y(estimates.value[i]):.1f}" r="4" class="mark"><title>{tip}</title></circle>'
        )
    ends = {
        name: (x(int(there[-1])), y(float(line.value[there[-1]])))
        for name, line in baselines.items()
        if len(there := np.flatnonzero(np.isfinite(line.value)))
    }
    marks += _labels(ends, end + 8)
    marks.append(_text((LEFT + end) / 2, HEIGHT - 2, along, "middle"))
    return _svg(WIDTH, HEIGHT, f"{name} by {along}", marks)


def _bands(line: Estimates, x: Callable[[int], float], y: Callable[[float], float], kind: str) -> Iterable[str]:
    """The interval of a line, where it has one."""
    for run in _runs(line.high - line.low):
        edges = [(i, line.low[i]) for i in run] + [(i, line.high[i]) for i in reversed(run)]
        if any(line.high[i] > line.low[i] for i in run):
            yield f'<polygon points="{" ".join(f"{x(i):.1f},{y(v):.1f}" for i, v in edges)}" class="{kind}"/>'


def ticks(low: float, high: float) -> list[float]:
    """Round numbers from low to high, three to six of them; the one number there is where both are the same."""
    if not high > low:
        return [low]
    size = 10.0 ** np.floor(np.log10((high - low) / 4))
    step = size * next(factor for factor in (1, 2, 2.5, 5, 10) if (high - low) / (size * factor) <= MOST_TICKS)
    first, last = int(np.ceil(low / step - 1e-9)), int(np.floor(high / step + 1e-9))
    return [float(step * place) for place in range(first, last + 1)]


def _readable(places: Sequence[float], labels: Sequence[str]) -> list[int]:
    """The labels along an axis that do not touch the one before them."""
    kept: list[int] = []
    for index, (place, label) in enumerate(zip(places, labels, strict=True)):
        room = LETTER * (len(label) + len(labels[kept[-1]])) / 2 + 4 if kept else 0.0
        if not kept or abs(place - places[kept[-1]]) >= room:
            kept.append(index)
    return kept


def _labels(ends: Mapping[str, tuple[float, float]], left: float) -> Iterable[str]:
    """The name of each line beside its end; names that would cover each other move apart, with a stroke to the line."""
    order = sorted(ends, key=lambda name: ends[name][1])
    for name, at in zip(order, _apart([ends[name][1] for name in order]), strict=True):
        x, y = ends[name]
        if abs(at - y) > LINE / 2 or left - x > LINE:
            yield f'<polyline points="{x:.1f},{y:.1f} {left - 2:.1f},{at:.1f}" class="leader"/>'
        short = name if len(name) <= LABEL else f"{name[: LABEL - 1]}…"
        yield f'<text x="{left:.1f}" y="{at + 3.5:.1f}">{escape(short)}<title>{escape(name)}</title></text>'


def _apart(heights: Sequence[float]) -> list[float]:
    """Rising heights, moved as little as keeps them a line apart and within the drawing."""
    placed: list[float] = []
    for height in heights:
        placed.append(max(height, placed[-1] + LINE) if placed else height)
    lowest = float(HEIGHT - BOTTOM)
    for place in reversed(range(len(placed))):
        placed[place] = min(placed[place], lowest)
        lowest = placed[place] - LINE
    return placed


def _extremes(values: Floats) -> tuple[float, float]:
    known = values[np.isfinite(values)]
    return (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)


def _runs(values: Floats) -> list[list[int]]:
    """Places of numbers that follow one another without a gap."""
    runs: list[list[int]] = []
    for place in np.flatnonzero(np.isfinite(values)).tolist():
        if runs and runs[-1][-1] == place - 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return runs


def _gap(x: float, y: float, place: str) -> str:
    tip = f"<title>{escape(place)}: nothing to measure</title>"
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle">×{tip}</text>'


def _svg(width: float, height: float, label: str, marks: Iterable[str]) -> str:
    body = "".join(marks)
    size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}"'
    return f'<svg {size} role="img" aria-label="{escape(label)}">{body}</svg>'


def _text(x: float, y: float, text: str, anchor: str, *, turned: bool = False) -> str:
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{turn}>{escape(text)}</text>'
