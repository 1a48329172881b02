"""Mixing ratios are those of vectors added up one by one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import planted
import planted_vectors as vectors
from bertology.analyses.attention.mixing import EVEN, MEASURES, MIXING, ORDINARY, RATIOS, WEIGHTS
from bertology.encoder.pieces import Special
from bertology.recording.piece_kinds import KINDS, kinds_of

MAPS = (planted.noise(1), planted.noise(2))
VALUES = (vectors.values(1), vectors.values(2))


def ratio(mixed: planted.Floats, preserved: planted.Floats) -> float:
    return float(np.linalg.norm(mixed) / (np.linalg.norm(mixed) + np.linalg.norm(preserved)))


@pytest.mark.parametrize("norm", [True, False], ids=["post-norm", "pre-norm"])
def test_ratios_and_shares_are_those_of_plain_loops(norm: bool) -> None:
    shown = vectors.frame()
    layer = vectors.layer(shown, MAPS, VALUES, norm=norm)
    found = MIXING.reduce(layer, shown, kinds_of(shown)).detach().numpy()[:, 0]
    assert layer.block is not None
    gain = layer.block.norm.weight.detach().double().numpy() if layer.block.norm else None
    for row, entry in enumerate(shown.entries):
        n = len(entry.pieces)
        residual = layer.block.residual[row, :n].double().numpy()
        parts = np.zeros((n, n, vectors.WIDTH))
        for head in range(2):
            alpha = vectors.weights(layer, row, head, n)
            parts += alpha[:, :, None] * vectors.transformed(layer, row, head, n)[None]
        ratios = np.zeros((n, 3))
        for i in range(n):
            mixed = parts[i].sum(0) - parts[i, i]
            pairs = [(mixed, parts[i, i] + residual[i]), (mixed, parts[i, i])]
            linear = [v if gain is None else (v - v.mean()) * gain for v in pairs[0]]
            ratios[i] = ratio(*linear), ratio(*pairs[0]), ratio(*pairs[1])
        np.testing.assert_allclose(found[row, :3], ratios.mean(0), rtol=1e-5)
        norms = np.linalg.norm(parts, axis=2)
        kinds = kinds_of(shown)[row, :n].numpy()
        shares = [np.mean(norms[:, kinds[:, k]].sum(1) / norms.sum(1)) for k in range(len(KINDS))]
        np.testing.assert_allclose(found[row, 3:7], shares, rtol=1e-4)
        inner = np.flatnonzero(entry.pieces.special == Special.NONE)
        ordinary: list[float] = []
        for i in inner:
            added = parts[i, inner[inner != i]].sum(0)
            linear = [v if gain is None else (v - v.mean()) * gain for v in (added, parts[i, i] + residual[i])]
            ordinary.append(ratio(*linear))
        punctuation = kinds[inner, KINDS.index("punctuation")]
        among = norms[np.ix_(inner, inner)]
        share = float(np.mean(among[:, punctuation].sum(1) / among.sum(1))) if punctuation.any() else np.nan
        places = [MIXING.labels.index(name) for name in ORDINARY]
        np.testing.assert_allclose(found[row, places], [float(np.mean(ordinary)), share], rtol=1e-4)


def test_pieces_that_look_at_themselves_mix_nothing_in() -> None:
    shown = vectors.frame()
    found = MIXING.reduce(vectors.layer(shown, [planted.looking_at(0)], VALUES[:1]), shown, kinds_of(shown))
    np.testing.assert_allclose(found[:, 0, : len(RATIOS)].detach().numpy(), 0, atol=1e-6)


def test_attention_that_never_stays_mixes_everything_in_but_the_residual() -> None:
    shown = vectors.frame()
    elsewhere = vectors.layer(shown, [_to_the_other_end], VALUES[:1])
    found = MIXING.reduce(elsewhere, shown, kinds_of(shown))[:, 0].detach()
    torch.testing.assert_close(found[:, 2], torch.ones(len(shown.entries)))
    assert bool((found[:, 0] < 0.9).all())


def test_what_comes_from_special_tokens_is_not_mixed_in_among_ordinary_pieces() -> None:
    shown = vectors.frame()
    found = MIXING.reduce(vectors.layer(shown, [planted.at_kind(Special.SEP)], VALUES[:1]), shown, kinds_of(shown))
    place = MIXING.labels.index(ORDINARY[0])
    np.testing.assert_allclose(found[:, 0, place].detach().numpy(), 0, atol=1e-6)
    assert bool((found[:, 0, 0] > 0.1).all())


def test_uniform_attention_is_its_own_baseline_and_equal_heads_weigh_as_one() -> None:
    shown = vectors.frame()
    found = MIXING.reduce(vectors.layer(shown, [planted.uniform] * 2, VALUES), shown, kinds_of(shown))[:, 0].detach()
    for name in MEASURES:
        own, even = (found[:, MIXING.labels.index(label)] for label in (name, f"{EVEN}, {name}"))
        torch.testing.assert_close(own, even, equal_nan=True, msg=name)
    noisy = vectors.layer(shown, MAPS, VALUES)
    found = MIXING.reduce(noisy, shown, kinds_of(shown))[:, 0].detach().numpy()
    for row, entry in enumerate(shown.entries):
        n = len(entry.pieces)
        mean = np.mean([vectors.weights(noisy, row, head, n) for head in range(2)], axis=0)
        kinds = kinds_of(shown)[row, :n].numpy()
        expected = [mean[:, kinds[:, k]].sum(1).mean() if kinds[:, k].any() else np.nan for k in range(len(KINDS))]
        places = [MIXING.labels.index(f"{WEIGHTS}, norm to {kind}") for kind in KINDS]
        np.testing.assert_allclose(found[row, places], expected, rtol=1e-5)


def _to_the_other_end(entry: planted.Entry) -> planted.Floats:
    n = len(entry.pieces)
    return np.eye(n)[[n - 1 if i < n // 2 else 0 for i in range(n)]]
