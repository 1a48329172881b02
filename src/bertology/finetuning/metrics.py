"""How good is it, and how sure is that? One count an item, so that every interval is a bootstrap over items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertology.corpus.bio import decode
from bertology.maths.resampling import bootstrap_ratio, resampled_ratios
from bertology.results.estimate import Estimate

Floats = NDArray[np.float64]
Scores = dict[str, Estimate]


@dataclass(frozen=True)
class Counts:
    """For each item what was right, and of how much: 1 of 1 for a class, 2 TP of TP + FP and TP + FN for names."""

    right: Floats
    of: Floats

    @property
    def value(self) -> float:
        """Accuracy, or micro F1 of names; 0 where there is nothing to be right about."""
        return float(self.right.sum() / self.of.sum()) if self.of.sum() else 0.0


def estimate(counts: Counts) -> Estimate:
    """The value of these counts, between 0 and 1, with the 95 % interval of a bootstrap over items."""
    value, low, high, _ = bootstrap_ratio(counts.right, counts.of, seed=0)
    return Estimate(float(value), float(low), float(high), len(counts.right))


def count_names(gold: Sequence[Sequence[str]], tags: Sequence[Sequence[str]]) -> Counts:
    """Names found by tags; an I that continues nothing begins a name, as the CoNLL script has it."""
    right: list[float] = []
    of: list[float] = []
    for wanted, given in zip(gold, tags, strict=True):
        true, found = (set(decode(some, scheme="iob1")) for some in (wanted, given))
        right.append(2.0 * len(true & found))
        of.append(float(len(true) + len(found)))
    return Counts(np.array(right), np.array(of))


def count_same(gold: Sequence[Sequence[str]], given: Sequence[Sequence[str]]) -> Counts:
    """Places of each item that have the right label."""
    right = [sum(a == b for a, b in zip(one, other, strict=True)) for one, other in zip(gold, given, strict=True)]
    return Counts(np.array(right, np.float64), np.array([len(one) for one in gold], np.float64))


def macro_f1_and_mcc(gold: Sequence[Sequence[str]], given: Sequence[Sequence[str]]) -> Scores:
    """Macro-averaged F1 (0 to 1) over the labels that occur, and Matthews' correlation (-1 to 1, 0 is chance)."""
    labels = sorted({label for some in (*gold, *given) for label in some})
    places = {label: place for place, label in enumerate(labels)}
    cells = np.zeros((len(gold), len(labels) ** 2), np.float64)
    for row, (wanted, found) in enumerate(zip(gold, given, strict=True)):
        for one, other in zip(wanted, found, strict=True):
            cells[row, places[one] * len(labels) + places[other]] += 1
    used = np.flatnonzero(cells.sum(0))
    # Both measures are the same for counts and for shares of all counts, which is what is resampled.
    drawn = resampled_ratios(cells[:, used], cells.sum(1), seed=0)
    whole = cells.sum(0, keepdims=True)[:, used]
    rows = np.concatenate([whole / whole.sum(), drawn[np.isfinite(drawn).all(1)]])
    return {
        name: _with_interval(measure(rows, used // len(labels), used % len(labels), len(labels)), len(gold))
        for name, measure in (("macro-F1", _macro_f1), ("MCC", _mcc))
    }


def _with_interval(values: Floats, n: int) -> Estimate:
    low, high = np.percentile(values[1:], [2.5, 97.5]) if n > 1 and len(values) > 1 else (np.nan, np.nan)
    return Estimate(float(values[0]), float(low), float(high), n)


def _margins(rows: Floats, wanted: NDArray[np.intp], found: NDArray[np.intp], labels: int) -> tuple[Floats, ...]:
    """(row, label) shares of each label where it is right, wanted, and found."""
    right, gold, given = (np.zeros((len(rows), labels)) for _ in range(3))
    for cell, (one, other) in enumerate(zip(wanted, found, strict=True)):
        gold[:, one] += rows[:, cell]
        given[:, other] += rows[:, cell]
        if one == other:
            right[:, one] += rows[:, cell]
    return right, gold, given


def _macro_f1(rows: Floats, wanted: NDArray[np.intp], found: NDArray[np.intp], labels: int) -> Floats:
    right, gold, given = _margins(rows, wanted, found, labels)
    there = gold + given > 0
    each = np.divide(2 * right, gold + given, out=np.zeros_like(right), where=there)
    return each.sum(1) / there.sum(1)


def _mcc(rows: Floats, wanted: NDArray[np.intp], found: NDArray[np.intp], labels: int) -> Floats:
    right, gold, given = _margins(rows, wanted, found, labels)
    total = rows.sum(1)
    top = right.sum(1) * total - (gold * given).sum(1)
    bottom = np.sqrt((total**2 - (given**2).sum(1)).clip(0) * (total**2 - (gold**2).sum(1)).clip(0))
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 1e-12)
