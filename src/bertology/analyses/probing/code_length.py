"""Description length: bits needed to transmit labels to a receiver who has the hidden states (voita2020)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from bertology.analyses.probing.dataset import ProbeDataset, validation_mask
from bertology.analyses.probing.fitting import (
    VALIDATION_FRACTION,
    ProbeConfig,
    ProbePredictions,
    control_labels,
    fit_probes,
)
from bertology.analyses.probing.variational_code import VariationalConfig, variational_code_lengths
from bertology.arrays import Array, BoolArray
from bertology.corpus.hashing import seeded_hash
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_sentences_and_seeds, ratio
from bertology.numerics.batched_classifier import BatchedClassifiers

FRACTIONS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.0625, 0.125, 0.25, 0.5, 1.0)
"""Fractions of the sentences at which the online code refits its probe, as in the released configuration."""

CODE_TOLERANCE = 5e-5
"""Code lengths depend on probabilities, not only on the most probable label, so linear probes are solved further."""


def online_steps(n_sentences: int) -> list[int]:
    """Numbers of known sentences at which the online code refits its probe, without repetitions."""
    return sorted({max(1, round(fraction * n_sentences)) for fraction in FRACTIONS})


@dataclass(frozen=True)
class OnlineCode:
    """Lengths of an online code, and what its last probes, fitted on half of the sentences, predict on the test data.

    `bits` are (labelling, seed, sentence, layer), `n_labels` (seed, sentence). `half_predictions` has one item for each
    labelling; it is empty if there is only one sentence.
    """

    bits: Array
    n_labels: Array
    half_predictions: tuple[ProbePredictions, ...]

    def length(self, labelling: int, seed: int) -> Estimates:
        """(layer,) bits per label, with an interval over sentences and seeds."""
        return bootstrap_sentences_and_seeds(self._sums(labelling), lambda s: ratio(s[..., 0], s[..., 1]), seed=seed)

    def compression(self, labelling: int, n_classes: int, seed: int) -> Estimates:
        """(layer,) length of the uniform code divided by that of this code, with an interval over both."""
        uniform_bits = np.log2(n_classes)
        return bootstrap_sentences_and_seeds(
            self._sums(labelling), lambda s: uniform_bits * ratio(s[..., 1], s[..., 0]), seed=seed
        )

    def _sums(self, labelling: int) -> Array:
        """(seed, sentence, layer, 2) bits and labels of the sentences that have any."""
        bits = self.bits[labelling]
        sums = np.stack([bits, np.broadcast_to(self.n_labels[..., None], bits.shape)], -1)
        return sums[:, self.n_labels.any(0)]


def online_code_length(
    dataset: ProbeDataset, config: ProbeConfig, *, legacy: bool = False, control: bool = True
) -> OnlineCode:
    """Online code of the training labels.

    Labels of the first portion of sentences use the uniform code, those of each further portion a probe fitted on all
    portions before. The labellings are the labels and, with `control`, control labels. Validation documents are not
    part of the message. Probabilities are mixed with the uniform distribution: a probe of n examples has the weight
    n / (n + 1), because a probe of very few examples would be overconfident. `legacy` leaves all portions but the
    first in nats.
    """
    n_layers, n_sentences = len(dataset.train.features), len(dataset.train.inputs)
    bits = np.zeros((1 + control, len(config.seeds), n_sentences, n_layers))
    n_labels = np.zeros((len(config.seeds), n_sentences))
    half_predicted: list[Array] = []
    for run, seed in enumerate(config.seeds):
        labels = _labellings(dataset, seed, control)
        is_validation = validation_mask(dataset.train, VALIDATION_FRACTION, seed)
        ranks = _sentence_ranks(dataset, is_validation, seed)
        sentences = dataset.train.input_index
        n_labels[run] = np.bincount(sentences[ranks >= 0], minlength=n_sentences)
        steps = online_steps(int(ranks.max()) + 1)
        first = np.bincount(sentences[(ranks >= 0) & (ranks < steps[0])], minlength=n_sentences)
        bits[:, run] += first[:, None] * np.log2(len(dataset.labels))
        probes = None
        for start, end in pairwise(steps):
            is_known, is_sent = ((ranks >= 0) & (ranks < start)) | is_validation, (ranks >= start) & (ranks < end)
            probes = _fit_known(dataset, config, labels, is_validation, is_known, seed)
            nats = _label_nats(dataset, probes, labels, is_sent, int((is_known & ~is_validation).sum()))
            sent_bits = nats if legacy else nats / np.log(2)
            for labelling in range(len(labels)):
                np.add.at(bits[labelling, run], sentences[is_sent], sent_bits[labelling])
        if probes is not None:
            half_predicted.append(probes.predict(dataset.test.features))
    return OnlineCode(bits, n_labels, _half_predictions(dataset, config.seeds, half_predicted))


def half_of_training_data(dataset: ProbeDataset, seed: int) -> ProbeDataset:
    """The dataset with a random half of the training sentences, and with all validation documents of this seed."""
    is_validation = validation_mask(dataset.train, VALIDATION_FRACTION, seed)
    ranks = _sentence_ranks(dataset, is_validation, seed)
    n_half = max(1, round((int(ranks.max()) + 1) / 2))
    return replace(dataset, train=dataset.train.subset(is_validation | ((ranks >= 0) & (ranks < n_half))))


def variational_code_length(
    dataset: ProbeDataset, config: ProbeConfig, *, legacy: bool = False, control: bool = True
) -> tuple[Array, Array]:
    """Variational code of the training labels: (labelling, seed, layer) bits, and (seed,) the number of labels.

    `legacy` leaves the code length in nats.
    """
    seeds = config.seeds
    labels = np.stack([_labellings(dataset, seed, control) for seed in seeds], 1)
    code = variational_code_lengths(
        dataset.train.features,
        labels.reshape(-1, labels.shape[-1]),
        len(dataset.labels),
        VariationalConfig(config.classifier.hidden_sizes),
        seeds=seeds * len(labels),
    )
    nats = (code.weight_nats + code.label_nats).T.reshape(len(labels), len(seeds), -1)
    return nats if legacy else nats / np.log(2), np.full(len(seeds), float(len(dataset.train)))


def _labellings(dataset: ProbeDataset, seed: int, control: bool) -> Array:
    """(labelling, example) label indices: the labels, then control labels."""
    labels = dataset.label_ids(dataset.train)[None]
    if not control:
        return labels
    return np.concatenate([labels, control_labels(dataset, dataset.train.control_types, (seed,))])


def _fit_known(
    dataset: ProbeDataset,
    config: ProbeConfig,
    labels: Array,
    is_validation: BoolArray,
    is_known: BoolArray,
    seed: int,
) -> BatchedClassifiers:
    """Probes of the known sentences, one for each labelling."""
    classifier = config.classifier
    if classifier.form == "linear":
        classifier = replace(classifier, tolerance=CODE_TOLERANCE)
    return fit_probes(
        dataset.train.features[:, is_known],
        labels[:, is_known],
        np.tile(is_validation[is_known], (len(labels), 1)),
        len(dataset.labels),
        classifier,
        (seed,) * len(labels),
    )


def _label_nats(
    dataset: ProbeDataset, probes: BatchedClassifiers, labels: Array, is_sent: BoolArray, n_known: int
) -> Array:
    """(labelling, example, layer) nats of the labels that are sent, by probes of `n_known` examples."""
    log_probabilities = probes.predict_log_proba(dataset.train.features[:, is_sent])
    gold = np.take_along_axis(log_probabilities, labels[None, :, is_sent, None], -1)[..., 0].astype(np.float64)
    uniform_weight = 1 / (1 + n_known)
    probabilities = (1 - uniform_weight) * np.exp(gold) + uniform_weight / len(dataset.labels)
    return -np.log(probabilities).transpose(1, 2, 0)


def _sentence_ranks(dataset: ProbeDataset, is_validation: BoolArray, seed: int) -> Array:
    """(example,) the rank of its sentence in an order that depends only on words and seed; -1: validation."""
    validation_inputs = set(dataset.train.input_index[is_validation].tolist())
    sent = sorted(set(dataset.train.input_index.tolist()) - validation_inputs)
    order = sorted(sent, key=lambda index: seeded_hash(" ".join(dataset.train.inputs[index].text.words), seed))
    rank_by_input = np.full(len(dataset.train.inputs), -1)
    rank_by_input[order] = np.arange(len(order))
    return rank_by_input[dataset.train.input_index]


def _half_predictions(
    dataset: ProbeDataset, seeds: Sequence[int], predicted: Sequence[Array]
) -> tuple[ProbePredictions, ...]:
    """The predictions of all seeds, by labelling, from (layer, labelling, example) label indices of each seed."""
    if len(predicted) < len(seeds):
        return ()
    gold = [
        np.tile(dataset.label_ids(dataset.test), (len(seeds), 1)),
        control_labels(dataset, dataset.test.control_types, seeds),
    ]
    by_labelling = np.stack(predicted, 2).swapaxes(0, 1)  # labelling, layer, seed, example
    return tuple(ProbePredictions(labels, gold[number]) for number, labels in enumerate(by_labelling))
