"""From a reduced site to a grid of heads: each label a measure, beside uniform attention and random weights."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bertology.recording.recording import Recording
from bertology.recording.sites import ReducedSite
from bertology.results.estimate import Estimates
from bertology.results.sampling import mean_over_sentences, pooled_over_sentences
from bertology.results.shapes import HeadGrid

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.recording.frame import Frame

ENTRIES_AT_ONCE = 32
NO_REFERENCES: Mapping[str, Callable[[Frame], Tensor]] = MappingProxyType({})

Average = Literal["pooled", "sentences"]


def head_grid(
    recording: Recording,
    randomised: Recording | None,
    site: ReducedSite,
    *,
    units: str | Mapping[str, str],
    seed: int,
    labels: Sequence[str] | None = None,
) -> HeadGrid:
    """The mean over sentences of each label of the site, for every head, with both baselines.

    A label that no sentence has a value for is left out. `labels` chooses among the site's own.
    """
    chosen = [label for label in site.labels if labels is None or label in labels]
    measures = means_by_label(recording.stacked(site), site, seed)
    kept = [label for label in chosen if measures[label].n.any()] or chosen
    grid = (recording.encoder.layers, recording.encoder.heads)
    even = means_by_label(uniform_attention(recording, site), site, seed)
    baselines = {"uniform attention": {label: everywhere(even[label], grid) for label in kept}}
    if randomised is not None:
        fresh = means_by_label(randomised.stacked(site), site, seed)
        baselines["random weights"] = {label: fresh[label] for label in kept}
    named = dict.fromkeys(kept, units) if isinstance(units, str) else units
    return HeadGrid(measures={label: measures[label] for label in kept}, baselines=baselines, units=named)


def ratio_grid(
    recording: Recording,
    randomised: Recording | None,
    site: ReducedSite,
    *,
    units: Mapping[str, str],
    average: Average,
    seed: int,
    labels: Sequence[str] | None = None,
    references: Mapping[str, Callable[[Frame], Tensor]] = NO_REFERENCES,
) -> HeadGrid:
    """Sums over totals for every head, from a site that holds (2, measure): a sentence's sums, and their totals.

    `pooled` divides the sums of all sentences by the totals of all sentences; `sentences` takes each sentence's ratio
    and counts it alike. `labels` chooses among the site's own. `references` are further baselines: heads given by
    their maps, see `attention_like`.
    """
    chosen = [label for label in site.labels if labels is None or label in labels]
    measures = _ratios(recording.stacked(site), site, average, seed)
    kept = [label for label in chosen if measures[label].n.any()] or chosen
    grid = (recording.encoder.layers, recording.encoder.heads)
    heads = {"uniform attention": uniform_attention(recording, site)}
    heads |= {name: attention_like(recording, site, maps)[:, None] for name, maps in references.items()}
    baselines: dict[str, dict[str, Estimates]] = {}
    for name, values in heads.items():
        found = _ratios(values, site, average, seed)
        baselines[name] = {label: everywhere(found[label], grid) for label in kept}
    if randomised is not None:
        fresh = _ratios(randomised.stacked(site), site, average, seed)
        baselines["random weights"] = {label: fresh[label] for label in kept}
    return HeadGrid(measures={label: measures[label] for label in kept}, baselines=baselines, units=units)


def uniform_attention(recording: Recording, site: ReducedSite) -> NDArray[Any]:
    """(entry, layer, ...) what the site would hold if a head attended to all it can see alike.

    The axis of layers has length 1 where all of them see the same, as they do unless some look through a window and
    an input is longer than it.
    """
    card = recording.encoder
    furthest = max(len(entry.pieces) for entry in recording.entries) - 1
    reach = [far if far is not None and far < furthest else None for far in card.reach] or [None]
    values = {far: attention_like(recording, site, uniform_maps(card.causal, far)) for far in dict.fromkeys(reach)}
    layers = reach if len(values) > 1 else reach[:1]
    return np.stack([values[far] for far in layers], axis=1)


def uniform_maps(causal: bool, reach: int | None) -> Callable[[Frame], Tensor]:
    """(batch, from, to) maps of a head that attends to all it can see alike, no more than `reach` pieces away."""

    def even(frame: Frame) -> Tensor:
        import torch

        seen = torch.ones(frame.width, frame.width)
        seen = seen if reach is None else seen.tril(reach).triu(-reach)
        seen = seen.tril() if causal else seen
        return (seen / seen.sum(1, keepdim=True)).expand(len(frame.entries), -1, -1)

    return even


def attention_like(recording: Recording, site: ReducedSite, maps: Callable[[Frame], Tensor]) -> NDArray[Any]:
    """(entry, ...) what the site would hold for a head that always had the maps (batch, from, to) of the frame.

    Entries of one length are taken together, so that the maps need no padding.
    """
    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame

    by_length: dict[int, list[int]] = defaultdict(list)
    for index, entry in enumerate(recording.entries):
        by_length[len(entry.pieces)].append(index)
    found: list[Any] = [None] * len(recording)
    for indices in by_length.values():
        for start in range(0, len(indices), ENTRIES_AT_ONCE):
            some = indices[start : start + ENTRIES_AT_ONCE]
            frame = Frame([recording.entries[index] for index in some])
            layer = LayerActivations(0, maps(frame)[:, None])
            values = site.reduce(layer, frame, site.prepare(frame) if site.prepare else None)
            for index, value in zip(some, values[:, 0].numpy(), strict=True):
                found[index] = value
    return np.stack(found)


def everywhere(estimates: Estimates, shape: tuple[int, ...]) -> Estimates:
    """Estimates by layer, or one for all layers, at every place of an array whose first axis is that of the layers."""
    places = (-1, *[1] * (len(shape) - 1))
    fields = ("value", "low", "high", "n")
    return Estimates(**{name: np.broadcast_to(getattr(estimates, name).reshape(places), shape) for name in fields})


def _ratios(values: NDArray[Any], site: ReducedSite, average: Average, seed: int) -> dict[str, Estimates]:
    sums, totals = values[..., 0, :], values[..., 1, :]
    if average == "pooled":
        estimates = pooled_over_sentences(sums, totals, seed=seed)
    else:
        shares = np.divide(sums, totals, out=np.full_like(sums, np.nan), where=totals > 0)
        estimates = mean_over_sentences(shares, seed=seed)
    return {label: estimates[..., place] for place, label in enumerate(site.labels)}


def means_by_label(values: NDArray[Any], site: ReducedSite, seed: int) -> dict[str, Estimates]:
    """The mean over sentences of each label of a site, from its stacked values: (entry, ..., label)."""
    estimates = mean_over_sentences(values, seed=seed)
    return {label: estimates[..., place] for place, label in enumerate(site.labels)}
