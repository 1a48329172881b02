"""Description length: bits needed to transmit labels to a receiver who has the hidden states (voita2020)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from bertology.analyses.probing.dataset import ProbeDataset, validation_mask
from bertology.analyses.probing.fitting import VALIDATION_FRACTION, ProbeConfig, control_labels, fit_probes
from bertology.analyses.probing.variational_code import VariationalConfig, variational_code_lengths
from bertology.arrays import Array, BoolArray
from bertology.corpus.corpus import seeded_hash

FRACTIONS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.0625, 0.125, 0.25, 0.5, 1.0)
"""Fractions of the sentences at which the online code refits its probe, as in the released configuration."""

CODE_TOLERANCE = 5e-5
"""Code lengths depend on probabilities, not only on the most probable label, so linear probes are solved further."""


def online_steps(n_sentences: int) -> list[int]:
    """Numbers of known sentences at which the online code refits its probe, without repetitions."""
    return sorted({max(1, round(fraction * n_sentences)) for fraction in FRACTIONS})


def online_code_length(
    dataset: ProbeDataset, config: ProbeConfig, *, legacy: bool = False, control: bool = True
) -> tuple[Array, Array]:
    """Online code of the training labels: (labelling, seed, layer) bits, and (seed,) the number of labels.

    Labels of the first portion of sentences use the uniform code, those of each further portion a probe fitted on all
    portions before. The labellings are the labels and, with `control`, control labels. Validation documents are not
    part of the message. Probabilities are mixed with the uniform distribution: a probe of n examples has the weight
    n / (n + 1), because a probe of very few examples would be overconfident. `legacy` leaves all portions but the
    first in nats.
    """
    n_layers = len(dataset.train.features)
    bits = np.zeros((1 + control, len(config.seeds), n_layers))
    n_labels = np.zeros(len(config.seeds))
    for run, seed in enumerate(config.seeds):
        labels = _labellings(dataset, seed, control)
        is_validation = validation_mask(dataset.train, VALIDATION_FRACTION, seed)
        order = _shuffle_sentences(dataset, is_validation, seed)
        rank_by_input = np.full(len(dataset.train.inputs), -1)
        rank_by_input[order] = np.arange(len(order))
        ranks = rank_by_input[dataset.train.input_index]
        n_labels[run] = (ranks >= 0).sum()
        steps = online_steps(len(order))
        bits[:, run] += ((ranks >= 0) & (ranks < steps[0])).sum() * np.log2(len(dataset.labels))
        for start, end in pairwise(steps):
            nats = _next_step_nats(dataset, config, labels, is_validation, ranks, start, end, seed)
            bits[:, run] += nats if legacy else nats / np.log(2)
    return bits, n_labels


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


def _next_step_nats(
    dataset: ProbeDataset,
    config: ProbeConfig,
    labels: Array,
    is_validation: BoolArray,
    sentence_ranks: Array,
    start: int,
    end: int,
    seed: int,
) -> Array:
    """(labelling, layer) nats of the labels of sentences `start` to `end`, by a probe of the sentences before."""
    is_known = ((sentence_ranks >= 0) & (sentence_ranks < start)) | is_validation
    is_sent = (sentence_ranks >= start) & (sentence_ranks < end)
    if not is_sent.any():
        return np.zeros((len(labels), len(dataset.train.features)))
    classifier = config.classifier
    if classifier.form == "linear":
        classifier = replace(classifier, tolerance=CODE_TOLERANCE)
    probes = fit_probes(
        dataset.train.features[:, is_known],
        labels[:, is_known],
        np.tile(is_validation[is_known], (len(labels), 1)),
        len(dataset.labels),
        classifier,
        (seed,) * len(labels),
    )
    log_probabilities = probes.predict_log_proba(dataset.train.features[:, is_sent])
    gold = np.take_along_axis(log_probabilities, labels[None, :, is_sent, None], -1)[..., 0].astype(np.float64)
    uniform_weight = 1 / (1 + int((~is_validation[is_known]).sum()))
    probabilities = (1 - uniform_weight) * np.exp(gold) + uniform_weight / len(dataset.labels)
    return -np.log(probabilities).sum(-1).T


def _shuffle_sentences(dataset: ProbeDataset, is_validation: BoolArray, seed: int) -> Sequence[int]:
    """Inputs that are sent, in an order that depends only on their words and the seed."""
    validation_inputs = set(dataset.train.input_index[is_validation].tolist())
    sent = sorted(set(dataset.train.input_index.tolist()) - validation_inputs)
    return sorted(sent, key=lambda index: seeded_hash(" ".join(dataset.train.inputs[index].text.words), seed))
