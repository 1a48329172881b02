"""Batched networks equal those of torch, learn planted rules, and do not depend on each other."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from bertology.analyses.frozen_features.batched_training import (
    BatchedNetwork,
    PackedSequences,
    TrainSpec,
    predict,
    train_networks,
)
from bertology.analyses.frozen_features.bilstm_crf import BiLstmCrf
from bertology.analyses.frozen_features.text_cnn import TextCnn

WIDTH = 5


def random_sequences(count: int = 40, seed: int = 0) -> PackedSequences:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 8, (count,), generator=generator)
    vectors = torch.randn(int(lengths.sum()), WIDTH, generator=generator)
    return PackedSequences(torch.cat([torch.zeros(1, WIDTH), vectors]), lengths)


def batch(sequences: PackedSequences) -> tuple[Tensor, Tensor]:
    rows, step_mask = sequences.rows(torch.arange(len(sequences.lengths))[None])
    return sequences.vectors[rows], step_mask


def test_lstm_states_equal_those_of_torch() -> None:
    network, sequences = BiLstmCrf(3, hidden_size=4), random_sequences()
    parameters = {name: value[None] for name, value in network.init(WIDTH, 1).items()}
    lstm = nn.LSTM(WIDTH, 4, batch_first=True, bidirectional=True)
    # PyTorch has the cell gate before the output gate.
    order = torch.cat([torch.arange(8), torch.arange(12, 16), torch.arange(8, 12)])
    with torch.no_grad():
        for index, suffix in enumerate(("", "_reverse")):
            getattr(lstm, f"weight_ih_l0{suffix}").copy_(parameters["input"][0, index].T[order])
            getattr(lstm, f"weight_hh_l0{suffix}").copy_(parameters["hidden"][0, index].T[order])
            getattr(lstm, f"bias_ih_l0{suffix}").copy_(parameters["bias"][0, index][order])
            getattr(lstm, f"bias_hh_l0{suffix}").zero_()
        x, step_mask = batch(sequences)
        packed = nn.utils.rnn.pack_padded_sequence(x[0], sequences.lengths, batch_first=True, enforce_sorted=False)
        expected = nn.utils.rnn.pad_packed_sequence(lstm(packed)[0], batch_first=True)[0]
        result = network._states(parameters, x, step_mask)[0] * step_mask[0, ..., None]  # pyright: ignore[reportPrivateUsage]
    torch.testing.assert_close(result, expected)


def test_convolutions_equal_those_of_torch() -> None:
    network, sequences = TextCnn(2, filters=3), random_sequences()
    parameters = {name: value[None] for name, value in network.init(WIDTH, 1).items()}
    x, step_mask = batch(sequences)
    for index, size in enumerate(network.kernel_sizes):
        result = network._max_pool(parameters, index, x, step_mask)[0]  # pyright: ignore[reportPrivateUsage]
        kernel = parameters[f"filters_{size}"][0].permute(2, 1, 0)
        for row, length in enumerate(sequences.lengths.tolist()):
            text = nn.functional.pad(x[0, row, :length].T, (0, size - 1))
            expected = nn.functional.conv1d(text, kernel).relu().amax(-1)
            torch.testing.assert_close(result[row], expected)


def signs(sequences: PackedSequences) -> Tensor:
    """1 for words whose first value is positive, 0 for others and for padding."""
    return (sequences.vectors[:, 0] > 0).long()


def previous_signs(sequences: PackedSequences) -> Tensor:
    """The sign of the word before, 0 for the first word: a label that depends on context only."""
    labels = torch.zeros_like(signs(sequences))
    labels[1:] = signs(sequences)[:-1]
    labels[sequences.starts] = 0
    return labels


def test_tagger_learns_labels_that_depend_on_context() -> None:
    sequences = random_sequences(260)
    sequences.vectors[1:, 0] = 2 * sequences.vectors[1:, 0].sign()
    labels, test = previous_signs(sequences), list(range(200, 260))
    specs = [TrainSpec(range(160), range(160, 200), 0, 0.02), TrainSpec(range(80), range(160, 200), 1, 0.02)]
    network = BiLstmCrf(2, hidden_size=8)
    parameters, loss = train_networks(network, sequences, labels, specs, 100)
    predicted = predict(network, parameters, sequences, test)
    gold = [labels[sequences.starts[index] : sequences.starts[index] + sequences.lengths[index]] for index in test]
    correct = [tags == expected for tags, expected in zip(predicted, gold, strict=True)]
    accuracy = torch.cat(correct, 1).float().mean(1)
    assert (accuracy > 0.93).all() and (loss < 0.25).all()


def test_cnn_learns_a_planted_class() -> None:
    sequences = random_sequences(260)
    labels = torch.arange(260) % 2
    sequences.vectors[:, 0] = 0
    sequences.vectors[sequences.starts, 0] = 4.0 * labels - 2  # the first word has the label
    specs = [TrainSpec(range(160), range(160, 200), 0, 0.02)]
    parameters, _ = train_networks(TextCnn(2, filters=8), sequences, labels, specs, 100)
    predicted = torch.stack(predict(TextCnn(2, filters=8), parameters, sequences, range(200, 260)))[:, 0]
    assert (predicted == labels[200:]).float().mean() > 0.97


@pytest.mark.parametrize("network", [BiLstmCrf(2, hidden_size=4), TextCnn(2, filters=4)])
def test_models_trained_together_equal_models_trained_alone(
    network: BatchedNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without dropout, whose random numbers depend on the number of models."""
    monkeypatch.setattr("bertology.analyses.frozen_features.bilstm_crf.DROPOUT", 0.0)
    monkeypatch.setattr("bertology.analyses.frozen_features.text_cnn.DROPOUT", 0.0)
    sequences = random_sequences()
    labels = signs(sequences) if network.is_sequence_labelling else signs(sequences)[sequences.starts]
    specs = [TrainSpec(range(20), range(20, 30), 0, 0.01), TrainSpec(range(5, 30), range(30, 40), 3, 0.05)]
    together, _ = train_networks(network, sequences, labels, specs, 12)
    for index, spec in enumerate(specs):
        alone, _ = train_networks(network, sequences, labels, [spec], 12)
        for name, value in together.items():
            np.testing.assert_allclose(value[index].numpy(), alone[name][0].numpy(), atol=1e-4, err_msg=name)
