"""Where rollout or flow from a hidden state falls: the token itself, [CLS], [SEP], neighbours, other tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from bertology.encoder.tokens import SpecialToken
from bertology.lazy import torch
from bertology.statistics.batch_features import MIN_MASS

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.token_batch import TokenBatch

SourceTokens = Literal["cls", "all", "non-special"]
SOURCES: tuple[SourceTokens, ...] = ("cls", "all", "non-special")
TARGETS = ("itself", "[CLS]", "[SEP]", "neighbours", "other")
EFFECTIVE_TOKENS = "effective number of tokens (of n)"
MEASURES = (*TARGETS, EFFECTIVE_TOKENS)


class TargetMasks(NamedTuple):
    """(batch, from, to) masks of `TARGETS`: every pair of tokens is in exactly one.

    `sources` is (batch, from, source): the rows that count for each of `SOURCES`.
    """

    by_target: tuple[Tensor, ...]
    sources: Tensor
    non_special: Tensor


def target_masks(batch: TokenBatch) -> TargetMasks:
    """The target masks of a batch; a pair counts for the first target it matches, in the order of `TARGETS`."""
    pairs = batch.token_mask[:, :, None] & batch.token_mask[:, None, :]
    positions = torch.arange(batch.padded_length, device=batch.device)
    distance = (positions[:, None] - positions).abs()
    cls, sep = ((batch.special_kinds == kind)[:, None, :] for kind in (SpecialToken.CLS, SpecialToken.SEP))
    unassigned, masks = pairs, list[torch.Tensor]()
    for mask in (distance == 0, cls, sep, distance == 1, torch.ones_like(pairs)):
        masks.append(unassigned & mask)
        unassigned = unassigned & ~mask
    is_cls = batch.token_mask & (batch.special_kinds == SpecialToken.CLS)
    sources = torch.stack([is_cls, batch.token_mask, batch.non_special_mask], -1)
    return TargetMasks(tuple(masks), sources, batch.non_special_mask)


def mass_by_target(weights: Tensor, masks: TargetMasks) -> Tensor:
    """(batch, source, measure): the mean over a source's rows of (batch, from, to) weights whose rows sum to 1.

    For non-special sources, special targets are excluded and the rest is renormalised; rows with no weight left are
    skipped. NaN if a sentence has no such source, and for targets that a source cannot have: from [CLS], the target
    [CLS] is the token itself.
    """
    non_special = weights * masks.non_special.unsqueeze(1)
    mass = non_special.sum(-1, keepdim=True)
    non_special = non_special / mass.clamp(min=MIN_MASS)
    by_source: list[Tensor] = []
    for index, source in enumerate(SOURCES):
        is_non_special = source == "non-special"
        rows = masks.sources[..., index]
        if is_non_special:
            rows = rows & (mass.squeeze(-1) > MIN_MASS)
        shares = non_special if is_non_special else weights
        n_targets = (masks.non_special if is_non_special else masks.sources[..., 1]).sum(1, keepdim=True)
        by_target = [(shares * mask).sum(-1) for mask in masks.by_target]
        entropy = torch.special.entr(shares).sum(-1)
        measures = torch.stack([*by_target, entropy.exp() / n_targets], -1)
        by_source.append((measures * rows.unsqueeze(-1)).sum(1) / rows.sum(1, keepdim=True))
    means = torch.stack(by_source, 1)
    cls, sep = MEASURES.index("[CLS]"), MEASURES.index("[SEP]")
    means[:, SOURCES.index("cls"), cls] = torch.nan
    means[:, SOURCES.index("non-special"), cls : sep + 1] = torch.nan
    return means


def uniform_like(attention: Tensor, batch: TokenBatch) -> Tensor:
    """(batch, 1, from, to): uniform attention over the tokens visible in (batch, head, from, to) attention.

    Visibility (causal, or within a window) is inferred per offset, since a single weight of 0 may be rounding. Padding
    sees itself: within a window it may see nothing else, and its row would not sum to 1.
    """
    positions = torch.arange(batch.padded_length, device=attention.device)
    offsets = (positions - positions[:, None] + batch.padded_length - 1).flatten()
    pairs = batch.token_mask[:, :, None] & batch.token_mask[:, None, :]
    highest = (attention.amax(1) * pairs).flatten(1)
    by_offset = highest.new_zeros(len(highest), 2 * batch.padded_length - 1).scatter_reduce(
        1, offsets.expand_as(highest), highest, "amax"
    )
    visible = (by_offset > 0)[:, offsets].view_as(pairs) & batch.token_mask[:, None, :]
    visible |= (~batch.token_mask).diag_embed()
    return (visible / visible.sum(-1, keepdim=True)).to(attention.dtype).unsqueeze(1)
