"""Classify attention patterns by an explicit rule (after Kovaleva et al. 2019, section 4.1).

Three strengths measure lines and blocks in a pattern; all are 0 for uniform attention:

- `vertical`: for each column the square of the mean root of its weights, which is the column's mean if all rows attend
  to it equally and much less if only a few do; its excess over 1/n, summed over columns and divided by 1 - 1/n. This is
  about the share of attention in vertical lines.
- `diagonal`: the same for the three diagonals from the previous to the next token.
- `block`: without vertical lines, the maximum over boundaries with at least a fifth of the tokens on either side of the
  relative shortfall of attention across the boundary, compared with attention at the same distances elsewhere: 0 no
  shortfall, 1 no attention crosses. A boundary counts if the shortfall is more than `MIN_DEVIATIONS` standard
  deviations under a random permutation of the weights at each distance: with a few sharp weights near the diagonal,
  some boundary is never crossed by chance.

A pattern with a line strength of at least `MIN_LINE_STRENGTH`, about half of the attention since lines are never even,
is vertical or diagonal, and both if the weaker has at least `MIN_FAINTER_FRACTION` of it; else it is a block pattern
from `MIN_BLOCK_STRENGTH`; else it is heterogeneous. Each threshold is midway between the 2nd percentile of synthetic
training patterns with the feature and the 98th percentile of those without it; no model was used.
"""

from __future__ import annotations

import torch
from torch import Tensor

MIN_LINE_STRENGTH = 0.4
MIN_FAINTER_FRACTION = 0.15
MIN_BLOCK_STRENGTH = 0.35
MIN_DEVIATIONS = 3.0
MIN_CROSSING_FRACTION = 0.05
"""A boundary counts if at least this fraction of the attention without vertical lines is expected to cross it."""


def pattern_strengths(attention: Tensor) -> Tensor:
    """(..., 3) vertical, diagonal and block strengths of (..., from, to) attention without padding."""
    size = attention.shape[-1]
    roots = attention.sqrt()
    columns = roots.mean(-2).square()
    diagonals = [roots.diagonal(offset, -2, -1).mean(-1).square() for offset in (-1, 0, 1)]
    lines = _excess_over_uniform(columns, size)
    diagonal = _excess_over_uniform(torch.stack(diagonals), size).sum(0)
    return torch.stack([lines.sum(-1), diagonal, _block_strength((attention - lines.unsqueeze(-2)).clamp(min=0))], -1)


def _excess_over_uniform(mass: Tensor, size: int) -> Tensor:
    """The excess over uniform attention: a line of share s on uniform attention gives s."""
    return (mass - 1 / size).clamp(min=0) / (1 - 1 / size)


def classify_by_rule(strengths: Tensor) -> Tensor:
    """(...) index into `PATTERN_CLASSES` from (..., 3) strengths."""
    vertical, diagonal, block = strengths.unbind(-1)
    lines = vertical + diagonal
    faint = MIN_FAINTER_FRACTION * lines
    line_class = torch.where(diagonal < faint, 0, torch.where(vertical < faint, 1, 2))
    return torch.where(lines >= MIN_LINE_STRENGTH, line_class, torch.where(block >= MIN_BLOCK_STRENGTH, 3, 4))


def _block_strength(attention: Tensor) -> Tensor:
    """(...) relative shortfall of attention at the boundary that it crosses least."""
    size = attention.shape[-1]
    distances = torch.arange(size, device=attention.device)
    edge = -(-size // 5)
    boundaries = torch.arange(edge, size - edge + 1, device=attention.device)
    # Pairs (i, i + d) with i before the boundary and i + d after it, and the same in the other direction.
    last = torch.minimum(boundaries[:, None] - 1, size - 1 - distances)
    first = (boundaries[:, None] - distances).clamp(min=0)
    crossing = 2 * (last - first + 1).clamp(min=0).to(attention.dtype)
    pairs = (2 * (size - distances)).to(attention.dtype)
    pairs[0] = size
    sums = _mass_by_distance(attention)
    mean = sums / pairs
    expected = mean @ crossing.T
    variance = (_mass_by_distance(attention.square()) / pairs - mean.square()).clamp(min=0)
    # Sampling without replacement: the fewer pairs are left on either side, the smaller the variance.
    variance_factor = crossing * (pairs - crossing) / (pairs - 1)
    deviation = (variance @ variance_factor.T).sqrt()
    cumulative = attention.cumsum(-1).cumsum(-2)
    before = boundaries - 1
    observed = cumulative[..., before, -1] + cumulative[..., -1, before] - 2 * cumulative[..., before, before]
    min_expected = MIN_CROSSING_FRACTION * sums.sum(-1, keepdim=True)
    significant = (expected >= min_expected) & (expected - observed > MIN_DEVIATIONS * deviation)
    shortfall = torch.where(significant, 1 - observed / expected.clamp(min=1e-9), 0.0)
    return shortfall.amax(-1).clamp(min=0)


def _mass_by_distance(attention: Tensor) -> Tensor:
    """(..., distance) sums of the weights at each distance, in both directions."""
    size = attention.shape[-1]
    # Rows are written one cell longer than they are read, which shifts each row by one: diagonals become columns.
    padded = torch.nn.functional.pad(attention.flip(-1), (0, size))
    skewed = padded.flatten(-2)[..., : size * (2 * size - 1)].unflatten(-1, (size, 2 * size - 1)).sum(-2)
    ahead, behind = skewed[..., :size].flip(-1), skewed[..., size - 1 :]
    both = ahead + behind
    both[..., 0] /= 2
    return both
