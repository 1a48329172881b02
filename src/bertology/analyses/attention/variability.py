"""Variability of attention: does a head depend on content or on position (Vig & Belinkov 2019, section 4.3)?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from annotated_types import Ge

from bertology.analyses.declaration import analysis
from bertology.analyses.head_grids import UNIFORM_ATTENTION, UNTRAINED_MODEL, uniform_baseline
from bertology.arrays import Array, FloatArray
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_ratio
from bertology.lazy import torch
from bertology.recording.recording import Recording
from bertology.recording.sites import ReducedSite
from bertology.results.shapes import HeadGrid

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attention_hook import LayerActivations
    from bertology.encoder.token_batch import TokenBatch

MEASURES = ("variability", "variability (no special tokens)")


@cache
def first_positions_site(n_positions: int) -> ReducedSite:
    """The site with the attention among the first `n_positions` tokens: of all tokens, and of non-special tokens.

    Deviations from a mean cannot be summed before the mean is known. The measure needs only a corner of fixed size of
    each pattern, so that it is stored and read twice: for the mean, and for the deviations.
    """

    def select_tokens(batch: TokenBatch) -> tuple[Tensor, Tensor]:
        """(batch, measure, position) token indices, and (batch, measure) whether there are enough tokens."""
        indices = np.zeros((len(batch.inputs), len(MEASURES), n_positions), np.int64)
        enough = np.zeros(indices.shape[:2], np.bool_)
        for row, recorded_input in enumerate(batch.inputs):
            tokens = recorded_input.tokens
            # Non-special tokens of the first segment only: beyond its end, positions are no longer distances.
            candidates = (np.arange(len(tokens)), np.flatnonzero(tokens.segment_ids == 0))
            for measure, positions in enumerate(candidates):
                if len(positions) >= n_positions:
                    indices[row, measure] = positions[:n_positions]
                    enough[row, measure] = True
        return torch.from_numpy(indices).to(batch.device), torch.from_numpy(enough).to(batch.device)

    def crop(layer: LayerActivations, token_batch: TokenBatch, selection: tuple[Tensor, Tensor]) -> Tensor:
        """(batch, head, measure, from, to); NaN if a sentence is too short."""
        indices, enough = selection
        rows = torch.arange(len(indices), device=indices.device)[:, None, None, None]
        weights = layer.attention[rows, :, indices[..., :, None], indices[..., None, :]]
        return weights.masked_fill(~enough[:, :, None, None, None], torch.nan).movedim(-1, 1)

    return ReducedSite(
        f"attention.first_positions.{n_positions}",
        ("measure", "position", "other_position"),
        f"attention among the first {n_positions} tokens, and among the first {n_positions} non-special tokens",
        crop,
        prepare=select_tokens,
    )


@analysis(
    question="Does each head's attention depend on the content of the sentence or only on position?",
    special_tokens="Special tokens: included, except in measures marked (no special tokens).",
    citations=("vig2019structure",),
    sites=lambda options: (first_positions_site(options["n_positions"]),),
    version=2,
)
def variability(
    recording: Recording,
    randomised: Recording | None,
    *,
    n_positions: Annotated[
        int, Ge(2), "Number of tokens from the start of each sentence to compare; shorter sentences are skipped."
    ] = 10,
    seed: Annotated[int, "Random seed (bootstrap)."] = 0,
) -> HeadGrid:
    """How much attention among the first positions differs between sentences: 0 not at all, 1 completely.

    The summed distance of each sentence's weights from their mean over sentences, over twice their sum: 0 for a head
    that depends only on position, 1 for one that depends only on content. Only sentences with enough tokens count; in a
    pair, only the first sentence. With S sentences the maximum is 1 - 1/S. Weights are not renormalised within the
    first positions, so that even uniform attention varies, with the length of the sentences.
    """
    site = first_positions_site(n_positions)
    measures = _estimate_variability(recording[site], seed)
    if not any(estimates.n.any() for estimates in measures.values()):
        raise Refusal(
            f"{recording.corpus.name} has fewer than two sentences of {n_positions} tokens",
            "at least two sentences to compare",
            "Use a larger corpus, or lower --n-positions",
        )
    grid = (recording.encoder.layers, recording.encoder.heads)
    uniform = _estimate_variability(list(uniform_baseline(recording, site)), seed)
    baselines = {UNIFORM_ATTENTION: {name: uniform[name][:, None].broadcast_to(grid) for name in MEASURES}}
    if randomised is not None:
        baselines[UNTRAINED_MODEL] = _estimate_variability(randomised[site], seed)
    return HeadGrid(measures=measures, baselines=baselines, units=dict.fromkeys(MEASURES, "proportion, 0 to 1"))


def _estimate_variability(weights: Sequence[Array], seed: int) -> dict[str, Estimates]:
    """Each measure from (..., measure, from, to) weights, one array per input."""
    return bootstrap_ratio(*deviation_ratio(weights), seed=seed).by_name(MEASURES)


def deviation_ratio(rows: Sequence[Array]) -> tuple[FloatArray, FloatArray]:
    """(row, ...) numerators and denominators of the share of weight by which rows differ from their mean.

    Rows are (..., a, b) non-negative weights, all NaN if a row is missing. The sum of all numerators over the sum of
    all denominators is Σ|x - mean| / 2 Σx: 0 if all rows are equal, at most 1 - 1/n.

    The mean consists of the rows, so that resampling rows moves it as well. Each numerator therefore has, besides its
    row's deviation, the effect of its row on the other deviations through the mean (the infinitesimal jackknife); these
    parts sum to 0. Rows are read three times and never held together. With a single row the ratio is 0 over 0.
    """
    count = np.stack([np.isfinite(row[..., 0, 0]) for row in rows]).sum(0)
    has_several = count > 1
    divisor = np.maximum(count, 1)[..., None, None]
    mean = sum(_zero_missing(row) for row in rows) / divisor
    mean_sign = sum(np.sign(_deviation(row, mean)) for row in rows) / divisor
    numerators: list[FloatArray] = []
    denominators: list[FloatArray] = []
    for row in rows:
        deviation = _deviation(row, mean)
        numerators.append(has_several * (np.abs(deviation) - mean_sign * deviation).sum((-2, -1)))
        denominators.append(has_several * 2 * _zero_missing(row).sum((-2, -1)))
    return np.stack(numerators), np.stack(denominators)


def _zero_missing(row: Array) -> FloatArray:
    return np.nan_to_num(row.astype(np.float64), nan=0.0)


def _deviation(row: Array, mean: Any) -> FloatArray:
    """The row minus the mean, 0 where the row is missing."""
    return np.nan_to_num(row.astype(np.float64) - mean, nan=0.0)
