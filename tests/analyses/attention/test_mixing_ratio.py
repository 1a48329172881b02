"""Mixing ratios equal sums of vectors computed in loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import planted
import planted_vectors as vectors
from bertology.analyses.attention.mixing_ratio import (
    MEASURES,
    RATIOS,
    mixing_site,
)
from bertology.analyses.attention.norms import NO_SPECIAL, NORM_SHARES, PUNCTUATION_SHARE, WEIGHTS_ONLY
from bertology.analyses.head_grids import UNIFORM_ATTENTION
from bertology.encoder.tokens import SpecialToken
from bertology.statistics.batch_features import TOKEN_KINDS, token_kinds

MAPS = (planted.random_head(1), planted.random_head(2))
VALUES = (vectors.random_values(1), vectors.random_values(2))


def ratio(mixed: planted.FloatArray, preserved: planted.FloatArray) -> float:
    return float(np.linalg.norm(mixed) / (np.linalg.norm(mixed) + np.linalg.norm(preserved)))


@pytest.mark.parametrize("norm", [True, False], ids=["post-norm", "pre-norm"])
def test_ratios_and_shares_equal_plain_loops(norm: bool) -> None:
    shown = vectors.make_batch()
    layer = vectors.make_layer(shown, MAPS, VALUES, norm=norm)
    result = mixing_site.reduce(layer, shown, token_kinds(shown)).detach().numpy()[:, 0]
    assert layer.post_attention is not None
    gain = layer.post_attention.layer_norm.weight.detach().double().numpy() if layer.post_attention.layer_norm else None
    for row, recorded_input in enumerate(shown.inputs):
        n = len(recorded_input.tokens)
        residual = layer.post_attention.residual[row, :n].double().numpy()
        parts = np.zeros((n, n, vectors.WIDTH))
        for head in range(2):
            alpha = vectors.attention_pattern(layer, row, head, n)
            parts += alpha[:, :, None] * vectors.transformed_values(layer, row, head, n)[None]
        ratios = np.zeros((n, 3))
        for i in range(n):
            mixed = parts[i].sum(0) - parts[i, i]
            pairs = [(mixed, parts[i, i] + residual[i]), (mixed, parts[i, i])]
            linear = [v if gain is None else (v - v.mean()) * gain for v in pairs[0]]
            ratios[i] = ratio(*linear), ratio(*pairs[0]), ratio(*pairs[1])
        np.testing.assert_allclose(result[row, :3], ratios.mean(0), rtol=1e-5)
        norms = np.linalg.norm(parts, axis=2)
        kinds = token_kinds(shown)[row, :n].numpy()
        shares = [np.mean(norms[:, kinds[:, k]].sum(1) / norms.sum(1)) for k in range(len(TOKEN_KINDS))]
        np.testing.assert_allclose(result[row, 3:7], shares, rtol=1e-4)
        inner = np.flatnonzero(recorded_input.tokens.special_kinds == SpecialToken.NONE)
        ordinary: list[float] = []
        for i in inner:
            added = parts[i, inner[inner != i]].sum(0)
            linear = [v if gain is None else (v - v.mean()) * gain for v in (added, parts[i, i] + residual[i])]
            ordinary.append(ratio(*linear))
        punctuation = kinds[inner, TOKEN_KINDS.index("punctuation")]
        among = norms[np.ix_(inner, inner)]
        share = float(np.mean(among[:, punctuation].sum(1) / among.sum(1))) if punctuation.any() else np.nan
        places = [mixing_site.labels.index(name) for name in (f"{RATIOS[0]}{NO_SPECIAL}", PUNCTUATION_SHARE)]
        np.testing.assert_allclose(result[row, places], [float(np.mean(ordinary)), share], rtol=1e-4)


def test_tokens_that_attend_to_themselves_mix_nothing() -> None:
    shown = vectors.make_batch()
    result = mixing_site.reduce(
        vectors.make_layer(shown, [planted.offset_head(0)], VALUES[:1]), shown, token_kinds(shown)
    )
    np.testing.assert_allclose(result[:, 0, : len(RATIOS)].detach().numpy(), 0, atol=1e-6)


def test_attention_only_to_other_tokens_mixes_all_but_the_residual() -> None:
    shown = vectors.make_batch()
    elsewhere = vectors.make_layer(shown, [_to_the_other_end], VALUES[:1])
    result = mixing_site.reduce(elsewhere, shown, token_kinds(shown))[:, 0].detach()
    torch.testing.assert_close(result[:, 2], torch.ones(len(shown.inputs)))
    assert bool((result[:, 0] < 0.9).all())


def test_special_tokens_are_not_mixed_in_without_special_tokens() -> None:
    shown = vectors.make_batch()
    result = mixing_site.reduce(
        vectors.make_layer(shown, [planted.special_head(SpecialToken.SEP)], VALUES[:1]), shown, token_kinds(shown)
    )
    place = mixing_site.labels.index(f"{RATIOS[0]}{NO_SPECIAL}")
    np.testing.assert_allclose(result[:, 0, place].detach().numpy(), 0, atol=1e-6)
    assert bool((result[:, 0, 0] > 0.1).all())


def test_uniform_attention_equals_its_baseline_and_weights_are_averaged() -> None:
    shown = vectors.make_batch()
    result = mixing_site.reduce(
        vectors.make_layer(shown, [planted.uniform_head] * 2, VALUES), shown, token_kinds(shown)
    )[:, 0].detach()
    for name in MEASURES:
        own, even = (result[:, mixing_site.labels.index(label)] for label in (name, f"{UNIFORM_ATTENTION}, {name}"))
        torch.testing.assert_close(own, even, equal_nan=True, msg=name)
    noisy = vectors.make_layer(shown, MAPS, VALUES)
    result = mixing_site.reduce(noisy, shown, token_kinds(shown))[:, 0].detach().numpy()
    for row, recorded_input in enumerate(shown.inputs):
        n = len(recorded_input.tokens)
        mean = np.mean([vectors.attention_pattern(noisy, row, head, n) for head in range(2)], axis=0)
        kinds = token_kinds(shown)[row, :n].numpy()
        expected = [
            mean[:, kinds[:, k]].sum(1).mean() if kinds[:, k].any() else np.nan for k in range(len(TOKEN_KINDS))
        ]
        places = [mixing_site.labels.index(f"{WEIGHTS_ONLY}, {share}") for share in NORM_SHARES]
        np.testing.assert_allclose(result[row, places], expected, rtol=1e-5)


def _to_the_other_end(recorded_input: planted.RecordedInput) -> planted.FloatArray:
    n = len(recorded_input.tokens)
    return np.eye(n)[[n - 1 if i < n // 2 else 0 for i in range(n)]]
