"""The texts behind a verdict: those of a few in which a finding shows most, and those in which it shows least.

The numbers are the claim's own, measured on one text alone. Only analyses of attention can be asked that: their numbers
are means over texts. What is learnt from many texts, or compares their states, says nothing about one of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bertology.analyses import registry
from bertology.analyses.declaration import Analysis
from bertology.analyses.run import Subject, run_all
from bertology.claims.claim import Between, Claim, Greater, Ordered, Peak, Run, Selection, SomeHead, Test, rows_of
from bertology.claims.examine import Finding, asked_of
from bertology.claims.numbers import Absent, Numbers
from bertology.corpus.corpus import Corpus, Item
from bertology.errors import Refusal
from bertology.results.result import Result
from bertology.results.shapes import Head, HeadGrid, Shape, Table

LOOKED, SHOWN = 16, 2
"""So many texts are looked at, and so many shown at either end."""
ENOUGH = 4
"""Where so many texts have no number for any finding, no others are tried."""
GROUPS = ("attention/", "heads/")
INPUTS = {"recording", "randomised", "against"}
CHOICE = re.compile(r"held out (?P<head>\d+-\d+) (?P<direction>dependent to head|head to dependent)")
"""How heads/dependency notes which head it took for a relation, and in which direction."""


@dataclass(frozen=True)
class Instance:
    """One text, and a finding's numbers on it alone."""

    text: str
    numbers: tuple[float, ...]

    @property
    def lead(self) -> float:
        """By how much the text speaks for the finding: the first number, less the second where there is one."""
        return self.numbers[0] - sum(self.numbers[1:])


@dataclass(frozen=True)
class Evidence:
    """The texts in which a finding shows most, and least, of `looked` among `there`; `named` says what is counted."""

    named: tuple[str, ...]
    most: tuple[Instance, ...]
    least: tuple[Instance, ...]
    looked: int
    there: int


@dataclass(frozen=True)
class _Question:
    """A claim that can be asked of one text, by what run, and the head or layers that all texts together chose."""

    claim: Claim
    run: Run
    chosen: tuple[int, int] | None


def evidence_for(findings: Sequence[Finding], subject: Subject) -> dict[str, Evidence]:
    """The texts behind those findings, by their ids, that can be asked of one text."""
    asked = [question for finding in findings if (question := _question(finding)) is not None]
    found: dict[str, Evidence] = {}
    for place in dict.fromkeys((question.run.of, question.run.corpus) for question in asked):
        own = [question for question in asked if (question.run.of, question.run.corpus) == place]
        found |= _among(own, asked_of(subject, own[0].run))
    return found


def _question(finding: Finding) -> _Question | None:
    """What can be asked of one text; nothing where the claim has several runs, was not judged, or needs many texts."""
    claim, runs = finding.claim, list(finding.claim.measured_by.values())
    if len(runs) > 1 or finding.verdict.outcome == "not applicable" or not runs[0].analysis.startswith(GROUPS):
        return None
    if runs[0].analysis == "heads/dependency":
        return _of_relation(claim, runs[0], finding.results[0].data)
    known = set(registry.get(runs[0].analysis).inputs) <= INPUTS
    return _Question(claim, runs[0], finding.verdict.chosen) if known else None


def _of_relation(claim: Claim, run: Run, data: Shape) -> _Question | None:
    """A table of relations has the best head of each: on one text it is that head which is asked about."""
    rows = rows_of(claim.test)
    said = CHOICE.match(data.notes.get(next(iter(rows)), "")) if isinstance(data, Table) and len(rows) == 1 else None
    if said is None:
        return None
    (relation,) = rows
    test = SomeHead(measure=f"{relation}, {said['direction']}")
    options = {**run.options, "show": "heads", "relation": relation, "minimum": 1}
    asked = run.model_copy(update={"options": options})
    return _Question(claim.model_copy(update={"test": test}), asked, Head.parse(said["head"]))


def _among(asked: Sequence[_Question], subject: Subject) -> dict[str, Evidence]:
    """The evidence of findings on one model and corpus: each text is shown to the model once."""
    if subject.encoder is None or subject.corpus is None:
        return {}
    seen: dict[str, list[tuple[tuple[str, ...], Instance]]] = {question.claim.id: [] for question in asked}
    for number, item in enumerate(spread(subject.corpus)):
        if number == ENOUGH and not any(seen.values()):
            break
        results = _alone(item, [question.run for question in asked], subject, subject.corpus)
        for question in asked:
            result = results.get(_key(question.run))
            numbers = None if result is None else _numbers(question, result)
            if numbers is not None:
                seen[question.claim.id].append((tuple(numbers), Instance(shown(item), tuple(numbers.values()))))
    found = {name: _ends(instances, len(subject.corpus)) for name, instances in seen.items() if instances}
    return {name: one for name, one in found.items() if one.looked >= 2 * SHOWN}


def spread(corpus: Corpus) -> list[Item]:
    """A few items, evenly from all of them."""
    places = np.unique(np.linspace(0, len(corpus) - 1, LOOKED).round().astype(int))
    return [corpus[int(place)] for place in places]


def shown(item: Item) -> str:
    """The words of an item that a model is shown together."""
    return " ‖ ".join(part.text for part in item.parts)


def _alone(item: Item, runs: Sequence[Run], subject: Subject, corpus: Corpus) -> dict[str, Result]:
    """What the analyses find in one item, by the runs' keys; nothing for those that refuse it."""
    wanted: dict[str, tuple[Analysis, dict[str, Any]]] = {
        _key(run): (registry.get(run.analysis), dict(run.options)) for run in runs
    }
    one = replace(subject, corpus=replace(corpus, items=(item,)), recording=None, randomise=False, store=None)
    refused: dict[int, Refusal] = {}
    results = run_all(list(wanted.values()), one, refused=refused)
    return dict(zip((key for place, key in enumerate(wanted) if place not in refused), results, strict=True))


def _key(run: Run) -> str:
    return f"{run.analysis} {sorted(run.options.items())}"


def _numbers(question: _Question, result: Result) -> dict[str, float] | None:
    """What the claim's test compares, by name; a baseline is not there where one text cannot have it."""
    numbers, test = Numbers(question.claim, {"": result}), question.claim.test
    try:
        if isinstance(test, SomeHead | Peak):
            return _chosen(numbers, test, question.chosen)
        first, *others = _compared(test)
        told = {numbers.spelt(first): numbers.number(first).value}
    except Absent:
        return None
    for other in others:
        try:
            told[numbers.spelt(other)] = numbers.number(other).value
        except Absent:
            if other.baseline is None:
                return None
    return told


def _compared(test: Test) -> list[Selection]:
    """The number a test is about and, where there is one, the number it is compared with."""
    match test:
        case Greater():
            return [test.this, *([test.than] if isinstance(test.than, Selection) else [])]
        case Between():
            return [test.this]
        case Ordered() if len(test.these) == 2:
            return list(reversed(test.these))
        case _:
            raise Absent("one text has no such number")


def _chosen(numbers: Numbers, test: SomeHead | Peak, chosen: tuple[int, int] | None) -> dict[str, float] | None:
    """The numbers of the head, or of the two layers, that all texts together chose."""
    if chosen is None:
        return None
    if isinstance(test, SomeHead):
        head, grid = Head(*chosen), numbers.measure(numbers.data("", HeadGrid), test.measure, None)
        told = {f"{test.measure}, head {head}": float(grid.value[head])}
    else:
        curve, first = numbers.curve("", test.measure)
        order = reversed(chosen) if test.lowest else chosen
        told = {f"{test.measure}, layer {row + first}": float(curve.value[row]) for row in order}
    return told if np.isfinite(list(told.values())).all() else None


def _ends(instances: Sequence[tuple[tuple[str, ...], Instance]], there: int) -> Evidence:
    """The texts at both ends; those that lack a number that others have are left out."""
    named = max((names for names, _ in instances), key=len)
    order = sorted((one for names, one in instances if names == named), key=lambda one: -one.lead)
    return Evidence(named, tuple(order[:SHOWN]), tuple(order[-SHOWN:]), len(order), there)
