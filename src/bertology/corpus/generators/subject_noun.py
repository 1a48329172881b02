"""The head noun of the subject, identified by position or by structure (lin2019, section 3.3).

In `train` and `test` it is the first noun. In `compound` another noun precedes it ("the worker bee") and in
`possessive` one to three possessors ("the cat's dog"). `clitic=joined` writes a possessor as one word, as the files
named `sbjn-join` do; `clitic=apart` makes 's a separate word. The marked word is `target`. Factors: `split`, `subject`
and `object` (the modifier of each; `none` without an object), `before` (number of nouns before the target).

The first nouns of compounds occur in no sentence of `train`, here as in the published files, so that a classifier which
knows the forms of targets needs no structure for `compound`. With `first=known` four of them ("the queen can sleep")
are targets in `train` and `test` as well, and all compounds begin with one of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from bertology.corpus.generate import Stratum, generator
from bertology.corpus.open_sesame_grammar import (
    ANIMALS,
    MODIFIERS,
    RELATIVE_CLAUSES,
    GrammaticalNumber,
    adjectives,
    determiner,
    modal,
    modifiers,
    predicates,
    to_examples,
)
from bertology.corpus.phrase_spaces import Phrase, phrases, sequence
from bertology.corpus.sample_spaces import SampleSpace, map_space, split_train_test

SPLIT_WEIGHTS = {"train": 4, "test": 1, "compound": 1, "possessive": 1}
MAX_OWNERS = 3
COMPOUNDS: Mapping[GrammaticalNumber, tuple[str, ...]] = {
    "singular": (
        "worker bee", "worker ant", "queen bee", "queen ant", "honey bee", "house cat", "barn cat", "race horse",
        "farm horse", "guard dog", "sheep dog", "mountain lion", "field mouse", "song bird",
    ),
    "plural": (
        "worker bees", "worker ants", "queen bees", "queen ants", "honey bees", "house cats", "barn cats",
        "race horses", "farm horses", "guard dogs", "sheep dogs", "mountain lions", "field mice", "song birds",
    ),
}  # fmt: skip
SHARED_FIRST_NOUNS: Mapping[GrammaticalNumber, tuple[str, ...]] = {
    "singular": ("worker", "queen", "guard", "sheep"),
    "plural": ("workers", "queens", "guards", "sheep"),
}


@generator(
    "subject_noun", description="Open Sesame subject noun: train, test, and sets with compounds and with possessives"
)
def subject_noun_strata(
    *,
    split: Literal["all", "train", "test", "compound", "possessive"] = "all",
    clitic: Literal["joined", "apart"] = "joined",
    first: Literal["new", "known"] = "new",
) -> list[Stratum]:
    """Return the strata of a split: train, test, compound, possessive, or all (4:1:1:1).

    `clitic` is how a possessive is written. `first` is whether the first nouns of compounds are new, as published, or
    known from training.
    """
    nouns_in_training = first == "known"
    subjects = {"compound": {1: _compound(nouns_in_training)}, "possessive": _possessive(clitic)}
    strata = [stratum for modifier in MODIFIERS for stratum in _plain_strata(modifier, nouns_in_training)]
    strata += [
        stratum
        for name, by_n_nouns in subjects.items()
        for modifier in MODIFIERS
        for n_nouns, noun in by_n_nouns.items()
        for stratum in _strata(name, modifier, n_nouns, sequence(adjectives(), noun), MAX_OWNERS // len(by_n_nouns))
    ]
    return [stratum for stratum in strata if split in ("all", stratum.factors["split"])]


def _plain_strata(modifier: str, nouns_in_training: bool) -> list[Stratum]:
    strata: list[Stratum] = []
    extra_nouns = (*SHARED_FIRST_NOUNS["singular"], *SHARED_FIRST_NOUNS["plural"]) if nouns_in_training else ()
    noun_phrase = sequence(adjectives(), _target_noun(*dict.fromkeys(extra_nouns)))
    for stratum in _strata("", modifier, 0, noun_phrase, MAX_OWNERS):
        for split, space in zip(("train", "test"), split_train_test(stratum.space), strict=True):
            factors = dict(stratum.factors) | {"split": split}
            strata.append(Stratum(factors, space, SPLIT_WEIGHTS[split] * stratum.weight))
    return strata


def _strata(
    split: str, modifier: str, nouns_before: int, noun_phrase: SampleSpace[Phrase], subject_weight: int
) -> list[Stratum]:
    """Combine a subject with every predicate; a third of the subjects, as of the objects, have a relative clause."""
    subject_weight *= 1 if modifier in RELATIVE_CLAUSES else 3
    return [
        Stratum(
            {"split": split, "subject": modifier, "object": object, "before": str(nouns_before)},
            to_examples(sequence(determiner, noun_phrase, modifiers()[modifier], predicate), roles=("target",)),
            subject_weight * weight,
        )
        for object, (weight, predicate) in predicates(modal).items()
    ]


def _target_noun(*extra_nouns: str) -> SampleSpace[Phrase]:
    return phrases(*ANIMALS["singular"], *ANIMALS["plural"], *extra_nouns, role="target")


def _compound(nouns_in_training: bool) -> SampleSpace[Phrase]:
    compounds = (*COMPOUNDS["singular"], *COMPOUNDS["plural"])
    if nouns_in_training:
        compounds = tuple(pair for pair in compounds if pair.split()[0] in SHARED_FIRST_NOUNS["singular"])
    return map_space(phrases(*compounds), lambda words: (words[0], words[1]._replace(role="target")))


def _possessive(clitic: str) -> dict[int, SampleSpace[Phrase]]:
    """Return phrases with one to three possessors, each followed by adjectives, by the number of possessors."""
    owner = phrases(*(f"{name} 's" if clitic == "apart" else f"{name}'s" for name in ANIMALS["singular"]))
    return {n: sequence(*[sequence(owner, adjectives())] * n, _target_noun()) for n in range(1, MAX_OWNERS + 1)}
