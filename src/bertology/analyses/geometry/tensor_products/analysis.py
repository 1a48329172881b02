"""Approximate sentence vectors by tensor products of words and roles (mccoy2019; jawahar2019, section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Literal

import numpy as np

from bertology.analyses.declaration import Cost, analysis
from bertology.analyses.geometry.tensor_products.role_schemes import SCHEMES, Scheme, random_tree, role_numbering
from bertology.analyses.probing.options import EpochsOption, LearningRateOption, NSeedsOption, SeedOption
from bertology.analyses.probing.train_test_split import for_both_models, train_mask
from bertology.arrays import Array, BoolArray, FloatArray, IntArray
from bertology.encoder.encoder import Encoder, TaskEncoder
from bertology.encoder.token_batch import RecordedInput
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_mean, bootstrap_sentences_and_seeds, ratio
from bertology.number_ranges import FRACTION, SIZE
from bertology.recording.recording import Recording
from bertology.results.shapes import LayerCurve

VALIDATION_FRACTION = 0.1
TRAIN, VALIDATION, TEST = 0, 1, 2
RANDOM_FILLER_SIZE = 100
"""Size of random fillers if the model's embeddings are not available."""

R_SQUARED = {name: f"R² ({name})" for name in SCHEMES}
TREE_GAIN = "R² (tree) minus R² (random tree)"


@dataclass(frozen=True)
class _SentenceVectors:
    """Sentences with their vectors (layer, sentence, width), and the filler of each token as a row of a table.

    `split` is (sentence,) `TRAIN`, `VALIDATION` or `TEST`.
    """

    inputs: tuple[RecordedInput, ...]
    vectors: Array
    filler_vectors: Array
    fillers: tuple[Array, ...]
    split: IntArray


@dataclass(frozen=True)
class _DecompositionConfig:
    """Options of fitting decompositions."""

    role_size: Annotated[int, SIZE, "Dimensions of a role vector."] = 6
    epochs: EpochsOption = 100
    learning_rate: LearningRateOption = 1e-3
    n_seeds: NSeedsOption = 2
    seed: SeedOption = 0

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(range(self.seed, self.seed + self.n_seeds))


@analysis(
    question="Can a sentence vector be approximated by a tensor product of words and roles, and which roles fit best?",
    special_tokens="Special tokens: included. [CLS] and [SEP] are fillers with roles of their own.",
    citations=("mccoy2019", "jawahar2019"),
    sites=("hidden",),
    annotations=("governors",),
    version=3,
    cost=Cost(seconds_per_word=0.04),
)
def tensor_products(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    *,
    pooling: Annotated[
        Literal["cls", "mean"], "Sentence vector: `cls`, or the `mean` over non-special tokens."
    ] = "cls",
    train_fraction: Annotated[float, FRACTION, "Fraction of sentences used for training, in whole documents."] = 0.7,
    config: _DecompositionConfig = _DecompositionConfig(),
) -> LayerCurve:
    """Mean squared error and R² of sentence vectors reconstructed from words in roles, by layer; 0 and 1 are exact.

    v = W vec(sum of filler x role) + b: fillers are the model's input embeddings, fixed; role vectors and W are learned
    by Adam, keeping the best epoch on validation sentences (the paper's trainable map of the fillers is part of W).
    Roles: position from the left, from the right, from both, none (bag of words), or the path to the word in a binary
    tree, here derived from the dependency tree instead of the paper's SNLI parses. Equal sentences are on one side of
    the split. The released code reads 1,000 premises and skips training for so few; here every sentence is used. R² is
    1 minus the squared error over that of the mean training vector, on the same test sentences: 0 is no better than the
    mean, and layers and models compare; missing where all vectors are equal ([CLS] in layer 0). Mean squared errors
    compare within a layer only. Whether the tree itself helps, and not the number of roles, is the difference of R²
    between the tree and a random tree, paired by sentence. What cannot be learned from few sentences stays at the mean
    vector, and schemes with many roles (`bidirectional`, `tree`) need the most. Baselines: the mean training vector;
    for `tree`, a random tree over as many words, another one for each sentence and seed; the untrained model, on its
    own scale. Without the model, fillers are random vectors. Intervals resample test sentences and seeds: single runs
    can fit far worse than others.
    """
    build = partial(_sentence_vectors, pooling=pooling, train_fraction=train_fraction, seed=config.seed)
    data, untrained = for_both_models(build, recording, randomised, encoder)
    measures, random_tree_measures = _measures(data, config)
    mean_vector = bootstrap_mean(_mean_vector_errors(data), seed=config.seed)
    zero = Estimates.exact(np.zeros(mean_vector.shape))
    baselines = {
        "mean vector": dict.fromkeys(SCHEMES, mean_vector) | dict.fromkeys(R_SQUARED.values(), zero),
        "random tree": random_tree_measures,
        "zero": {TREE_GAIN: zero},
    }
    if untrained is not None:
        baselines["untrained model"] = _measures(untrained, config)[0]
        untrained_mean_vector = bootstrap_mean(_mean_vector_errors(untrained), seed=config.seed)
        baselines["mean vector (untrained model)"] = dict.fromkeys(SCHEMES, untrained_mean_vector)
    return LayerCurve(
        measures=measures,
        baselines=baselines,
        units=dict.fromkeys(SCHEMES, "mean squared error, at least 0")
        | dict.fromkeys(R_SQUARED.values(), "proportion of variance, at most 1")
        | {TREE_GAIN: "difference of proportions of variance"},
        sample={
            f"{name} sentences": int((data.split == part).sum())
            for name, part in (("training", TRAIN), ("validation", VALIDATION), ("test", TEST))
        },
    )


def _measures(
    data: _SentenceVectors, config: _DecompositionConfig
) -> tuple[dict[str, Estimates], dict[str, Estimates]]:
    """The measures by layer, and those of `tree` with random trees."""
    variance = np.where(_mean_and_std(data)[2], _mean_vector_errors(data), 0.0)

    def estimate(numerators: FloatArray, denominators: FloatArray) -> Estimates:
        sums = np.stack([numerators, np.broadcast_to(denominators, numerators.shape)], -1)
        return bootstrap_sentences_and_seeds(
            sums, lambda counts: ratio(counts[..., 0], counts[..., 1], empty=np.nan), seed=config.seed
        )

    one = np.ones(variance.shape)
    errors = {name: _errors(name, scheme, data, config) for name, scheme in SCHEMES.items()}
    # Another random tree with each seed, so that intervals cover the choice of the trees.
    random_errors = np.concatenate(
        [
            _errors("random tree", random_tree(seed), data, replace(config, seed=seed, n_seeds=1))
            for seed in config.seeds
        ]
    )
    measures = {name: estimate(scheme_errors, one) for name, scheme_errors in errors.items()}
    r_squared = {R_SQUARED[name]: estimate(variance - values, variance) for name, values in errors.items()}
    gain = estimate(random_errors - errors["tree"], variance)
    return measures | r_squared | {TREE_GAIN: gain}, {
        "tree": estimate(random_errors, one),
        R_SQUARED["tree"]: estimate(variance - random_errors, variance),
    }


def _sentence_vectors(
    recording: Recording, encoder: Encoder | None, pooling: str, train_fraction: float, seed: int
) -> _SentenceVectors:
    """The sentences with trees, sorted by their tokens and split."""
    indices = [
        index
        for index, recorded_input in enumerate(recording.inputs)
        if all(segment.governors is not None for segment in recorded_input.text.segments)
        and not recorded_input.window_index
        and (recorded_input.tokens.special_kinds == SpecialToken.NONE).any()
    ]
    indices.sort(key=lambda index: recording.inputs[index].tokens.ids.tobytes())
    inputs = tuple(recording.inputs[index] for index in indices)
    split = _split_sentences(inputs, train_fraction, seed)
    if set(split.tolist()) != {TRAIN, VALIDATION, TEST}:
        raise Refusal(
            f"{recording.corpus.name} has too few sentences with trees for a decomposition ({len(inputs)})",
            "sentences for training, validation and testing",
            "Use a larger treebank, or another --train-fraction",
        )
    token_ids = sorted({int(token_id) for recorded_input in inputs for token_id in recorded_input.tokens.ids})
    rows = {token_id: row for row, token_id in enumerate(token_ids)}
    fillers = tuple(
        np.array([rows[int(token_id)] for token_id in recorded_input.tokens.ids]) for recorded_input in inputs
    )
    vectors: list[Array] = []
    for index, recorded_input in zip(indices, inputs, strict=True):
        hidden, kinds = np.asarray(recording["hidden"][index]), recorded_input.tokens.special_kinds
        vectors.append(hidden[:, 0] if pooling == "cls" else hidden[:, kinds == SpecialToken.NONE].mean(1))
    return _SentenceVectors(
        inputs, np.stack(vectors, 1).astype(np.float32), _filler_vectors(encoder, token_ids), fillers, split
    )


def _split_sentences(inputs: Sequence[RecordedInput], train_fraction: float, seed: int) -> IntArray:
    """(sentence,) `TRAIN`, `VALIDATION` or `TEST`; equal sentences and whole documents stay together."""
    is_train = train_mask(inputs, train_fraction, seed=seed) if inputs else np.zeros(0, np.bool_)
    split = np.where(is_train, TRAIN, TEST)
    train = np.flatnonzero(is_train)
    if len(train):
        is_validation = ~train_mask([inputs[index] for index in train.tolist()], 1 - VALIDATION_FRACTION, seed=seed)
        split[train[is_validation]] = VALIDATION
    return split


def _filler_vectors(encoder: Encoder | None, token_ids: Sequence[int]) -> Array:
    """(filler, size) vectors with a mean norm of 1, because Adam's step size does not depend on the scale."""
    if isinstance(encoder, TaskEncoder):
        table = np.asarray(encoder.input_embeddings(), np.float32)[list(token_ids)]
    else:
        table = np.stack([np.random.default_rng(token_id).normal(size=RANDOM_FILLER_SIZE) for token_id in token_ids])
    return table / (np.linalg.norm(table, axis=1).mean() or 1.0)


def _errors(name: str, scheme: Scheme, data: _SentenceVectors, config: _DecompositionConfig) -> FloatArray:
    """(seed, test sentence, layer) squared error of a scheme, averaged over components."""
    # Imported here because a module class needs torch when it is defined.
    from bertology.analyses.geometry.tensor_products.decomposition import (
        PADDING_ROLE,
        FillerRoleSequences,
        fit_decomposition,
        reconstruct,
    )

    roles = [scheme(recorded_input) for recorded_input in data.inputs]
    train, validation, test = (np.flatnonzero(data.split == part) for part in (TRAIN, VALIDATION, TEST))
    number = role_numbering(name, [roles[index] for index in train])
    fillers, role_numbers = np.full((2, len(roles), max(map(len, roles))), PADDING_ROLE)
    for row, sentence_roles in enumerate(roles):
        fillers[row, : len(sentence_roles)] = data.fillers[row]
        role_numbers[row, : len(sentence_roles)] = [number(role) for role in sentence_roles]
    sequences = FillerRoleSequences(np.maximum(fillers, 0), role_numbers)
    # All layers have the same scale during fitting, so that one learning rate suits all.
    mean, std, _ = _mean_and_std(data)
    targets = np.repeat((data.vectors - mean) / std, len(config.seeds), axis=0)
    model = fit_decomposition(
        data.filler_vectors,
        sequences[train],
        targets[:, train],
        sequences[validation],
        targets[:, validation],
        n_roles=int(role_numbers.max()) + 1,
        role_size=config.role_size,
        seeds=config.seeds,
        epochs=config.epochs,
        learning_rate=config.learning_rate,
    )
    squared = np.square(reconstruct(model, sequences[test]) - targets[:, test]).mean(-1)
    by_layer = squared.reshape(len(mean), len(config.seeds), -1) * np.square(std)
    return by_layer.transpose(1, 2, 0).astype(np.float64)


def _mean_and_std(data: _SentenceVectors) -> tuple[Array, Array, BoolArray]:
    """(layer, 1, width) means and (layer, 1, 1) standard deviations of training vectors; (layer,) whether these vary.

    The standard deviation of vectors that do not vary is 1.
    """
    vectors = data.vectors[:, data.split == TRAIN]
    mean = vectors.mean(1, keepdims=True, dtype=np.float64).astype(np.float32)
    std = np.sqrt(np.square(vectors - mean).mean((1, 2), keepdims=True))
    varies = std > 1e-6 * np.abs(mean).max((1, 2), keepdims=True)
    return mean, np.where(varies, std, 1.0), varies[:, 0, 0]


def _mean_vector_errors(data: _SentenceVectors) -> FloatArray:
    """(test sentence, layer) squared error of the mean training vector."""
    residuals = data.vectors[:, data.split == TEST] - _mean_and_std(data)[0]
    return np.square(residuals).mean(-1).T.astype(np.float64)
