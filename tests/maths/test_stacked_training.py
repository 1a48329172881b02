"""Networks trained together are those trained alone, equal torch's own modules, and learn what is planted."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from bertology.maths.sequence_tagger import SequenceTagger
from bertology.maths.stacked_training import Lot, Network, Sequences, answers, train
from bertology.maths.text_convolution import TextConvolution

WIDTH = 5


def given(count: int = 40, seed: int = 0) -> Sequences:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 8, (count,), generator=generator)
    vectors = torch.randn(int(lengths.sum()), WIDTH, generator=generator)
    return Sequences(torch.cat([torch.zeros(1, WIDTH), vectors]), lengths)


def batch(shown: Sequences) -> tuple[Tensor, Tensor]:
    rows, real = shown.rows(torch.arange(len(shown.lengths))[None])
    return shown.vectors[rows], real


def test_states_are_those_of_torch() -> None:
    network, shown = SequenceTagger(3, units=4), given()
    parameters = {name: value[None] for name, value in network.start(WIDTH, 1).items()}
    lstm = nn.LSTM(WIDTH, 4, batch_first=True, bidirectional=True)
    order = torch.cat([torch.arange(8), torch.arange(12, 16), torch.arange(8, 12)])  # torch has the new cell third
    with torch.no_grad():
        for place, suffix in enumerate(("", "_reverse")):
            getattr(lstm, f"weight_ih_l0{suffix}").copy_(parameters["input"][0, place].T[order])
            getattr(lstm, f"weight_hh_l0{suffix}").copy_(parameters["state"][0, place].T[order])
            getattr(lstm, f"bias_ih_l0{suffix}").copy_(parameters["bias"][0, place][order])
            getattr(lstm, f"bias_hh_l0{suffix}").zero_()
        x, real = batch(shown)
        packed = nn.utils.rnn.pack_padded_sequence(x[0], shown.lengths, batch_first=True, enforce_sorted=False)
        theirs = nn.utils.rnn.pad_packed_sequence(lstm(packed)[0], batch_first=True)[0]
        ours = network._states(parameters, x, real)[0] * real[0, ..., None]  # pyright: ignore[reportPrivateUsage]
    torch.testing.assert_close(ours, theirs)


def test_convolutions_are_those_of_torch() -> None:
    network, shown = TextConvolution(2, filters=3), given()
    parameters = {name: value[None] for name, value in network.start(WIDTH, 1).items()}
    x, real = batch(shown)
    for place, size in enumerate(network.sizes):
        ours = network._largest(parameters, place, x, real)[0]  # pyright: ignore[reportPrivateUsage]
        kernel = parameters[f"filters {size}"][0].permute(2, 1, 0)
        for row, length in enumerate(shown.lengths.tolist()):
            text = nn.functional.pad(x[0, row, :length].T, (0, size - 1))
            theirs = nn.functional.conv1d(text, kernel).relu().amax(-1)
            torch.testing.assert_close(ours[row], theirs)


def signs(shown: Sequences) -> Tensor:
    """The sign of each word's first number, and for padding 0."""
    return (shown.vectors[:, 0] > 0).long()


def before(shown: Sequences) -> Tensor:
    """The sign of the first number of the word before, 0 for a first word: what only context tells."""
    own = signs(shown)
    found = torch.zeros_like(own)
    found[1:] = own[:-1]
    found[shown.starts] = 0
    return found


def test_a_tagger_learns_what_only_context_tells() -> None:
    shown = given(260)
    shown.vectors[1:, 0] = 2 * shown.vectors[1:, 0].sign()
    labels, test = before(shown), list(range(200, 260))
    lots = [Lot(range(160), range(160, 200), 0, 0.02), Lot(range(80), range(160, 200), 1, 0.02)]
    network = SequenceTagger(2, units=8)
    parameters, loss = train(network, shown, labels, lots, 100)
    said = answers(network, parameters, shown, test)
    gold = [labels[shown.starts[place] : shown.starts[place] + shown.lengths[place]] for place in test]
    right = torch.cat([found == one for found, one in zip(said, gold, strict=True)], 1).float().mean(1)
    assert (right > 0.93).all() and (loss < 0.25).all()


def test_a_convolution_learns_a_class() -> None:
    shown = given(260)
    labels = torch.arange(260) % 2
    shown.vectors[:, 0] = 0
    shown.vectors[shown.starts, 0] = 4.0 * labels - 2  # one word tells
    lots = [Lot(range(160), range(160, 200), 0, 0.02)]
    parameters, _ = train(TextConvolution(2, filters=8), shown, labels, lots, 100)
    said = torch.stack(answers(TextConvolution(2, filters=8), parameters, shown, range(200, 260)))[:, 0]
    assert (said == labels[200:]).float().mean() > 0.97


@pytest.mark.parametrize("network", [SequenceTagger(2, units=4), TextConvolution(2, filters=4)])
def test_models_do_not_touch_each_other(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without dropout, whose draws are shared out among the models."""
    monkeypatch.setattr("bertology.maths.sequence_tagger.DROPOUT", 0.0)
    monkeypatch.setattr("bertology.maths.text_convolution.DROPOUT", 0.0)
    shown = given()
    labels = signs(shown) if network.by_step else signs(shown)[shown.starts]
    lots = [Lot(range(20), range(20, 30), 0, 0.01), Lot(range(5, 30), range(30, 40), 3, 0.05)]
    together, _ = train(network, shown, labels, lots, 12)
    for place, lot in enumerate(lots):
        alone, _ = train(network, shown, labels, [lot], 12)
        for name, value in together.items():
            np.testing.assert_allclose(value[place].numpy(), alone[name][0].numpy(), atol=1e-4, err_msg=name)
