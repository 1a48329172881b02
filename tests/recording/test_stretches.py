"""Slices over stretches of ordinary pieces give what masks give."""

from __future__ import annotations

import pytest
import torch

from bertology.encoder.pieces import Special
from bertology.recording.entry import Entry
from bertology.recording.frame import Frame
from bertology.recording.stretches import (
    ordinary_sum,
    received,
    received_from_ordinary,
    special_columns,
    stretches_of,
)
from recording.test_word_level import ENTRIES, entry, maps_of

CLS, SEP, NONE = Special.CLS, Special.SEP, Special.NONE
ALIKE = [entry([-1, 0, 1, -1], [CLS, NONE, NONE, SEP], 2)] * 3


@pytest.mark.parametrize(
    "entries", [ENTRIES, ALIKE, [*ALIKE, *ENTRIES], ENTRIES[2:]], ids=["mixed", "alike", "both", "bare"]
)
def test_slices_are_masks(entries: list[Entry]) -> None:
    frame, maps = Frame(entries), maps_of(entries)
    stretches = stretches_of(entries)
    ordinary, real = frame.ordinary.float(), frame.real.float()
    torch.testing.assert_close(ordinary_sum(maps, stretches), torch.einsum("bhij,bj->bhi", maps, ordinary))
    torch.testing.assert_close(received(maps, stretches), torch.einsum("bhij,bi->bhj", maps, real))
    torch.testing.assert_close(
        received_from_ordinary(maps, stretches), torch.einsum("bhij,bi->bhj", maps, ordinary), check_stride=False
    )
    special = (real * (1 - ordinary))[:, None, None]
    expected = maps * (1 - special)
    for rows, own in special_columns(maps, stretches):
        assert own.shape[0] == rows.stop - rows.start
        own.zero_()
    torch.testing.assert_close(maps, expected, rtol=0, atol=0)


def test_entries_alike_are_taken_together() -> None:
    assert len(stretches_of(ALIKE)) == 1
    assert [s.pieces for s in stretches_of(ENTRIES)] == [
        (slice(1, 5),),
        (slice(1, 4), slice(5, 8)),
        (),
    ]
