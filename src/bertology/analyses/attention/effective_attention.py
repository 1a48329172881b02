"""Effective attention: the part of each attention pattern that affects the head's output (Brunner et al. 2020).

With `--simplex`, the variant of Sun & Marasovic (2021).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from bertology.analyses.attention.norms import NO_SPECIAL, WEIGHTS_ONLY
from bertology.analyses.declaration import analysis
from bertology.analyses.head_grids import (
    UNIFORM_ATTENTION,
    UNTRAINED_MODEL,
    label_means,
    measures_and_baselines,
    target_name,
)
from bertology.errors import Refusal
from bertology.lazy import torch
from bertology.recording.recording import Recording
from bertology.recording.sites import ReducedSite, reduction
from bertology.results.shapes import HeadGrid
from bertology.statistics.batch_features import MIN_MASS, TOKEN_KINDS, mass_by_kind, token_kinds
from bertology.statistics.transformed_values import transformed_values_per_head
from bertology.statistics.visibility import visibility_mask

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attention_hook import LayerActivations
    from bertology.encoder.token_batch import TokenBatch

NULL_SPACE = "null-space share"
EFFECTIVE_MEASURES = tuple(f"effective attention to {target_name(kind)}" for kind in TOKEN_KINDS)
TO_PUNCTUATION = "effective attention to punctuation"
RANDOM_PATTERN = "random pattern"
_NULL_SPACE_UNIT, _EFFECTIVE_UNIT = "share of squared weights, 0 to 1", "share of absolute weights, 0 to 1"
UNITS = (
    {NULL_SPACE: _NULL_SPACE_UNIT}
    | dict.fromkeys(EFFECTIVE_MEASURES, _EFFECTIVE_UNIT)
    | {f"{NULL_SPACE}{NO_SPECIAL}": _NULL_SPACE_UNIT, f"{TO_PUNCTUATION}{NO_SPECIAL}": _EFFECTIVE_UNIT}
)
NULL_SPACE_MEASURES = (NULL_SPACE, f"{NULL_SPACE}{NO_SPECIAL}")
ALL_EFFECTIVE_MEASURES = (*EFFECTIVE_MEASURES, f"{TO_PUNCTUATION}{NO_SPECIAL}")
TOLERANCE = 1e-6
"""Singular values below this fraction of the largest are rounding errors of single precision."""

_SENTENCE_LABELS = (
    NULL_SPACE,
    *EFFECTIVE_MEASURES,
    f"{UNIFORM_ATTENTION}, {NULL_SPACE}",
    f"{RANDOM_PATTERN}, {NULL_SPACE}",
    *(f"{WEIGHTS_ONLY}, {name}" for name in EFFECTIVE_MEASURES),
)
# Without special tokens only punctuation and other tokens are left: the share of one determines the other.
_NON_SPECIAL_LABELS = {
    f"{name}{NO_SPECIAL}": name
    for name in (
        NULL_SPACE,
        TO_PUNCTUATION,
        f"{UNIFORM_ATTENTION}, {NULL_SPACE}",
        f"{RANDOM_PATTERN}, {NULL_SPACE}",
        f"{WEIGHTS_ONLY}, {TO_PUNCTUATION}",
    )
}
LABELS = (*_SENTENCE_LABELS, *_NON_SPECIAL_LABELS)


def _build_site(name: str, description: str, *, simplex: bool) -> ReducedSite:
    @reduction(
        name,
        axes=("measure",),
        labels=LABELS,
        description=description,
        prepare=token_kinds,
        needs_values=True,
        version=4,
    )
    def site(layer: LayerActivations, batch: TokenBatch, kinds: Tensor) -> Tensor:
        """(batch, head, measure); NaN for sentences with too few tokens or without full visibility."""
        vectors, visible = transformed_values_per_head(layer), visibility_mask(layer, batch)

        def measure(row: int, flags: Tensor) -> Tensor:
            indices = flags.nonzero().squeeze(-1)
            return _measure_subset(layer.attention[row], visible[row], indices, vectors[row], kinds[row], simplex)

        all_tokens, non_special = (
            torch.stack([measure(row, flags) for row, flags in enumerate(mask)])
            for mask in (batch.token_mask, batch.non_special_mask)
        )
        columns = [_SENTENCE_LABELS.index(label) for label in _NON_SPECIAL_LABELS.values()]
        return torch.cat([all_tokens, non_special[..., columns]], -1)

    return site


def _measure_subset(
    attention: Tensor, visible: Tensor, indices: Tensor, vectors: Tensor, kinds: Tensor, simplex: bool
) -> Tensor:
    """(head, label) values of `_SENTENCE_LABELS` for the tokens at `indices` of one sentence, rows renormalised."""
    attention, visible = (tensor[:, indices][:, :, indices] for tensor in (attention, visible))
    if len(indices) <= vectors.shape[-1] + simplex or not bool(visible.all()):
        return vectors.new_full((len(vectors), len(_SENTENCE_LABELS)), torch.nan)
    attention = attention.float()
    mass = attention.sum(-1, keepdim=True)
    attention = attention / mass.clamp(min=MIN_MASS) * (mass > MIN_MASS)
    return _measure_sentence(attention, vectors[:, indices], kinds[indices], simplex=simplex)


def _measure_sentence(attention: Tensor, vectors: Tensor, kinds: Tensor, *, simplex: bool) -> Tensor:
    """(head, label) values for one sentence without padding."""
    visible_vectors = torch.cat([vectors, torch.ones_like(vectors[..., :1])], -1) if simplex else vectors
    uniform = torch.full_like(attention, 1 / len(kinds))
    effective, rank = remove_null_space(torch.cat([attention, uniform], -2), visible_vectors)
    effective_attention, effective_uniform = effective.split(attention.shape[-2], -2)
    everything = torch.ones(1, len(kinds), dtype=torch.bool, device=attention.device)
    effective_shares, attention_shares = (
        mass_by_kind(weights.unsqueeze(0), kinds.unsqueeze(0), everything)[0]
        for weights in (effective_attention.abs(), attention)
    )
    columns = [
        _null_space_share(attention, effective_attention)[:, None],
        effective_shares,
        _null_space_share(uniform, effective_uniform)[:, None],
        (1 - rank / len(kinds))[:, None],
        attention_shares,
    ]
    return torch.cat([column.float() for column in columns], -1)


def remove_null_space(weights: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Weights (..., row, n) over vectors (..., n, size) without their component in the null space, and the rank.

    The null space contains all weights whose weighted sum of the vectors is zero: `effective @ vectors` equals
    `weights @ vectors`, and no smaller weights have the same sums. With n linearly independent vectors the weights are
    unchanged.
    """
    left, values, _ = torch.linalg.svd(vectors.double(), full_matrices=False)
    mask = values > TOLERANCE * values[..., :1].clamp(min=torch.finfo(values.dtype).tiny)
    basis = left * mask.unsqueeze(-2)
    return (weights.double() @ basis) @ basis.transpose(-1, -2), mask.sum(-1)


def _null_space_share(attention: Tensor, effective_part: Tensor) -> Tensor:
    """(head,) share of the squared weights that lies in the null space."""
    return 1 - effective_part.square().sum((-1, -2)) / attention.double().square().sum((-1, -2))


effective_attention_site = _build_site(
    "attention.effective", "part of each attention pattern that affects the head's output", simplex=False
)
simplex_attention_site = _build_site(
    "attention.effective.simplex",
    "part of each attention pattern that affects the head's output, with constant row sums",
    simplex=True,
)


@analysis(
    question="How much of each attention pattern has no effect on the head's output?",
    special_tokens="Special tokens: included, except in measures marked (no special tokens), which renormalise.",
    citations=("brunner2020", "sun2021"),
    sites=lambda options: (simplex_attention_site if options["simplex"] else effective_attention_site,),
    version=4,
)
def effective_attention(
    recording: Recording,
    randomised: Recording | None,
    *,
    simplex: Annotated[
        bool, "Restrict the null space to changes that keep every row sum (Sun & Marasovic 2021)."
    ] = False,
    seed: Annotated[int, "Random seed (bootstrap)."] = 0,
) -> HeadGrid:
    """Share of an attention pattern's squared weights that do not affect the head's output: 0 none, 1 all.

    A head's output is its attention times f(x) of the tokens, which span at most as many dimensions as the head has: in
    longer inputs part of the attention changes nothing. Effective attention is the attention without that part,
    projected out exactly; its weights are no longer between 0 and 1. `effective attention to X` is the share of their
    absolute values by target, comparable with `attention weights only`, the share of the attention itself. Only inputs
    with more tokens than a head has dimensions count; in shorter ones every weight matters. Layers in which a token
    sees only part of the input do not count either, since the null space would differ from row to row. `random pattern`
    is the null-space share of a pattern unrelated to the vectors, 1 - rank / n. f(x) includes b_V. Measures marked (no
    special tokens) are those of attention among non-special tokens, if there are more of them than dimensions.
    """
    site = simplex_attention_site if simplex else effective_attention_site
    names_by_baseline = {
        UNIFORM_ATTENTION: NULL_SPACE_MEASURES,
        RANDOM_PATTERN: NULL_SPACE_MEASURES,
        WEIGHTS_ONLY: ALL_EFFECTIVE_MEASURES,
    }
    measures, baselines = measures_and_baselines(recording.stack(site), site, UNITS, names_by_baseline, seed)
    if NULL_SPACE not in measures:
        if recording.encoder.causal:
            raise Refusal(
                f"{recording.encoder.name} has causal attention",
                "a bidirectional model, because the null space of effective attention is defined for full attention "
                "only",
                "Use another model, or skip this analysis",
            )
        longest = max(len(recorded_input.tokens) for recorded_input in recording.inputs)
        raise Refusal(
            f"No input of {recording.corpus.name} has more tokens than a head has dimensions (longest: {longest} "
            "tokens)",
            "longer inputs; in shorter ones every attention weight affects the output",
            "Use longer texts, or skip this analysis",
        )
    if randomised is not None:
        untrained = label_means(randomised.stack(site), site, seed)
        baselines[UNTRAINED_MODEL] = {name: untrained[name] for name in measures}
    return HeadGrid(measures=measures, baselines=baselines, units={name: UNITS[name] for name in measures})
