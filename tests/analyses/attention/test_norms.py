"""Norm shares and correlations of planted value vectors follow their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import planted
import planted_vectors as vectors
from bertology.analyses.attention.norms import (
    NO_SPECIAL,
    NORM_SHARES,
    NORM_VARIATION,
    PUNCTUATION_SHARE,
    RECEIVED_CORRELATION,
    WEIGHT_CORRELATION,
    norms,
    norms_site,
)
from bertology.encoder.load import load
from bertology.encoder.token_batch import RecordedInput
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal
from bertology.recording.recorder import record
from bertology.results.shapes import HeadGrid
from bertology.statistics.batch_features import TOKEN_KINDS, token_kinds


def spearmanr(first: Any, second: Any) -> float:
    result: Any = stats.spearmanr(first, second)
    return float(result.statistic)


def measured(
    maps: tuple[planted.HeadAttention, ...], values: tuple[vectors.HeadValues, ...]
) -> dict[str, planted.FloatArray]:
    """(sentence, head) for each label."""
    shown = vectors.make_batch()
    outcome = norms_site.reduce(vectors.make_layer(shown, maps, values), shown, token_kinds(shown)).double().numpy()
    return {label: outcome[..., place] for place, label in enumerate(norms_site.labels)}


def silent_sep(recorded_input: RecordedInput) -> planted.FloatArray:
    return vectors.random_values(1)(recorded_input) * (recorded_input.tokens.special_kinds != SpecialToken.SEP)[:, None]


def alike(recorded_input: RecordedInput) -> planted.FloatArray:
    return np.ones((len(recorded_input.tokens), vectors.HEAD_SIZE))


@pytest.mark.parametrize("causal", [False, True])
def test_shares_and_correlations_equal_plain_loops(causal: bool) -> None:
    shown = vectors.make_batch()
    look = vectors.random_causal_head if causal else planted.random_head
    layer = vectors.make_layer(
        shown, (look(1), look(2)), (vectors.random_values(1), vectors.random_values(2)), causal=causal
    )
    outcome = norms_site.reduce(layer, shown, token_kinds(shown)).numpy()
    for row, recorded_input in enumerate(shown.inputs):
        n = len(recorded_input.tokens)
        kinds = token_kinds(shown)[row, :n].numpy()
        for head in range(2):
            own = dict(zip(norms_site.labels, outcome[row, head].tolist(), strict=True))
            lengths = np.linalg.norm(vectors.transformed_values(layer, row, head, n), axis=1)
            alpha = vectors.attention_pattern(layer, row, head, n)
            assert_related(own, "", alpha, lengths)
            for k, share in enumerate(NORM_SHARES):
                assert_shares(own, share, alpha, lengths, kinds[:, k])
            inner = recorded_input.tokens.special_kinds == SpecialToken.NONE
            alpha, lengths = alpha[np.ix_(inner, inner)], lengths[inner]
            assert_related(own, NO_SPECIAL, alpha, lengths)
            assert_shares(own, PUNCTUATION_SHARE, alpha, lengths, kinds[inner, TOKEN_KINDS.index("punctuation")])


def assert_related(own: dict[str, float], suffix: str, alpha: planted.FloatArray, lengths: planted.FloatArray) -> None:
    """Correlations along rows with at least three visible tokens; attention received is the mean over rows."""
    norms_of = alpha * lengths
    rows = [(alpha[i, seen], norms_of[i, seen]) for i, seen in enumerate(alpha > 0) if seen.sum() >= 3]
    order = float(np.mean([spearmanr(*row) for row in rows])) if rows else np.nan
    received = spearmanr(alpha.sum(0) / (alpha > 0).sum(0), lengths)
    expected = [order, received, float(lengths.std() / lengths.mean())]
    np.testing.assert_allclose(
        [own[f"{name}{suffix}"] for name in (WEIGHT_CORRELATION, RECEIVED_CORRELATION, NORM_VARIATION)],
        expected,
        rtol=1e-4,
    )


def assert_shares(
    own: dict[str, float], name: str, alpha: planted.FloatArray, lengths: planted.FloatArray, kind: Any
) -> None:
    """Shares of norms, of weights, and of norms under uniform attention; NaN without such a token."""
    for label, weights in (
        (name, alpha * lengths),
        (f"attention weights only, {name}", alpha),
        (f"uniform attention, {name}", (alpha > 0) * lengths),
    ):
        expected = np.mean(weights[:, kind].sum(1) / weights.sum(1)) if kind.any() else np.nan
        np.testing.assert_allclose(own[label], expected, rtol=1e-5, err_msg=label)


def test_tokens_without_value_vectors_contribute_nothing() -> None:
    outcome = measured((planted.random_head(1),), (silent_sep,))
    np.testing.assert_allclose(outcome["norm share of [SEP]"], 0, atol=1e-6)
    assert (outcome["attention weights only, norm share of [SEP]"] > 0.05).all()
    np.testing.assert_allclose(sum(outcome[share] for share in NORM_SHARES), 1, atol=1e-5)


def test_norm_shares_of_equal_vectors_are_attention_shares() -> None:
    outcome = measured((planted.random_head(1),), (alike,))
    for share in NORM_SHARES:
        np.testing.assert_allclose(outcome[share], outcome[f"attention weights only, {share}"], atol=1e-6)
    np.testing.assert_allclose(outcome[WEIGHT_CORRELATION], 1, atol=1e-6)
    np.testing.assert_allclose(outcome[NORM_VARIATION], 0, atol=1e-5)


def test_correlations_of_special_tokens_vanish_without_them() -> None:
    """[CLS] and [SEP] receive more attention and have shorter vectors; the other tokens are all equal."""

    def short_special(recorded_input: RecordedInput) -> planted.FloatArray:
        return (
            alike(recorded_input)
            * np.where(recorded_input.tokens.special_kinds == SpecialToken.NONE, 1.0, 0.1)[:, None]
        )

    def at_special(recorded_input: RecordedInput) -> planted.FloatArray:
        special = (recorded_input.tokens.special_kinds != SpecialToken.NONE).astype(float)
        row = special / special.sum() * 0.8 + 0.2 / len(special)
        return np.tile(row, (len(special), 1))

    outcome = measured((at_special,), (short_special,))
    np.testing.assert_allclose(outcome[RECEIVED_CORRELATION], -1, atol=1e-6)
    assert (outcome[NORM_VARIATION] > 0.3).all()
    assert np.isnan(outcome[f"{RECEIVED_CORRELATION}{NO_SPECIAL}"]).all()  # all equal: there is no order
    np.testing.assert_allclose(outcome[f"{NORM_VARIATION}{NO_SPECIAL}"], 0, atol=1e-5)


def test_a_head_without_value_vectors_has_no_shares() -> None:
    outcome = measured(
        (planted.uniform_head,), (lambda recorded_input: np.zeros((len(recorded_input.tokens), vectors.HEAD_SIZE)),)
    )
    assert all(np.isnan(outcome[name]).all() for name in (*NORM_SHARES, NORM_VARIATION))


def test_norm_shares_and_attention_shares_sum_to_one() -> None:
    encoder = load("tiny")
    corpus = planted.make_corpus("the cat saw the dog.", "a bird, a fish")
    grid = norms.function(record(encoder, corpus, [norms_site]), None, seed=0)
    assert isinstance(grid, HeadGrid)
    shares = sum(grid.measures[share].value for share in NORM_SHARES)
    np.testing.assert_allclose(shares, 1, atol=1e-5)
    alone = sum(grid.baselines["attention weights only"][share].value for share in NORM_SHARES)
    np.testing.assert_allclose(alone, 1, atol=1e-5)


def test_a_recording_without_value_vectors_is_refused() -> None:
    recording = planted.make_recording(planted.make_corpus("a b c"), [[planted.uniform_head]]).with_sites([norms_site])
    with pytest.raises(Refusal, match=r"has no site 'attention.norms.v3'"):
        norms.function(recording, None, seed=0)
