"""How well does a model answer as heads are taken away one after the other? Which go first is chosen on other items."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from bertology.encoder.pruning import Heads
from bertology.measures.causes.examination import Marks
from bertology.measures.causes.head_orders import Floats
from bertology.results.estimate import Estimates
from bertology.results.sampling import joined, over_sentences_and_seeds

Importance = Callable[[Heads], Floats]
"""(layer, head) importance in a model without some heads."""


def steps_of(heads: int, step: float) -> list[int]:
    """How many heads are removed at each point: none, then a further share `step` of all, and all."""
    return sorted({0, heads, *(round(share * heads) for share in np.arange(0, 1, max(step, 1 / heads)).tolist())})


def removed_by(importance: Importance, shape: tuple[int, int], counts: Sequence[int], *, again: bool) -> list[Heads]:
    """The heads that are removed at each point: the least important first, measured once or `again` at every point.

    A head whose importance is no number has none; of equal ones the lowest goes first.
    """
    gone = np.zeros(shape, np.bool_)
    values = importance(gone)
    found: list[Heads] = []
    for number, count in enumerate(counts):
        if again and number and gone.any() and not gone.all():
            values = importance(gone)
        ranked = np.argsort(np.where(gone, np.inf, np.nan_to_num(values, nan=-np.inf)).ravel(), kind="stable")
        gone = gone.copy()
        gone.ravel()[ranked[: count - int(gone.sum())]] = True
        found.append(gone)
    return found


def removed_at_random(shape: tuple[int, int], counts: Sequence[int], seed: int) -> list[Heads]:
    """The heads that are removed at each point, in an order of chance."""
    values = np.random.default_rng([seed, *shape]).permutation(int(np.prod(shape))).reshape(shape).astype(np.float64)
    return removed_by(lambda _: values, shape, counts, again=False)


def estimated(runs: Sequence[Sequence[Marks]], *, loss: bool, seed: int) -> Estimates:
    """(point,) the score, or the mean loss, of (run, point) marks, with intervals over items and runs."""
    points = [np.stack([_parts(run[point], loss=loss) for run in runs]) for point in range(len(runs[0]))]
    return joined([over_sentences_and_seeds(sums, _ratio, seed=seed) for sums in points])


def _parts(marks: Marks, *, loss: bool) -> Floats:
    """(item, 2) what is summed over what it is of."""
    if loss:
        return np.stack([marks.losses, np.ones_like(marks.losses)], -1)
    return np.stack([marks.counts.right, marks.counts.of], -1)


def _ratio(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    top, bottom = sums[..., 0], sums[..., 1]
    return np.divide(top, bottom, out=np.full_like(top, np.nan), where=bottom > 0)
