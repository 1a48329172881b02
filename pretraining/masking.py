"""Masking for MLM: 15 % of the tokens, of which 80/10/10 % are masked, replaced or kept (Devlin et al. 2019)."""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from pretraining.pairs import CLS, MASK, PAD, SEP


@dataclass(frozen=True)
class Masked:
    """Corrupted ids, and for each row a fixed number of slots: place, true id, and 1 where the slot is used."""

    ids: Tensor
    places: Tensor
    truths: Tensor
    used: Tensor


def slots_for(width: int, rate: float = 0.15) -> int:
    """Slots enough for a row of `width` pieces, special ones counted in."""
    return max(1, int(rate * width) + 1)


def mask_pieces(ids: Tensor, vocabulary: int, generator: Generator, *, rate: float = 0.15) -> Masked:
    """Draw `rate` of each row's ordinary pieces, at least one; the fraction of a piece is drawn too."""
    slots = slots_for(ids.shape[1], rate)
    ordinary = (ids != PAD) & (ids != CLS) & (ids != SEP)
    luck = torch.rand(ids.shape, generator=generator, device=ids.device).masked_fill(~ordinary, 2.0)
    places = luck.topk(slots, dim=1, largest=False).indices
    wanted = rate * ordinary.sum(dim=1) + torch.rand(len(ids), generator=generator, device=ids.device)
    wanted = wanted.floor().clamp(min=1, max=slots)
    used = torch.arange(slots, device=ids.device)[None] < wanted[:, None]
    truths = ids.gather(1, places)
    turn = torch.rand(places.shape, generator=generator, device=ids.device)
    other = torch.randint(MASK + 1, vocabulary, places.shape, generator=generator, device=ids.device)
    corrupted = torch.where(turn < 0.8, MASK, torch.where(turn < 0.9, other, truths))
    corrupted = torch.where(used, corrupted, truths)
    return Masked(ids.scatter(1, places, corrupted), places, truths, used)
