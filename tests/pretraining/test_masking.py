from __future__ import annotations

import torch
from pretraining.masking import mask_tokens
from pretraining.pairs import CLS, MASK, PAD, SEP

VOCAB_SIZE = 1_000


def rows() -> torch.Tensor:
    """4,000 rows of 38 non-special tokens with ids of at least 100."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(100, VOCAB_SIZE, (4_000, 48), generator=generator)
    ids[:, 0], ids[:, 20], ids[:, 40], ids[:, 41:] = CLS, SEP, SEP, PAD
    return ids


def test_fifteen_percent_of_tokens_are_predicted_in_the_proportions_80_10_10() -> None:
    ids = rows()
    masked = mask_tokens(ids, VOCAB_SIZE, torch.Generator().manual_seed(1))
    labels = masked.labels[masked.slot_mask]
    inputs = masked.ids.gather(1, masked.positions)[masked.slot_mask]
    assert abs(masked.slot_mask.sum() / (4_000 * 38) - 0.15) < 0.003
    is_mask, is_unchanged = inputs == MASK, inputs == labels
    assert abs(is_mask.float().mean() - 0.8) < 0.01
    assert abs(is_unchanged.float().mean() - 0.1) < 0.01
    assert abs((~is_mask & ~is_unchanged).float().mean() - 0.1) < 0.01
    assert (inputs > PAD).all()


def test_only_sampled_tokens_change_and_special_tokens_never_do() -> None:
    ids = rows()
    masked = mask_tokens(ids, VOCAB_SIZE, torch.Generator().manual_seed(1))
    is_sampled = torch.zeros_like(ids, dtype=torch.bool).scatter(1, masked.positions, masked.slot_mask)
    assert torch.equal(masked.ids[~is_sampled], ids[~is_sampled])
    assert torch.equal(ids.gather(1, masked.positions), masked.labels)
    for special in (CLS, SEP, PAD):
        assert torch.equal(masked.ids == special, ids == special)


def test_a_row_with_one_token_has_one_prediction() -> None:
    ids = torch.tensor([[CLS, 500, SEP, PAD, PAD, PAD, PAD, PAD]])
    masked = mask_tokens(ids, VOCAB_SIZE, torch.Generator().manual_seed(1))
    assert masked.slot_mask.sum() == 1
    assert masked.positions[masked.slot_mask].tolist() == [1]
