"""Do heads of one layer attend alike, and which heads go together (clark2019, section 6)?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.declaration import Sites, analysis
from bertology.errors import Refusal
from bertology.maths.grouping import Separation, separation, share_as_large, shuffled, to_groups
from bertology.maths.resampling import resampled_means
from bertology.maths.scaling import smacof
from bertology.measures.attention.special_tokens import LEAST_SHARE, SpecialTokens
from bertology.recording.recording import Recording
from bertology.recording.sites import ReducedSite
from bertology.results.estimate import Estimates
from bertology.results.sampling import pooled_over_sentences
from bertology.results.shapes import Head, Matrix, Scatter, Table

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame

Floats = NDArray[np.float64]
Show = Literal["layers", "clusters", "map", "heads"]

SMOOTHING = 0.001
MEASURES = ("within", "between", "difference", "silhouette")
UNITS = {
    "within": "nats, 0 to ln 2",
    "between": "nats, 0 to ln 2",
    "difference": "nats, -ln 2 to ln 2",
    "silhouette": "-1 nearer to another layer, 0 no layers, 1 apart",
    "p": "share of shuffles with as large a difference, 0 to 1",
}


@cache
def divergences(root: bool = False, legacy: bool = False, special: SpecialTokens = "keep") -> ReducedSite:
    """The site that holds each head's distance to every head of the model, mean over the rows of a map."""
    suffix = "".join(
        f".{name}" for name, chosen in (("root", root), ("smoothed", legacy), ("ordinary", special == "drop")) if chosen
    )

    def reduce(layer: LayerActivations, frame: Frame, _: None) -> Tensor:
        import torch

        return torch.stack(
            [_between_heads(maps, frame, row, root, legacy, special) for row, maps in enumerate(layer.attention)]
        )

    return ReducedSite(
        f"attention.divergences{suffix}",
        ("other",),
        f"mean {'root ' * root}Jensen-Shannon divergence of each head from every head of the model",
        reduce,
        whole=True,
    )


def _between_heads(maps: Tensor, frame: Frame, row: int, root: bool, legacy: bool, special: SpecialTokens) -> Tensor:
    """(head, head) from the maps (head, from, to) of one entry; NaN where two heads have no row in common."""
    from bertology.maths.divergence import jensen_shannon

    kept = (frame.real if special == "keep" else frame.ordinary)[row].nonzero().squeeze(-1)
    rows = maps[:, kept][:, :, kept].transpose(0, 1)  # (from, head, to)
    shares = rows.sum(-1, keepdim=True)
    rows = rows / shares.clamp(min=LEAST_SHARE)
    if legacy:
        rows = (1 - SMOOTHING) * rows + SMOOTHING / max(1, len(kept))
    found = jensen_shannon(rows)
    found = found.sqrt() if root else found
    counted = (shares > LEAST_SHARE).to(found.dtype)
    both = counted * counted.mT
    return (found * both).sum(0) / both.sum(0)


@dataclass(frozen=True)
class _Distances:
    """How far apart heads are: by sentence to layers (sentence, head, layer), on average (head, head).

    `groups` is the layer of each head, `weights` what each sentence counts.
    """

    to_layers: Floats
    mean: Floats
    groups: NDArray[np.intp]
    weights: Floats

    @property
    def sentences(self) -> int:
        """How many sentences say anything."""
        return int(np.isfinite(self.to_layers).any((1, 2)).sum())


def _distances(recording: Recording, site: ReducedSite, legacy: bool) -> _Distances:
    card = recording.encoder
    if card.layers < 2 or card.heads < 2:
        raise Refusal(
            f"{card.name} has {card.layers} layers of {card.heads} heads",
            "at least two layers of two heads to compare",
            "Choose a larger model",
        )
    groups = np.repeat(np.arange(card.layers), card.heads)
    weights = _weights(recording, legacy)
    to_layers = np.empty((len(recording), len(groups), card.layers))
    sums, counts = np.zeros((2, len(groups), len(groups)))
    for number, (array, weight) in enumerate(zip(recording[site], weights, strict=True)):
        values = array.reshape(len(groups), len(groups)).astype(np.float64)
        to_layers[number] = to_groups(values, groups)
        known = np.isfinite(values)
        sums += weight * np.where(known, values, 0.0)
        counts += weight * known
    mean = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    return _Distances(to_layers, mean, groups, weights)


def _sites(options: Mapping[str, Any]) -> Sites:
    return (divergences(options["root"], options["legacy"], options["special"]),)


@analysis(
    question="Do heads of one layer attend alike, and which heads go together?",
    special="special tokens are kept; with --special drop rows and columns of special tokens are left out, the rest "
    "renormalised",
    cites=("clark2019", "vedaldi2012"),
    sites=_sites,
    version=2,
)
def clusters(
    recording: Recording,
    randomised: Recording | None,
    *,
    show: Annotated[
        Show,
        "`layers`: distances within and between layers (Table); `clusters`: heads grouped by average linkage (Table); "
        "`map`: heads in the plane by multidimensional scaling (Scatter); `heads`: every pair of heads (Matrix)",
    ] = "layers",
    root: Annotated[bool, "take the square root of each row's divergence, which is a metric"] = False,
    special: Annotated[SpecialTokens, "keep special tokens, or drop them and renormalise"] = "keep",
    legacy: Annotated[
        bool, "smooth each row with 0.001 of the uniform distribution and weigh tokens alike, as the released code does"
    ] = False,
    count: Annotated[int, "into how many clusters the heads are cut; 0 for as many as layers"] = 0,
    seed: Annotated[int, "seed of the bootstrap over sentences and of the shuffles"] = 0,
) -> Table | Scatter | Matrix:
    """Mean Jensen-Shannon divergence between heads in nats: 0 the same attention, ln 2 (0.693) no piece in common.

    For two heads the divergence of their rows, mean over the rows of a map, then over sentences. `within` a layer is
    the mean over pairs of its heads, `between` the mean from its heads to those of other layers, `silhouette` how much
    nearer a head is to its own layer than to the next best one. `p` is the share of shuffles of heads among layers
    that make as large a difference; the interval of the `shuffled layers` is that of single shuffles. Intervals of the
    model's own numbers are over sentences. Heads that attended to all pieces alike would be 0 apart. The released code
    of Clark et al. smooths and sums over all tokens of the corpus; here rows are exact (up to 0.00007, roots up to
    0.001) and sentences count alike. Multidimensional scaling starts from classical scaling and so has no seed.
    """
    site = divergences(root, legacy, special)
    found = _distances(recording, site, legacy)
    if show == "heads":
        return _matrix(recording, randomised, site, legacy, root, seed)
    if show == "map":
        names = tuple(str(head) for head in _heads(recording))
        layers = tuple(f"layer {group + 1}" for group in found.groups)
        return Scatter(points=smacof(_filled(found.mean)), labels=names, groups=layers)
    if show == "clusters":
        return _clusters(recording, found, count or recording.encoder.layers, root)
    fresh = None if randomised is None else _distances(randomised, site, legacy)
    return _by_layer(found, fresh, root, seed)


def _by_layer(found: _Distances, fresh: _Distances | None, root: bool, seed: int) -> Table:
    layers = found.to_layers.shape[-1]
    measures = _estimates(found, seed)
    chance = shuffled(_filled(found.mean), found.groups, seed=seed)
    p = share_as_large(measures["difference"].value, chance.difference)
    known = np.isfinite(measures["difference"].value)
    counts = np.where(known, found.sentences, 0)
    measures["p"] = _exact(np.where(known, p, np.nan), counts)
    baselines = {"shuffled layers": {name: _spread(getattr(chance, name)) for name in MEASURES}}
    even = np.full(layers + 1, 0.5)
    baselines["shuffled layers"]["p"] = Estimates(value=even, low=even - 0.475, high=even + 0.475, n=counts)
    if fresh is not None:
        baselines["random weights"] = _estimates(fresh, seed)
    rows = (*(f"layer {layer + 1}" for layer in range(layers)), "all layers")
    return Table(measures=measures, baselines=baselines, units=_units(root), rows_named=rows)


def _estimates(found: _Distances, seed: int) -> dict[str, Estimates]:
    value = separation(_weighted_mean(found), found.groups)
    drawn = separation(resampled_means(found.to_layers, found.weights, seed=seed), found.groups)
    return {name: _interval(value, drawn, name, found.sentences) for name in MEASURES}


def _weighted_mean(found: _Distances) -> Floats:
    known = np.isfinite(found.to_layers) * found.weights[:, None, None]
    sums = (np.where(known > 0, found.to_layers, 0.0) * known).sum(0)
    return np.divide(sums, known.sum(0), out=np.full_like(sums, np.nan), where=known.sum(0) > 0)


def _interval(value: Separation, drawn: Separation, name: str, sentences: int) -> Estimates:
    """Percentiles of the resamples; a silhouette takes a minimum, so its interval is widened to hold the value."""
    own: Floats = getattr(value, name)
    known = np.isfinite(own)
    counts = np.where(known, sentences, 0)
    if sentences < 2:
        nothing = np.full_like(own, np.nan)
        return Estimates(value=own, low=nothing, high=nothing, n=counts)
    resamples: Floats = getattr(drawn, name)
    low, high = (np.nanpercentile(np.where(known, resamples, 0.0), q, axis=0) for q in (2.5, 97.5))
    low, high = (np.where(known, bound, np.nan) for bound in (np.fmin(low, own), np.fmax(high, own)))
    return Estimates(value=own, low=low, high=high, n=counts)


def _spread(values: Floats) -> Estimates:
    """Mean and 95 % of single shuffles."""
    low, high = np.percentile(values, (2.5, 97.5), axis=0)
    return Estimates(value=values.mean(0), low=low, high=high, n=np.full(values.shape[1:], len(values)))


def _exact(value: Floats, counts: NDArray[np.int64]) -> Estimates:
    return Estimates(value=value, low=value, high=value, n=counts)


def _clusters(recording: Recording, found: _Distances, count: int, root: bool) -> Table:
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    distances = _filled(found.mean)
    tree = linkage(squareform(distances, checks=False), "average")
    numbers = fcluster(tree, count, "maxclust")
    heads = np.array([str(head) for head in _heads(recording)])
    members = [np.flatnonzero(numbers == number) for number in np.unique(numbers)]
    members.sort(key=lambda own: (-len(own), own[0]))
    inner = [distances[np.ix_(own, own)][np.triu_indices(len(own), 1)] for own in members]
    same = [
        (found.groups[own][:, None] == found.groups[own])[np.triu_indices(len(own), 1)].astype(float) for own in members
    ]
    sizes = np.array([float(len(own)) for own in members])
    pairs = np.array([len(some) for some in inner], np.int64)
    measures = {
        "heads": _exact(sizes, np.full(len(sizes), found.sentences)),
        "within": _exact(_means(inner), pairs),
        "of one layer": _exact(_means(same), pairs),
    }
    everyone = distances[np.triu_indices(len(distances), 1)].mean()
    chance = (recording.encoder.heads - 1) / (len(distances) - 1)
    baselines = {
        "all heads": {"within": Estimates.exact(np.full(len(sizes), everyone))},
        "by chance": {
            "heads": Estimates.exact(np.full(len(sizes), len(distances) / len(sizes))),
            "of one layer": Estimates.exact(np.full(len(sizes), chance)),
        },
    }
    units = {
        "heads": "heads in the cluster",
        "within": _units(root)["within"],
        "of one layer": "share of pairs, 0 to 1",
    }
    names = tuple(f"cluster {place + 1}" for place in range(len(members)))
    notes = {name: ", ".join(heads[own]) for name, own in zip(names, members, strict=True)}
    return Table(measures=measures, baselines=baselines, units=units, rows_named=names, notes=notes)


def _matrix(
    recording: Recording, randomised: Recording | None, site: ReducedSite, legacy: bool, root: bool, seed: int
) -> Matrix:
    names = tuple(str(head) for head in _heads(recording))
    estimates = _between_all(recording, site, legacy, seed)
    everyone = estimates.value[np.triu_indices(len(names), 1)].mean()
    baselines = {"all pairs of heads": {"distance": Estimates.exact(np.full(estimates.shape, everyone))}}
    if randomised is not None:
        baselines["random weights"] = {"distance": _between_all(randomised, site, legacy, seed)}
    units = {"distance": _units(root)["within"]}
    return Matrix(
        measures={"distance": estimates}, baselines=baselines, units=units, rows_named=names, columns_named=names
    )


def _between_all(recording: Recording, site: ReducedSite, legacy: bool, seed: int) -> Estimates:
    """(head, head) mean distances."""
    size = recording.encoder.layers * recording.encoder.heads
    values = np.stack([array.reshape(size, size) for array in recording[site]])
    known = np.isfinite(values) * _weights(recording, legacy)[:, None, None]
    return pooled_over_sentences(np.where(known > 0, values, 0.0) * known, known, seed=seed)


def _weights(recording: Recording, legacy: bool) -> Floats:
    """(sentence,) what each sentence counts."""
    return np.array([len(entry.pieces) if legacy else 1.0 for entry in recording.entries])


def _means(values: list[NDArray[Any]]) -> Floats:
    return np.array([some.mean() if len(some) else np.nan for some in values])


def _filled(mean: Floats) -> Floats:
    """The distances without gaps: two heads that were never comparable are as far apart as heads are on average."""
    filled = np.where(np.isfinite(mean), mean, np.nanmean(mean) if np.isfinite(mean).any() else 0.0)
    np.fill_diagonal(filled, 0.0)
    return filled


def _heads(recording: Recording) -> list[Head]:
    return [Head(layer, head) for layer in range(recording.encoder.layers) for head in range(recording.encoder.heads)]


def _units(root: bool) -> dict[str, str]:
    if not root:
        return UNITS
    return {name: unit.replace("nats", "root nats").replace("ln 2", "0.833") for name, unit in UNITS.items()}
