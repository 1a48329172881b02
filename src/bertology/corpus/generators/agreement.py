"""Subject-auxiliary agreement with a distractor noun phrase (lin2019, table 2, A1 to A4).

| condition | distractor in | number of the distractor | cells |
|---|---|---|---|
| A0 | no distractor | | agr.0 to agr.3 |
| A1, A2 | prepositional phrase | same, other | agr.4 to agr.11 |
| A3, A4 | relative clause | same, other | agr.12 to agr.19 |

The twenty cells cross the numbers of antecedent and distractor with a modal (even) or inflected (odd) auxiliary and are
equally frequent. Marked words are `target`, `antecedent` and `distractor`, determiner and noun together, as in the
published files; the label is the condition. Factors: `condition`, `cell`, `auxiliary` (modal, inflected), `number` and
`distractor` (singular, plural), `structure`, `relative`, `distractors` and `mismatch` (0, 1), and `distance`, the
number of words from the noun of the antecedent to the target.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from bertology.corpus.generate import Stratum, generator
from bertology.corpus.open_sesame_grammar import (
    AGREEMENT_CELLS,
    ANIMALS,
    INFLECTED_AUXILIARY,
    MODALS,
    NUMBERS,
    POSSESSIVES,
    GrammaticalNumber,
    intransitive,
    modal,
    preposition,
    relative,
    to_examples,
    transitive,
)
from bertology.corpus.phrase_spaces import Phrase, phrases, sequence
from bertology.corpus.sample_spaces import SampleSpace, union

Structures = dict[str, tuple[int, SampleSpace[Phrase]]]
"""Structure -> its weight within the cell, and the phrases between antecedent and target."""


@generator("agreement", description="Open Sesame agreement: auxiliary, antecedent and distractor (A0 to A4)")
def agreement_strata() -> list[Stratum]:
    """Return the strata of twenty cells, agr.0 to agr.19."""
    designs: list[tuple[GrammaticalNumber, str, Structures]] = [(n, "none", _no_distractor(n)) for n in NUMBERS]
    for structures, number, distractor_number in product((_prepositional, _relative), NUMBERS, NUMBERS):
        designs.append((number, distractor_number, structures(number, distractor_number)))
    cells = [(auxiliary, *design) for design in designs for auxiliary in ("modal", "inflected")]
    return [stratum for index, cell in enumerate(cells) for stratum in _cell_strata(f"agr.{index}", *cell)]


def _cell_strata(
    cell: str, auxiliary: str, number: GrammaticalNumber, distractor_number: str, structures: Structures
) -> Iterator[Stratum]:
    forms = MODALS if auxiliary == "modal" else (INFLECTED_AUXILIARY[number],)
    for structure, (weight, between) in structures.items():
        factors = {
            "condition": AGREEMENT_CELLS[cell],
            "cell": cell,
            "auxiliary": auxiliary,
            "number": number,
            "distractor": distractor_number,
            "structure": structure,
            "relative": str(int(structure.endswith("relative"))),
            "distractors": str(int(distractor_number != "none")),
            "mismatch": str(int(distractor_number not in ("none", number))),
            "distance": str(len(between.element(0)) + 1),
        }
        space = sequence(_noun_phrase(number, "antecedent"), between, phrases(*forms, role="target"), intransitive)
        yield Stratum(factors, to_examples(space, AGREEMENT_CELLS[cell]), weight)


def _noun_phrase(number: GrammaticalNumber, role: str) -> SampleSpace[Phrase]:
    return sequence(phrases("the", *POSSESSIVES, role=role), phrases(*ANIMALS[number], role=role))


def _clause_auxiliary(number: GrammaticalNumber) -> SampleSpace[Phrase]:
    """Return the auxiliaries of a relative clause, which agree with the subject of the clause."""
    return union((1, modal), (1, phrases(INFLECTED_AUXILIARY[number])))


def _no_distractor(number: GrammaticalNumber) -> Structures:
    return {
        "plain": (3, sequence()),
        "intransitive_relative": (1, sequence(relative, _clause_auxiliary(number), intransitive)),
    }


def _prepositional(number: GrammaticalNumber, distractor_number: GrammaticalNumber) -> Structures:
    return {"prepositional": (4, sequence(preposition, _noun_phrase(distractor_number, "distractor")))}


def _relative(number: GrammaticalNumber, distractor_number: GrammaticalNumber) -> Structures:
    distractor = _noun_phrase(distractor_number, "distractor")
    return {
        "object_relative": (2, sequence(relative, distractor, _clause_auxiliary(distractor_number), transitive)),
        "subject_relative": (2, sequence(relative, _clause_auxiliary(number), transitive, distractor)),
    }
