"""Row statistics and pair sums, computed with slices and logarithms, match their definitions."""

from __future__ import annotations

import itertools

import pytest
import torch
from tests.recording.test_recorder import CORPUS
from tests.statistics.token_batches import CLS, INPUTS, NONE, SEP, make_input, random_attention
from torch import Tensor

from bertology.encoder.attention_hook import LayerActivations
from bertology.encoder.load import load
from bertology.encoder.token_batch import RecordedInput, TokenBatch
from bertology.recording.plan import RecordingConfig, make_plan
from bertology.statistics import rows
from bertology.statistics.batch_features import token_kinds
from bertology.statistics.pairs import TokenPairs, pair_sums
from bertology.statistics.rows import (
    attention_received,
    attention_received_from_non_special,
    log2_inplace,
    non_special_mass,
    row_statistics,
    special_columns,
)

EQUAL = [make_input([-1, 0, 1, -1], [CLS, NONE, NONE, SEP], 2)] * 3


def _expected(attention: Tensor, batch: TokenBatch) -> dict[str, Tensor]:
    non_special = batch.non_special_mask[:, None, None].float()
    entropies = torch.special.entr(attention)
    kinds = token_kinds(batch).float()
    return {
        "non_special_mass": (attention * non_special).sum(-1),
        "max_weight": attention.amax(-1),
        "max_non_special_weight": (attention * non_special).amax(-1),
        "entropy": entropies.sum(-1),
        "non_special_entropy": (entropies * non_special).sum(-1),
        "mass_by_kind": torch.einsum("bhij,bis,bjk->bhsk", attention, _source_groups(batch), kinds),
        "distance_sums": _distance_sums(attention, batch),
    }


def _distance_sums(attention: Tensor, batch: TokenBatch) -> Tensor:
    """(batch, head, 4), one pair at a time."""
    sums = torch.zeros(*attention.shape[:2], 4)
    for row, recorded in enumerate(batch.inputs):
        position, fraction = batch.word_positions[row].tolist(), batch.word_fractions[row].tolist()
        for i, j in itertools.product(range(len(recorded.tokens)), repeat=2):
            non_special = bool(batch.non_special_mask[row, i] & batch.non_special_mask[row, j])
            in_tokens, in_words = abs(i - j), abs(position[i] - position[j]) * fraction[i]
            distances = [in_tokens, in_tokens * non_special, in_words, in_words * non_special]
            sums[row] += attention[row, :, i, j, None] * torch.tensor(distances)
    return sums


def _source_groups(batch: TokenBatch) -> Tensor:
    """(batch, token, group): tokens, non-special tokens, separators."""
    return torch.stack([batch.token_mask, batch.non_special_mask, token_kinds(batch)[..., 1]], -1).float()


def _weights_at_offset(attention: Tensor, offset: int) -> Tensor:
    """(batch, head, from): attention of each token to the token at an offset."""
    size = attention.shape[-1]
    weights = torch.zeros(attention.shape[:3])
    for position in range(max(0, -offset), size - max(0, offset)):
        weights[:, :, position] = attention[:, :, position, position + offset]
    return weights


def assert_row_statistics(layer: LayerActivations, batch: TokenBatch) -> None:
    statistics = row_statistics(layer, batch)
    mask = batch.token_mask[:, None].float()
    for name, expected in _expected(layer.attention, batch).items():
        values: Tensor = getattr(statistics, name)
        if name not in {"mass_by_kind", "distance_sums"}:
            values, expected = values * mask, expected * mask
        torch.testing.assert_close(
            values, expected, rtol=1e-5, atol=2e-6, msg=lambda text, name=name: f"{name}: {text}"
        )
    for values, offset in zip(statistics.neighbour_weights, (0, -1, 1), strict=True):
        torch.testing.assert_close(values, _weights_at_offset(layer.attention, offset))


def test_row_statistics_of_recorded_attention() -> None:
    assert_row_statistics(LayerActivations(0, random_attention(INPUTS)), TokenBatch(INPUTS))


@pytest.mark.parametrize("n_inputs", [1, 6], ids=["single", "padded"])
def test_row_statistics_of_a_pass(n_inputs: int) -> None:
    encoder = load("tiny")
    batch = TokenBatch(make_plan(encoder, CORPUS, RecordingConfig()).inputs[:n_inputs])
    layers: list[int] = []

    def check(layer: LayerActivations) -> None:
        assert_row_statistics(layer, batch)
        layers.append(layer.layer)

    with torch.inference_mode():
        encoder.forward(batch.model_inputs, on_layer=check)
    assert layers == list(range(encoder.layers))


@pytest.mark.parametrize("chunk_heads", [1, 2, 5])
def test_the_chunk_size_changes_nothing(chunk_heads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the last chunk has fewer heads than the others, or one chunk has them all."""
    batch = TokenBatch(INPUTS)
    monkeypatch.setattr(rows, "CHUNK_CELLS", chunk_heads * len(INPUTS) * batch.padded_length**2)
    assert_row_statistics(LayerActivations(0, random_attention(INPUTS, heads=3)), batch)


def test_weights_of_zero_are_harmless() -> None:
    scores = torch.randn(1, 2, 6, 6, generator=torch.Generator().manual_seed(0))
    scores[..., 3] = -torch.inf
    batch = TokenBatch(INPUTS[:1])
    assert batch.padded_length == 6
    assert_row_statistics(LayerActivations(0, torch.softmax(scores, -1)), batch)


def test_row_statistics_are_shared() -> None:
    layer, batch = LayerActivations(0, random_attention(INPUTS)), TokenBatch(INPUTS)
    assert row_statistics(layer, batch) is row_statistics(layer, batch)
    second_layer = LayerActivations(0, random_attention(INPUTS))
    assert row_statistics(second_layer, batch) is not row_statistics(layer, batch)


def test_attention_is_computed_on_access() -> None:
    generator = torch.Generator().manual_seed(1)
    query, key = (torch.randn(2, 3, 5, 8, generator=generator) for _ in range(2))
    mask = torch.zeros(2, 1, 5, 5)
    mask[1, ..., 4] = torch.finfo(torch.float32).min
    layer = LayerActivations(0, None, query, key, attention_mask=mask, scaling=0.5)
    assert layer.heads == 3
    assert layer.stored_attention is None
    torch.testing.assert_close(layer.attention, torch.softmax(query @ key.transpose(-1, -2) * 0.5 + mask, -1))
    assert layer.stored_attention is layer.attention


def test_pair_sums() -> None:
    batch, attention = TokenBatch(INPUTS), random_attention(INPUTS)
    generator = torch.Generator().manual_seed(2)
    is_listed = torch.rand(3, *attention.shape[:1], *attention.shape[2:], generator=generator) < 0.2
    sum_index, row, source, target = torch.nonzero(is_listed).T
    scale = torch.rand(len(attention), 5, generator=generator)
    weights = torch.rand(len(attention), 2, *attention.shape[2:], generator=generator)
    pairs = TokenPairs(torch.stack([row, source, target, sum_index]), scale, batch.padded_length, weights)
    sums = pair_sums(LayerActivations(0, attention), pairs)
    listed = torch.einsum("bhij,sbij->bhs", attention, is_listed.float())
    weighted = torch.einsum("bhij,bsij->bhs", attention, weights)
    torch.testing.assert_close(sums, torch.cat([listed, weighted], -1) * scale[:, None])


@pytest.mark.parametrize(
    "inputs", [INPUTS, EQUAL, [*EQUAL, *INPUTS], INPUTS[2:]], ids=["mixed", "equal", "both", "special only"]
)
def test_sums_by_slices_equal_sums_by_masks(inputs: list[RecordedInput]) -> None:
    batch, attention = TokenBatch(inputs), random_attention(inputs)
    non_special, token = batch.non_special_mask.float(), batch.token_mask.float()
    torch.testing.assert_close(non_special_mass(attention, batch), torch.einsum("bhij,bj->bhi", attention, non_special))
    torch.testing.assert_close(attention_received(attention, batch), torch.einsum("bhij,bi->bhj", attention, token))
    torch.testing.assert_close(
        attention_received_from_non_special(attention, batch),
        torch.einsum("bhij,bi->bhj", attention, non_special),
        check_stride=False,
    )
    expected = attention * (1 - (token * (1 - non_special))[:, None, None])
    for batch_rows, columns in special_columns(attention, batch):
        assert columns.shape[0] == batch_rows.stop - batch_rows.start
        columns.zero_()
    torch.testing.assert_close(attention, expected, rtol=0, atol=0)


def test_the_logarithm_is_that_of_torch() -> None:
    values = torch.rand(3, 5, 7, generator=torch.Generator().manual_seed(0)).clamp(min=torch.finfo(torch.float32).tiny)
    expected = values.log2()
    logarithms = log2_inplace(values)
    assert logarithms is values
    torch.testing.assert_close(logarithms, expected)


def test_the_logarithm_of_a_slice_changes_the_slice_only() -> None:
    values = torch.tensor([[1.0, torch.finfo(torch.float32).tiny], [0.5, 2.0]])
    log2_inplace(values[:, 1:])
    torch.testing.assert_close(values, torch.tensor([[1.0, -126.0], [0.5, 1.0]]))
