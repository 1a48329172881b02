"""Choose the best head for each label fairly: on one half of the sentences, scored on the other, beside its rules.

Which sentences make the first half depends on their words alone, never on their order, and equal sentences stay
together. What trying every head in every direction costs is paid three times over: the held-out accuracy is that of a
head chosen elsewhere; the interval of the best on all sentences holds for all heads at once; and its rivals are all
that may truly be the best, as multiple comparisons with the best have it (see `maths.selection`). The p value is for
the held-out comparison with a rule, by a paired t test over sentences, with Holm's correction for the labels tried; by
how much the head leads has an interval that resamples the same sentences for both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.maths.multiple_tests import holm, paired_above
from bertology.maths.selection import Best, best_of, highest
from bertology.measures.heads.word_questions import Tally
from bertology.results.estimate import Estimates
from bertology.results.sampling import pooled_over_sentences
from bertology.results.shapes import Head, Table

Numbers = NDArray[Any]

HELD_OUT, BEST, RIVALS, P = "held-out accuracy", "best accuracy", "rivals", "p"
RANDOM, NO_LEAD = "random weights", "no lead"
LEVEL = 0.05
NAMED_RIVALS = 5


def lead_over(rule: str) -> str:
    """The measure of how far the held-out head lies above a rule on the same cases."""
    return f"held-out less {rule}"


def first_half(keys: Sequence[str], seed: int) -> NDArray[np.bool_]:
    """(unit,) which units make the first half, by their texts: every other one in a shuffled order of the texts."""
    shuffled = sorted(set(keys), key=lambda key: hashlib.sha256(f"{seed}\n{key}".encode()).digest())
    half = {key: number % 2 == 0 for number, key in enumerate(shuffled)}
    return np.array([half[key] for key in keys], np.bool_)


@dataclass(frozen=True)
class Choice:
    """What was chosen for one label: a candidate on the first half, the best on all, and a variant of each rule."""

    chosen: int
    best: Best
    rules: dict[str, tuple[int, int]]


def choose(tally: Tally, first: NDArray[np.bool_], *, minimum: int, seed: int) -> list[Choice | None]:
    """The choice for each label; None where there are fewer cases than `minimum`, or none in one of the halves."""
    found: list[Choice | None] = []
    for label in range(len(tally.labels)):
        hits, cases = tally.candidates(label), tally.cases[:, label]
        chosen = highest(hits[first], cases[first])
        enough = cases.sum() >= minimum and chosen is not None and cases[~first].any()
        best = best_of(hits, cases, seed=seed) if enough else None
        if best is None or chosen is None:
            found.append(None)
            continue
        rules = {
            name: (_most(variants[first, :, label]), _most(variants[..., label])) for name, variants in _rules(tally)
        }
        found.append(Choice(chosen, best, rules))
    return found


def _rules(tally: Tally) -> list[tuple[str, Numbers]]:
    return list(tally.rules.items())


def _most(hits: Numbers) -> int:
    return int(hits.sum(0).argmax())


def choice_table(tally: Tally, fresh: Tally | None, *, against: str, minimum: int, seed: int) -> Table:
    """One row a label: the held-out accuracy of its head, the best on all sentences, its rivals, beside the rules.

    `fresh` holds the answers of random weights; `against` names the rule that p values compare with.
    """
    first = first_half(tally.keys, seed)
    choices = choose(tally, first, minimum=minimum, seed=seed)
    cases = np.where([choice is not None for choice in choices], tally.cases, 0).astype(np.float64)
    chosen = _picked(tally, [choice and choice.chosen for choice in choices])
    held = _pooled(chosen[~first], cases[~first], seed)
    bests = [choice and choice.best for choice in choices]
    baselines: dict[str, dict[str, Estimates]] = {}
    for name, hits in _rules(tally):
        fair, full = (_variants(hits, [choice and choice.rules[name][which] for choice in choices]) for which in (0, 1))
        baselines[name] = {
            HELD_OUT: _pooled(fair[~first], cases[~first], seed),
            BEST: _pooled(full, cases, seed),
        }
    rule = _variants(tally.rules[against], [choice and choice.rules[against][0] for choice in choices])
    p = holm(paired_above(np.where(cases > 0, chosen - rule, np.nan)[~first]))
    units = (cases > 0).sum(0)
    lead = lead_over(against)
    measures = {
        HELD_OUT: held,
        lead: _pooled((chosen - rule)[~first], cases[~first], seed),
        BEST: _bests(bests, units),
        RIVALS: _exact([np.nan if best is None else len(best.rivals) for best in bests], units),
        P: _exact(p, (cases[~first] > 0).sum(0) * np.isfinite(p)),
    }
    if fresh is not None:
        baselines[RANDOM] = _of_random(fresh, choices, first, cases, seed)
    total = int(np.prod(tally.hits.shape[1:4]))
    baselines["none told apart"] = {RIVALS: _exact(np.full(len(bests), total - 1.0), units)}
    baselines["level"] = {P: _exact(np.full(len(bests), LEVEL), units)}
    baselines[NO_LEAD] = {lead: _exact(np.zeros(len(bests)), units)}
    return Table(
        measures=measures,
        baselines=baselines,
        rows_named=tally.labels,
        notes={label: _note(tally, number, choices[number], minimum) for number, label in enumerate(tally.labels)},
        units={
            HELD_OUT: "share of cases, 0 to 1, head chosen on the other half",
            lead: f"held-out accuracy less that of the {against}, of the same cases, -1 to 1",
            BEST: "share of cases, 0 to 1, chosen and scored on all sentences; interval for all heads at once",
            RIVALS: f"other heads and directions not told from the best, 0 to {total - 1}",
            P: f"that the held-out head beats the {against}, Holm's correction for all rows, 0 to 1",
        },
    )


def _pooled(hits: Numbers, cases: Numbers, seed: int) -> Estimates:
    if len(hits):
        return pooled_over_sentences(hits, cases, seed=seed)
    return _exact(np.full(hits.shape[1], np.nan), np.zeros(hits.shape[1]))


def _picked(tally: Tally, candidates: Sequence[int | None]) -> Numbers:
    """(unit, label) hits of the candidate picked for each label; 0 where none was."""
    found = np.zeros(tally.cases.shape)
    for label, candidate in enumerate(candidates):
        if candidate is not None:
            found[:, label] = tally.candidates(label)[:, candidate]
    return found


def _variants(hits: Numbers, variants: Sequence[int | None]) -> Numbers:
    """(unit, label) hits of the variant picked for each label."""
    columns = [np.zeros(len(hits)) if v is None else hits[:, v, label] for label, v in enumerate(variants)]
    return np.stack(columns, axis=1)


def _of_random(
    fresh: Tally, choices: Sequence[Choice | None], first: NDArray[np.bool_], cases: Numbers, seed: int
) -> dict[str, Estimates]:
    """The best head of random weights, chosen in the same way from as many."""
    picked: list[int | None] = []
    bests: list[Best | None] = []
    for label, choice in enumerate(choices):
        hits, own = fresh.candidates(label), fresh.cases[:, label]
        picked.append(highest(hits[first], own[first]) if choice else None)
        bests.append(best_of(hits, own, seed=seed) if choice else None)
    held = _pooled(_picked(fresh, picked)[~first], cases[~first], seed)
    return {HELD_OUT: held, BEST: _bests(bests, (cases > 0).sum(0))}


def _bests(bests: Sequence[Best | None], n: Numbers) -> Estimates:
    rows = [(np.nan, np.nan, np.nan) if best is None else (best.rate, best.low, best.high) for best in bests]
    value, low, high = np.array(rows, np.float64).reshape(-1, 3).T
    return Estimates(value=value, low=low, high=high, n=n.astype(np.int64))


def _exact(values: Sequence[float] | Numbers, n: Numbers) -> Estimates:
    """Numbers without an interval of their own; NaN where they rest on nothing."""
    array = np.where(n > 0, np.asarray(values, np.float64), np.nan)
    return Estimates(value=array, low=array, high=array, n=n.astype(np.int64))


def named(tally: Tally, candidate: int) -> str:
    """The head and direction of a candidate, as read: `8-11 dependent to head`."""
    layer, head, direction = tally.place(candidate)
    return f"{Head(layer, head)} {tally.directions[direction]}".strip()


def _note(tally: Tally, label: int, choice: Choice | None, minimum: int) -> str:
    cases = int(tally.cases[:, label].sum())
    if choice is None:
        return f"too few: {cases} case{'s' * (cases != 1)}, at least {minimum} in both halves together are asked for"
    best = choice.best
    hits = int(tally.candidates(label)[:, best.place].sum())
    told = [f"held out {named(tally, choice.chosen)}", f"best {named(tally, best.place)}, {hits} of {cases} cases"]
    if len(best.rivals):
        rates = tally.candidates(label).sum(0)
        near = sorted(best.rivals, key=lambda place: -rates[place])
        listed = [named(tally, int(place)) for place in near[:NAMED_RIVALS]] + ["..."] * (len(near) > NAMED_RIVALS)
        told.append(f"not told from it: {', '.join(listed)}")
    variants = [
        f"{name} {tally.variants[name][one]}" for name, (_, one) in choice.rules.items() if tally.variants[name][one]
    ]
    return "; ".join(told + variants)


def joined_rows(
    table: Table,
    name: str,
    measures: Mapping[str, tuple[float, float, float, int]],
    baselines: Mapping[str, Mapping[str, tuple[float, float, float, int]]],
    note: str,
) -> Table:
    """The table with one more row: (value, low, high, n) of the measures it has, and nothing in the others."""
    return Table(
        measures={key: _longer(old, measures.get(key)) for key, old in table.measures.items()},
        baselines={
            chance: {key: _longer(old, baselines.get(chance, {}).get(key)) for key, old in found.items()}
            for chance, found in table.baselines.items()
        },
        units=table.units,
        rows_named=(*table.rows_named, name),
        notes={**table.notes, name: note},
    )


def _longer(old: Estimates, new: tuple[float, float, float, int] | None) -> Estimates:
    value, low, high, n = new or (np.nan, np.nan, np.nan, 0)
    fields = {"value": value, "low": low, "high": high, "n": n}
    return Estimates(**{name: np.append(getattr(old, name), number) for name, number in fields.items()})
