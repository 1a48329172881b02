"""Mean distance of the tokens that each head attends to (Vig & Belinkov 2019, section 4.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from bertology.analyses.declaration import analysis
from bertology.analyses.head_grids import AverageOption, ratio_grid
from bertology.lazy import torch
from bertology.recording.recording import Recording
from bertology.recording.sites import reduction
from bertology.results.shapes import HeadGrid
from bertology.statistics.pairs import rows_only
from bertology.statistics.rows import row_statistics

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attention_hook import LayerActivations
    from bertology.encoder.token_batch import TokenBatch

UNITS = {
    "distance in tokens": "tokens, 0 to n - 1",
    "distance in tokens (no special tokens)": "tokens, 0 to n - 1",
    "distance in words": "words, 0 to n - 1",
    "distance in words (no special tokens)": "words, 0 to n - 1",
}
MEASURES = tuple(UNITS)


def _row_weights(batch: TokenBatch) -> Tensor:
    """(batch, token, 2): the weight of a row when counting tokens and words."""
    return torch.stack([batch.token_mask.float(), batch.word_fractions], -1)


@reduction(
    "attention.distance",
    axes=("sum_total", "measure"),
    labels=MEASURES,
    description="sums of attention times distance, and of attention: in tokens and words, with and without special "
    "tokens",
    prepare=_row_weights,
    needs=rows_only,
    version=2,
)
def distance_site(layer: LayerActivations, batch: TokenBatch, row_weights: Tensor) -> Tensor:
    """(batch, head, 2, measure): sums of attention times distance, and sums of attention."""
    rows = row_statistics(layer, batch)
    non_special_mass = rows.non_special_mass * batch.non_special_mask[:, None]
    totals = [mass @ row_weights.to(mass.dtype) for mass in (rows.mass, non_special_mass)]
    return torch.stack([rows.distance_sums, torch.stack(totals, -1).flatten(2)], 2)


@analysis(
    question="How many tokens or words away does each head attend on average?",
    special_tokens="Special tokens: included, except in measures marked (no special tokens).",
    citations=("vig2019structure", "clark2019"),
    sites=(distance_site,),
    version=3,
)
def distance(
    recording: Recording,
    randomised: Recording | None,
    *,
    average: AverageOption = "micro",
    seed: Annotated[int, "Random seed (bootstrap)."] = 0,
) -> HeadGrid:
    """Mean distance of the tokens or words a head attends to: 0 the token itself, 1 its neighbours, up to n - 1.

    The sum of attention times distance over the sum of attention, as in the paper: attention that was rounded, whose
    rows do not sum to 1, is not biased. Distances are absolute; the paper's model attends
    only to preceding tokens. In words, attention to a word is the sum over its tokens and attention from a word the
    mean; a special token or a token outside words counts as a word. Uniform attention over n tokens has (n² - 1) / 3n.
    """
    return ratio_grid(recording, randomised, distance_site, units=UNITS, average=average, seed=seed)
