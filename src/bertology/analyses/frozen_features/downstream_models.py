"""Classifiers on frozen features: the same models and hyper-parameter grid for every feature.

| task | linear | other |
|---|---|---|
| token | the word's vector | `bilstm-crf`: a bidirectional LSTM with a conditional random field |
| sentence | mean over words | `cnn`: filters over 3, 4 and 5 words with max pooling |
| pair | u, v, |u - v| and u * v of the two means u and v | |

Features are standardised over all training examples, whatever the training size. Linear classifiers choose among four
L2 penalties by the validation score; the others choose between two learning rates, and among ten checkpoints, by the
validation loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.frozen_features.batched_training import (
    BatchedNetwork,
    PackedSequences,
    TrainSpec,
    predict,
    train_networks,
)
from bertology.analyses.frozen_features.bilstm_crf import BiLstmCrf
from bertology.analyses.frozen_features.dataset import FrozenFeatureDataset, SeedSplit
from bertology.analyses.frozen_features.text_cnn import TextCnn
from bertology.analyses.frozen_features.word_features import WordFeatures
from bertology.corpus.example import Example
from bertology.errors import Refusal
from bertology.lazy import torch
from bertology.numerics.batched_classifier import UNUSED_LABEL, ClassifierConfig, fit_each_penalty

if TYPE_CHECKING:
    from torch import Tensor

DownstreamClassifier = Literal["linear", "bilstm-crf", "cnn"]
ClassifierOption = Annotated[
    DownstreamClassifier,
    "Classifier on the frozen features: `linear`; `bilstm-crf` for token tasks; `cnn` for text tasks.",
]
FloatArray = NDArray[np.float32]

CLASSIFIERS_BY_TASK: dict[str, tuple[DownstreamClassifier, ...]] = {
    "token": ("linear", "bilstm-crf"),
    "sentence": ("linear", "cnn"),
    "pair": ("linear",),
}
SETTINGS: dict[DownstreamClassifier, dict[str, Any]] = {
    "linear": {
        "penalties": [1.0, 20.0, 400.0],
        "prior_only_l2": 10.0,
        "tolerance": 1e-5,
        "selected_by": "score",
        "standardised_over": "all",
    },
    "bilstm-crf": {
        "learning_rates": [2e-3, 1e-2],
        "hidden_size": 32,
        "epochs": 10,
        "steps": [60, 400],
        "max_words": 512,
    },
    "cnn": {"learning_rates": [1e-3, 5e-3], "filters": 32, "epochs": 10, "steps": [60, 400], "max_words": 200},
}
"""Hyper-parameters of the classifiers; part of the cache key.

L2 penalties are divided by the number of examples; `prior_only_l2` leaves little more than the label frequencies. The
number of steps is that of `epochs` over the examples in batches of 16, within `steps`. Words after `max_words` are cut.
"""


def parse_classifiers(text: str, task: str, option: str = "--classifiers") -> Sequence[DownstreamClassifier]:
    """Classifiers from comma-separated names; names the task does not support are refused."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    classifiers = [known for name in names for known in CLASSIFIERS_BY_TASK[task] if known == name]
    if not names or len(classifiers) < len(names) or len(set(classifiers)) < len(classifiers):
        raise Refusal(
            f"{option} was given {text!r} for the task {task}",
            f"one or more of: {', '.join(CLASSIFIERS_BY_TASK[task])}",
            "Write them comma-separated",
        )
    return classifiers  # pyright: ignore[reportReturnType]  # comparing with a string widens the literal


@dataclass(frozen=True)
class FeatureMatrix:
    """The input of the classifiers: example i has the rows from `row_ends[i - 1]` to `row_ends[i]`."""

    rows: FloatArray
    row_ends: NDArray[np.int64]

    def row_indices(self, indices: Sequence[int]) -> NDArray[np.int64]:
        """The rows of these examples."""
        starts = np.concatenate([[0], self.row_ends])
        return np.concatenate([np.arange(starts[index], self.row_ends[index]) for index in indices])


def feature_matrix(dataset: FrozenFeatureDataset, vectors: WordFeatures) -> FeatureMatrix:
    """One row per word for token tasks, else one per example; training examples come first."""
    if dataset.task.name == "token":
        return FeatureMatrix(
            np.concatenate(vectors.by_sentence), np.cumsum([len(rows) for rows in vectors.by_sentence])
        )
    means = vectors.sentence_means()
    if dataset.task.name == "pair":
        first, second = means[::2], means[1::2]
        means = np.concatenate([first, second, np.abs(first - second), first * second], -1)
    return FeatureMatrix(means, np.arange(1, len(means) + 1))


def fit_predict(
    dataset: FrozenFeatureDataset, vectors: WordFeatures, classifier: DownstreamClassifier, size: int
) -> list[list[Any]]:
    """Train on `size` examples with each seed, and predict the label (or word labels) of every test example."""
    if classifier == "linear":
        label_ids = _fit_predict_linear(dataset, vectors, size)
    else:
        label_ids = _fit_predict_network(dataset, vectors, classifier, size)
    return [_decode_labels(dataset, dataset.test, ids) for ids in label_ids]


def _decode_labels(
    dataset: FrozenFeatureDataset, examples: Sequence[Example], label_ids: NDArray[np.int64]
) -> list[Any]:
    """The labels with these ids; for token tasks, grouped by example."""
    labels = [dataset.task.labels[number] for number in label_ids.tolist()]
    if dataset.task.name != "token":
        return labels
    ends = np.cumsum([len(example.segments[0]) for example in examples]).tolist()
    return [labels[start:end] for start, end in pairwise([0, *ends])]


def _fit_predict_linear(dataset: FrozenFeatureDataset, vectors: WordFeatures, size: int) -> list[NDArray[np.int64]]:
    """Fit all seeds and penalties together; each seed takes its best penalty."""
    features, settings = feature_matrix(dataset, vectors), SETTINGS["linear"]
    train_rows = [features.row_indices(split.train[:size]) for split in dataset.seed_splits]
    gold = dataset.label_ids[0]
    labels = np.full((len(dataset.seed_splits), len(gold)), UNUSED_LABEL, np.int64)
    for number, rows in enumerate(train_rows):
        labels[number, rows] = gold[rows]
    n_rows = min(map(len, train_rows))
    best = [(-np.inf, -np.inf)] * len(dataset.seed_splits)
    predictions: list[NDArray[np.int64]] = [np.empty(0, np.int64)] * len(dataset.seed_splits)
    penalties = [min(settings["prior_only_l2"], weight / n_rows) for weight in settings["penalties"]]
    config = ClassifierConfig(l2_penalties=(*penalties, settings["prior_only_l2"]), tolerance=settings["tolerance"])
    for classifiers in fit_each_penalty(features.rows[: len(gold)][None], labels, len(dataset.task.labels), config):
        predicted = classifiers.predict(features.rows[len(gold) :][None])[0]
        for number, split in enumerate(dataset.seed_splits):
            rows = features.row_indices(split.validation)
            log_probs = classifiers.predict_log_proba(features.rows[rows][None])[0, number]
            score = _validation_score(dataset, split, log_probs, gold[rows])
            if score > best[number]:
                best[number], predictions[number] = score, predicted[number]
    return predictions


def _validation_score(
    dataset: FrozenFeatureDataset, seed_split: SeedSplit, log_probs: NDArray[np.float32], gold: NDArray[np.int64]
) -> tuple[float, float]:
    """The validation score, and the mean log-probability of the gold labels to break ties."""
    examples = [dataset.train[index] for index in seed_split.validation]
    counts = dataset.task.count_correct(examples, _decode_labels(dataset, examples, log_probs.argmax(-1)))
    return counts.score, float(log_probs[np.arange(len(gold)), gold].mean())


def _fit_predict_network(
    dataset: FrozenFeatureDataset, vectors: WordFeatures, classifier: DownstreamClassifier, size: int
) -> list[NDArray[np.int64]]:
    """Train all seeds and learning rates together; each seed takes the rate with the lowest validation loss."""
    settings = SETTINGS[classifier]
    sequences = _pack_sequences(dataset, vectors, settings["max_words"])
    n_labels = len(dataset.task.labels)
    network: BatchedNetwork = (
        TextCnn(n_labels, settings["filters"]) if classifier == "cnn" else BiLstmCrf(n_labels, settings["hidden_size"])
    )
    rates: list[float] = settings["learning_rates"]
    specs = [
        TrainSpec(split.train[:size], split.validation, split.seed, rate)
        for split in dataset.seed_splits
        for rate in rates
    ]
    low, high = settings["steps"]
    steps = min(high, max(low, settings["epochs"] * size // 16))
    labels = _network_labels(dataset, sequences, network.is_sequence_labelling)
    parameters, loss = train_networks(network, sequences, labels, specs, steps)
    best = loss.reshape(-1, len(rates)).argmin(1) + len(rates) * torch.arange(len(dataset.seed_splits))
    selected = {name: value[best] for name, value in parameters.items()}
    test_indices = range(len(dataset.train), len(dataset.train) + len(dataset.test))
    predictions = predict(network, selected, sequences, test_indices)
    join = torch.cat if network.is_sequence_labelling else torch.stack
    return list(join(predictions, 1).numpy())


def _pack_sequences(dataset: FrozenFeatureDataset, vectors: WordFeatures, max_words: int) -> PackedSequences:
    """The words of every example, standardised over the training examples."""
    if dataset.task.name == "token" and max(map(len, vectors.by_sentence)) > max_words:
        raise Refusal(
            f"A sentence has {max(map(len, vectors.by_sentence))} words",
            f"at most {max_words} words for bilstm-crf",
            "Use --classifier linear",
        )
    texts = [rows[:max_words] for rows in vectors.by_sentence]
    train = np.concatenate(texts[: len(dataset.train)])
    mean, std = train.mean(0), train.std(0)
    std = np.where(std <= 1e-6 * np.maximum(np.abs(mean), 1e-6), 1, std)
    rows = np.concatenate([np.zeros((1, vectors.width), np.float32), (np.concatenate(texts) - mean) / std])
    lengths = torch.tensor([len(text) for text in texts])
    return PackedSequences(torch.from_numpy(rows.astype(np.float32)), lengths)


def _network_labels(dataset: FrozenFeatureDataset, sequences: PackedSequences, is_sequence_labelling: bool) -> Tensor:
    """Labels for the networks; those of test examples, which are not used, are 0."""
    gold = torch.from_numpy(dataset.label_ids[0])
    if not is_sequence_labelling:
        return torch.cat([gold, torch.zeros(len(dataset.test), dtype=torch.long)])
    labels = torch.zeros(len(sequences.vectors), dtype=torch.long)
    labels[1 : 1 + len(gold)] = gold
    return labels
