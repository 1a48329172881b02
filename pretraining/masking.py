"""Masking for MLM: 15 % of the tokens, of which 80/10/10 % are masked, replaced or kept (Devlin et al. 2019)."""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from pretraining.pairs import CLS, MASK, PAD, SEP


@dataclass(frozen=True)
class MaskedTokens:
    """Corrupted ids, and the predicted tokens in a fixed number of slots per row.

    `positions` and `labels` (row, slot) are the position of a predicted token and its original id. `slot_mask` is true
    for the slots in use.
    """

    ids: Tensor
    positions: Tensor
    labels: Tensor
    slot_mask: Tensor


def slot_count(length: int, rate: float = 0.15) -> int:
    """Enough slots for a row of `length` tokens, including special tokens."""
    return max(1, int(rate * length) + 1)


def mask_tokens(ids: Tensor, vocab_size: int, generator: Generator, *, rate: float = 0.15) -> MaskedTokens:
    """Sample `rate` of the non-special tokens of each row, at least one; fractions are rounded at random."""
    slots = slot_count(ids.shape[1], rate)
    non_special = (ids != PAD) & (ids != CLS) & (ids != SEP)
    sort_key = torch.rand(ids.shape, generator=generator, device=ids.device).masked_fill(~non_special, 2.0)
    positions = sort_key.topk(slots, dim=1, largest=False).indices
    n_masked = rate * non_special.sum(dim=1) + torch.rand(len(ids), generator=generator, device=ids.device)
    n_masked = n_masked.floor().clamp(min=1, max=slots)
    slot_mask = torch.arange(slots, device=ids.device)[None] < n_masked[:, None]
    labels = ids.gather(1, positions)
    action = torch.rand(positions.shape, generator=generator, device=ids.device)
    random_ids = torch.randint(MASK + 1, vocab_size, positions.shape, generator=generator, device=ids.device)
    corrupted = torch.where(action < 0.8, MASK, torch.where(action < 0.9, random_ids, labels))
    corrupted = torch.where(slot_mask, corrupted, labels)
    return MaskedTokens(ids.scatter(1, positions, corrupted), positions, labels, slot_mask)
