"""An auxiliary, the noun phrase it agrees with, and one that distracts from it (lin2019, table 2, A1 to A4).

| condition | the distractor stands in | its number | cells |
|---|---|---|---|
| A0 | there is none | | agr.0 to agr.3 |
| A1, A2 | a prepositional phrase | the same, another | agr.4 to agr.11 |
| A3, A4 | a relative clause | the same, another | agr.12 to agr.19 |

The twenty cells cross the numbers of antecedent and distractor with a modal (even) or an inflected (odd) auxiliary and
are equally frequent. The marks are `target`, `antecedent` and `distractor`, determiner and noun together, as the
reader of the published files gives them; the item's label is the condition. Factors: `condition`, `cell`, `auxiliary`
(modal, inflected), `number` and `distractor` (singular, plural), `structure`, `relative`, `distractors` and `mismatch`
(0, 1), and `distance`, the words from the antecedent's noun to the target.
"""

from __future__ import annotations

from collections.abc import Iterator

from bertology.corpus.factors import AGREEMENT_CELLS
from bertology.corpus.generate import Stratum, generator
from bertology.corpus.phrases import Phrase, sequence, word
from bertology.corpus.sesame import (
    ANIMALS,
    INFLECTED,
    MODALS,
    NUMBERS,
    POSSESSIVES,
    Number,
    intransitive,
    items,
    modal,
    preposition,
    relative,
    transitive,
)
from bertology.corpus.spaces import Space, either

Structures = dict[str, tuple[int, Space[Phrase]]]
"""Structures by name: the weight within their cell, and what stands between antecedent and target."""


@generator("agreement", about="Open Sesame agreement: an auxiliary, its antecedent and a distractor (A0 to A4)")
def agreement() -> list[Stratum]:
    """Twenty cells, agr.0 to agr.19."""
    described: list[tuple[Number, str, Structures]] = []
    for number in NUMBERS:
        described.append((number, "none", _undistracted(number)))
    for structures in (_prepositional, _relative):
        for number in NUMBERS:
            for other in NUMBERS:
                described.append((number, other, structures(number, other)))
    cells = [(kind, *design) for design in described for kind in ("modal", "inflected")]
    return [stratum for place, cell in enumerate(cells) for stratum in _cell(f"agr.{place}", *cell)]


def _cell(cell: str, kind: str, number: Number, other: str, structures: Structures) -> Iterator[Stratum]:
    auxiliary = word(*MODALS, role="target") if kind == "modal" else word(INFLECTED[number], role="target")
    for structure, (weight, between) in structures.items():
        factors = {
            "condition": AGREEMENT_CELLS[cell],
            "cell": cell,
            "auxiliary": kind,
            "number": number,
            "distractor": other,
            "structure": structure,
            "relative": str(int(structure.endswith("relative"))),
            "distractors": str(int(other != "none")),
            "mismatch": str(int(other not in ("none", number))),
            "distance": str(len(between.at(0)) + 1),
        }
        space = sequence(_noun_phrase(number, "antecedent"), between, auxiliary, intransitive)
        yield Stratum(factors, items(space, AGREEMENT_CELLS[cell]), weight)


def _noun_phrase(number: Number, role: str) -> Space[Phrase]:
    return sequence(word("the", *POSSESSIVES, role=role), word(*ANIMALS[number], role=role))


def _inner(number: Number) -> Space[Phrase]:
    """The auxiliary of a relative clause, which agrees with the clause's own subject."""
    return either((1, modal), (1, word(INFLECTED[number])))


def _undistracted(number: Number) -> Structures:
    return {"plain": (3, sequence()), "intransitive_relative": (1, sequence(relative, _inner(number), intransitive))}


def _prepositional(number: Number, other: Number) -> Structures:
    return {"prepositional": (4, sequence(preposition, _noun_phrase(other, "distractor")))}


def _relative(number: Number, other: Number) -> Structures:
    distractor = _noun_phrase(other, "distractor")
    return {
        "object_relative": (2, sequence(relative, distractor, _inner(other), transitive)),
        "subject_relative": (2, sequence(relative, _inner(number), transitive, distractor)),
    }
