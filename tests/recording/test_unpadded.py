"""Arrays that come a layer at a time or some layers together are cut to each entry and end in the right place."""

from __future__ import annotations

import numpy as np
import torch

from bertology.encoder.pieces import Special
from bertology.recording.frame import Frame
from bertology.recording.unpadded import Unpadded
from recording.test_word_level import entry

AXES = ("head", "direction", "word")


def _frame() -> Frame:
    kinds = [Special.CLS, *[Special.NONE] * 4, Special.SEP]
    return Frame([entry([-1, 0, 1, 1, 2, -1], kinds, 3), entry([-1, 0, 1, 2, 3, -1], kinds, 4)])


def test_together_and_alone() -> None:
    """Of values by layer, entry, head, direction and word."""
    values = torch.randn(4, 2, 3, 2, 4, generator=torch.Generator().manual_seed(1))
    for alone in ([], [0], [2], [0, 3], [0, 1, 2, 3]):
        found = Unpadded(_frame(), AXES, 4, half=False)
        together = [layer for layer in range(4) if layer not in alone]
        for layer in alone:
            found.add(layer, values[layer])
        for run in np.split(together, np.flatnonzero(np.diff(together) > 1) + 1) if together else []:
            found.add_layers(int(run[0]), values[run].transpose(0, 1))
        found.fetch()
        for own, row, words in zip(found.arrays(), range(2), (3, 4), strict=True):
            np.testing.assert_array_equal(own, values[:, row, :, :, :words].numpy())


def test_nothing_was_added() -> None:
    found = Unpadded(_frame(), AXES, 4, half=False)
    found.fetch()
    assert found.arrays() == []


def test_half_precision_is_kept() -> None:
    found = Unpadded(_frame(), AXES, 2, half=False)
    found.add_layers(0, torch.ones(2, 2, 3, 2, 4, dtype=torch.float16))
    assert {array.dtype for array in found.arrays()} == {np.dtype(np.float16)}
