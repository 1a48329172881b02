"""Confidence of each head: the mean of its highest attention weight (Voita et al. 2019, section 4)."""

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

MEASURES: tuple[str, ...] = (
    "confidence (no special targets)",
    "confidence (no special tokens)",
    "confidence (all tokens)",
)


@reduction(
    "attention.confidence",
    axes=("sum_total", "measure"),
    labels=MEASURES,
    description="highest weight of each attention row, summed over rows, and the number of rows; with and without "
    "special tokens",
    needs=rows_only,
)
def confidence_site(layer: LayerActivations, batch: TokenBatch, _: None) -> Tensor:
    """(batch, head, 2, measure): sums of the highest weights of rows, and numbers of rows."""
    statistics = row_statistics(layer, batch)
    rows = torch.stack([batch.token_mask, batch.non_special_mask], -1).to(statistics.max_weight.dtype)
    sums = torch.cat([statistics.max_non_special_weight @ rows, statistics.max_weight @ rows[..., :1]], -1)
    n_rows = rows.sum(1)
    # Without a non-special target there is no row to be confident about one.
    has_target = n_rows[:, 1:] > 0
    totals = torch.cat([n_rows[:, :1] * has_target, n_rows[:, 1:], n_rows[:, :1]], -1)
    return torch.stack([sums, totals[:, None].expand_as(sums)], 2)


@analysis(
    question="How concentrated is each head's attention: what is the mean of its highest weight?",
    special_tokens="Special tokens: included, except in measures marked (no special tokens). `confidence (no special "
    "targets)` excludes them as targets, without renormalising.",
    citations=("voita2019",),
    sites=(confidence_site,),
    version=2,
)
def confidence(
    recording: Recording,
    randomised: Recording | None,
    *,
    average: AverageOption = "micro",
    seed: Annotated[int, "Random seed (bootstrap)."] = 0,
) -> HeadGrid:
    """Highest weight of an attention row, averaged over rows: 1/n if uniform over n tokens, 1 for a single target.

    `confidence (no special targets)` is the paper's measure: the end-of-sentence token, here every special token, does
    not count as a target, so that a head that gives all attention to [SEP] has confidence 0. All tokens are sources;
    `confidence (no special tokens)` has only non-special sources. `confidence (all tokens)` includes special tokens as
    targets.
    """
    units = dict.fromkeys(MEASURES, "attention weight, 0 to 1")
    return ratio_grid(recording, randomised, confidence_site, units=units, average=average, seed=seed)
