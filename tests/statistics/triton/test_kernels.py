"""Statistics of the Triton kernels equal those of stored attention; on a GPU, or in Triton's interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

pytest.importorskip("triton", reason="Triton is not installed: there are packages for Linux alone")

from tests.statistics.token_batches import CLS, NONE, SEP, make_input

from bertology.encoder.attention_hook import LayerActivations
from bertology.encoder.encoder import ModelOutput
from bertology.encoder.token_batch import TokenBatch
from bertology.recording.site_collector import SiteCollector
from bertology.recording.sites import ReducedSite
from bertology.statistics.pairs import StatisticNeeds, TokenPairs, pair_sums, rows_only
from bertology.statistics.rows import row_statistics
from bertology.statistics.triton import accumulate
from bertology.statistics.triton.accumulate import FusedAccumulator, FusedLayers, FusedStatistics
from bertology.statistics.words import strongest_words, word_slots

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
DTYPES = (torch.float16, torch.bfloat16) if torch.cuda.is_available() else (torch.float32,)
DTYPE = DTYPES[0]
HALF_TOLERANCE = 2e-3
"""Sums over target features use weights in half precision."""


ENTROPY_SITE, MAX_WEIGHT_SITE = (
    ReducedSite(
        f"test.{name}",
        ("sum",),
        "sum over rows",
        lambda layer, batch, prepared, name=name: getattr(row_statistics(layer, batch), name).sum(-1, keepdim=True),
        needs=rows_only,
    )
    for name in ("entropy", "max_weight")
)


@pytest.fixture(params=DTYPES, ids=str, autouse=True)
def _dtype(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "DTYPE", request.param)


def _batch(*lengths: int) -> TokenBatch:
    """Inputs longer than a tile, with words of one or two tokens and one word without tokens."""
    inputs: list[Any] = []
    for length in lengths or (150, 97):
        words = [position * 7 // 11 + (position > 40) for position in range(length - 2)]
        inputs.append(make_input([-1, *words, -1], [CLS, *[NONE] * (length - 2), SEP], max(words) + 1))
    return TokenBatch(inputs, DEVICE)


def _layers(batch: TokenBatch, *, masked: bool, window: int | None = None) -> tuple[LayerActivations, LayerActivations]:
    """The same layer without and with stored attention; with a window, tokens farther away are invisible."""
    generator = torch.Generator().manual_seed(3)
    size = batch.padded_length
    shape = (len(batch.inputs), size, 3, 32)
    query, key = (torch.randn(shape, generator=generator).to(DEVICE, DTYPE).transpose(1, 2) for _ in range(2))
    mask = torch.zeros(shape[0], 1, size, size, dtype=DTYPE, device=DEVICE)
    mask.masked_fill_(~batch.token_mask[:, None, None], torch.finfo(DTYPE).min)
    if window is not None:
        positions = torch.arange(size, device=DEVICE)
        mask.masked_fill_((positions[:, None] - positions).abs() > window, torch.finfo(DTYPE).min)
    options: dict[str, Any] = {
        "attention_mask": mask if masked else None,
        "scaling": 0.3,
        "hides_only_padding": window is None,
    }
    scores = (query.double() @ key.double().transpose(-1, -2)) * 0.3 + (mask.double() if masked else 0)
    attention = torch.softmax(scores, -1).float()
    return LayerActivations(0, None, query, key, **options), LayerActivations(0, attention, query, key, **options)


def _fuse(layer: LayerActivations, batch: TokenBatch, *needs: StatisticNeeds) -> FusedLayers:
    accumulator = FusedAccumulator(batch, needs or [StatisticNeeds()])
    accumulator.add_layer(layer)
    assert layer.stored_attention is None
    return accumulator.finish()


@pytest.mark.parametrize("invisible", ["nothing", "padding", "distant tokens"])
@pytest.mark.parametrize("length", [150, 128])
def test_row_statistics(invisible: str, length: int) -> None:
    batch = _batch(length, 97) if invisible == "padding" else _batch(length)
    window = 20 if invisible == "distant tokens" else None
    layer, dense = _layers(batch, masked=invisible != "nothing", window=window)
    fused, expected = row_statistics(_fuse(layer, batch), batch), row_statistics(dense, batch)
    assert isinstance(fused, FusedStatistics)
    mask = batch.token_mask[:, None]
    names = ("max_weight", "max_non_special_weight", "entropy", "non_special_entropy", "non_special_mass")
    for name in names:
        left, right = getattr(fused, name) * mask, getattr(expected, name) * mask
        torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-4)
    for left, right in zip(fused.neighbour_weights, expected.neighbour_weights, strict=True):
        torch.testing.assert_close(left * mask, right * mask, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(
        fused.mass_by_kind / batch.padded_length,
        expected.mass_by_kind / batch.padded_length,
        rtol=HALF_TOLERANCE,
        atol=HALF_TOLERANCE,
    )


def test_many_special_tokens() -> None:
    kinds = [CLS, *[NONE, SEP] * 20]
    words = [-1, *[word_id for word in range(20) for word_id in (word, -1)]]
    batch = TokenBatch([make_input(words, kinds, 20)], DEVICE)
    layer, dense = _layers(batch, masked=False)
    fused, expected = row_statistics(_fuse(layer, batch), batch), row_statistics(dense, batch)
    for name in ("max_non_special_weight", "non_special_entropy", "non_special_mass"):
        torch.testing.assert_close(getattr(fused, name), getattr(expected, name), rtol=1e-4, atol=1e-4)


def test_distances() -> None:
    batch = _batch()
    layer, dense = _layers(batch, masked=True)
    fused, expected = row_statistics(_fuse(layer, batch), batch), row_statistics(dense, batch)
    # Sums over all tokens: in tokens about 150 x 50 each, in words less.
    scale = batch.lengths[:, None, None] * batch.padded_length
    torch.testing.assert_close(fused.distance_sums / scale, expected.distance_sums / scale, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("n_listed", [5, 20])
@pytest.mark.parametrize("n_weighted", [0, 1, 3])
def test_pair_sums(n_listed: int, n_weighted: int) -> None:
    batch = _batch()
    layer, dense = _layers(batch, masked=True)
    generator = torch.Generator().manual_seed(4)
    size = (len(batch.inputs), batch.padded_length, batch.padded_length)
    is_listed = (torch.rand(n_listed, *size, generator=generator) < 0.01).to(DEVICE)
    is_listed[:, :, 70:] = False  # some tiles have no pair
    is_listed &= batch.token_mask[:, None]  # padding is in no pair
    sum_index, row, source, target = torch.nonzero(is_listed).T
    weights = torch.rand(max(1, n_weighted), *size, generator=generator).transpose(0, 1).half().float().to(DEVICE)
    weights *= batch.token_mask[:, None, :, None]  # padding has weight 0
    indices = torch.stack([row, source, target, sum_index])
    scale = torch.rand(2, n_listed + n_weighted, generator=generator).to(DEVICE)
    all_pairs = TokenPairs(indices, scale, batch.padded_length, weights if n_weighted else None)
    first_pairs = TokenPairs(indices[:, sum_index < 2], scale[:, :2], batch.padded_length)
    fused = _fuse(layer, batch, StatisticNeeds(first_pairs), StatisticNeeds(all_pairs))
    for pairs in (all_pairs, first_pairs):
        torch.testing.assert_close(pair_sums(fused, pairs), pair_sums(dense, pairs), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("window", [None, 40])
def test_strongest_words(window: int | None) -> None:
    batch = _batch()
    layer, dense = _layers(batch, masked=True, window=window)
    words = word_slots(batch)
    has_no_tokens = ~words.has_tokens
    itself = torch.eye(words.max_words, dtype=torch.bool, device=DEVICE)
    excluded = (itself | has_no_tokens[:, :, None] | has_no_tokens[:, None, :])[:, None]
    assert bool(has_no_tokens[0].any())
    fused = _fuse(layer, batch, StatisticNeeds(words=words))
    strongest, expected = (strongest_words(each, words, excluded, "mean")[:, :, :2] for each in (fused, dense))
    for left, right in zip(strongest, expected, strict=True):
        assert bool(((left >= 0) == (right >= 0)).all())
        assert float((left == right).float().mean()) > 0.99  # in half precision two words may be equally strong


def test_any_of_equally_strong_words_may_count() -> None:
    """Even if they are in different tiles: queries of zero attend to all tokens equally."""
    batch = _batch(150)
    words = word_slots(batch)
    layer, _ = _layers(batch, masked=False)
    assert layer.query is not None
    layer.query = torch.zeros_like(layer.query)
    fused = _fuse(layer, batch, StatisticNeeds(words=words))
    sizes = words.slot_sizes[0, : words.max_words].cpu().numpy()
    strongest = strongest_words(fused, words, torch.ones(1, 1, 1, 1, dtype=torch.bool), "mean")[0].cpu().numpy()
    index = np.arange(words.max_words)
    for direction in range(2):
        choices: list[float] = []
        for word in np.flatnonzero(sizes):
            # A word receives attention per token and gives each token the same.
            weights = np.where(index == word, 0, sizes if direction == 0 else sizes > 0)
            tied = np.flatnonzero(weights == weights.max())
            chosen = np.unique(strongest[:, direction, word])
            assert len(chosen) == 1 and chosen[0] in tied  # the same for all heads
            choices.append(float(np.searchsorted(tied, chosen[0]) / len(tied)))
        assert abs(np.mean(choices) - 0.5) < 0.12 and np.std(choices) > 0.2  # spread evenly, as random choices are


def test_a_single_word_has_no_strongest_word() -> None:
    batch = TokenBatch([make_input([-1, 0, 0, -1], [CLS, NONE, NONE, SEP], 1)], DEVICE)
    words = word_slots(batch)
    fused = _fuse(_layers(batch, masked=False)[0], batch, StatisticNeeds(words=words))
    for strongest in strongest_words(fused, words, torch.ones(1, 1, 1, 1, dtype=torch.bool), "mean"):
        assert strongest.shape[1] == 2  # ties are not counted by the kernels
        assert (strongest == -1).all()


@pytest.mark.parametrize("dense_layer", [None, 0, 2])
def test_fused_layers_are_stored_separately(monkeypatch: pytest.MonkeyPatch, dense_layer: int | None) -> None:
    """Even if one of them has stored attention, at the beginning or in the middle."""
    batch = _batch(150)
    layers = [_layers(batch, masked=index > 2)[0] for index in range(6)]
    for index, layer in enumerate(layers):
        layer.layer = index
        assert layer.query is not None
        layer.query = layer.query * (1 + index / 4)

    def collect() -> dict[str, list[np.ndarray[Any, Any]]]:
        collector = SiteCollector(batch, [ENTROPY_SITE, MAX_WEIGHT_SITE], len(layers), half_precision=False)
        for layer in layers:
            copy = LayerActivations(
                layer.layer, None, layer.query, layer.key, attention_mask=layer.attention_mask, scaling=0.3
            )
            if layer.layer == dense_layer:
                assert copy.attention is copy.stored_attention
            collector.on_layer(copy)
        return collector.finish(ModelOutput((), {}))

    fused = collect()
    monkeypatch.setattr(accumulate, "_has_triton", lambda: False)
    for key, arrays in collect().items():
        for left, right in zip(fused[key], arrays, strict=True):
            np.testing.assert_allclose(left, right, rtol=5e-3, atol=5e-3)


def test_layers_the_kernels_do_not_support() -> None:
    from bertology.statistics.triton.launch import kernels_support

    def zeros(size: int, length: int = 8) -> Tensor:
        return torch.zeros(1, 2, length, size, device=DEVICE, dtype=DTYPE)

    assert kernels_support(zeros(64), zeros(64), None)
    assert not kernels_support(zeros(24), zeros(24), None)
    assert not kernels_support(zeros(16, 3000), zeros(16, 3000), None)
    assert not kernels_support(zeros(64), zeros(64), torch.zeros(1, 2, 8, 8, device=DEVICE))
