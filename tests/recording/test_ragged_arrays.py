"""Arrays added one layer at a time or several at once are cut to each input and end at the right layer."""

from __future__ import annotations

import numpy as np
import torch
from tests.statistics.token_batches import make_input

from bertology.encoder.token_batch import TokenBatch
from bertology.encoder.tokens import SpecialToken
from bertology.recording.ragged_arrays import RaggedArrays, _Transfer  # pyright: ignore[reportPrivateUsage]

AXES = ("head", "direction", "word")


def _batch() -> TokenBatch:
    kinds = [SpecialToken.CLS, *[SpecialToken.NONE] * 4, SpecialToken.SEP]
    return TokenBatch([make_input([-1, 0, 1, 1, 2, -1], kinds, 3), make_input([-1, 0, 1, 2, 3, -1], kinds, 4)])


def test_layers_added_alone_and_together() -> None:
    """The values are (layer, input, head, direction, word)."""
    values = torch.randn(4, 2, 3, 2, 4, generator=torch.Generator().manual_seed(1))
    for alone in ([], [0], [2], [0, 3], [0, 1, 2, 3]):
        arrays = RaggedArrays(_batch(), AXES, 4, half_precision=False)
        together = [layer for layer in range(4) if layer not in alone]
        for layer in alone:
            arrays.add(layer, values[layer])
        for run in np.split(together, np.flatnonzero(np.diff(together) > 1) + 1) if together else []:
            arrays.add_layers(int(run[0]), values[run].transpose(0, 1))
        arrays.transfer()
        for array, row, n_words in zip(arrays.arrays(), range(2), (3, 4), strict=True):
            np.testing.assert_array_equal(array, values[:, row, :, :, :n_words].numpy())


def test_no_layers_give_no_arrays() -> None:
    arrays = RaggedArrays(_batch(), AXES, 4, half_precision=False)
    arrays.transfer()
    assert arrays.arrays() == []


def test_arrays_are_transferred_when_they_are_asked_for() -> None:
    arrays = RaggedArrays(_batch(), AXES, 1, half_precision=False)
    values = torch.randn(2, 3, 2, 4, generator=torch.Generator().manual_seed(1))
    arrays.add(0, values)
    for array, row, n_words in zip(arrays.arrays(), range(2), (3, 4), strict=True):
        np.testing.assert_array_equal(array[0], values[row, :, :, :n_words].numpy())


def test_values_of_a_device_without_streams_are_copied_to_the_host() -> None:
    class Planted(torch.Tensor):
        """Values that say they lie on a GPU of Apple."""

        @property
        def device(self) -> torch.device:  # pyright: ignore[reportIncompatibleVariableOverride]
            return torch.device("mps")

        def cpu(self) -> torch.Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
            return torch.full((2,), 7.0)

    planted = torch.zeros(2).as_subclass(Planted)
    assert _Transfer(planted).wait().tolist() == [7.0, 7.0]


def test_half_precision_values_stay_half_precision() -> None:
    arrays = RaggedArrays(_batch(), AXES, 2, half_precision=False)
    arrays.add_layers(0, torch.ones(2, 2, 3, 2, 4, dtype=torch.float16))
    assert {array.dtype for array in arrays.arrays()} == {np.dtype(np.float16)}
