"""SVG elements, text that fits, and round axis ticks."""

from __future__ import annotations

import math
import re
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np
from markupsafe import Markup, escape

from bertology.arrays import FloatArray
from bertology.estimates.estimate import Estimate

CHARACTER_WIDTH = 0.58
"""Mean width of a character of a proportional font, relative to the font size."""
FONT_SIZE = 11
LINE_HEIGHT = 14
MAX_TICKS = 5
MISSING = "×"
NOT_MEASURED = "not measured"
MAX_LABEL_LENGTH = 24

_INVALID_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def element(tag: str, *children: str | Markup, tip: str = "", **attributes: str | float | None) -> Markup:
    """An SVG element; text and attributes are escaped. `tip` is shown when the pointer is over the element.

    A trailing underscore of an attribute is dropped and other underscores are hyphens: `class_`, `text_anchor`.
    """
    written = Markup().join(
        Markup(' {}="{}"').format(name.rstrip("_").replace("_", "-"), _attribute(value))
        for name, value in attributes.items()
        if value is not None and value != ""
    )
    content = Markup().join([*map(_clean, children), *([element("title", tip)] if tip else [])])
    name = Markup(tag)
    return (
        Markup("<{0}{1}>{2}</{0}>").format(name, written, content)
        if content
        else Markup("<{}{}/>").format(name, written)
    )


def text(
    x: float, y: float, content: str, *, anchor: str = "start", class_: str = "", rotate: float = 0, tip: str = ""
) -> Markup:
    """A line of text; `rotate` turns it about its anchor, in degrees."""
    transform = f"rotate({rotate:g} {_number(x)} {_number(y)})" if rotate else None
    anchored = anchor if anchor != "start" else None
    return element("text", content, tip=tip, x=x, y=y, text_anchor=anchored, class_=class_, transform=transform)


def path(points: Iterable[tuple[float, float]], *, tip: str = "", **attributes: str | float | None) -> Markup:
    """A line through the points."""
    steps = " ".join(f"{_number(x)},{_number(y)}" for x, y in points)
    return element("polyline", points=steps, tip=tip, **attributes)


def group(parts: Iterable[Markup], **attributes: str | float | None) -> Markup:
    """Elements as one group."""
    return element("g", Markup().join(parts), tip="", **attributes)


def document(width: float, height: float, body: Markup, label: str, *, style: str = "") -> Markup:
    """An SVG image; a `style` is included if the image stands alone."""
    parts = [element("style", Markup(style))] if style else []
    return element(
        "svg",
        *parts,
        body,
        xmlns="http://www.w3.org/2000/svg",
        class_="drawing",
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        width=f"{width:.0f}",
        role="img",
        aria_label=label,
    )


def _clean(value: str | Markup) -> Markup:
    return value if isinstance(value, Markup) else escape(_INVALID_IN_XML.sub("\ufffd", value))


def _attribute(value: str | float | None) -> str:
    return _INVALID_IN_XML.sub("\ufffd", value) if isinstance(value, str) else _number(value or 0.0)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def text_width(content: str, size: float = FONT_SIZE, character: float = CHARACTER_WIDTH) -> float:
    """The approximate width of a text; wide characters count twice, combining characters not at all."""
    cells = sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in content
    )
    return max(1, cells) * size * character


def wrap_label(content: str, width: float, size: float = FONT_SIZE) -> list[str]:
    """Lines of a text that fit a width in pixels."""
    return textwrap.wrap(content, max(12, int(width / (size * CHARACTER_WIDTH)))) or [""]


def truncate_label(content: str, length: int = MAX_LABEL_LENGTH) -> str:
    """The text, cut with an ellipsis if it is too long for a label."""
    return content if len(content) <= length else f"{content[: length - 1]}…"


def format_estimate(estimate: Estimate) -> str:
    """Value, interval and sample size, for tooltips."""
    if not math.isfinite(estimate.value):
        return NOT_MEASURED
    missing = estimate.interval == "exact" or not math.isfinite(estimate.low) or not math.isfinite(estimate.high)
    interval = "" if missing else f" [{estimate.low:.3g}, {estimate.high:.3g}]"
    return f"{estimate.value:.3g}{interval}" + (f", n = {estimate.n}" if estimate.n else "")


def has_interval(estimate: Estimate) -> bool:
    """Whether the estimate has an interval of some length."""
    return math.isfinite(estimate.low) and math.isfinite(estimate.high) and estimate.high > estimate.low


def ticks(low: float, high: float) -> list[float]:
    """Three to six round numbers from low to high; a single one if both are equal."""
    if not high > low:
        return [low]
    size = 10.0 ** np.floor(np.log10((high - low) / 4))
    step = size * next(factor for factor in (1, 2, 2.5, 5, 10) if (high - low) / (size * factor) <= MAX_TICKS)
    first, last = int(np.ceil(low / step - 1e-9)), int(np.floor(high / step + 1e-9))
    return [float(step * index) for index in range(first, last + 1)]


def extremes(values: FloatArray) -> tuple[float, float]:
    """The lowest and highest finite value; 0 and 0 if there is none."""
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)


def axis_range(values: FloatArray) -> tuple[float, float]:
    """The range of an axis over the values: from 0 if they nearly reach it, and never empty."""
    low, high = extremes(values)
    low = 0.0 if 0 < low < 0.4 * high else low
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def visible_labels(positions: Sequence[float], labels: Sequence[str]) -> list[int]:
    """Indices of the labels along an axis that do not touch the label before them."""
    visible: list[int] = []
    for index, (position, label) in enumerate(zip(positions, labels, strict=True)):
        gap = (text_width(label) + text_width(labels[visible[-1]])) / 2 + 4 if visible else 0.0
        if not visible or abs(position - positions[visible[-1]]) >= gap:
            visible.append(index)
    return visible


def deduplicate(names: Sequence[str]) -> tuple[str, ...]:
    """The names, with a number after each repeated one, so that rows of a figure can be told apart."""
    counts: dict[str, int] = {}
    unique: list[str] = []
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        unique.append(f"{name} ({counts[name]})" if counts[name] > 1 else name)
    return tuple(unique)
