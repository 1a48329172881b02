"""Effective attention lacks exactly the component in the null space of the value vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.linalg import null_space

import planted
import planted_vectors as vectors
import tiny_models
from bertology.analyses.attention.effective_attention import (
    EFFECTIVE_MEASURES,
    NULL_SPACE,
    RANDOM_PATTERN,
    TO_PUNCTUATION,
    effective_attention,
    effective_attention_site,
    remove_null_space,
    simplex_attention_site,
)
from bertology.analyses.attention.norms import NO_SPECIAL, WEIGHTS_ONLY
from bertology.analyses.head_grids import UNIFORM_ATTENTION
from bertology.encoder.load import load
from bertology.encoder.token_batch import RecordedInput
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal
from bertology.recording.recorder import record
from bertology.statistics.batch_features import TOKEN_KINDS, token_kinds

LONG = "the cat saw the dog and the dog saw the cat ."


@pytest.mark.parametrize("simplex", [False, True])
def test_the_null_space_share_equals_that_of_scipys_projection(simplex: bool) -> None:
    batch = vectors.make_batch(LONG, "a b c d e f , g")
    layer = vectors.make_layer(
        batch, [planted.random_head(1), planted.random_head(2)], [vectors.random_values(1), vectors.random_values(2)]
    )
    site = simplex_attention_site if simplex else effective_attention_site
    result = site.reduce(layer, batch, token_kinds(batch)).numpy()
    for row, recorded_input in enumerate(batch.inputs):
        n = len(recorded_input.tokens)
        kinds = token_kinds(batch)[row, :n].numpy()
        non_special = recorded_input.tokens.special_kinds == SpecialToken.NONE
        for head in range(2):
            values = dict(zip(site.labels, result[row, head].tolist(), strict=True))
            vectors_of_head = vectors.transformed_values(layer, row, head, n)
            vectors_of_head = np.hstack([vectors_of_head, np.ones((n, 1))]) if simplex else vectors_of_head
            alpha = vectors.attention_pattern(layer, row, head, n)
            null_share, shares = decompose(alpha, vectors_of_head, kinds)
            assert_values(values, {NULL_SPACE: null_share, **dict(zip(EFFECTIVE_MEASURES, shares, strict=True))})
            rank = vectors.HEAD_SIZE + simplex
            assert_values(
                values,
                {
                    f"{RANDOM_PATTERN}, {NULL_SPACE}": 1 - rank / n,
                    f"{RANDOM_PATTERN}, {NULL_SPACE}{NO_SPECIAL}": 1 - rank / non_special.sum(),
                },
            )
            uniform = np.full((n, n), 1 / n)
            assert_values(values, {f"{UNIFORM_ATTENTION}, {NULL_SPACE}": decompose(uniform, vectors_of_head, kinds)[0]})
            non_special_alpha = alpha[np.ix_(non_special, non_special)]
            non_special_alpha /= non_special_alpha.sum(1, keepdims=True)
            null_share, shares = decompose(non_special_alpha, vectors_of_head[non_special], kinds[non_special])
            punctuation = kinds[non_special, TOKEN_KINDS.index("punctuation")]
            assert_values(
                values,
                {
                    f"{NULL_SPACE}{NO_SPECIAL}": null_share,
                    f"{TO_PUNCTUATION}{NO_SPECIAL}": shares[TOKEN_KINDS.index("punctuation")],
                },
            )
            attention_share = non_special_alpha[:, punctuation].sum(1).mean() if punctuation.any() else np.nan
            assert_values(values, {f"{WEIGHTS_ONLY}, {TO_PUNCTUATION}{NO_SPECIAL}": attention_share})


def decompose(alpha: planted.FloatArray, vectors: planted.FloatArray, kinds: Any) -> tuple[float, list[float]]:
    """The null-space share of squared weights, and the shares of the effective weights by kind of target."""
    basis = null_space(vectors.T)
    null_part = alpha @ basis @ basis.T
    effective = np.abs(alpha - null_part)
    shares = [
        float(np.mean(effective[:, kind].sum(1) / effective.sum(1))) if kind.any() else np.nan for kind in kinds.T
    ]
    return float(np.square(null_part).sum() / np.square(alpha).sum()), shares


def assert_values(values: dict[str, float], expected: dict[str, float]) -> None:
    for label, value in expected.items():
        np.testing.assert_allclose(values[label], value, rtol=1e-4, atol=1e-6, err_msg=label)


def test_attention_with_partial_visibility_is_not_measured() -> None:
    batch = vectors.make_batch(LONG)
    heads = [vectors.random_causal_head(1), vectors.random_causal_head(2)]
    layer = vectors.make_layer(batch, heads, [vectors.random_values(1), vectors.random_values(2)], causal=True)
    assert np.isnan(effective_attention_site.reduce(layer, batch, token_kinds(batch)).numpy()).all()


def test_causal_models_are_refused() -> None:
    recording = record(tiny_models.encoder("gpt2"), planted.make_corpus(LONG), [effective_attention_site])
    with pytest.raises(Refusal, match="causal attention"):
        effective_attention(recording, None, simplex=False)


def test_attention_to_a_token_without_value_vector_is_in_the_null_space() -> None:
    def silent_sep(recorded_input: RecordedInput) -> planted.FloatArray:
        return (
            vectors.random_values(1)(recorded_input)
            * (recorded_input.tokens.special_kinds != SpecialToken.SEP)[:, None]
        )

    batch = vectors.make_batch(LONG)
    result = effective_attention_site.reduce(
        vectors.make_layer(batch, [planted.special_head(SpecialToken.SEP)], [silent_sep]), batch, token_kinds(batch)
    )
    np.testing.assert_allclose(result[0, 0, 0], 1, atol=1e-6)


def test_uniform_attention_is_effective_with_constant_row_sums() -> None:
    batch = vectors.make_batch(LONG)
    layer = vectors.make_layer(batch, [planted.uniform_head], [vectors.random_values(1)])
    np.testing.assert_allclose(simplex_attention_site.reduce(layer, batch, token_kinds(batch))[0, 0, 0], 0, atol=1e-6)
    assert float(effective_attention_site.reduce(layer, batch, token_kinds(batch))[0, 0, 0]) > 0.1


def test_an_input_can_be_long_enough_only_with_special_tokens() -> None:
    """Five tokens are more than a head has dimensions, the three non-special ones are not."""
    batch = vectors.make_batch("a b c")
    layer = vectors.make_layer(batch, [planted.random_head(1)], [vectors.random_values(1)])
    result = effective_attention_site.reduce(layer, batch, token_kinds(batch))[0, 0]
    values = dict(zip(effective_attention_site.labels, result.tolist(), strict=True))
    assert np.isfinite(values[NULL_SPACE]) and np.isnan(values[f"{NULL_SPACE}{NO_SPECIAL}"])


def test_short_inputs_are_refused() -> None:
    encoder = load("tiny")
    recording = record(encoder, planted.make_corpus("a cat", "the dog"), [effective_attention_site])
    assert np.isnan(recording.stack(effective_attention_site)).all()
    with pytest.raises(Refusal, match="longest: 4 tokens"):
        effective_attention(recording, None, simplex=False)


def _random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


def test_weighted_sums_are_unchanged_without_the_null_space() -> None:
    weights, vectors = _random(2, 3, 9, 9), _random(2, 3, 9, 4, seed=1)
    effective, rank = remove_null_space(weights, vectors)
    assert (rank == 4).all()
    torch.testing.assert_close(effective @ vectors, weights @ vectors)
    for index in np.ndindex(2, 3):
        basis = null_space(vectors[index].numpy().T)
        expected = weights[index].numpy() @ (np.eye(9) - basis @ basis.T)
        np.testing.assert_allclose(effective[index].numpy(), expected, atol=1e-10)


def test_weights_over_independent_vectors_have_no_null_space() -> None:
    weights, vectors = _random(5, 5), _random(5, 8, seed=1)
    torch.testing.assert_close(remove_null_space(weights, vectors)[0], weights)


def test_the_rank_counts_independent_vectors() -> None:
    vectors = _random(8, 2) @ _random(2, 6, seed=1)
    assert int(remove_null_space(_random(1, 8), vectors.float())[1]) == 2
    effective, rank = remove_null_space(_random(1, 8), torch.zeros(8, 6))
    assert int(rank) == 0 and float(effective.abs().max()) == 0
