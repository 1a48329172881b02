"""How far does each head look (vig2019structure, section 4.4)?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

from bertology.analyses.declaration import analysis
from bertology.measures.attention.head_measures import Average, ratio_grid
from bertology.recording.recording import Recording
from bertology.recording.sites import reduction
from bertology.results.shapes import HeadGrid

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame
    from bertology.recording.stretches import Stretches

MEASURES = ("pieces", "pieces, ordinary", "words", "words, ordinary")
UNITS = {name: f"{name.split(',')[0]}, 0 itself to n - 1" for name in MEASURES}


class _Prepared(NamedTuple):
    """`steps` is (batch, measure, from x to); `shares` (batch, piece, 2) what a row counts in pieces and in words."""

    steps: Tensor
    shares: Tensor
    stretches: tuple[Stretches, ...]


def _prepare(frame: Frame) -> _Prepared:
    import torch

    from bertology.recording.stretches import stretches_of

    places = torch.arange(frame.width, device=frame.device).float().expand_as(frame.word)
    positions, share = _word_positions(frame)
    in_pieces, in_words = ((p[:, :, None] - p[:, None, :]).abs() for p in (places, positions))
    in_words *= share[:, :, None]
    columns = [
        (steps * rows[:, :, None] * rows[:, None, :]).flatten(1)
        for steps in (in_pieces, in_words)
        for rows in (frame.real, frame.ordinary)
    ]
    return _Prepared(torch.stack(columns, 1), torch.stack([frame.real.float(), share], -1), stretches_of(frame))


def _word_positions(frame: Frame) -> tuple[Tensor, Tensor]:
    """(batch, piece) the position of each piece's word, and what share of that word the piece is.

    A piece that belongs to no word, such as a special token, counts as a word of its own.
    """
    import torch

    begins = torch.ones_like(frame.real)
    begins[:, 1:] = (frame.word[:, 1:] != frame.word[:, :-1]) | (frame.word[:, 1:] < 0)
    positions = begins.cumsum(1) - 1
    sizes = torch.zeros_like(positions).scatter_add_(1, positions, torch.ones_like(positions))
    return positions.float(), frame.real / sizes.gather(1, positions)


@reduction(
    "attention.distance",
    axes=("sum_total", "measure"),
    labels=MEASURES,
    about="attention times distance, and the attention, of each head: in pieces and words, with and without special",
    prepare=_prepare,
)
def DISTANCE(layer: LayerActivations, frame: Frame, prepared: _Prepared) -> Tensor:
    """(batch, head, 2, measure): sums of attention times distance over the sum of attention."""
    import torch

    from bertology.recording.stretches import ordinary_sum

    maps = layer.attention
    # Both factors run along the map: the layout in which a product of a few long rows is fastest.
    sums = maps.flatten(2) @ prepared.steps.to(maps.dtype).transpose(1, 2)
    everywhere = prepared.shares.sum(1)[:, None].expand(-1, maps.shape[1], -1)
    ordinary = ordinary_sum(maps, prepared.stretches) * frame.ordinary[:, None]
    inside = ordinary @ prepared.shares.to(maps.dtype)
    totals = torch.stack([everywhere, inside], -1).flatten(2)
    return torch.stack([sums, totals], 2)


@analysis(
    question="How far does each head look?",
    special="`ordinary` leaves special tokens out as sources and as targets, the other measures keep them",
    cites=("vig2019structure", "clark2019"),
    sites=(DISTANCE,),
)
def distance(
    recording: Recording,
    randomised: Recording | None,
    *,
    average: Annotated[
        Average, "`pooled` weighs every bit of attention alike, as the paper does; `sentences` every sentence"
    ] = "pooled",
    seed: Annotated[int, "seed of the bootstrap over sentences"] = 0,
) -> HeadGrid:
    """Mean distance of what a head attends to, in pieces or words: 0 itself, 1 the neighbours, up to n - 1.

    The sum of attention times distance over the sum of attention. Distance has no sign here; the paper's model sees
    only what is before. In words, attention to a word is the sum over its pieces and attention from it the mean; a
    special token or a piece without a word is a word of its own. Uniform attention over n pieces has (n² - 1) / 3n.
    """
    return ratio_grid(recording, randomised, DISTANCE, units=UNITS, average=average, seed=seed)
