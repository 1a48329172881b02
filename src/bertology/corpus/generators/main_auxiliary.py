"""Which auxiliary is the main one: a rule by position or by structure (lin2019, section 3.2).

In `train` and `test` the subject has no relative clause, so "the first auxiliary" and "the auxiliary of the main
clause" say the same. In `generalisation` the subject has one, and the first auxiliary is the wrong one. `train` and
`test` share no sentence, whatever their seeds and sizes. The mark is `target`. Factors: `split`, `subject` and `object`
(the modifier of each; `none` without an object), `auxiliaries` (how many there are).
"""

from __future__ import annotations

from bertology.corpus.generate import Stratum, generator, one_of
from bertology.corpus.phrases import sequence, word
from bertology.corpus.sesame import MODALS, RELATIVE_CLAUSES, determiner, items, modifiers, noun, predicates
from bertology.corpus.spaces import split as halves

SPLITS = ("all", "train", "test", "generalisation")
SHARES = {"train": 4, "test": 1, "generalisation": 1}
"""How the splits stand to each other in `all`: 40,000, 10,000 and 10,000 in the paper."""


@generator("main_auxiliary", about="Open Sesame main auxiliary: train, test and a set where position misleads")
def main_auxiliary(*, split: str = "all") -> list[Stratum]:
    """`split`: train, test, generalisation, or all of them four to one to one."""
    one_of("split", split, SPLITS)
    strata = [stratum for subject in modifiers() for stratum in _subject(subject)]
    return [stratum for stratum in strata if split in ("all", stratum.factors["split"])]


def _subject(subject: str) -> list[Stratum]:
    found: list[Stratum] = []
    for object, (weight, predicate) in predicates(word(*MODALS, role="target")).items():
        auxiliaries = 1 + sum(modifier in RELATIVE_CLAUSES for modifier in (subject, object))
        factors = {"subject": subject, "object": object, "auxiliaries": str(auxiliaries)}
        whole = items(sequence(determiner, noun, modifiers()[subject], predicate), roles=("target",))
        if subject in RELATIVE_CLAUSES:
            parts = {"generalisation": (2, whole)}
        else:
            parts = {part: (3, half) for part, half in zip(("train", "test"), halves(whole), strict=True)}
        found += [
            Stratum({"split": part} | factors, space, SHARES[part] * share * weight)
            for part, (share, space) in parts.items()
        ]
    return found
