"""From model to verdict: models built to satisfy a claim, to violate it, and of noise."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from bertology.analyses.run import RunInputs
from bertology.claims.catalogue import all_claims
from bertology.claims.judge import Verdict
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

ALL_LAYERS = range(1, 13)
CORPUS: Corpus = ENGLISH[:40]


@dataclass(frozen=True)
class PlantedModels:
    """Models for which a claim holds and fails, and the second model for claims that compare two."""

    holds: PlantedEncoder
    fails: PlantedEncoder
    against: PlantedEncoder | None = None


def layers(first: int, last: int) -> range:
    return range(first, last + 1)


PLANTED: dict[str, PlantedModels] = {
    "sep-above-uniform": PlantedModels(
        planted_model("h", attention={ALL_LAYERS: attention_to(SEP)}),
        planted_model("f", attention={ALL_LAYERS: attention_to(CLS)}),
    ),
    "cls-early": PlantedModels(
        planted_model("h", attention={ALL_LAYERS: attention_to(SEP), layers(2, 4): attention_to(CLS)}),
        planted_model("f", attention={ALL_LAYERS: attention_to(CLS), layers(2, 4): attention_to(SEP)}),
    ),
    "sep-more-in-the-middle-than-early": PlantedModels(
        planted_model("h", attention={ALL_LAYERS: attention_to(CLS), layers(5, 10): attention_to(SEP)}),
        planted_model("f", attention={ALL_LAYERS: attention_to(SEP), layers(5, 10): attention_to(CLS)}),
    ),
    "punctuation-late": PlantedModels(
        planted_model("h", attention={ALL_LAYERS: attention_to(CLS), layers(11, 12): attention_to(*PUNCTUATION)}),
        planted_model("f", attention={ALL_LAYERS: attention_to(*PUNCTUATION), layers(11, 12): attention_to(CLS)}),
    ),
    "entropy-high-low-high": PlantedModels(
        planted_model("h", attention={ALL_LAYERS: uniform_attention, layers(5, 10): attention_to_next}),
        planted_model("f", attention={ALL_LAYERS: attention_to_next, layers(5, 10): uniform_attention}),
    ),
    "first-layer-broad": PlantedModels(
        planted_model("h", attention={ALL_LAYERS: attention_to_next, layers(1, 1): uniform_attention}),
        planted_model("f", attention={ALL_LAYERS: uniform_attention, layers(1, 1): attention_to_next}),
    ),
    "last-cls-broad": PlantedModels(
        planted_model("h", attention={ALL_LAYERS: attention_to_next, layers(12, 12): uniform_attention}),
        planted_model("f", attention={ALL_LAYERS: uniform_attention, layers(12, 12): attention_to_next}),
    ),
    "anisotropy-rises": PlantedModels(
        planted_model("h", states={layers(9, 12): cone_states}),
        planted_model("f", states={layers(0, 4): cone_states}),
    ),
    "self-similarity-falls": PlantedModels(
        planted_model("h", states={layers(0, 4): word_states}),
        planted_model("f", states={layers(9, 12): word_states}),
    ),
    "top-layers-change-most": PlantedModels(
        planted_model("h", states={layers(0, 9): word_states, layers(10, 12): other_random_states}),
        planted_model("f", states={layers(0, 9): other_random_states, layers(10, 12): word_states}),
        planted_model("p", states={layers(0, 12): word_states}),
    ),
    "embeddings-change-least": PlantedModels(
        planted_model("h", states={layers(0, 0): word_states, layers(1, 12): other_random_states}),
        planted_model("f", states={layers(0, 0): other_random_states, layers(1, 12): word_states}),
        planted_model("p", states={layers(0, 12): word_states}),
    ),
    "last-layers-attend-otherwise": PlantedModels(
        planted_model("h", attention={ALL_LAYERS: uniform_attention, layers(11, 12): attention_to_next}),
        planted_model("f", attention={ALL_LAYERS: attention_to_next, layers(11, 12): uniform_attention}),
        planted_model("p", attention={ALL_LAYERS: uniform_attention}),
    ),
}
OTHER_NOISE = PlantedEncoder("other noise", [other_random_attention] * 12, [other_random_states] * 13)


def judge_model(claim_id: str, encoder: PlantedEncoder, against: PlantedEncoder | None) -> Verdict:
    claims = [claim for claim in all_claims() if claim.id == claim_id]
    inputs = RunInputs(corpus=CORPUS, encoder=encoder, against=against, random_baseline=False)
    [result] = judge_claims(claims, inputs).results
    return result.verdict


def test_at_least_ten_claims_have_planted_models() -> None:
    assert len(PLANTED) >= 10


@pytest.mark.parametrize("claim_id", PLANTED)
def test_a_claim_holds_for_a_model_built_to_satisfy_it(claim_id: str) -> None:
    planted = PLANTED[claim_id]
    assert judge_model(claim_id, planted.holds, planted.against).outcome == "holds"


@pytest.mark.parametrize("claim_id", PLANTED)
def test_a_claim_fails_for_a_model_built_to_violate_it(claim_id: str) -> None:
    planted = PLANTED[claim_id]
    assert judge_model(claim_id, planted.fails, planted.against).outcome == "fails"


NEEDS_A_MARGIN = {"punctuation-late"}
"""Claims that noise fails, because it is at the baseline and not at least ten points above it."""


@pytest.mark.parametrize("claim_id", PLANTED)
def test_noise_is_inconclusive(claim_id: str) -> None:
    against = OTHER_NOISE if PLANTED[claim_id].against is not None else None
    verdict = judge_model(claim_id, noise_model(), against)
    assert verdict.outcome == ("fails" if claim_id in NEEDS_A_MARGIN else "inconclusive"), verdict
