"""The judge: does a claim hold for these results? Decided by intervals, never by a point estimate alone.

Two numbers are told apart where their 95 % intervals lie apart. That is stricter than need be where both are of the
same items: an analysis that has their difference, item by item, gives it as a measure, and the claim asks for that. The
mean over layers or heads has the mean of their ends as its interval, as if they all erred together: wider than need be.
Where the best of many heads or layers is asked for, intervals are widened as Bonferroni would, so that the luckiest of
them does not decide, and are told as they decide.

| verdict | is given where |
|---|---|
| holds | the intervals say so |
| fails | the intervals say the opposite |
| inconclusive | they overlap |
| not applicable | the model or corpus lacks something, which is named; or what must be `given` first does not hold |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from scipy.stats import norm

from bertology.claims.claim import (
    Between,
    Claim,
    Greater,
    Ordered,
    Peak,
    PeaksInOrder,
    Selection,
    SomeHead,
    SomeRow,
    Test,
)
from bertology.claims.numbers import Absent, Numbers, spelt_layers
from bertology.errors import Refusal
from bertology.results.estimate import Estimate, Estimates
from bertology.results.result import Result
from bertology.results.shapes import Head, HeadGrid, LayerCurve, Matrix, Table

Outcome = Literal["holds", "fails", "inconclusive", "not applicable"]
OUTCOMES: tuple[Outcome, ...] = ("holds", "fails", "inconclusive", "not applicable")
HELD_OUT = "held out "
"""How the notes of tables name the head that was chosen on other sentences."""
_OF_MANY = {"holds": "hold", "fails": "fail"}


def tally(outcomes: Iterable[Outcome]) -> str:
    """How many there are of each outcome, in words."""
    counts = Counter[str](outcomes)
    told = [(counts[name], name if counts[name] == 1 else _OF_MANY.get(name, name)) for name in OUTCOMES]
    return ", ".join(f"{count} {name}" for count, name in told if count)


@dataclass(frozen=True)
class Verdict:
    """An outcome and the numbers it rests on, as a sentence.

    `chosen` is what was chosen among many, counted from 0: the layer and number of a head, or two layers.
    """

    outcome: Outcome
    why: str
    chosen: tuple[int, int] | None = None


def judge(claim: Claim, found: Mapping[str, Result | Refusal]) -> Verdict:
    """The verdict on a claim from its runs, by the names it gives them; a refused run makes it not applicable."""
    for result in found.values():
        if isinstance(result, Refusal):
            return _not_applicable(claim, str(result))
    results = {name: result for name, result in found.items() if isinstance(result, Result)}
    needs = f"; it needs {', '.join(claim.needs)}" if claim.needs else ""
    try:
        judging = _Judge(claim, results)
        if claim.given is not None and (first := judging.verdict(claim.given)).outcome != "holds":
            return _not_applicable(claim, f"what the finding takes for granted is not so here: {first.why}{needs}.")
        return judging.verdict(claim.test)
    except Absent as absent:
        return _not_applicable(claim, f"{absent}{needs}")


def _not_applicable(claim: Claim, why: str) -> Verdict:
    return Verdict("not applicable", f"{why} {claim.how}" if claim.how else why)


class _Judge:
    def __init__(self, claim: Claim, results: Mapping[str, Result]) -> None:
        self._numbers = Numbers(claim, results)

    def verdict(self, test: Test) -> Verdict:
        match test:
            case Greater():
                return self._greater(test)
            case Between():
                return self._between(test)
            case SomeHead():
                return self._some_head(test)
            case SomeRow():
                return self._some_row(test)
            case Peak():
                return self._peak(test)
            case Ordered():
                return self._ordered(test.these)
            case PeaksInOrder():
                return self._peaks_in_order(test.these)

    def _greater(self, test: Greater) -> Verdict:
        this = self._numbers.number(test.this)
        if isinstance(test.than, Selection):
            than, name = self._numbers.number(test.than), self._numbers.spelt(test.than)
        else:
            than, name = _exactly(test.than), ""
        beyond = Estimate(than.value + test.by, than.low + test.by, than.high + test.by, than.n)
        beside = f"{name} {than}" if name else f"{test.than:g}"
        asked = f"asked: {_margin(test.by)} than {beside}{_resting(this, than)}"
        return Verdict(_compared(this, beyond), f"{self._numbers.spelt(test.this)} {this}, {asked}")

    def _between(self, test: Between) -> Verdict:
        this = self._numbers.number(test.this)
        why = f"{self._numbers.spelt(test.this)} {this}, asked: {test.low:g} to {test.high:g}{_resting(this)}"
        if test.low < this.low and this.high < test.high:
            return Verdict("holds", why)
        return Verdict(
            "fails" if this.clearly_below(test.low) or this.clearly_above(test.high) else "inconclusive", why
        )

    def _some_head(self, test: SomeHead) -> Verdict:
        grid = self._numbers.data(test.run, HeadGrid)
        estimates = self._numbers.measure(grid, test.measure, None)
        rows = self._numbers.rows(test.layers, len(estimates.value), 1)
        values = {name: self._numbers.measure(grid, test.measure, name) for name in test.baselines}
        wide = _widened(estimates[rows], estimates[rows].value.size)
        floor = np.full(wide.shape, test.above)
        for baseline in values.values():
            floor = np.fmax(floor, baseline[rows].high)
        there = np.isfinite(wide.value)
        if not there.any():
            raise Absent(f"{test.measure} could not be measured for any head")
        lead = np.where(np.isfinite(wide.low), wide.low - floor, -np.inf)
        # Where no head has an interval, of one text alone, the one that is highest is told, and decides nothing.
        surest = lead if np.isfinite(lead).any() else np.where(there, wide.value, -np.inf)
        place = np.unravel_index(int(surest.argmax()), lead.shape)
        best = Head(rows[int(place[0])], int(place[1]))
        beside = "".join(f", {name} {values[name][best]}" for name in values)
        above = f", asked: above {test.above:g}" if np.isfinite(test.above) else ", asked: above these"
        own: Estimate = wide[place]
        why = f"{test.measure} of head {best} {own} (for {wide.value.size} heads at once){beside}{above}{_resting(own)}"
        if lead.max() > 0:
            return Verdict("holds", why, best)
        return Verdict("fails" if (wide.high < floor)[there].all() else "inconclusive", why, best)

    def _some_row(self, test: SomeRow) -> Verdict:
        outcomes: list[Outcome] = []
        told: list[str] = []
        used: list[Estimate] = []
        for row in test.rows:
            own = Selection(measure=test.measure, row=row, run=test.run)
            try:
                this, than = (
                    self._numbers.number(one) for one in (own, own.model_copy(update={"baseline": test.baseline}))
                )
                apart = self._apart(test, own)
            except Absent:
                continue
            beyond = Estimate(than.value + test.by, than.low + test.by, than.high + test.by, than.n)
            outcomes.append(_compared(this, beyond) if apart is None else _compared(apart, _exactly(test.by)))
            lead = "" if apart is None else f", apart {apart}"
            told.append(f"{row} {this} ({self._head(test, row)}{test.baseline} {than}{lead})")
            used += [this, than]
        if len(outcomes) < test.least:
            raise Absent(f"of {', '.join(test.rows)} too few have cases enough to be measured: {len(outcomes)}")
        sure, possible = outcomes.count("holds"), len(outcomes) - outcomes.count("fails")
        outcome: Outcome = "holds" if sure >= test.least else "fails" if possible < test.least else "inconclusive"
        of = f", of at least {test.least} ({sure} of {len(outcomes)} are, for sure)" if len(test.rows) > 1 else ""
        asked = f"asked: {_margin(test.by)} than {test.baseline}{of}"
        return Verdict(outcome, f"{'; '.join(told)}, {asked}{_resting(*used)}")

    def _apart(self, test: SomeRow, own: Selection) -> Estimate | None:
        """How far a row lies above its baseline, item by item, where that is measured."""
        if test.difference is None:
            return None
        return self._numbers.number(own.model_copy(update={"measure": test.difference}))

    def _head(self, test: SomeRow, row: str) -> str:
        """The head whose number it is, where the table's notes name it."""
        data: Table | Matrix = self._numbers.data(test.run, (Table, Matrix))
        said = data.notes.get(row, "").partition("; ")[0] if isinstance(data, Table) else ""
        return f"{said}; " if said.startswith(HELD_OUT) else ""

    def _peak(self, test: Peak) -> Verdict:
        curve, first = self._numbers.curve(test.run, test.measure)
        inside = self._numbers.rows(test.layers, len(curve.value), first)
        outside = [row for row in range(len(curve.value)) if row not in inside]
        if not outside:
            raise Absent("the model has too few layers to tell its middle from its ends")
        if not np.isfinite(curve.value).all():
            raise Absent(f"{test.measure} could not be measured in every layer")
        sign = -1.0 if test.lowest else 1.0
        here, there = (max(rows, key=lambda row: sign * curve.value[row]) for rows in (inside, outside))
        wide = _widened(curve, len(curve.value))
        end = "lowest" if test.lowest else "highest"
        among = f" is {end} among {spelt_layers(inside[0] + first, inside[-1] + first)}" if len(inside) > 1 else ""
        why = (
            f"{test.measure}{among} at layer {here + first}: {wide[here]}; elsewhere at layer {there + first}: "
            f"{wide[there]} (for {len(curve.value)} layers at once), "
            f"asked: {'lower' if test.lowest else 'higher'} than elsewhere{_resting(curve[here], curve[there])}"
        )
        this, than = (wide[there], wide[here]) if test.lowest else (wide[here], wide[there])
        return Verdict(_compared(this, than), why, (here, there))

    def _ordered(self, these: Sequence[Selection]) -> Verdict:
        numbers = [self._numbers.number(one) for one in these]
        outcomes = [_compared(after, before) for before, after in pairwise(numbers)]
        told = " < ".join(f"{self._numbers.spelt(one)} {number}" for one, number in zip(these, numbers, strict=True))
        outcome: Outcome = "fails" if "fails" in outcomes else "inconclusive" if "inconclusive" in outcomes else "holds"
        return Verdict(outcome, f"asked: {told}{_resting(*numbers)}")

    def _peaks_in_order(self, these: Sequence[Selection]) -> Verdict:
        """Holds where every layer that may be a measure's peak lies above all that may be that of the one before."""
        spans: list[tuple[int, int, int]] = []
        found: list[Estimate] = []
        for one in these:
            data = self._numbers.data(one.run, LayerCurve)
            curve = self._numbers.measure(data, one.measure, one.baseline)
            there = np.isfinite(curve.value)
            if not there.any():
                raise Absent(f"{self._numbers.spelt(one)} could not be measured in any layer")
            best = int(np.nanargmax(curve.value))
            # A number without an interval may be anything.
            possible = np.flatnonzero(there & ~(curve.high < curve.low[best])) + data.first
            spans.append((int(possible.min()), best + data.first, int(possible.max())))
            found.append(curve[best])
        pairs = list(pairwise(spans))
        told = "; ".join(
            f"{self._numbers.spelt(one)} at layer {best} (perhaps {low}-{high})"
            for one, (low, best, high) in zip(these, spans, strict=True)
        )
        told += f", asked: in this order{_resting(*found)}"
        if all(before[2] < after[0] for before, after in pairs):
            return Verdict("holds", told)
        return Verdict("fails" if any(before[0] > after[2] for before, after in pairs) else "inconclusive", told)


def _margin(by: float) -> str:
    """How much more is asked for, in words."""
    if not by:
        return "more"
    return f"{by:g} more" if by > 0 else f"no more than {-by:g} less"


def _resting(*estimates: Estimate) -> str:
    """What numbers rest on, in words; nothing for those that follow from a definition."""
    counts = sorted({estimate.n for estimate in estimates if estimate.n > 0})
    if not counts:
        return ""
    return f"; n = {counts[0]}" if len(counts) == 1 else f"; n = {counts[0]} to {counts[-1]}"


def _exactly(value: float) -> Estimate:
    return Estimate(value, value, value, 0)


def _compared(this: Estimate, than: Estimate) -> Outcome:
    if this.clearly_above(than):
        return "holds"
    return "fails" if this.clearly_below(than) else "inconclusive"


def _widened(estimates: Estimates, tried: int) -> Estimates:
    """Intervals that hold for all of `tried` numbers at once, by Bonferroni and the normal distribution."""
    factor = norm.isf(0.025 / tried) / norm.isf(0.025)
    return Estimates(
        value=estimates.value,
        low=estimates.value - factor * (estimates.value - estimates.low),
        high=estimates.value + factor * (estimates.high - estimates.value),
        n=estimates.n,
    )
