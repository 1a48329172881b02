"""Mixing ratios of planted vectors equal a computation in loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import planted
import planted_vectors as vectors
from bertology.analyses.attention.mixing_ratio import MEASURES, RATIOS, mixing_site
from bertology.analyses.attention.norms import NO_SPECIAL, NORM_SHARES, PUNCTUATION_SHARE, WEIGHTS_ONLY
from bertology.analyses.head_grids import UNIFORM_ATTENTION
from bertology.encoder.tokens import SpecialToken
from bertology.statistics.batch_features import TOKEN_KINDS, token_kinds

HEADS = (planted.random_head(1), planted.random_head(2))
VALUES = (vectors.random_values(1), vectors.random_values(2))


def ratio(mixed: planted.FloatArray, preserved: planted.FloatArray) -> float:
    return float(np.linalg.norm(mixed) / (np.linalg.norm(mixed) + np.linalg.norm(preserved)))


@pytest.mark.parametrize("norm", [True, False], ids=["post-norm", "pre-norm"])
def test_ratios_and_shares_equal_plain_loops(norm: bool) -> None:
    batch = vectors.make_batch()
    layer = vectors.make_layer(batch, HEADS, VALUES, norm=norm)
    result = mixing_site.reduce(layer, batch, token_kinds(batch)).detach().numpy()[:, 0]
    assert layer.post_attention is not None
    gain = layer.post_attention.layer_norm.weight.detach().double().numpy() if layer.post_attention.layer_norm else None
    for row, recorded_input in enumerate(batch.inputs):
        n = len(recorded_input.tokens)
        residual = layer.post_attention.residual[row, :n].double().numpy()
        contributions = np.zeros((n, n, vectors.WIDTH))
        for head in range(2):
            alpha = vectors.attention_pattern(layer, row, head, n)
            contributions += alpha[:, :, None] * vectors.transformed_values(layer, row, head, n)[None]
        ratios = np.zeros((n, 3))
        for i in range(n):
            mixed = contributions[i].sum(0) - contributions[i, i]
            pairs = [(mixed, contributions[i, i] + residual[i]), (mixed, contributions[i, i])]
            linear = [v if gain is None else (v - v.mean()) * gain for v in pairs[0]]
            ratios[i] = ratio(*linear), ratio(*pairs[0]), ratio(*pairs[1])
        np.testing.assert_allclose(result[row, :3], ratios.mean(0), rtol=1e-5)
        norms = np.linalg.norm(contributions, axis=2)
        kinds = token_kinds(batch)[row, :n].numpy()
        shares = [np.mean(norms[:, kinds[:, k]].sum(1) / norms.sum(1)) for k in range(len(TOKEN_KINDS))]
        np.testing.assert_allclose(result[row, 3:7], shares, rtol=1e-4)
        non_special = np.flatnonzero(recorded_input.tokens.special_kinds == SpecialToken.NONE)
        non_special_ratios: list[float] = []
        for i in non_special:
            other_contributions = contributions[i, non_special[non_special != i]].sum(0)
            linear = [
                v if gain is None else (v - v.mean()) * gain
                for v in (other_contributions, contributions[i, i] + residual[i])
            ]
            non_special_ratios.append(ratio(*linear))
        punctuation = kinds[non_special, TOKEN_KINDS.index("punctuation")]
        non_special_norms = norms[np.ix_(non_special, non_special)]
        share = (
            float(np.mean(non_special_norms[:, punctuation].sum(1) / non_special_norms.sum(1)))
            if punctuation.any()
            else np.nan
        )
        labels = [mixing_site.labels.index(name) for name in (f"{RATIOS[0]}{NO_SPECIAL}", PUNCTUATION_SHARE)]
        np.testing.assert_allclose(result[row, labels], [float(np.mean(non_special_ratios)), share], rtol=1e-4)


def test_tokens_that_attend_to_themselves_mix_nothing() -> None:
    batch = vectors.make_batch()
    result = mixing_site.reduce(
        vectors.make_layer(batch, [planted.offset_head(0)], VALUES[:1]), batch, token_kinds(batch)
    )
    np.testing.assert_allclose(result[:, 0, : len(RATIOS)].detach().numpy(), 0, atol=1e-6)


def test_attention_only_to_other_tokens_mixes_all_but_the_residual() -> None:
    batch = vectors.make_batch()
    layer = vectors.make_layer(batch, [_to_the_other_end], VALUES[:1])
    result = mixing_site.reduce(layer, batch, token_kinds(batch))[:, 0].detach()
    torch.testing.assert_close(result[:, 2], torch.ones(len(batch.inputs)))
    assert bool((result[:, 0] < 0.9).all())


def test_special_tokens_are_not_mixed_in_without_special_tokens() -> None:
    batch = vectors.make_batch()
    result = mixing_site.reduce(
        vectors.make_layer(batch, [planted.special_head(SpecialToken.SEP)], VALUES[:1]), batch, token_kinds(batch)
    )
    label = mixing_site.labels.index(f"{RATIOS[0]}{NO_SPECIAL}")
    np.testing.assert_allclose(result[:, 0, label].detach().numpy(), 0, atol=1e-6)
    assert bool((result[:, 0, 0] > 0.1).all())


def test_uniform_attention_equals_its_baseline_and_weights_are_averaged() -> None:
    batch = vectors.make_batch()
    result = mixing_site.reduce(
        vectors.make_layer(batch, [planted.uniform_head] * 2, VALUES), batch, token_kinds(batch)
    )[:, 0].detach()
    for name in MEASURES:
        values, baseline = (
            result[:, mixing_site.labels.index(label)] for label in (name, f"{UNIFORM_ATTENTION}, {name}")
        )
        torch.testing.assert_close(values, baseline, equal_nan=True, msg=name)
    layer = vectors.make_layer(batch, HEADS, VALUES)
    result = mixing_site.reduce(layer, batch, token_kinds(batch))[:, 0].detach().numpy()
    for row, recorded_input in enumerate(batch.inputs):
        n = len(recorded_input.tokens)
        mean = np.mean([vectors.attention_pattern(layer, row, head, n) for head in range(2)], axis=0)
        kinds = token_kinds(batch)[row, :n].numpy()
        expected = [
            mean[:, kinds[:, k]].sum(1).mean() if kinds[:, k].any() else np.nan for k in range(len(TOKEN_KINDS))
        ]
        labels = [mixing_site.labels.index(f"{WEIGHTS_ONLY}, {name}") for name in NORM_SHARES]
        np.testing.assert_allclose(result[row, labels], expected, rtol=1e-5)


def _to_the_other_end(recorded_input: planted.RecordedInput) -> planted.FloatArray:
    n = len(recorded_input.tokens)
    return np.eye(n)[[n - 1 if i < n // 2 else 0 for i in range(n)]]
