"""Which noun is the subject's head: a rule by position or by structure (lin2019, section 3.3).

In `train` and `test` it is the first noun. In `compound` another noun stands before it ("the worker bee") and in
`possessive` an owner ("the cat's dog", up to three owners in a row). `clitic=joined` writes the owner as one word, as
the files named `sbjn-join`; `clitic=apart` makes 's a word of its own. The mark is `target`. Factors: `split`,
`subject` and `object` (the modifier of each; `none` without an object), `before` (nouns before the target).

The first nouns of compounds are in no sentence of `train`, here as in the published files, so that whoever knows the
forms of targets needs no structure for `compound`. With `first=known` four of them ("the queen can sleep") are targets
in `train` and `test` as well, and all compounds begin with these.
"""

from __future__ import annotations

from collections.abc import Mapping

from bertology.corpus.generate import Stratum, generator, one_of
from bertology.corpus.phrases import Phrase, sequence, word
from bertology.corpus.sesame import (
    ANIMALS,
    MODIFIERS,
    RELATIVE_CLAUSES,
    Number,
    adjectives,
    determiner,
    items,
    modal,
    modifiers,
    predicates,
)
from bertology.corpus.spaces import Space, mapped
from bertology.corpus.spaces import split as halves

SPLITS = ("all", "train", "test", "compound", "possessive")
SHARES = {"train": 4, "test": 1, "compound": 1, "possessive": 1}
OWNERS = 3
COMPOUNDS: Mapping[Number, tuple[str, ...]] = {
    "singular": (
        "worker bee", "worker ant", "queen bee", "queen ant", "honey bee", "house cat", "barn cat", "race horse",
        "farm horse", "guard dog", "sheep dog", "mountain lion", "field mouse", "song bird",
    ),
    "plural": (
        "worker bees", "worker ants", "queen bees", "queen ants", "honey bees", "house cats", "barn cats",
        "race horses", "farm horses", "guard dogs", "sheep dogs", "mountain lions", "field mice", "song birds",
    ),
}  # fmt: skip
KNOWN: Mapping[Number, tuple[str, ...]] = {
    "singular": ("worker", "queen", "guard", "sheep"),
    "plural": ("workers", "queens", "guards", "sheep"),
}


@generator("subject_noun", about="Open Sesame subject noun: train, test, and sets with compounds and possessives")
def subject_noun(*, split: str = "all", clitic: str = "joined", first: str = "new") -> list[Stratum]:
    """`split`: train, test, compound, possessive, or all, 4:1:1:1; `clitic`: how a possessive is written.

    `first`: whether the first nouns of compounds are new, as published, or known from training.
    """
    one_of("split", split, SPLITS)
    one_of("clitic", clitic, ("joined", "apart"))
    one_of("first", first, ("new", "known"))
    known = first == "known"
    heads = {"compound": {1: _compound(known)}, "possessive": _possessed(clitic)}
    strata = [stratum for modifier in MODIFIERS for stratum in _plain(modifier, known)]
    strata += [
        stratum
        for part, nouns in heads.items()
        for modifier in MODIFIERS
        for before, head in nouns.items()
        for stratum in _strata(part, modifier, before, sequence(adjectives(), head), OWNERS // len(nouns))
    ]
    return [stratum for stratum in strata if split in ("all", stratum.factors["split"])]


def _plain(modifier: str, known: bool) -> list[Stratum]:
    found: list[Stratum] = []
    others = (*KNOWN["singular"], *KNOWN["plural"]) if known else ()
    for stratum in _strata("", modifier, 0, sequence(adjectives(), _head(*dict.fromkeys(others))), OWNERS):
        for part, half in zip(("train", "test"), halves(stratum.space), strict=True):
            found.append(Stratum(dict(stratum.factors) | {"split": part}, half, SHARES[part] * stratum.weight))
    return found


def _strata(part: str, modifier: str, before: int, head: Space[Phrase], share: int) -> list[Stratum]:
    """The subject before every predicate; relative clauses are a third of the subjects, as among the objects."""
    share *= 1 if modifier in RELATIVE_CLAUSES else 3
    return [
        Stratum(
            {"split": part, "subject": modifier, "object": object, "before": str(before)},
            items(sequence(determiner, head, modifiers()[modifier], predicate), roles=("target",)),
            share * weight,
        )
        for object, (weight, predicate) in predicates(modal).items()
    ]


def _head(*others: str) -> Space[Phrase]:
    return word(*ANIMALS["singular"], *ANIMALS["plural"], *others, role="target")


def _compound(known: bool) -> Space[Phrase]:
    pairs = (*COMPOUNDS["singular"], *COMPOUNDS["plural"])
    plain = word(*(pair for pair in pairs if not known or pair.split()[0] in KNOWN["singular"]))
    return mapped(plain, lambda tokens: (tokens[0], tokens[1]._replace(role="target")))


def _possessed(clitic: str) -> dict[int, Space[Phrase]]:
    """One to three owners, each with adjectives after it, before a noun: nouns before the target -> phrase."""
    owner = word(*(f"{name} 's" if clitic == "apart" else f"{name}'s" for name in ANIMALS["singular"]))
    return {n: sequence(*[sequence(owner, adjectives())] * n, _head()) for n in range(1, OWNERS + 1)}
