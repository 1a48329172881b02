"""Similarity of two models' representations of the same text, layer by layer (merchant2020, kornblith2019)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from bertology.analyses.declaration import analysis
from bertology.analyses.geometry.representation_similarity import kernel_similarity as kernels
from bertology.analyses.geometry.representation_similarity.cca import pwcca, svcca
from bertology.arrays import Array, FloatArray
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal, unknown_name
from bertology.estimates.estimate import Estimates
from bertology.estimates.jackknife import GroupIndices, assign_groups, correlation_interval
from bertology.numerics.covariances import covariances
from bertology.numerics.procrustes import procrustes
from bertology.recording.paired_sites import ComparisonUnit, have_same_tokens
from bertology.recording.recording import Recording
from bertology.recording.sites import resolve_sites
from bertology.results.shapes import LayerCurve, Matrix

UnitOption = Literal["auto", "tokens", "words"]
Side = Literal["first", "second"]

SIDES: tuple[Side, Side] = ("first", "second")
SITES: dict[UnitOption, str] = {"auto": "hidden", "tokens": "hidden", "words": "hidden.words"}
MIN_STIMULI = 10
N_GROUPS = 20
"""Groups of sentences for the jackknife."""

MEASURES = {
    "rsa": "RSA",
    "cka": "CKA",
    "unbiased-cka": "unbiased CKA",
    "rbf-cka": "RBF CKA",
    "unbiased-rbf-cka": "unbiased RBF CKA",
    "svcca": "SVCCA",
    "pwcca": "PWCCA",
    "procrustes": "Procrustes similarity",
}
"""Values of --measures and the names of the measures."""
COVARIANCE_MEASURES = {"svcca": svcca, "pwcca": pwcca, "procrustes": procrustes}
UNITS = {
    "rsa": "correlation, -1 to 1",
    "cka": "0 to 1 (above 0 by chance)",
    "unbiased-cka": "0 (chance) to 1",
    "rbf-cka": "0 to 1 (above 0 by chance)",
    "unbiased-rbf-cka": "0 (chance) to 1",
    "svcca": "mean canonical correlation, 0 to 1 (above 0 by chance)",
    "pwcca": "weighted canonical correlation, 0 to 1 (above 0 by chance)",
    "procrustes": "cosine after rotation, 0 to 1 (above 0 by chance)",
}


@dataclass(frozen=True)
class _SimilarityConfig:
    """Options of the measures; `--measures` is parsed by `measure_names`."""

    measures: Annotated[str, f"Similarity measures, comma-separated: {', '.join(MEASURES)}."] = (
        "rsa,cka,unbiased-cka,procrustes"
    )
    rsa_similarity: Annotated[
        Literal["cosine", "dot", "euclidean"],
        "Similarity of two stimuli in RSA: `cosine`, `dot` or `euclidean` (negative distance).",
    ] = "cosine"
    rsa_correlation: Annotated[
        Literal["pearson", "spearman"], "Correlation between the two models' similarity matrices in RSA."
    ] = "pearson"
    rbf_bandwidth: Annotated[
        float, Interval(gt=0, le=1_000_000), "Bandwidth of the RBF kernel, as a multiple of the median distance."
    ] = 0.4
    standardise: Annotated[
        bool, "Standardise every dimension to mean 0 and variance 1 first, so that a few large ones do not dominate."
    ] = False
    seed: Annotated[int, "Random seed (sample, shuffling, jackknife groups)."] = 0

    @cached_property
    def measure_names(self) -> tuple[str, ...]:
        """The keys of `MEASURES` to compute."""
        names = tuple(dict.fromkeys(name.strip().lower() for name in self.measures.split(",") if name.strip()))
        for name in names:
            if name not in MEASURES:
                raise unknown_name("similarity measure", name, MEASURES)
        return names or tuple(MEASURES)

    @property
    def units(self) -> dict[str, str]:
        """The unit of each measure."""
        return {MEASURES[name]: UNITS[name] for name in self.measure_names}

    def preprocess(self, states: Array) -> FloatArray:
        """The states in double precision, optionally standardised."""
        vectors = states.astype(np.float64)
        if not self.standardise:
            return vectors
        std = vectors.std(0)
        return (vectors - vectors.mean(0)) / np.where(std > 0, std, 1.0)


@analysis(
    question="How similar are two models' representations of the same text, layer by layer (RSA, CKA, CCA, "
    "Procrustes)?",
    special_tokens="Special tokens: in the model's input, not analysed.",
    citations=("merchant2020", "kriegeskorte2008", "kornblith2019", "raghu2017", "morcos2018", "schonemann1966"),
    sites=lambda options: (SITES[options["unit"]],),
    report_section="Effects of fine-tuning",
)
def representation_similarity(
    recording: Recording,
    against: Recording,
    randomised: Recording | None,
    *,
    show: Annotated[
        Literal["layers", "matrix"],
        "`layers` (each layer with the same layer) or `matrix` (every layer with every layer).",
    ] = "layers",
    sample_size: Annotated[
        int, "Number of tokens (or words, with --unit words), sampled at random; all if there are fewer."
    ] = 5000,
    unit: Annotated[
        UnitOption,
        "Compare `tokens`, or `words` (mean over tokens); `auto`: tokens if both models tokenise the text alike, else "
        "words.",
    ] = "auto",
    config: _SimilarityConfig = _SimilarityConfig(),
) -> LayerCurve | Matrix:
    """Similarity of two models' states of the same tokens: 1 for the same geometry, 0 (or chance) for unrelated ones.

    - RSA: the similarity of every two stimuli within each model (cosine), correlated between the models (Pearson, over
      pairs of different stimuli). Invariant to rotation and scaling.
    - CKA, RBF CKA: centred kernel alignment with a linear or Gaussian kernel, plain and unbiased; likewise invariant.
    - Procrustes: cosine after the best rotation. SVCCA, PWCCA: mean canonical correlation of the directions with 99 %
      of the variance, and of all directions weighted by the first model; PWCCA is invariant to invertible linear maps.
      Both need far more stimuli than dimensions.

    `shuffled stimuli` pairs the states of one model with those of other stimuli in the other: chance, with its bias.
    `untrained model` compares the first model with its architecture before training. A model compared with itself
    scores 1. Intervals are over sentences: a measure of pairs cannot be bootstrapped by sampling with replacement,
    because a stimulus sampled twice makes a perfect pair, so sentences are assigned to 20 groups, each left out in turn
    (jackknife, on Fisher's scale). n is the number of stimuli. Layer 0 is the embeddings. A direct cosine of the states
    of two models, as in some released code, depends on the basis and is not computed. In the matrix, rows are the
    layers of the first model, and CCA and Procrustes have no intervals. `words compared` is in the sample if the
    stimuli are words.
    """
    pairs = paired_states(recording, against, unit=unit, sample_size=sample_size, seed=config.seed)
    if show == "matrix":
        return _build_matrix(pairs, config)
    if pairs.n_layers[0] != pairs.n_layers[1]:
        raise Refusal(
            f"{recording.encoder.name} has {recording.encoder.layers} layers, {against.encoder.name} "
            f"{against.encoder.layers}",
            "two models with equally many layers",
            "Use --show matrix to compare every layer with every layer",
        )
    baselines = {"shuffled stimuli": _curves(pairs, config, shuffle=True)}
    if randomised is not None:
        untrained = paired_states(recording, randomised, unit=unit, sample_size=sample_size, seed=config.seed)
        baselines["untrained model"] = _curves(untrained, config)
    return LayerCurve(measures=_curves(pairs, config), baselines=baselines, units=config.units, sample=pairs.sample)


@dataclass(frozen=True)
class PairedStates:
    """Stimuli (tokens or words) that two recordings have in common.

    `indices` are (input of the first recording, input of the second, token or word) for each stimulus; the stimuli of
    an input are adjacent.
    """

    first: Recording
    second: Recording
    unit: ComparisonUnit
    indices: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.indices)

    @cached_property
    def sentences(self) -> NDArray[np.intp]:
        """(stimulus,) the number of its input."""
        return np.unique(self.indices[:, 0], return_inverse=True)[1]

    @property
    def sample(self) -> dict[str, int]:
        """The number of words, if the stimuli are words."""
        return {"words compared": len(self)} if self.unit == "words" else {}

    @property
    def n_layers(self) -> tuple[int, int]:
        """The number of layers of each model, embeddings included."""
        return self.first.encoder.layers + 1, self.second.encoder.layers + 1

    def states(self, side: Side, layer: int) -> Array:
        """(stimulus, width) states of one recording in one layer."""
        column = SIDES.index(side)
        recording = (self.first, self.second)[column]
        hidden = recording.with_sites(resolve_sites([SITES[self.unit]]))[SITES[self.unit]]
        starts = np.flatnonzero(np.diff(self.indices[:, column], prepend=-1))
        return np.concatenate(
            [np.asarray(hidden[int(rows[0, column])][layer])[rows[:, 2]] for rows in np.split(self.indices, starts[1:])]
        )


def paired_states(
    first: Recording, second: Recording, *, unit: UnitOption, sample_size: int, seed: int
) -> PairedStates:
    """A random sample of the stimuli in both recordings, independent of the order of the corpus."""
    if unit == "auto":
        unit = "tokens" if have_same_tokens(first, second) else "words"
    second_indices = {recorded_input.key: index for index, recorded_input in enumerate(second.inputs)}
    common = [
        (index, second_indices[recorded_input.key])
        for index, recorded_input in enumerate(first.inputs)
        if recorded_input.key in second_indices
    ]
    common.sort(key=lambda pair: first.inputs[pair[0]].tokens.ids.tobytes())
    stimuli = [
        (left, right, position)
        for left, right in common
        for position in _shared_positions(first, second, left, right, unit)
    ]
    if len(stimuli) < MIN_STIMULI:
        raise Refusal(
            f"{first.encoder.name} and {second.encoder.name} have {len(stimuli)} {unit} of {first.corpus.name} in "
            "common",
            f"at least {MIN_STIMULI}, to compare pairs of them",
            "Use a larger corpus",
        )
    indices = np.array(stimuli, np.intp)
    if len(indices) > sample_size:
        indices = indices[np.sort(np.random.default_rng(seed).permutation(len(indices))[:sample_size])]
    return PairedStates(first, second, unit, indices)


def _shared_positions(
    first: Recording, second: Recording, left: int, right: int, unit: ComparisonUnit
) -> Sequence[int]:
    """The non-special tokens of two inputs, or the words that both models see."""
    left_tokens, right_tokens = first.inputs[left].tokens, second.inputs[right].tokens
    if unit == "words":
        return sorted(set(left_tokens.word_ids.tolist()) & set(right_tokens.word_ids.tolist()) - {-1})
    if not np.array_equal(left_tokens.ids, right_tokens.ids):
        raise Refusal(
            f"{first.encoder.name} and {second.encoder.name} tokenise the text differently",
            "two models with the same vocabulary",
            "Compare words with --unit words",
        )
    return np.flatnonzero(left_tokens.special_kinds == SpecialToken.NONE).tolist()


def _curves(pairs: PairedStates, config: _SimilarityConfig, *, shuffle: bool = False) -> dict[str, Estimates]:
    """Each measure by layer; with `shuffle`, the second model's stimuli are shuffled and there are no intervals."""
    groups = assign_groups(pairs.sentences, N_GROUPS, seed=config.seed)
    order = _shuffled_order(pairs, config) if shuffle else slice(None)
    cells: list[dict[str, Estimates]] = []
    for layer in range(pairs.n_layers[0]):
        first, second = (config.preprocess(pairs.states(side, layer)) for side in SIDES)
        cells.append(_compare(first, second[order], config, np.zeros_like(groups) if shuffle else groups))
    return _stack(cells)


def _shuffled_order(pairs: PairedStates, config: _SimilarityConfig) -> Array:
    return np.random.default_rng([config.seed, 1]).permutation(len(pairs))


def _stack(cells: Sequence[dict[str, Estimates]]) -> dict[str, Estimates]:
    return {name: Estimates.stack([cell[name] for cell in cells]) for name in cells[0]}


def _build_matrix(pairs: PairedStates, config: _SimilarityConfig) -> Matrix:
    groups = assign_groups(pairs.sentences, N_GROUPS, seed=config.seed)
    order = _shuffled_order(pairs, config)
    n_rows, n_columns = pairs.n_layers
    measures, chance = list[dict[str, Estimates]](), list[dict[str, Estimates]]()
    for row in range(n_rows):
        first = config.preprocess(pairs.states("first", row))
        row_measures, row_chance = list[dict[str, Estimates]](), list[dict[str, Estimates]]()
        for column in range(n_columns):
            second = config.preprocess(pairs.states("second", column))
            row_measures.append(_compare(first, second, config, groups, covariance_intervals=False))
            row_chance.append(_compare(first, second[order], config, np.zeros_like(groups)))
        measures.append(_stack(row_measures))
        chance.append(_stack(row_chance))
    return Matrix(
        measures=_stack(measures),
        baselines={"shuffled stimuli": _stack(chance)},
        units=config.units,
        row_names=tuple(f"layer {layer}" for layer in range(n_rows)),
        column_names=tuple(f"layer {layer}" for layer in range(n_columns)),
        sample=pairs.sample,
    )


def _compare(
    first: FloatArray,
    second: FloatArray,
    config: _SimilarityConfig,
    groups: GroupIndices,
    *,
    covariance_intervals: bool = True,
) -> dict[str, Estimates]:
    """Each measure of two sets of states, with a jackknife interval over the groups if there are several."""
    measures = set(config.measure_names)
    values: dict[str, FloatArray] = {}
    if "rsa" in measures:
        values["rsa"] = _rsa(first, second, config, groups)
    if measures & {"cka", "unbiased-cka"}:
        sums = kernels.feature_kernel_sums(first, second, groups)
        values |= {"cka": kernels.cka(sums), "unbiased-cka": kernels.cka(sums, unbiased=True)}
    if measures & {"rbf-cka", "unbiased-rbf-cka"}:
        first_kernel, second_kernel = (_rbf_kernel(states, config.rbf_bandwidth) for states in (first, second))
        sums = kernels.kernel_sums(first_kernel, second_kernel, groups)
        values |= {"rbf-cka": kernels.cka(sums), "unbiased-rbf-cka": kernels.cka(sums, unbiased=True)}
    if statistics := {name: COVARIANCE_MEASURES[name] for name in COVARIANCE_MEASURES if name in measures}:
        subsets = covariances(first, second, groups if covariance_intervals and groups.max() else None)
        rows = [[statistic(subset) for statistic in statistics.values()] for subset in subsets]
        values |= dict(zip(statistics, np.array(rows).T, strict=True))
    estimates: dict[str, Estimates] = {}
    for name in config.measure_names:
        value, low, high = correlation_interval(values[name])
        n = np.where(np.isfinite(value), len(first), 0)
        estimates[MEASURES[name]] = Estimates(value=value, low=low, high=high, n=n, interval="t")
    return estimates


def _rsa(first: FloatArray, second: FloatArray, config: _SimilarityConfig, groups: GroupIndices) -> FloatArray:
    if config.rsa_similarity == "cosine":
        first, second = kernels.unit_rows(first), kernels.unit_rows(second)
    if config.rsa_similarity != "euclidean" and config.rsa_correlation == "pearson":
        return kernels.pearson(kernels.feature_kernel_sums(first, second, groups))
    kernel = kernels.negative_distance if config.rsa_similarity == "euclidean" else kernels.inner_product
    if config.rsa_correlation == "spearman":
        return kernels.kernel_spearman(kernel(first), kernel(second), groups)
    return kernels.pearson(kernels.kernel_sums(kernel(first), kernel(second), groups))


def _rbf_kernel(vectors: FloatArray, bandwidth: float) -> kernels.KernelRows:
    return kernels.gaussian(vectors, max(bandwidth * kernels.median_distance(vectors), 1e-12))
