"""The main auxiliary of a sentence, identified by position or by structure (lin2019, section 3.2).

In `train` and `test` the subject has no relative clause, so "the first auxiliary" and "the auxiliary of the main
clause" are the same word. In `generalisation` the subject has one, and the first auxiliary is not the main one. `train`
and `test` share no sentence, whatever their seeds and sizes. The marked word is `target`. Factors: `split`, `subject`
and `object` (the modifier of each; `none` without an object), `auxiliaries` (their number).
"""

from __future__ import annotations

from typing import Literal

from bertology.corpus.generate import Stratum, generator
from bertology.corpus.open_sesame_grammar import (
    MODALS,
    RELATIVE_CLAUSES,
    determiner,
    modifiers,
    noun,
    predicates,
    to_examples,
)
from bertology.corpus.phrase_spaces import phrases, sequence
from bertology.corpus.sample_spaces import split_train_test

SPLIT_WEIGHTS = {"train": 4, "test": 1, "generalisation": 1}
"""Relative sizes of the splits in `all`: 40,000, 10,000 and 10,000 in the paper."""


@generator(
    "main_auxiliary", description="Open Sesame main auxiliary: train, test, and a set in which position misleads"
)
def main_auxiliary_strata(*, split: Literal["all", "train", "test", "generalisation"] = "all") -> list[Stratum]:
    """Return the strata of a split: train, test, generalisation, or all (4:1:1)."""
    strata = [stratum for subject in modifiers() for stratum in _subject_strata(subject)]
    return [stratum for stratum in strata if split in ("all", stratum.factors["split"])]


def _subject_strata(subject: str) -> list[Stratum]:
    strata: list[Stratum] = []
    for object, (weight, predicate) in predicates(phrases(*MODALS, role="target")).items():
        n_auxiliaries = 1 + sum(modifier in RELATIVE_CLAUSES for modifier in (subject, object))
        factors = {"subject": subject, "object": object, "auxiliaries": str(n_auxiliaries)}
        examples = to_examples(sequence(determiner, noun, modifiers()[subject], predicate), roles=("target",))
        if subject in RELATIVE_CLAUSES:
            splits = {"generalisation": (2, examples)}
        else:
            halves = split_train_test(examples)
            splits = {split: (3, space) for split, space in zip(("train", "test"), halves, strict=True)}
        strata += [
            Stratum({"split": split} | factors, space, SPLIT_WEIGHTS[split] * subject_weight * weight)
            for split, (subject_weight, space) in splits.items()
        ]
    return strata
