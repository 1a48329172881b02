"""Widths of figures on paper: `85mm`, `8.5cm`, `3.3in`, `240pt` or `320px`."""

from __future__ import annotations

import re

from bertology.errors import Refusal

POINTS_PER_UNIT = {"mm": 72 / 25.4, "cm": 72 / 2.54, "in": 72.0, "pt": 1.0, "px": 0.75}
MIN_WIDTH_MM, MAX_WIDTH_MM = 50, 500


def parse_width(text: str) -> float:
    """A width in points, 1/72 inch; a refusal if it is no length, or no useful one."""
    matched = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(mm|cm|in|pt|px)\s*", text)
    if matched is None:
        raise Refusal(
            f"The width {text!r} is not a length", f"a number with one of: {', '.join(POINTS_PER_UNIT)}", "Write 85mm"
        )
    points = float(matched[1]) * POINTS_PER_UNIT[matched[2]]
    millimetres = points / POINTS_PER_UNIT["mm"]
    if not MIN_WIDTH_MM <= millimetres <= MAX_WIDTH_MM:
        raise Refusal(
            f"The width {text} is {millimetres:.0f} mm",
            f"{MIN_WIDTH_MM} to {MAX_WIDTH_MM} mm",
            "Columns of papers are about 85 mm wide, pages about 170 mm",
        )
    return points
