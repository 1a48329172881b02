"""Which of five shapes an attention map has, by a rule one can read (after kovaleva2019, section 4.1).

Three numbers say how much of a map is a line or a block; all are 0 for a head that looks at all pieces alike:

- `vertical`: for each column the square of the mean root of its weights, which is its mean where all rows look at it
  alike and far less where a few do; what of it exceeds 1/n, summed over the columns and divided by 1 - 1/n: about the
  share of the attention that goes into vertical lines.
- `diagonal`: the same for the three diagonals from the piece before to the piece after.
- `block`: with vertical lines taken out, over all boundaries that leave a fifth of the pieces on either side, the most
  that attention across the boundary falls short of what attention at those distances has elsewhere in the map: 0 as
  everywhere, 1 nothing crosses. A boundary counts where the shortfall is more than `DEVIATIONS` standard deviations of
  what weights dealt anew among the pairs of each distance would make: where a few sharp weights stay near the diagonal
  there is always a place that by chance none of them crosses.

Lines that hold `LINES` of the map, about half of the attention since lines are never even, make it vertical or
diagonal, and both where the fainter has at least `FAINTER` of them; else a map is a block from `BLOCK` on; else it is
heterogeneous. Each threshold is midway between what 98 of 100 synthesised training maps with the feature have at least
and 98 of 100 without it at most; no model's maps had a say.
"""

from __future__ import annotations

import torch
from torch import Tensor

LINES = 0.4
FAINTER = 0.15
BLOCK = 0.35
DEVIATIONS = 3.0
LEAST_CROSSING = 0.05
"""A boundary counts where this share of what is left of the map would be expected to cross it."""


def measured(maps: Tensor) -> Tensor:
    """(..., 3) vertical, diagonal and block strength of maps (..., from, to) without padding."""
    size = maps.shape[-1]
    roots = maps.sqrt()
    columns = roots.mean(-2).square()
    diagonals = [roots.diagonal(offset, -2, -1).mean(-1).square() for offset in (-1, 0, 1)]
    lines = _excess(columns, size)
    diagonal = _excess(torch.stack(diagonals), size).sum(0)
    return torch.stack([lines.sum(-1), diagonal, _block((maps - lines.unsqueeze(-2)).clamp(min=0))], -1)


def _excess(shares: Tensor, size: int) -> Tensor:
    """What exceeds even attention: the share s of a line over an even rest is found as s again."""
    return (shares - 1 / size).clamp(min=0) / (1 - 1 / size)


def classified(strengths: Tensor) -> Tensor:
    """(...) the number of the shape in `map_shapes.SHAPES` from (..., 3) strengths."""
    vertical, diagonal, block = strengths.unbind(-1)
    lines = vertical + diagonal
    faint = FAINTER * lines
    lined = torch.where(diagonal < faint, 0, torch.where(vertical < faint, 1, 2))
    return torch.where(lines >= LINES, lined, torch.where(block >= BLOCK, 3, 4))


def _block(maps: Tensor) -> Tensor:
    """(...) how little of the attention crosses the boundary that it crosses least."""
    size = maps.shape[-1]
    steps = torch.arange(size, device=maps.device)
    edge = -(-size // 5)
    boundaries = torch.arange(edge, size - edge + 1, device=maps.device)
    # Pairs (i, i + d) with i before the boundary and i + d not, and their like in the other direction.
    last = torch.minimum(boundaries[:, None] - 1, size - 1 - steps)
    first = (boundaries[:, None] - steps).clamp(min=0)
    crossing = 2 * (last - first + 1).clamp(min=0).to(maps.dtype)
    pairs = (2 * (size - steps)).to(maps.dtype)
    pairs[0] = size
    sums = _by_distance(maps)
    mean = sums / pairs
    expected = mean @ crossing.T
    variance = (_by_distance(maps.square()) / pairs - mean.square()).clamp(min=0)
    # Drawn without being put back: the fewer pairs are left on either side, the less chance there is.
    dealt = crossing * (pairs - crossing) / (pairs - 1)
    deviation = (variance @ dealt.T).sqrt()
    whole = maps.cumsum(-1).cumsum(-2)
    before = boundaries - 1
    found = whole[..., before, -1] + whole[..., -1, before] - 2 * whole[..., before, before]
    enough = LEAST_CROSSING * sums.sum(-1, keepdim=True)
    counted = (expected >= enough) & (expected - found > DEVIATIONS * deviation)
    shortfall = torch.where(counted, 1 - found / expected.clamp(min=1e-9), 0.0)
    return shortfall.amax(-1).clamp(min=0)


def _by_distance(maps: Tensor) -> Tensor:
    """(..., distance) the summed weights at each distance, in both directions."""
    size = maps.shape[-1]
    # Written into rows one place longer than they are read, each row begins one place later: diagonals become columns.
    padded = torch.nn.functional.pad(maps.flip(-1), (0, size))
    skewed = padded.flatten(-2)[..., : size * (2 * size - 1)].unflatten(-1, (size, 2 * size - 1)).sum(-2)
    ahead, behind = skewed[..., :size].flip(-1), skewed[..., size - 1 :]
    both = ahead + behind
    both[..., 0] /= 2
    return both
