"""How alike are two models' representations of the same text, layer by layer (merchant2020; kornblith2019)?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.declaration import Sites, analysis
from bertology.errors import Refusal, unknown_name
from bertology.maths import kernel_sums
from bertology.maths.canonical_correlation import pwcca, svcca
from bertology.maths.covariances import covariances
from bertology.maths.jackknife import Groups, correlation_interval, dealt
from bertology.maths.kernel_similarity import cka, pearson
from bertology.maths.pair_ranks import spearman
from bertology.maths.procrustes import procrustes
from bertology.measures.geometry.paired_states import SITES, PairedStates, Unit, paired_states
from bertology.recording.recording import Recording
from bertology.results.estimate import Estimates
from bertology.results.sampling import joined
from bertology.results.shapes import LayerCurve, Matrix

Floats = NDArray[np.float64]
States = NDArray[Any]
Kernel = Literal["cosine", "dot", "euclidean"]
Correlation = Literal["pearson", "spearman"]
Show = Literal["layers", "matrix"]

GROUPS = 20
UNITS = {
    "rsa": "correlation of similarities, -1 to 1",
    "cka": "0 to 1, above 0 by chance",
    "unbiased-cka": "0 by chance, 1 equal",
    "rbf-cka": "0 to 1, above 0 by chance",
    "unbiased-rbf-cka": "0 by chance, 1 equal",
    "svcca": "mean canonical correlation, 0 to 1, above 0 by chance",
    "pwcca": "weighted canonical correlation, 0 to 1, above 0 by chance",
    "procrustes": "cosine after rotation, 0 to 1, above 0 by chance",
}


def _sites(options: Mapping[str, Any]) -> Sites:
    return (SITES[options["unit"]],)


@analysis(
    question="How alike are two models' representations of the same text, layer by layer?",
    special="special tokens are left out",
    cites=("merchant2020", "kriegeskorte2008", "kornblith2019", "raghu2017", "morcos2018", "schonemann1966"),
    sites=_sites,
)
def similarity(
    recording: Recording,
    against: Recording,
    randomised: Recording | None,
    *,
    show: Annotated[
        Show, "`layers`: each layer with the same layer (LayerCurve); `matrix`: every layer with every layer (Matrix)"
    ] = "layers",
    measures: Annotated[str, f"which of {', '.join(UNITS)}, with commas between"] = "rsa,cka,unbiased-cka,procrustes",
    stimuli: Annotated[int, "so many pieces or words are drawn, or all where there are fewer"] = 5000,
    unit: Annotated[Unit, "compare `pieces`, or `words` (means of pieces) where the vocabularies differ"] = "pieces",
    kernel: Annotated[Kernel, "how RSA compares two stimuli; `euclidean` is the negative distance"] = "cosine",
    correlation: Annotated[Correlation, "how RSA compares two models' similarities"] = "pearson",
    bandwidth: Annotated[float, "width of the RBF kernel, in median distances"] = 0.4,
    standardise: Annotated[bool, "bring every dimension to mean 0 and variance 1 first: a few large ones rule else"] = (
        False
    ),
    seed: Annotated[int, "seed of the sample, of the shuffling and of the groups left out"] = 0,
) -> LayerCurve | Matrix:
    """Similarity of two models' states of the same pieces: 1 the same geometry, 0 (or the chance beside it) nothing.

    - rsa: the similarity of every two stimuli within each model (cosine), correlated between the models (Pearson, over
      pairs of different stimuli). Rotating or scaling the states changes nothing.
    - cka, rbf-cka: centred kernel alignment with a linear or Gaussian kernel, plain and unbiased; likewise.
    - procrustes: cosine after the best rotation. svcca, pwcca: mean canonical correlations of the directions with 99 %
      of the variance, and all of them weighted by the first model; no invertible map changes pwcca. Both need far more
      stimuli than dimensions.

    `shuffled stimuli` pairs the states of one model with those of other stimuli in the other: chance, bias included.
    `random weights` compares the first model with its architecture before training. A model compared with itself has 1.
    Intervals are over sentences: a pair measure cannot be bootstrapped by drawing with replacement, as a stimulus
    drawn twice makes a perfect pair, so sentences are dealt into 20 groups, each left out in turn (jackknife, on
    Fisher's scale). n is the number of stimuli. Layer 0 is the embeddings. A direct cosine of states of two models, as
    some released code has it, depends on the basis and is not measured here. In the matrix, rows are the layers of the
    first model, and CCA and Procrustes have no intervals.
    """
    wanted = _wanted(measures)
    settings = _Settings(wanted, kernel, correlation, bandwidth, standardise, seed)
    paired = paired_states(recording, against, unit=unit, most=stimuli, seed=seed)
    units = {name: UNITS[name] for name in wanted}
    if show == "matrix":
        return _matrix(paired, settings, units)
    if paired.layers[0] != paired.layers[1]:
        raise Refusal(
            f"{recording.encoder.name} has {recording.encoder.layers} layers, {against.encoder.name} "
            f"{against.encoder.layers}",
            "two models with as many layers",
            "Give --show matrix to compare every layer with every layer",
        )
    found = _curves(paired, settings)
    baselines = {"shuffled stimuli": _curves(paired, settings, shuffle=True)}
    if randomised is not None:
        fresh = paired_states(recording, randomised, unit=unit, most=stimuli, seed=seed)
        baselines["random weights"] = _curves(fresh, settings)
    return LayerCurve(measures=found, baselines=baselines, units=units)


@dataclass(frozen=True)
class _Settings:
    """What to measure, and how."""

    wanted: tuple[str, ...]
    kernel: Kernel
    correlation: Correlation
    bandwidth: float
    standardise: bool
    seed: int

    def prepared(self, states: States) -> Floats:
        """The states as they are compared."""
        vectors = states.astype(np.float64)
        if not self.standardise:
            return vectors
        spread = vectors.std(0)
        return (vectors - vectors.mean(0)) / np.where(spread > 0, spread, 1.0)


def _wanted(measures: str) -> tuple[str, ...]:
    named = tuple(dict.fromkeys(name.strip().lower() for name in measures.split(",") if name.strip()))
    for name in named:
        if name not in UNITS:
            raise unknown_name("measure of similarity", name, UNITS)
    return named or tuple(UNITS)


def _curves(paired: PairedStates, settings: _Settings, *, shuffle: bool = False) -> dict[str, Estimates]:
    """Each measure by layer; shuffled, the second model's stimuli are others, and there is no interval."""
    groups = dealt(paired.sentences, GROUPS, seed=settings.seed)
    order = np.random.default_rng([settings.seed, 1]).permutation(len(paired)) if shuffle else slice(None)
    by_layer: dict[str, list[Estimates]] = {name: [] for name in settings.wanted}
    for layer in range(paired.layers[0]):
        first = settings.prepared(paired.states("first", layer))
        second = settings.prepared(paired.states("second", layer))[order]
        for name, values in _measured(first, second, settings, np.zeros_like(groups) if shuffle else groups):
            by_layer[name].append(_estimate(values, len(paired)))
    return {name: joined(found) for name, found in by_layer.items()}


def _matrix(paired: PairedStates, settings: _Settings, units: Mapping[str, str]) -> Matrix:
    groups = dealt(paired.sentences, GROUPS, seed=settings.seed)
    order = np.random.default_rng([settings.seed, 1]).permutation(len(paired))
    cells: dict[str, list[list[Estimates]]] = {name: [] for name in settings.wanted}
    chance: dict[str, list[list[Estimates]]] = {name: [] for name in settings.wanted}
    for row in range(paired.layers[0]):
        first = settings.prepared(paired.states("first", row))
        for name in settings.wanted:
            cells[name].append([])
            chance[name].append([])
        for column in range(paired.layers[1]):
            second = settings.prepared(paired.states("second", column))
            for name, values in _measured(first, second, settings, groups, intervals_of_all=False):
                cells[name][row].append(_estimate(values, len(paired)))
            for name, values in _measured(first, second[order], settings, np.zeros_like(groups)):
                chance[name][row].append(_estimate(values, len(paired)))
    return Matrix(
        measures={name: joined([joined(row) for row in found]) for name, found in cells.items()},
        baselines={"shuffled stimuli": {name: joined([joined(r) for r in found]) for name, found in chance.items()}},
        units=units,
        rows_named=tuple(f"layer {layer}" for layer in range(paired.layers[0])),
        columns_named=tuple(f"layer {layer}" for layer in range(paired.layers[1])),
    )


def _estimate(values: Floats, stimuli: int) -> Estimates:
    value, low, high = correlation_interval(values)
    return Estimates(value=value, low=low, high=high, n=np.where(np.isfinite(value), stimuli, 0))


def _measured(
    first: Floats, second: Floats, settings: _Settings, groups: Groups, *, intervals_of_all: bool = True
) -> Iterator[tuple[str, Floats]]:
    """Each measure as (1 + group,) values; of all stimuli alone where there is but one group, or none is wanted."""
    for names, found in (
        (("rsa",), lambda: [_rsa(first, second, settings, groups)]),
        (("cka", "unbiased-cka"), lambda: _kernel_alignment(kernel_sums.of_features(first, second, groups))),
        (("rbf-cka", "unbiased-rbf-cka"), lambda: _gaussian(first, second, settings, groups)),
        (
            ("svcca", "pwcca", "procrustes"),
            lambda: _covarying(first, second, settings.wanted, groups if intervals_of_all else np.zeros_like(groups)),
        ),
    ):
        if set(names) & set(settings.wanted):
            for name, values in zip(names, found(), strict=True):
                if name in settings.wanted:
                    yield name, values


def _rsa(first: Floats, second: Floats, settings: _Settings, groups: Groups) -> Floats:
    if settings.kernel == "cosine":
        first, second = kernel_sums.unit_rows(first), kernel_sums.unit_rows(second)
    if settings.kernel != "euclidean" and settings.correlation == "pearson":
        return pearson(kernel_sums.of_features(first, second, groups))
    rows = kernel_sums.nearness if settings.kernel == "euclidean" else kernel_sums.inner_product
    if settings.correlation == "spearman":
        return spearman(rows(first), rows(second), groups)
    return pearson(kernel_sums.of_kernels(rows(first), rows(second), groups))


def _kernel_alignment(sums: kernel_sums.KernelSums) -> Sequence[Floats]:
    return cka(sums), cka(sums, unbiased=True)


def _gaussian(first: Floats, second: Floats, settings: _Settings, groups: Groups) -> Sequence[Floats]:
    def kernel(vectors: Floats) -> kernel_sums.Rows:
        return kernel_sums.gaussian(vectors, max(settings.bandwidth * kernel_sums.median_distance(vectors), 1e-12))

    return _kernel_alignment(kernel_sums.of_kernels(kernel(first), kernel(second), groups))


def _covarying(first: Floats, second: Floats, wanted: Sequence[str], groups: Groups) -> Sequence[Floats]:
    statistics = {"svcca": svcca, "pwcca": pwcca, "procrustes": procrustes}
    found: dict[str, list[float]] = {name: [] for name in statistics}
    for given in covariances(first, second, None if groups.max() == 0 else groups):
        for name, statistic in statistics.items():
            found[name].append(statistic(given) if name in wanted else float("nan"))
    return [np.array(values) for values in found.values()]
