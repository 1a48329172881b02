"""Fit probes on all layers, seeds and labellings at once, and score their predictions on the test data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bertology.analyses.probing.dataset import ProbeDataset, validation_mask
from bertology.arrays import Array, BoolArray, IntArray
from bertology.corpus.hashing import seeded_hash
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_sentences_and_seeds, exact_where_unanimous
from bertology.number_ranges import SIZE, parse_whole_number, shorten_value
from bertology.numerics.batched_classifier import (
    UNUSED_LABEL,
    BatchedClassifiers,
    ClassifierConfig,
    ClassifierForm,
    fit_classifiers,
)

L2_MULTIPLIERS = (1.0, 20.0, 400.0)
"""L2 penalties as multiples of 1 / (number of examples); the first is the usual prior of logistic regression."""

PRIOR_ONLY_L2 = 10.0
"""A penalty under which a probe predicts little more than label frequencies, for uninformative states."""

TOLERANCE = 1e-3
MAX_ITERATIONS = PATIENCE = 100
"""Validation documents can differ from the others: their loss may rise for dozens of steps before it falls."""

LINEAR_TOLERANCE, LINEAR_MAX_ITERATIONS = 2e-4, 300
"""Predictions of linear probes hardly change beyond this tolerance, which they reach in fewer iterations."""

VALIDATION_FRACTION = 0.15
"""Fraction of the training documents held out by a probe; each seed holds out others."""

FORMS: dict[str, tuple[ClassifierForm, int, int]] = {
    "linear": ("linear", 0, 0),
    "rank": ("rank", 1, 1),
    "bilinear": ("bilinear", 1, 1),
    "mlp": ("mlp", 1, 2),
}
"""Probe architectures, each with its minimum and maximum number of sizes."""


@dataclass(frozen=True)
class ProbeConfig:
    """The architecture of probes, and the seeds of initial weights, validation documents and control labels."""

    classifier: ClassifierConfig
    seeds: tuple[int, ...]


def parse_probe(text: str) -> ClassifierConfig:
    """A probe architecture from its name: linear, rank:10, mlp:50, mlp:50:50 or bilinear:20."""
    name, *parts = text.strip().split(":")
    numbers = [parse_whole_number(part, SIZE) for part in parts]
    sizes = tuple(number for number in numbers if number is not None)
    form, min_sizes, max_sizes = FORMS.get(name, ("linear", 0, -1))
    if len(sizes) != len(parts) or not min_sizes <= len(sizes) <= max_sizes:
        raise Refusal(
            f"There is no probe called {shorten_value(text)}",
            f"linear, rank:N, mlp:N, mlp:N:N or bilinear:N, where N is a number of hidden units, at most {SIZE.le:,}",
            "Choose one of these with --probe",
        )
    if form == "linear":
        return ClassifierConfig(form, max_iterations=LINEAR_MAX_ITERATIONS, tolerance=LINEAR_TOLERANCE)
    return ClassifierConfig(form, sizes, max_iterations=MAX_ITERATIONS, patience=PATIENCE, tolerance=TOLERANCE)


def fit_probes(
    features: Array,
    labels: Array,
    is_validation: BoolArray,
    n_classes: int,
    classifier: ClassifierConfig,
    seeds: tuple[int, ...],
) -> BatchedClassifiers:
    """Classifiers of (layer, example, width) features, one for each row of (problem, example) labels.

    `is_validation` is (problem, example). A linear probe averages the predictions of four penalties, weighted by the
    likelihood of the validation labels: three that fall with the number of examples, and one that leaves only label
    frequencies. Other probes use the smallest penalty and stop early.
    """
    n_examples = max(1, int((~is_validation).sum(1).min()))
    penalties = tuple(min(PRIOR_ONLY_L2, multiplier / n_examples) for multiplier in L2_MULTIPLIERS)
    penalties = (*penalties, PRIOR_ONLY_L2) if classifier.form == "linear" else penalties[:1]
    return fit_classifiers(
        features,
        np.where(is_validation, UNUSED_LABEL, labels),
        n_classes,
        replace(classifier, l2_penalties=penalties),
        validation_labels=np.where(is_validation, labels, UNUSED_LABEL),
        seeds=seeds,
    )


@dataclass(frozen=True)
class ProbePredictions:
    """Label indices on the test data: `predicted` is (layer, seed, example), `gold` is (seed, example)."""

    predicted: Array
    gold: Array


def assign_control_labels(types: Array, seed: int, label_boundaries: Array) -> IntArray:
    """A random label for each type, in the proportions given by the inner boundaries of [0, 1).

    The label depends only on the type and the seed, so a type has the same label in training and test data.
    """

    def uniform(word_type: str) -> float:
        return int.from_bytes(seeded_hash(word_type, seed)[:8], "little") / 2**64

    values_by_type = {word_type: uniform(word_type) for word_type in set(types.ravel().tolist())}
    values = np.array([values_by_type[word_type] for word_type in types.ravel().tolist()], np.float64)
    return np.searchsorted(label_boundaries, values, side="right").reshape(types.shape)


def control_labels(dataset: ProbeDataset, control_types: Array, seeds: Sequence[int]) -> Array:
    """(seed, example) control labels, in the proportions of the training labels."""
    return np.stack([assign_control_labels(control_types, seed, dataset.label_boundaries) for seed in seeds])


def fit_and_predict(dataset: ProbeDataset, config: ProbeConfig) -> tuple[ProbePredictions, ProbePredictions]:
    """Predictions of probes trained on the labels, and of probes trained on control labels."""
    seeds = config.seeds
    train_labels, gold = (
        np.concatenate(
            [
                np.tile(dataset.label_ids(examples), (len(seeds), 1)),
                control_labels(dataset, examples.control_types, seeds),
            ]
        )
        for examples in (dataset.train, dataset.test)
    )
    is_validation = np.stack([validation_mask(dataset.train, VALIDATION_FRACTION, seed) for seed in seeds])
    probes = fit_probes(
        dataset.train.features,
        train_labels,
        np.tile(is_validation, (2, 1)),
        len(dataset.labels),
        config.classifier,
        seeds * 2,
    )
    predicted = probes.predict(dataset.test.features)
    n_seeds = len(seeds)
    return (
        ProbePredictions(predicted[:, :n_seeds], gold[:n_seeds]),
        ProbePredictions(predicted[:, n_seeds:], gold[n_seeds:]),
    )


def accuracy(dataset: ProbeDataset, predictions: ProbePredictions, seed: int) -> Estimates:
    """(layer,) proportion of correct examples."""
    counts = correct_and_total(dataset, predictions)
    return exact_where_unanimous(bootstrap_sentences_and_seeds(counts, _ratio, seed=seed))


def accuracy_difference(
    dataset: ProbeDataset, added: Sequence[ProbePredictions], subtracted: Sequence[ProbePredictions], seed: int
) -> Estimates:
    """(layer,) sum of some accuracies minus the sum of others, on the same sentences and seeds.

    Selectivity is the accuracy minus that on the control task.
    """
    added_counts, subtracted_counts = (
        [correct_and_total(dataset, predictions) for predictions in part] for part in (added, subtracted)
    )
    correct = sum(c[..., :1] for c in added_counts) - sum(c[..., :1] for c in subtracted_counts)
    return bootstrap_sentences_and_seeds(np.concatenate([correct, added_counts[0][..., 1:]], -1), _ratio, seed=seed)


def macro_f1(dataset: ProbeDataset, predictions: ProbePredictions, seed: int) -> Estimates:
    """(layer,) mean F1 over the labels that occur in the test data."""
    n_layers, n_seeds, _ = predictions.predicted.shape
    shape = (n_seeds, len(dataset.test.inputs), len(dataset.labels))
    # F1 is 2 TP over (gold + predicted): both sums by seed, sentence, layer and label.
    sums = np.zeros((*shape[:2], n_layers, shape[2], 2))
    gold = predictions.gold
    sentences = np.broadcast_to(dataset.test.input_index, gold.shape)
    runs = np.broadcast_to(np.arange(n_seeds)[:, None], gold.shape)

    def count(labels: Array, weights: Array) -> Array:
        cells = np.ravel_multi_index((runs, sentences, labels), shape)
        return np.bincount(cells.ravel(), weights.ravel(), minlength=int(np.prod(shape))).reshape(shape)

    for layer in range(n_layers):
        predicted = predictions.predicted[layer]
        sums[:, :, layer, :, 0] = count(gold, 2.0 * (gold == predicted))
        sums[:, :, layer, :, 1] = count(gold, np.ones(gold.shape)) + count(predicted, np.ones(gold.shape))
    in_test = np.isin(np.arange(shape[2]), gold)
    sums = sums[:, np.isin(np.arange(shape[1]), dataset.test.input_index)][..., in_test, :]
    estimates = bootstrap_sentences_and_seeds(sums, lambda counts: _ratio(counts).mean(-1), seed=seed)
    return exact_where_unanimous(estimates)


def majority_baseline(dataset: ProbeDataset) -> ProbePredictions:
    """The most frequent training label for every example."""
    gold = dataset.label_ids(dataset.test)[None]
    return ProbePredictions(np.zeros((1, *gold.shape), np.int64), gold)


def majority_by_type(dataset: ProbeDataset) -> ProbePredictions:
    """The most frequent training label of each control type, and that of all examples for unseen types."""
    counts: dict[str, Counter[int]] = {}
    types, labels = dataset.train.control_types.tolist(), dataset.label_ids(dataset.train).tolist()
    for control_type, label in zip(types, labels, strict=True):
        counts.setdefault(control_type, Counter())[label] += 1
    best = {name: min(by_label, key=lambda label: (-by_label[label], label)) for name, by_label in counts.items()}
    predicted = np.array([best.get(name, 0) for name in dataset.test.control_types.tolist()], np.int64)
    return ProbePredictions(predicted[None, None], dataset.label_ids(dataset.test)[None])


def correct_and_total(dataset: ProbeDataset, predictions: ProbePredictions) -> Array:
    """(seed, sentence, layer, 2) correct examples and examples, of the sentences that have any."""
    n_layers, n_seeds, _ = predictions.predicted.shape
    n_sentences = len(dataset.test.inputs)
    counts = np.zeros((n_seeds, n_sentences, n_layers, 2))
    correct = (predictions.predicted == predictions.gold).astype(np.float64).transpose(1, 2, 0)
    for run in range(n_seeds):
        np.add.at(counts[run, ..., 0], dataset.test.input_index, correct[run])
    counts[..., 1] = np.bincount(dataset.test.input_index, minlength=n_sentences)[:, None]
    return counts[:, counts[0, :, 0, 1] > 0]


def _ratio(correct_and_total: Array) -> Array:
    return correct_and_total[..., 0] / np.maximum(correct_and_total[..., 1], 1)
