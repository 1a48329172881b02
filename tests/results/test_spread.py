"""Intervals that are ranges are told as such, and only these."""

from __future__ import annotations

import numpy as np

from bertology.results.sampling import over_seeds
from bertology.results.spread import BY_SEED, INTERVAL, RANGE, spread, spreads


def test_units_say_what_an_interval_is() -> None:
    assert spread("share of words, 0 to 1") == INTERVAL
    assert spread(f"share of words, 0 to 1; {BY_SEED}") == RANGE
    units = {"UAS": "share of words", "by seed": f"share of words, {BY_SEED}"}
    assert spreads(["UAS"], units) == INTERVAL
    assert spreads(["by seed"], units) == RANGE
    assert spreads(units, units) == f"{INTERVAL}; of by seed {RANGE}"
    assert spreads(["without a unit"], {}) == INTERVAL


def test_over_seeds_is_such_a_range() -> None:
    found = over_seeds(np.array([[1.0], [5.0], [3.0]]))
    assert (found.low[0], found.value[0], found.high[0]) == (1, 3, 5)
