"""Are items of one group nearer to each other than to the rest? Distances to groups, silhouette, shuffled groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Groups = NDArray[np.intp]

SHUFFLES = 999
ROUNDING = 1e-5
"""Distances are often made in single precision, so equal differences of their means are so only to about this share."""


@dataclass(frozen=True)
class Separation:
    """(..., group + 1) for each measure; the last place is all groups together.

    `within` is the mean distance between items of the group, `between` from its items to those of other groups,
    `silhouette` the mean over its items of (b - a) / max(a, b), where a is the mean distance to the item's own group
    and b that to the nearest other one (Rousseeuw 1987): 1 well apart, 0 no groups, negative nearer to another group.
    """

    within: Floats
    between: Floats
    silhouette: Floats

    @property
    def difference(self) -> Floats:
        """How much farther the other groups are than the own one."""
        return self.between - self.within


def to_groups(distances: NDArray[np.floating], groups: Groups) -> Floats:
    """(..., item, group) mean distance of each item to the items of each group, itself left out; NaN counts nowhere."""
    members = np.eye(int(groups.max()) + 1)[groups]
    apart = 1 - np.eye(len(groups))
    known = np.isfinite(distances) * apart
    sums = (np.where(known > 0, distances, 0.0) * known) @ members
    counts = known @ members
    return np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)


def separation(means: Floats, groups: Groups) -> Separation:
    """From (..., item, group) mean distances, for groups of one size."""
    count = means.shape[-1]
    own = groups[:, None] == np.arange(count)
    within = means[..., own]
    others = means[..., ~own].reshape(*means.shape[:-1], count - 1)
    farther = others.mean(-1)
    nearest = others.min(-1)
    larger = np.maximum(within, nearest)
    silhouette = np.divide(nearest - within, larger, out=np.zeros_like(larger), where=larger > 0)
    silhouette = np.where(np.isnan(larger), np.nan, silhouette)
    members = own / own.sum(0)
    return Separation(*(_with_all(values @ members) for values in (within, farther, silhouette)))


def _with_all(values: Floats) -> Floats:
    return np.concatenate([values, values.mean(-1, keepdims=True)], axis=-1)


def shuffled(distances: Floats, groups: Groups, *, seed: int, shuffles: int = SHUFFLES) -> Separation:
    """(shuffle, group + 1): the same after items are dealt out again among groups of the same sizes."""
    generator = np.random.default_rng(seed)
    found: list[Separation] = []
    for _ in range(shuffles):
        dealt = generator.permutation(groups)
        found.append(separation(to_groups(distances, dealt), dealt))
    return Separation(
        *(np.stack([getattr(one, name) for one in found]) for name in ("within", "between", "silhouette"))
    )


def share_as_large(observed: Floats, chance: Floats) -> Floats:
    """One-sided p by shuffling, the observed arrangement counted as one of them: never 0 (Phipson & Smyth 2010).

    A shuffle that only deals like items differently makes the same difference up to rounding, and counts as large.
    """
    rounding = ROUNDING * np.abs(chance).max(0, initial=0.0)
    return (1 + (chance >= observed - rounding).sum(0)) / (1 + len(chance))
