"""Exactly the part of the attention in the null space of the value vectors is removed."""

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
def test_the_null_space_share_is_that_of_the_projection(simplex: bool) -> None:
    shown = vectors.make_batch(LONG, "a b c d e f , g")
    layer = vectors.make_layer(
        shown, [planted.random_head(1), planted.random_head(2)], [vectors.random_values(1), vectors.random_values(2)]
    )
    site = simplex_attention_site if simplex else effective_attention_site
    result = site.reduce(layer, shown, token_kinds(shown)).numpy()
    for row, recorded_input in enumerate(shown.inputs):
        n = len(recorded_input.tokens)
        kinds = token_kinds(shown)[row, :n].numpy()
        inner = recorded_input.tokens.special_kinds == SpecialToken.NONE
        for head in range(2):
            own = dict(zip(site.labels, result[row, head].tolist(), strict=True))
            seen = vectors.transformed_values(layer, row, head, n)
            seen = np.hstack([seen, np.ones((n, 1))]) if simplex else seen
            alpha = vectors.attention_pattern(layer, row, head, n)
            whole = by_hand(alpha, seen, kinds)
            assert_alike(own, {NULL_SPACE: whole[0], **dict(zip(EFFECTIVE_MEASURES, whole[1], strict=True))})
            rank = vectors.HEAD_SIZE + simplex
            assert_alike(
                own,
                {
                    f"{RANDOM_PATTERN}, {NULL_SPACE}": 1 - rank / n,
                    f"{RANDOM_PATTERN}, {NULL_SPACE}{NO_SPECIAL}": 1 - rank / inner.sum(),
                },
            )
            even = np.full((n, n), 1 / n)
            assert_alike(own, {f"{UNIFORM_ATTENTION}, {NULL_SPACE}": by_hand(even, seen, kinds)[0]})
            among = alpha[np.ix_(inner, inner)]
            among /= among.sum(1, keepdims=True)
            hidden, shares = by_hand(among, seen[inner], kinds[inner])
            punctuation = kinds[inner, TOKEN_KINDS.index("punctuation")]
            assert_alike(
                own,
                {
                    f"{NULL_SPACE}{NO_SPECIAL}": hidden,
                    f"{TO_PUNCTUATION}{NO_SPECIAL}": shares[TOKEN_KINDS.index("punctuation")],
                },
            )
            share = among[:, punctuation].sum(1).mean() if punctuation.any() else np.nan
            assert_alike(own, {f"{WEIGHTS_ONLY}, {TO_PUNCTUATION}{NO_SPECIAL}": share})


def by_hand(alpha: planted.FloatArray, seen: planted.FloatArray, kinds: Any) -> tuple[float, list[float]]:
    """The null-space share of squared weights, and the shares of the effective weights by kind of target."""
    basis = null_space(seen.T)
    lost = alpha @ basis @ basis.T
    mask = np.abs(alpha - lost)
    shares = [float(np.mean(mask[:, kind].sum(1) / mask.sum(1))) if kind.any() else np.nan for kind in kinds.T]
    return float(np.square(lost).sum() / np.square(alpha).sum()), shares


def assert_alike(own: dict[str, float], expected: dict[str, float]) -> None:
    for label, value in expected.items():
        np.testing.assert_allclose(own[label], value, rtol=1e-4, atol=1e-6, err_msg=label)


def test_attention_with_partial_visibility_is_not_measured() -> None:
    shown = vectors.make_batch(LONG)
    look = [vectors.random_causal_head(1), vectors.random_causal_head(2)]
    layer = vectors.make_layer(shown, look, [vectors.random_values(1), vectors.random_values(2)], causal=True)
    assert np.isnan(effective_attention_site.reduce(layer, shown, token_kinds(shown)).numpy()).all()


def test_causal_models_are_refused() -> None:
    recording = record(tiny_models.encoder("gpt2"), planted.make_corpus(LONG), [effective_attention_site])
    with pytest.raises(Refusal, match="causal attention"):
        effective_attention.function(recording, None, simplex=False, seed=0)


def test_attention_to_a_token_without_value_vector_is_in_the_null_space() -> None:
    def silent_sep(recorded_input: RecordedInput) -> planted.FloatArray:
        return (
            vectors.random_values(1)(recorded_input)
            * (recorded_input.tokens.special_kinds != SpecialToken.SEP)[:, None]
        )

    shown = vectors.make_batch(LONG)
    result = effective_attention_site.reduce(
        vectors.make_layer(shown, [planted.special_head(SpecialToken.SEP)], [silent_sep]), shown, token_kinds(shown)
    )
    np.testing.assert_allclose(result[0, 0, 0], 1, atol=1e-6)


def test_uniform_attention_is_effective_with_constant_row_sums() -> None:
    shown = vectors.make_batch(LONG)
    layer = vectors.make_layer(shown, [planted.uniform_head], [vectors.random_values(1)])
    np.testing.assert_allclose(simplex_attention_site.reduce(layer, shown, token_kinds(shown))[0, 0, 0], 0, atol=1e-6)
    assert float(effective_attention_site.reduce(layer, shown, token_kinds(shown))[0, 0, 0]) > 0.1


def test_special_tokens_can_be_what_makes_an_input_long_enough() -> None:
    """Five tokens are more than a head has dimensions, the three non-special ones are not."""
    shown = vectors.make_batch("a b c")
    layer = vectors.make_layer(shown, [planted.random_head(1)], [vectors.random_values(1)])
    own = dict(
        zip(
            effective_attention_site.labels,
            effective_attention_site.reduce(layer, shown, token_kinds(shown))[0, 0].tolist(),
            strict=True,
        )
    )
    assert np.isfinite(own[NULL_SPACE]) and np.isnan(own[f"{NULL_SPACE}{NO_SPECIAL}"])


def test_short_inputs_are_refused() -> None:
    encoder = load("tiny")
    recording = record(encoder, planted.make_corpus("a cat", "the dog"), [effective_attention_site])
    assert np.isnan(recording.stack(effective_attention_site)).all()
    with pytest.raises(Refusal, match="longest: 4 tokens"):
        effective_attention.function(recording, None, simplex=False, seed=0)


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
