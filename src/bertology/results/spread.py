"""What the interval beside a number is, in words: of most measures a bootstrap's, of some the range of their runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

FROM_LOWEST = "from the lowest"
"""Begins what a unit says of a measure whose interval is a range."""
BY_SEED = f"{FROM_LOWEST} seed to the highest"
INTERVAL, RANGE = "95 % interval", "lowest to highest"


def spread(unit: str) -> str:
    """What the interval of a measure with this unit is."""
    return RANGE if FROM_LOWEST in unit else INTERVAL


def spreads(measures: Iterable[str], units: Mapping[str, str]) -> str:
    """What the intervals of several measures are, those that are ranges by name where they are not all alike."""
    names = list(measures)
    ranges = [name for name in names if spread(units.get(name, "")) == RANGE]
    if not ranges or len(ranges) == len(names):
        return RANGE if ranges else INTERVAL
    return f"{INTERVAL}; of {', '.join(ranges)} {RANGE}"
