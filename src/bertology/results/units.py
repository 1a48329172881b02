"""Units as figures show them: shares in percent, differences of shares in percentage points, p values on a log axis."""

from __future__ import annotations

import re
from dataclasses import dataclass

PERCENT, POINTS = "%", "percentage points"
_RANGE = re.compile(r", (?:-?[^,(]*? to [^,(]*|at (?:most|least) [\d.]+)(?= \(|,|$)")
_SHARE = re.compile(r"(?:share|proportion) of (.+?), (?:0|1/n) to 1")
_ACCURACY = re.compile(r"(accuracy[^,]*), 0 to 1")
_DIFFERENCE = re.compile(r"((?:difference of|change in) accuracy[^,]*|accuracy minus [^,]*), -1 to 1")
_SPECIFIC = {"attention": "a token's attention", "the total": "the total to all tokens"}
P_VALUE_FLOOR = 1e-4
"""p values below this one are drawn at it."""


@dataclass(frozen=True, slots=True)
class DisplayUnit:
    """How numbers of a unit are shown: multiplied by `factor`, with `label` on the axis and `sign` after a number."""

    label: str
    factor: float = 1.0
    sign: str = ""
    is_signed: bool = False
    """Whether values can be negative, so that 0 is the middle of a colour scale."""
    is_p_value: bool = False


def display_unit(unit: str, measure: str = "") -> DisplayUnit:
    """The display of a measure's unit: `share of attention, 0 to 1` is shown as `% of a token's attention`."""
    signed = ", -" in unit
    if re.match(r"p\b", measure) and unit.startswith(("probability", "proportion of permutations")):
        return DisplayUnit("p value, logarithmic", is_p_value=True)
    if matched := _SHARE.match(unit):
        whole = _SPECIFIC.get(matched[1], matched[1])
        return DisplayUnit(f"% of {whole}{unit[matched.end() :]}", 100, PERCENT)
    if unit.startswith("proportion, 0 to 1"):
        return DisplayUnit(PERCENT, 100, PERCENT)
    if matched := _ACCURACY.match(unit):
        return DisplayUnit(f"{matched[1]}, %{unit[matched.end() :]}", 100, PERCENT)
    if matched := _DIFFERENCE.match(unit):
        return DisplayUnit(f"{matched[1]}, {POINTS}", 100, is_signed=True)
    if unit == "difference of proportions, -1 to 1":
        return DisplayUnit(POINTS, 100, is_signed=True)
    return DisplayUnit(_RANGE.sub("", unit), is_signed=signed)
