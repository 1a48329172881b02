"""SVG elements, text that fits, and round axis ticks."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np
from markupsafe import Markup, escape

from bertology.arrays import FloatArray
from bertology.estimates.estimate import Estimate

FONT_SIZE, SMALL_SIZE, NAME_SIZE, TITLE_SIZE = 11, 10, 11.5, 12
"""Sizes of text in units of the drawing; in files 11 units are 8 points."""
BOLD = 1.08
"""Width of bold text relative to that of plain text."""
LINE_HEIGHT = 14
MAX_TICKS = 5
MISSING = "×"
NOT_MEASURED = "not measured"
MAX_LABEL_LENGTH = 24

# fmt: off
_WIDTHS = dict(zip(map(chr, range(32, 127)), (
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556,
    556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833,
    722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556,
    556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334,
    260, 334, 584,
), strict=True))
# fmt: on
"""Widths of the characters of Helvetica, Arial and Liberation Sans, in thousandths of the font size."""
OTHER_WIDTH, WIDE_WIDTH = 600, 1000

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


def document(
    width: float,
    height: float,
    body: Markup,
    label: str,
    *,
    style: str = "",
    size: tuple[str, str] | None = None,
    metadata: Markup | str = "",
) -> Markup:
    """An SVG image; one that stands alone has a `style`, a physical `size` and `metadata`."""
    parts = [Markup(metadata)] if metadata else []
    parts += [element("style", Markup(style))] if style else []
    shown_width, shown_height = size or (f"{width:.0f}", None)
    return element(
        "svg",
        *parts,
        body,
        xmlns="http://www.w3.org/2000/svg",
        class_="drawing",
        viewBox=f"0 0 {_number(width)} {_number(height)}",
        width=shown_width,
        height=shown_height,
        role="img",
        aria_label=label,
    )


def _clean(value: str | Markup) -> Markup:
    return value if isinstance(value, Markup) else escape(_INVALID_IN_XML.sub("\ufffd", value))


def _attribute(value: str | float | None) -> str:
    return _INVALID_IN_XML.sub("\ufffd", value) if isinstance(value, str) else _number(value or 0.0)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def text_width(content: str, size: float = FONT_SIZE, character: float = 0.0) -> float:
    """The width of a text in Helvetica or a font of its metrics; of a monospaced font, if `character` is given.

    Wide characters count as a square, combining characters as nothing.
    """
    return sum(_character_width(letter, character) for letter in content) * size


def _character_width(letter: str, monospaced: float) -> float:
    if unicodedata.combining(letter):
        return 0.0
    if unicodedata.east_asian_width(letter) in "WF":
        return 2 * monospaced or WIDE_WIDTH / 1000
    return monospaced or _WIDTHS.get(letter, OTHER_WIDTH) / 1000


def wrap_label(content: str, width: float, size: float = FONT_SIZE) -> list[str]:
    """Lines of a text that fit a width; a longer word has a line of its own."""
    lines: list[str] = []
    for word in content.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines or [""]


def fit_label(content: str, width: float, size: float = FONT_SIZE) -> str:
    """The text, cut with an ellipsis if it is wider than `width`."""
    if text_width(content, size) <= width + 0.5:
        return content
    length = len(content)
    while length > 1 and text_width(content[:length] + "…", size) > width:
        length -= 1
    return content[:length].rstrip() + "…"


def truncate_label(content: str, length: int = MAX_LABEL_LENGTH) -> str:
    """The text, cut with an ellipsis if it is too long for a label."""
    return content if len(content) <= length else f"{content[: length - 1]}…"


def truncate_middle(content: str, length: int = MAX_LABEL_LENGTH) -> str:
    """The text, cut in its middle if it is too long: names of checkpoints differ at their ends."""
    half = (length - 1) // 2
    return content if len(content) <= length else f"{content[: length - 1 - half]}…{content[-half:]}"


def format_estimate(estimate: Estimate, sign: str = "") -> str:
    """Value, interval and sample size, for tooltips: `12 % [9, 15], n = 30` with the sign `%`."""
    if not math.isfinite(estimate.value):
        return NOT_MEASURED
    missing = estimate.interval == "exact" or not math.isfinite(estimate.low) or not math.isfinite(estimate.high)
    interval = "" if missing else f" [{estimate.low:.3g}, {estimate.high:.3g}]"
    unit = f" {sign}" if sign else ""
    return f"{estimate.value:.3g}{unit}{interval}" + (f", n = {estimate.n}" if estimate.n else "")


def has_interval(estimate: Estimate) -> bool:
    """Whether the estimate has an interval of some length."""
    return math.isfinite(estimate.low) and math.isfinite(estimate.high) and estimate.high > estimate.low


def ticks(low: float, high: float, max_ticks: int = MAX_TICKS) -> list[float]:
    """Round numbers from low to high, at most about `max_ticks`; a single one if both are equal."""
    if not high > low:
        return [low]
    size = 10.0 ** np.floor(np.log10((high - low) / max(2, max_ticks - 1)))
    step = size * next(factor for factor in (1, 2, 2.5, 5, 10) if (high - low) / (size * factor) <= max_ticks)
    first, last = int(np.ceil(low / step - 1e-9)), int(np.floor(high / step + 1e-9))
    return [float(step * index) for index in range(first, last + 1)]


def extremes(values: FloatArray) -> tuple[float, float]:
    """The lowest and highest finite value; 0 and 0 if there is none."""
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)


def visible_labels(positions: Sequence[float], labels: Sequence[str], size: float = FONT_SIZE) -> list[int]:
    """Indices of the labels along an axis that do not touch the label before them."""
    visible: list[int] = []
    for index, (position, label) in enumerate(zip(positions, labels, strict=True)):
        gap = (text_width(label, size) + text_width(labels[visible[-1]], size)) / 2 + 4 if visible else 0.0
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
