"""What did a change do to the answers? The same items before and after: change of the score and of the loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bertology.finetuning.metrics import Counts
from bertology.maths.multiple_tests import holm, paired_above
from bertology.measures.causes.examination import Examination, Marks
from bertology.results.estimate import Estimates
from bertology.results.sampling import mean_over_sentences, over_sentences_and_seeds

Floats = NDArray[np.float64]

LEVEL = 0.05
NEGLIGIBLE = 1e-4
"""Nats of one item that arithmetic alone may make: such a difference counts as none.

The same pass in single precision computed in another order (other batches, heads multiplied by 1, run on from a layer)
moved one item of mini-pairs by 5e-5 at most, of mini by 6e-6, of tiny by 1e-6; one head weakened by a thousandth moves
most items by as much and more. It is a ten-thousandth of the right answer's probability, and no score of fewer than ten
thousand items shows that. In half precision arithmetic makes more, up to 0.3, up and down alike: that is left to the
test, to which it is error.
"""
SCORE, LOSS, HELPS, HURTS = "change of score", "change of loss", "helps", "hurts"
P_OF_SCORE, P_OF_LOSS = "p of the score", "p of the loss"
NO_CHANGE, COMMONEST = "no change", "always the commonest answer"


@dataclass(frozen=True)
class PairedChange:
    """(change,) of each number: after the change minus before it, with intervals over items; p adjusted for all."""

    score: Estimates
    loss: Estimates
    score_p: Estimates
    loss_p: Estimates

    @property
    def helps(self) -> Estimates:
        """1 where the loss is higher without what was taken away, at the level of 5 % after Holm's correction."""
        return self._shown(self.loss.value > 0)

    @property
    def hurts(self) -> Estimates:
        """1 where the loss is lower without it."""
        return self._shown(self.loss.value < 0)

    def _shown(self, direction: NDArray[np.bool_]) -> Estimates:
        sure = direction & (self.loss_p.value < LEVEL)
        value = np.where(np.isfinite(self.loss_p.value), sure.astype(np.float64), np.nan)
        return Estimates(value=value, low=value, high=value, n=self.loss_p.n)


def paired_change(
    whole: Marks, changed: Sequence[Marks], *, seed: int, items: NDArray[np.bool_] | None = None
) -> PairedChange:
    """How much each change raised the score and the loss, on these items or on all.

    The score is pooled over items. Two-sided p of paired t tests, for a pooled score of what each item adds to it; the
    loss and the score are each adjusted for the number of changes.
    """
    kept = np.ones(len(whole.losses), np.bool_) if items is None else items
    differences = np.stack([marks.losses[kept] - whole.losses[kept] for marks in changed], 1)
    n = np.full(len(changed), kept.sum())
    return PairedChange(
        _score(whole.counts, [marks.counts for marks in changed], kept, seed),
        mean_over_sentences(differences, seed=seed),
        _p(np.stack([_added(marks.counts, kept) - _added(whole.counts, kept) for marks in changed], 1), n),
        _p(np.where(np.abs(differences) > NEGLIGIBLE, differences, 0.0), n),
    )


def averaged(marks: Sequence[Marks]) -> Marks:
    """The marks of any one of several changes: what each item gets on average."""
    losses, right, of = (
        np.mean(some, 0)
        for some in ([m.losses for m in marks], [m.counts.right for m in marks], [m.counts.of for m in marks])
    )
    return Marks(losses, Counts(right, of))


def _score(whole: Counts, changed: Sequence[Counts], kept: NDArray[np.bool_], seed: int) -> Estimates:
    # (item, change, right and of before and after)
    parts = [np.stack([whole.right, whole.of, one.right, one.of], 1)[kept] for one in changed]
    sums = np.stack(parts, 1)[None]
    found = over_sentences_and_seeds(sums, _difference, seed=seed)
    alone = np.full(found.shape, np.nan)
    return found if sums.shape[1] > 1 else Estimates(value=found.value, low=alone, high=alone, n=found.n)


def _some(counts: Counts, items: NDArray[np.bool_]) -> Counts:
    return Counts(counts.right[items], counts.of[items])


def _difference(sums: Floats) -> Floats:
    right, of, right_after, of_after = np.moveaxis(sums, -1, 0)
    return share(right_after, of_after) - share(right, of)


def share(right: Floats, of: Floats) -> Floats:
    """What is right of how much; 0 where there is nothing to be right about, as `Counts.value` has it."""
    return np.divide(right, of, out=np.zeros_like(right, np.float64), where=of > 0)


def _added(counts: Counts, kept: NDArray[np.bool_]) -> Floats:
    """What each item adds to the pooled score: their mean is the score, and its error theirs (delta method)."""
    right, of = counts.right[kept], counts.of[kept]
    score = float(share(right.sum(), of.sum()))
    return score + (right - score * of) / max(float(of.mean()), 1e-12)


def _p(differences: Floats, n: NDArray[np.int64]) -> Estimates:
    sides = np.minimum(paired_above(differences), paired_above(-differences))
    adjusted = holm(np.minimum(1.0, 2 * sides))
    return Estimates(value=adjusted, low=adjusted, high=adjusted, n=np.where(np.isfinite(adjusted), n, 0))


@dataclass(frozen=True)
class ChangeReport:
    """The changes of an examination as measures with units and baselines."""

    examination: Examination
    whole: Marks

    def on(self, items: NDArray[np.bool_]) -> ChangeReport:
        """The same for some of the items."""
        asked = tuple(item for item, kept in zip(self.examination.items, items, strict=True) if kept)
        guess = self.examination.guess and _some(self.examination.guess, items)
        whole = Marks(self.whole.losses[items], _some(self.whole.counts, items))
        return ChangeReport(replace(self.examination, items=asked, sheets=(), guess=guess), whole)

    def measures(self, found: PairedChange) -> dict[str, Estimates]:
        """Change of the score and of the loss, their p, and what follows from them."""
        return {
            SCORE: found.score,
            LOSS: found.loss,
            HELPS: found.helps,
            HURTS: found.hurts,
            P_OF_SCORE: found.score_p,
            P_OF_LOSS: found.loss_p,
        }

    def units(self) -> dict[str, str]:
        """What each measure counts in."""
        return {
            SCORE: self.unit_of_score(),
            LOSS: self.unit_of_loss(),
            HELPS: "1 where the loss is higher without it, p below 5 %; else 0",
            HURTS: "1 where the loss is lower without it, p below 5 %; else 0",
            P_OF_SCORE: "that the score does not change, Holm's correction for all that was tried, 0 to 1",
            P_OF_LOSS: "that the loss does not change, Holm's correction for all that was tried, 0 to 1",
        }

    def unit_of_score(self) -> str:
        """What the score is, and what it was."""
        left_out = f", {self.examination.left_out} more left out" if self.examination.left_out else ""
        before = f"{self.whole.counts.value:.3f} before, {len(self.examination.items)} items{left_out}"
        return f"{self.examination.measure} after minus before, -1 to 1 ({before})"

    def unit_of_loss(self) -> str:
        """What the loss is, and what it was."""
        return f"nats an item, after minus before ({self.whole.losses.mean():.3f} before)"

    def baselines(self, shape: tuple[int, ...]) -> dict[str, dict[str, Estimates]]:
        """No change; the level of p; and what the score would lose by always giving the commonest answer."""
        zero, level = (Estimates.exact(np.full(shape, value)) for value in (0.0, LEVEL))
        beside: dict[str, dict[str, Estimates]] = {NO_CHANGE: dict.fromkeys((SCORE, LOSS, HELPS, HURTS), zero)}
        beside["level"] = dict.fromkeys((P_OF_SCORE, P_OF_LOSS), level)
        guess = self.examination.guess
        if guess is not None:
            lost = guess.value - self.whole.counts.value
            beside[COMMONEST] = {SCORE: Estimates.exact(np.full(shape, lost))}
        return beside
