"""The judge can say no: models built to satisfy a finding, to violate it, and of noise, from model to verdict."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from bertology.analyses.run import RunInputs
from bertology.claims.claim import all_claims
from bertology.claims.run import judge_claims
from bertology.corpus.corpus import Corpus
from planted_models import (
    CLS,
    ENGLISH,
    PUNCTUATION,
    SEP,
    PlantedEncoder,
    attention_to,
    attention_to_next,
    cone_states,
    noise_model,
    other_random_attention,
    other_random_states,
    planted_model,
    uniform_attention,
    word_states,
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
        planted_model("h", attention={EVERY: attention_to(SEP)}),
        planted_model("f", attention={EVERY: attention_to(CLS)}),
    ),
    "cls-early": Built(
        planted_model("h", attention={EVERY: attention_to(SEP), layers(2, 4): attention_to(CLS)}),
        planted_model("f", attention={EVERY: attention_to(CLS), layers(2, 4): attention_to(SEP)}),
    ),
    "sep-more-in-the-middle-than-early": Built(
        planted_model("h", attention={EVERY: attention_to(CLS), layers(5, 10): attention_to(SEP)}),
        planted_model("f", attention={EVERY: attention_to(SEP), layers(5, 10): attention_to(CLS)}),
    ),
    "punctuation-late": Built(
        planted_model("h", attention={EVERY: attention_to(CLS), layers(11, 12): attention_to(*PUNCTUATION)}),
        planted_model("f", attention={EVERY: attention_to(*PUNCTUATION), layers(11, 12): attention_to(CLS)}),
    ),
    "entropy-high-low-high": Built(
        planted_model("h", attention={EVERY: uniform_attention, layers(5, 10): attention_to_next}),
        planted_model("f", attention={EVERY: attention_to_next, layers(5, 10): uniform_attention}),
    ),
    "first-layer-broad": Built(
        planted_model("h", attention={EVERY: attention_to_next, layers(1, 1): uniform_attention}),
        planted_model("f", attention={EVERY: uniform_attention, layers(1, 1): attention_to_next}),
    ),
    "last-cls-broad": Built(
        planted_model("h", attention={EVERY: attention_to_next, layers(12, 12): uniform_attention}),
        planted_model("f", attention={EVERY: uniform_attention, layers(12, 12): attention_to_next}),
    ),
    "anisotropy-rises": Built(
        planted_model("h", states={layers(9, 12): cone_states}),
        planted_model("f", states={layers(0, 4): cone_states}),
    ),
    "self-similarity-falls": Built(
        planted_model("h", states={layers(0, 4): word_states}),
        planted_model("f", states={layers(9, 12): word_states}),
    ),
    "top-layers-change-most": Built(
        planted_model("h", states={layers(0, 9): word_states, layers(10, 12): other_random_states}),
        planted_model("f", states={layers(0, 9): other_random_states, layers(10, 12): word_states}),
        planted_model("p", states={layers(0, 12): word_states}),
    ),
    "embeddings-change-least": Built(
        planted_model("h", states={layers(0, 0): word_states, layers(1, 12): other_random_states}),
        planted_model("f", states={layers(0, 0): other_random_states, layers(1, 12): word_states}),
        planted_model("p", states={layers(0, 12): word_states}),
    ),
    "last-layers-attend-otherwise": Built(
        planted_model("h", attention={EVERY: uniform_attention, layers(11, 12): attention_to_next}),
        planted_model("f", attention={EVERY: attention_to_next, layers(11, 12): uniform_attention}),
        planted_model("p", attention={EVERY: uniform_attention}),
    ),
}
OTHER_NOISE = PlantedEncoder("other noise", [other_random_attention] * 12, [other_random_states] * 13)


def verdict(claim: str, encoder: PlantedEncoder, partner: PlantedEncoder | None) -> tuple[str, str]:
    chosen = [one for one in all_claims() if one.id == claim]
    subject = RunInputs(corpus=CORPUS, encoder=encoder, against=partner, random_baseline=False)
    [found] = judge_claims(chosen, subject).results
    return found.verdict.outcome, found.verdict.reason


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
    outcome, why = verdict(claim, noise_model(), partner)
    assert outcome == "inconclusive", why
