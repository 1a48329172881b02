"""A reflexive pronoun, its antecedent, and up to two noun phrases that distract from it (lin2019, table 2, R1 to R8).

| condition | object | noun in the relative clause |
|---|---|---|
| R0 | – | – |
| R1, R2 | matches, mismatches | – |
| R3, R4 | one distractor behind a relative clause begins, in it or as the object: matches, mismatches | |
| R5, R6 | matches | matches, mismatches |
| R7, R8 | mismatches | matches, mismatches |

The paper illustrates R3 and R4 by a noun in the clause; half of the published `refl.3` and `refl.4` has an intransitive
clause and an object instead, and so has half of what is made here: the factor `structure` tells them apart. A
distractor matches in gender (the published set) or, with `feature=number`, in number. Marks and label are as in
`agreement`. Factors: `condition`, `cell`, `feature`, `antecedent` (masculine_singular ...), `structure`, `object` and
`clause` (match, mismatch, none: the distractor there), `distractors`, `mismatches`, `distance`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from bertology.corpus.factors import REFLEXIVE_CELLS
from bertology.corpus.generate import Stratum, generator, one_of
from bertology.corpus.phrases import Phrase, listed, sequence, word
from bertology.corpus.sesame import determiner, intransitive, items, modal, relative, transitive
from bertology.corpus.spaces import Space, mapped

Feature = Literal["gender", "number"]
PEOPLE: Mapping[str, tuple[str, ...]] = {
    "masculine_singular": listed("man boy king prince wizard father uncle nephew actor brother husband lord monk"),
    "masculine_plural": listed(
        "men boys kings princes wizards fathers uncles nephews actors brothers husbands lords monks"
    ),
    "feminine_singular": listed("woman girl queen princess witch mother aunt niece actress sister wife lady nun"),
    "feminine_plural": listed(
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
"""Condition -> what the object and the noun in the relative clause are."""


@generator("reflexives", about="Open Sesame reflexives: himself, its antecedent and distractors (R0 to R8)")
def reflexives(*, feature: Feature = "gender") -> list[Stratum]:
    """Nine conditions, equally frequent; `feature`: what distractors match or mismatch in, gender or number."""
    one_of("feature", feature, ("gender", "number"))
    antecedents = [kind for kind in PEOPLE if feature == "number" or kind.endswith("singular")]
    return [
        stratum
        for cell, condition in REFLEXIVE_CELLS.items()
        for antecedent in antecedents
        for stratum in _condition(feature, cell, condition, antecedent)
    ]


def _condition(feature: Feature, cell: str, condition: str, antecedent: str) -> Iterator[Stratum]:
    for object, clause in DISTRACTORS[condition]:
        other = _noun_phrase(_kind(antecedent, object, feature))
        for structure, (weight, between) in _clauses(condition, _kind(antecedent, clause, feature)).items():
            tail = sequence(other, word("by")) if object != "none" else sequence()
            subject = _noun_phrase(antecedent, "antecedent")
            space = sequence(subject, between, modal, transitive, tail, word(pronoun(antecedent), role="target"))
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
                "distance": str(len(space.at(0)) - 2),
            }
            yield Stratum(factors, items(space, condition), weight)


def _clauses(condition: str, kind: str) -> dict[str, tuple[int, Space[Phrase]]]:
    """What stands between the antecedent and the main auxiliary, with weights that sum to four in each condition."""
    intransitive_clause = sequence(relative, modal, intransitive)
    if kind == "none" and condition == "R0":
        return {"plain": (3, sequence()), "intransitive_relative": (1, intransitive_clause)}
    if kind == "none":
        behind = condition in ("R3", "R4")
        return {"intransitive_relative": (2, intransitive_clause)} if behind else {"plain": (4, sequence())}
    weight = 1 if condition in ("R3", "R4") else 2
    return {
        "object_relative": (weight, sequence(relative, _noun_phrase(kind), modal, transitive)),
        "subject_relative": (weight, sequence(relative, modal, transitive, _noun_phrase(kind))),
    }


def _kind(antecedent: str, relation: str, feature: Feature) -> str:
    """The kind of noun that matches or mismatches the antecedent in one feature and shares the other."""
    gender, number = antecedent.split("_")
    if relation == "mismatch":
        gender, number = (OPPOSITE[gender], number) if feature == "gender" else (gender, OPPOSITE[number])
    return "none" if relation == "none" else f"{gender}_{number}"


def _noun_phrase(kind: str, role: str = "distractor") -> Space[Phrase]:
    phrase = sequence(determiner, word(*PEOPLE.get(kind, ())))
    return mapped(phrase, lambda tokens: tuple(token._replace(role=role) for token in tokens))


def pronoun(kind: str) -> str:
    """The reflexive that agrees with that kind of noun."""
    if kind.endswith("plural"):
        return "themselves"
    return "himself" if kind.startswith("masculine") else "herself"
