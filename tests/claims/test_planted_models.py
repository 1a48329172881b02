"""The judge can say no: models built to satisfy a finding, to violate it, and of noise, from model to verdict."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from bertology.analyses.run import Subject
from bertology.claims.examine import examine
from bertology.claims.shelf import all_claims
from bertology.corpus.corpus import Corpus
from planted_models import (
    CLS,
    ENGLISH,
    SEP,
    STOPS,
    PlantedEncoder,
    at_other_random,
    at_the_next,
    evenly,
    in_a_cone,
    looking_at,
    model,
    noise,
    of_other_nothing,
    of_words,
)

EVERY = range(1, 13)
CORPUS: Corpus = ENGLISH[:40]


@dataclass(frozen=True)
class Built:
    """Models that a finding holds and fails for, and the models they are compared with, where they are."""

    holds: PlantedEncoder
    fails: PlantedEncoder
    partner: PlantedEncoder | None = None


def layers(first: int, last: int) -> range:
    return range(first, last + 1)


BUILT: dict[str, Built] = {
    "sep-above-uniform": Built(
        model("h", looks={EVERY: looking_at(SEP)}),
        model("f", looks={EVERY: looking_at(CLS)}),
    ),
    "cls-early": Built(
        model("h", looks={EVERY: looking_at(SEP), layers(2, 4): looking_at(CLS)}),
        model("f", looks={EVERY: looking_at(CLS), layers(2, 4): looking_at(SEP)}),
    ),
    "sep-more-in-the-middle-than-early": Built(
        model("h", looks={EVERY: looking_at(CLS), layers(5, 10): looking_at(SEP)}),
        model("f", looks={EVERY: looking_at(SEP), layers(5, 10): looking_at(CLS)}),
    ),
    "punctuation-late": Built(
        model("h", looks={EVERY: looking_at(CLS), layers(11, 12): looking_at(*STOPS)}),
        model("f", looks={EVERY: looking_at(*STOPS), layers(11, 12): looking_at(CLS)}),
    ),
    "entropy-high-low-high": Built(
        model("h", looks={EVERY: evenly, layers(5, 10): at_the_next}),
        model("f", looks={EVERY: at_the_next, layers(5, 10): evenly}),
    ),
    "first-layer-broad": Built(
        model("h", looks={EVERY: at_the_next, layers(1, 1): evenly}),
        model("f", looks={EVERY: evenly, layers(1, 1): at_the_next}),
    ),
    "last-cls-broad": Built(
        model("h", looks={EVERY: at_the_next, layers(12, 12): evenly}),
        model("f", looks={EVERY: evenly, layers(12, 12): at_the_next}),
    ),
    "anisotropy-rises": Built(
        model("h", states={layers(9, 12): in_a_cone}),
        model("f", states={layers(0, 4): in_a_cone}),
    ),
    "self-similarity-falls": Built(
        model("h", states={layers(0, 4): of_words}),
        model("f", states={layers(9, 12): of_words}),
    ),
    "top-layers-change-most": Built(
        model("h", states={layers(0, 9): of_words, layers(10, 12): of_other_nothing}),
        model("f", states={layers(0, 9): of_other_nothing, layers(10, 12): of_words}),
        model("p", states={layers(0, 12): of_words}),
    ),
    "embeddings-change-least": Built(
        model("h", states={layers(0, 0): of_words, layers(1, 12): of_other_nothing}),
        model("f", states={layers(0, 0): of_other_nothing, layers(1, 12): of_words}),
        model("p", states={layers(0, 12): of_words}),
    ),
    "last-layers-attend-otherwise": Built(
        model("h", looks={EVERY: evenly, layers(11, 12): at_the_next}),
        model("f", looks={EVERY: at_the_next, layers(11, 12): evenly}),
        model("p", looks={EVERY: evenly}),
    ),
}
OTHER_NOISE = PlantedEncoder("other noise", [at_other_random] * 12, [of_other_nothing] * 13)


def verdict(claim: str, encoder: PlantedEncoder, partner: PlantedEncoder | None) -> tuple[str, str]:
    chosen = [one for one in all_claims() if one.id == claim]
    subject = Subject(corpus=CORPUS, encoder=encoder, against=partner, randomise=False)
    [found] = examine(chosen, subject)
    return found.verdict.outcome, found.verdict.why


def test_there_are_at_least_ten() -> None:
    assert len(BUILT) >= 10


@pytest.mark.parametrize("claim", BUILT)
def test_a_model_built_to_satisfy_it_holds(claim: str) -> None:
    built = BUILT[claim]
    assert verdict(claim, built.holds, built.partner)[0] == "holds"


@pytest.mark.parametrize("claim", BUILT)
def test_a_model_built_to_violate_it_fails(claim: str) -> None:
    built = BUILT[claim]
    assert verdict(claim, built.fails, built.partner)[0] == "fails"


@pytest.mark.parametrize("claim", BUILT)
def test_noise_is_inconclusive(claim: str) -> None:
    partner = OTHER_NOISE if BUILT[claim].partner is not None else None
    outcome, why = verdict(claim, noise(), partner)
    assert outcome == "inconclusive", why
