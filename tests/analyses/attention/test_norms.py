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


def measure(
    heads: tuple[planted.HeadAttention, ...], head_values: tuple[vectors.HeadValues, ...]
) -> dict[str, planted.FloatArray]:
    """(sentence, head) for each label."""
    batch = vectors.make_batch()
    result = (
        norms_site.reduce(vectors.make_layer(batch, heads, head_values), batch, token_kinds(batch)).double().numpy()
    )
    return {label: result[..., index] for index, label in enumerate(norms_site.labels)}


def silent_sep(recorded_input: RecordedInput) -> planted.FloatArray:
    return vectors.random_values(1)(recorded_input) * (recorded_input.tokens.special_kinds != SpecialToken.SEP)[:, None]


def equal_values(recorded_input: RecordedInput) -> planted.FloatArray:
    return np.ones((len(recorded_input.tokens), vectors.HEAD_SIZE))


@pytest.mark.parametrize("causal", [False, True])
def test_shares_and_correlations_equal_plain_loops(causal: bool) -> None:
    batch = vectors.make_batch()
    make_head = vectors.random_causal_head if causal else planted.random_head
    layer = vectors.make_layer(
        batch, (make_head(1), make_head(2)), (vectors.random_values(1), vectors.random_values(2)), causal=causal
    )
    result = norms_site.reduce(layer, batch, token_kinds(batch)).numpy()
    for row, recorded_input in enumerate(batch.inputs):
        n = len(recorded_input.tokens)
        kinds = token_kinds(batch)[row, :n].numpy()
        for head in range(2):
            values = dict(zip(norms_site.labels, result[row, head].tolist(), strict=True))
            lengths = np.linalg.norm(vectors.transformed_values(layer, row, head, n), axis=1)
            alpha = vectors.attention_pattern(layer, row, head, n)
            assert_correlations(values, "", alpha, lengths)
            for k, share in enumerate(NORM_SHARES):
                assert_shares(values, share, alpha, lengths, kinds[:, k])
            non_special = recorded_input.tokens.special_kinds == SpecialToken.NONE
            alpha, lengths = alpha[np.ix_(non_special, non_special)], lengths[non_special]
            assert_correlations(values, NO_SPECIAL, alpha, lengths)
            assert_shares(
                values, PUNCTUATION_SHARE, alpha, lengths, kinds[non_special, TOKEN_KINDS.index("punctuation")]
            )


def assert_correlations(
    values: dict[str, float], suffix: str, alpha: planted.FloatArray, lengths: planted.FloatArray
) -> None:
    """Correlations along rows with at least three visible tokens; attention received is the mean over rows."""
    weighted_norms = alpha * lengths
    rows = [
        (alpha[i, visible], weighted_norms[i, visible]) for i, visible in enumerate(alpha > 0) if visible.sum() >= 3
    ]
    along_rows = float(np.mean([spearmanr(*row) for row in rows])) if rows else np.nan
    received = spearmanr(alpha.sum(0) / (alpha > 0).sum(0), lengths)
    expected = [along_rows, received, float(lengths.std() / lengths.mean())]
    np.testing.assert_allclose(
        [values[f"{name}{suffix}"] for name in (WEIGHT_CORRELATION, RECEIVED_CORRELATION, NORM_VARIATION)],
        expected,
        rtol=1e-4,
    )


def assert_shares(
    values: dict[str, float], name: str, alpha: planted.FloatArray, lengths: planted.FloatArray, kind: Any
) -> None:
    """Shares of norms, of weights, and of norms under uniform attention; NaN without such a token."""
    for label, weights in (
        (name, alpha * lengths),
        (f"attention weights only, {name}", alpha),
        (f"uniform attention, {name}", (alpha > 0) * lengths),
    ):
        expected = np.mean(weights[:, kind].sum(1) / weights.sum(1)) if kind.any() else np.nan
        np.testing.assert_allclose(values[label], expected, rtol=1e-5, err_msg=label)


def test_tokens_without_value_vectors_contribute_nothing() -> None:
    result = measure((planted.random_head(1),), (silent_sep,))
    np.testing.assert_allclose(result["norm share of [SEP]"], 0, atol=1e-6)
    assert (result["attention weights only, norm share of [SEP]"] > 0.05).all()
    np.testing.assert_allclose(sum(result[share] for share in NORM_SHARES), 1, atol=1e-5)


def test_norm_shares_of_equal_vectors_are_attention_shares() -> None:
    result = measure((planted.random_head(1),), (equal_values,))
    for share in NORM_SHARES:
        np.testing.assert_allclose(result[share], result[f"attention weights only, {share}"], atol=1e-6)
    np.testing.assert_allclose(result[WEIGHT_CORRELATION], 1, atol=1e-6)
    np.testing.assert_allclose(result[NORM_VARIATION], 0, atol=1e-5)


def test_correlations_of_special_tokens_vanish_without_them() -> None:
    """[CLS] and [SEP] receive more attention and have shorter vectors; the other tokens are all equal."""

    def short_special(recorded_input: RecordedInput) -> planted.FloatArray:
        return (
            equal_values(recorded_input)
            * np.where(recorded_input.tokens.special_kinds == SpecialToken.NONE, 1.0, 0.1)[:, None]
        )

    def to_special(recorded_input: RecordedInput) -> planted.FloatArray:
        special = (recorded_input.tokens.special_kinds != SpecialToken.NONE).astype(float)
        row = special / special.sum() * 0.8 + 0.2 / len(special)
        return np.tile(row, (len(special), 1))

    result = measure((to_special,), (short_special,))
    np.testing.assert_allclose(result[RECEIVED_CORRELATION], -1, atol=1e-6)
    assert (result[NORM_VARIATION] > 0.3).all()
    assert np.isnan(result[f"{RECEIVED_CORRELATION}{NO_SPECIAL}"]).all()  # all equal: ranks are undefined
    np.testing.assert_allclose(result[f"{NORM_VARIATION}{NO_SPECIAL}"], 0, atol=1e-5)


def test_a_head_without_value_vectors_has_no_shares() -> None:
    result = measure(
        (planted.uniform_head,), (lambda recorded_input: np.zeros((len(recorded_input.tokens), vectors.HEAD_SIZE)),)
    )
    assert all(np.isnan(result[name]).all() for name in (*NORM_SHARES, NORM_VARIATION))


def test_norm_shares_and_attention_shares_sum_to_one() -> None:
    encoder = load("tiny")
    corpus = planted.make_corpus("the cat saw the dog.", "a bird, a fish")
    grid = norms(record(encoder, corpus, [norms_site]), None)
    assert isinstance(grid, HeadGrid)
    norm_shares = sum(grid.measures[share].value for share in NORM_SHARES)
    np.testing.assert_allclose(norm_shares, 1, atol=1e-5)
    attention_shares = sum(grid.baselines["attention weights only"][share].value for share in NORM_SHARES)
    np.testing.assert_allclose(attention_shares, 1, atol=1e-5)


def test_a_recording_without_value_vectors_is_refused() -> None:
    recording = planted.make_recording(planted.make_corpus("a b c"), [[planted.uniform_head]]).with_sites([norms_site])
    with pytest.raises(Refusal, match=r"has no site 'attention.norms.v4'"):
        norms(recording, None)
