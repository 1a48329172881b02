"""Reflexive pronouns with an antecedent and up to two distractor noun phrases (lin2019, table 2, R1 to R8).

| condition | object | noun in the relative clause |
|---|---|---|
| R0 | – | – |
| R1, R2 | match, mismatch | – |
| R3, R4 | one distractor after the start of a relative clause, in it or as the object: match, mismatch | |
| R5, R6 | match | match, mismatch |
| R7, R8 | mismatch | match, mismatch |

The paper illustrates R3 and R4 by a noun in the clause; half of the published `refl.3` and `refl.4`, and half of the
examples generated here, have an intransitive clause and an object instead (factor `structure`). A distractor matches in
gender (as published) or, with `feature=number`, in number. Marked words and label are as in `agreement`. Factors:
`condition`, `cell`, `feature`, `antecedent` (masculine_singular ...), `structure`, `object` and `clause` (match,
mismatch or none), `distractors`, `mismatches`, `distance`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from bertology.corpus.generate import Stratum, generator
from bertology.corpus.open_sesame_grammar import (
    REFLEXIVE_CELLS,
    determiner,
    intransitive,
    modal,
    relative,
    to_examples,
    transitive,
)
from bertology.corpus.phrase_spaces import Phrase, phrases, sequence, split_word_list
from bertology.corpus.sample_spaces import SampleSpace, map_space

AgreementFeature = Literal["gender", "number"]
PEOPLE: Mapping[str, tuple[str, ...]] = {
    "masculine_singular": split_word_list(
        "man boy king prince wizard father uncle nephew actor brother husband lord monk"
    ),
    "masculine_plural": split_word_list(
        "men boys kings princes wizards fathers uncles nephews actors brothers husbands lords monks"
    ),
    "feminine_singular": split_word_list(
        "woman girl queen princess witch mother aunt niece actress sister wife lady nun"
    ),
    "feminine_plural": split_word_list(
        "women girls queens princesses witches mothers aunts nieces actresses sisters wives ladies nuns"
    ),
}
OPPOSITE = {"masculine": "feminine", "feminine": "masculine", "singular": "plural", "plural": "singular"}
DISTRACTORS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "R0": (("none", "none"),),
    "R1": (("match", "none"),),
    "R2": (("mismatch", "none"),),
    "R3": (("none", "match"), ("match", "none")),
    "R4": (("none", "mismatch"), ("mismatch", "none")),
    "R5": (("match", "match"),),
    "R6": (("match", "mismatch"),),
    "R7": (("mismatch", "match"),),
    "R8": (("mismatch", "mismatch"),),
}
"""Condition -> whether the object and the noun in the relative clause match the antecedent."""


@generator("reflexives", description="Open Sesame reflexives: reflexive pronoun, antecedent and distractors (R0 to R8)")
def reflexive_strata(*, feature: AgreementFeature = "gender") -> list[Stratum]:
    """Return the strata of nine equally frequent conditions; distractors differ in `feature`: gender or number."""
    antecedents = [kind for kind in PEOPLE if feature == "number" or kind.endswith("singular")]
    return [
        stratum
        for cell, condition in REFLEXIVE_CELLS.items()
        for antecedent in antecedents
        for stratum in _condition_strata(feature, cell, condition, antecedent)
    ]


def _condition_strata(feature: AgreementFeature, cell: str, condition: str, antecedent: str) -> Iterator[Stratum]:
    for object, clause in DISTRACTORS[condition]:
        object_phrase = _noun_phrase(_kind(antecedent, object, feature))
        for structure, (weight, between) in _clauses(condition, _kind(antecedent, clause, feature)).items():
            tail = sequence(object_phrase, phrases("by")) if object != "none" else sequence()
            subject = _noun_phrase(antecedent, "antecedent")
            space = sequence(subject, between, modal, transitive, tail, phrases(pronoun(antecedent), role="target"))
            factors = {
                "condition": condition,
                "cell": cell,
                "feature": feature,
                "antecedent": antecedent,
                "structure": structure,
                "object": object,
                "clause": clause,
                "distractors": str((object, clause).count("match") + (object, clause).count("mismatch")),
                "mismatches": str((object, clause).count("mismatch")),
                "distance": str(len(space.element(0)) - 2),
            }
            yield Stratum(factors, to_examples(space, condition), weight)


def _clauses(condition: str, kind: str) -> dict[str, tuple[int, SampleSpace[Phrase]]]:
    """Return the phrases between antecedent and main auxiliary, with weights that sum to 4 in each condition."""
    intransitive_clause = sequence(relative, modal, intransitive)
    if kind == "none" and condition == "R0":
        return {"plain": (3, sequence()), "intransitive_relative": (1, intransitive_clause)}
    if kind == "none":
        has_clause = condition in ("R3", "R4")
        return {"intransitive_relative": (2, intransitive_clause)} if has_clause else {"plain": (4, sequence())}
    weight = 1 if condition in ("R3", "R4") else 2
    return {
        "object_relative": (weight, sequence(relative, _noun_phrase(kind), modal, transitive)),
        "subject_relative": (weight, sequence(relative, modal, transitive, _noun_phrase(kind))),
    }


def _kind(antecedent: str, relation: str, feature: AgreementFeature) -> str:
    """Return the kind of noun that matches or mismatches the antecedent in one feature and shares the other."""
    gender, number = antecedent.split("_")
    if relation == "mismatch":
        gender, number = (OPPOSITE[gender], number) if feature == "gender" else (gender, OPPOSITE[number])
    return "none" if relation == "none" else f"{gender}_{number}"


def _noun_phrase(kind: str, role: str = "distractor") -> SampleSpace[Phrase]:
    phrase = sequence(determiner, phrases(*PEOPLE.get(kind, ())))
    return map_space(phrase, lambda words: tuple(word._replace(role=role) for word in words))


def pronoun(kind: str) -> str:
    """Return the reflexive pronoun that agrees with a kind of noun."""
    if kind.endswith("plural"):
        return "themselves"
    return "himself" if kind.startswith("masculine") else "herself"
