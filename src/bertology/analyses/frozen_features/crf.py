"""Linear-chain conditional random fields (Lafferty et al. 2001), batched over any leading axes.

`scores` (..., step, tag) are the scores of each tag at each step. `transitions` (..., tag + 1, tag + 1) are the scores
of moving from a tag (row) to the next (column); the last row is for the first tag, the last column for the last tag.
`step_mask` (..., step) is false for padding, which comes last; at least one step is true.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor


def log_partition(scores: Tensor, transitions: Tensor, step_mask: Tensor) -> Tensor:
    """(...) log-sum-exp of the scores of all paths."""
    inner, first, last = _split_transitions(transitions)
    total = first + scores[..., 0, :]
    for step in range(1, scores.shape[-2]):
        extended = (total[..., :, None] + inner).logsumexp(-2) + scores[..., step, :]
        total = torch.where(step_mask[..., step, None], extended, total)
    return (total + last).logsumexp(-1)


def path_score(scores: Tensor, transitions: Tensor, step_mask: Tensor, tags: Tensor) -> Tensor:
    """(...) the score of the path of these (..., step) tags."""
    inner, first, last = _split_transitions(transitions)
    tag_scores = scores.gather(-1, tags[..., None])[..., 0]
    between = _gather_transitions(inner, tags[..., :-1], tags[..., 1:])
    last_tags = tags.gather(-1, step_mask.sum(-1, keepdim=True) - 1)[..., 0]
    inside = (tag_scores * step_mask).sum(-1) + (between * step_mask[..., 1:]).sum(-1)
    return inside + _gather_tags(first, tags[..., 0]) + _gather_tags(last, last_tags)


def viterbi(scores: Tensor, transitions: Tensor, step_mask: Tensor) -> Tensor:
    """(..., step) the tags of the best path (Viterbi 1967), 0 for padding."""
    inner, first, last = _split_transitions(transitions)
    total = first + scores[..., 0, :]
    back_pointers: list[Tensor] = []
    for step in range(1, scores.shape[-2]):
        best, previous = (total[..., :, None] + inner).max(-2)
        mask = step_mask[..., step, None]
        total = torch.where(mask, best + scores[..., step, :], total)
        same_tag = torch.arange(scores.shape[-1], device=scores.device).expand_as(previous)
        back_pointers.append(torch.where(mask, previous, same_tag))
    tag = (total + last).argmax(-1)
    path = [tag]
    for previous in reversed(back_pointers):
        tag = previous.gather(-1, tag[..., None])[..., 0]
        path.append(tag)
    return torch.stack(path[::-1], -1) * step_mask


def _split_transitions(transitions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Scores of transitions between tags, to the first tag, and from the last tag."""
    return transitions[..., :-1, :-1], transitions[..., -1, :-1], transitions[..., :-1, -1]


def _gather_transitions(inner: Tensor, before: Tensor, after: Tensor) -> Tensor:
    """(..., step) the cells of a (..., tag, tag) table at these tags."""
    tags = inner.shape[-1]
    flat = inner.flatten(-2).expand(*before.shape[:-1], tags * tags)
    return flat.gather(-1, before * tags + after)


def _gather_tags(values: Tensor, tag: Tensor) -> Tensor:
    return values.expand(*tag.shape, values.shape[-1]).gather(-1, tag[..., None])[..., 0]
