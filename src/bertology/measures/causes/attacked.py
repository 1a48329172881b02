"""How are items answered in another form? The counts of each, beside those of the form they were examined in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bertology.corpus.corpus import Item
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.finetuning.division import ordered
from bertology.finetuning.metrics import Counts
from bertology.measures.causes.examination import Examination, Marks, asked_again
from bertology.measures.causes.paired_change import paired_change
from bertology.results.estimate import Estimate

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Standing:
    """For each item what is right of how much, and its loss in nats; of nothing, and NaN, where it cannot be asked."""

    counts: Counts
    losses: Floats

    @property
    def asked(self) -> NDArray[np.bool_]:
        """(item,) whether it was asked."""
        return self.counts.of > 0

    def only(self, these: NDArray[np.bool_]) -> Standing:
        """As if no other items had been asked."""
        counts = Counts(np.where(these, self.counts.right, 0.0), np.where(these, self.counts.of, 0.0))
        return Standing(counts, np.where(these, self.losses, np.nan))


def numbered(examination: Examination) -> list[Item]:
    """The items in an order of their own, with their places for ids; one whose texts are asked singly is there once."""
    once = {id(item): item for item in examination.items}
    return [replace(item, id=str(place)) for place, item in enumerate(ordered(list(once.values())))]


def standing(encoder: Encoder, before: Examination, items: Sequence[Item], total: int, *, seed: int) -> Standing:
    """How the encoder answers other forms of items, whose ids are their places among `total`."""
    right, of, losses, times = (np.zeros(total) for _ in range(4))
    if items:
        try:
            again = asked_again(encoder, before, items, seed=seed)
        except Refusal:
            # None of them fits into the model: none is asked.
            return Standing(Counts(right, of), np.full(total, np.nan))
        marks = again.marks(encoder.run)
        places = np.array([int(item.id) for item in again.items])
        for sums, values in ((right, marks.counts.right), (of, marks.counts.of), (losses, marks.losses), (times, 1.0)):
            np.add.at(sums, places, values)
    return Standing(Counts(right, of), np.divide(losses, times, out=np.full(total, np.nan), where=times > 0))


def paired_drop(before: Counts, after: Counts, *, seed: int) -> Estimate:
    """The score before less the score after, of the items asked both times, with an interval that resamples them."""
    both = (before.of > 0) & (after.of > 0)
    if not both.any():
        return Estimate(np.nan, np.nan, np.nan, 0)
    found = paired_change(_marks(before), [_marks(after)], seed=seed, items=both).score
    value, low, high = (0.0 - float(part[0]) for part in (found.value, found.high, found.low))
    return Estimate(value, low, high, int(found.n[0]))


def _marks(counts: Counts) -> Marks:
    """Counts alone: nothing is asked about losses."""
    return Marks(np.zeros(len(counts.of)), counts)
