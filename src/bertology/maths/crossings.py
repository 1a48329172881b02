"""Where curves meet, and where one reaches a level: arrays in, arrays out; knows nothing of BERT."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

Floats = NDArray[np.float64]


def last_crossing(x: Floats, differences: Floats) -> Floats:
    """(...) where the (..., point) differences last change their sign, between points on a line; NaN where nowhere."""
    before, after = differences[..., :-1], differences[..., 1:]
    crossed = before * after < 0
    # Where they touch at a point and part with other signs, that point is where they cross.
    touched = (differences[..., 1:-1] == 0) & (differences[..., :-2] * differences[..., 2:] < 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        between = x[:-1] + (x[1:] - x[:-1]) * before / (before - after)
    places = np.where(crossed, between, -np.inf)
    places[..., 1:] = np.where(touched, np.maximum(places[..., 1:], x[1:-1]), places[..., 1:])
    last = places.max(-1, initial=-np.inf)
    return np.where(np.isfinite(last), last, np.nan)


def rising(curves: Floats) -> Floats:
    """The (..., point) curves that never fall and are nearest to these in the sum of squares."""
    flat = curves.reshape(-1, curves.shape[-1])
    return np.stack([isotonic_regression(curve).x for curve in flat]).reshape(curves.shape)


def reached_at(x: Floats, curves: Floats, levels: Floats) -> Floats:
    """(...) the least place at which each rising (..., point) curve, straight between points, has reached its level.

    The first point where a curve is there from the start; NaN where it never is.
    """
    there = curves >= levels[..., None]
    first = there.argmax(-1)
    before = np.maximum(first - 1, 0)
    low, high = (np.take_along_axis(curves, place[..., None], -1)[..., 0] for place in (before, first))
    part = np.divide(levels - low, high - low, out=np.zeros_like(low), where=(high > low) & (first > 0))
    found = x[before] + part * (x[first] - x[before])
    return np.where(there.any(-1), found, np.nan)
