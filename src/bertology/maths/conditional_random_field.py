"""Linear-chain conditional random fields (Lafferty et al. 2001), many at once; no BERT here.

`scores` is (..., step, tag): what each tag gets at each step. `moves` is (..., tag + 1, tag + 1): what it gets to go
from a tag (row) to the next (column); the last row is for beginning with a tag, the last column for ending with one.
`real` is (..., step): which steps are there; they come first, and there is at least one. The axes before are any.
"""

from __future__ import annotations

import torch
from torch import Tensor


def log_partition(scores: Tensor, moves: Tensor, real: Tensor) -> Tensor:
    """(...) the logarithm of the sum over all paths of the exponential of what a path gets."""
    inner, first, last = _parts(moves)
    total = first + scores[..., 0, :]
    for step in range(1, scores.shape[-2]):
        further = (total[..., :, None] + inner).logsumexp(-2) + scores[..., step, :]
        total = torch.where(real[..., step, None], further, total)
    return (total + last).logsumexp(-1)


def path_score(scores: Tensor, moves: Tensor, real: Tensor, tags: Tensor) -> Tensor:
    """(...) what the path of these (..., step) tags gets."""
    inner, first, last = _parts(moves)
    own = scores.gather(-1, tags[..., None])[..., 0]
    between = _chosen(inner, tags[..., :-1], tags[..., 1:])
    ends = tags.gather(-1, real.sum(-1, keepdim=True) - 1)[..., 0]
    inside = (own * real).sum(-1) + (between * real[..., 1:]).sum(-1)
    return inside + _at(first, tags[..., 0]) + _at(last, ends)


def best_paths(scores: Tensor, moves: Tensor, real: Tensor) -> Tensor:
    """(..., step) the tags of the path that gets most (Viterbi 1967), 0 where a step is not there."""
    inner, first, last = _parts(moves)
    total = first + scores[..., 0, :]
    came_from: list[Tensor] = []
    for step in range(1, scores.shape[-2]):
        best, before = (total[..., :, None] + inner).max(-2)
        there = real[..., step, None]
        total = torch.where(there, best + scores[..., step, :], total)
        stays = torch.arange(scores.shape[-1], device=scores.device).expand_as(before)
        came_from.append(torch.where(there, before, stays))
    tag = (total + last).argmax(-1)
    path = [tag]
    for before in reversed(came_from):
        tag = before.gather(-1, tag[..., None])[..., 0]
        path.append(tag)
    return torch.stack(path[::-1], -1) * real


def _parts(moves: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Moves between tags, to the first tag, from the last one."""
    return moves[..., :-1, :-1], moves[..., -1, :-1], moves[..., :-1, -1]


def _chosen(inner: Tensor, before: Tensor, after: Tensor) -> Tensor:
    """(..., step) the entries of (..., tag, tag) at these tags."""
    tags = inner.shape[-1]
    flat = inner.flatten(-2).expand(*before.shape[:-1], tags * tags)
    return flat.gather(-1, before * tags + after)


def _at(values: Tensor, tag: Tensor) -> Tensor:
    return values.expand(*tag.shape, values.shape[-1]).gather(-1, tag[..., None])[..., 0]
