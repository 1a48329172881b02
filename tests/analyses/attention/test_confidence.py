"""Planted heads are as sure as they were made."""

from __future__ import annotations

import numpy as np
import pytest

import planted
from bertology.analyses.attention.confidence import CONFIDENCE, confidence
from bertology.encoder.pieces import Special
from bertology.measures.attention.head_measures import Average
from bertology.results.shapes import HeadGrid

TEXTS = ("a b c", "d e f g h", ("i j", "k l m n"), "o", "p q r s t u v")
ENTRIES = planted.entries_of(planted.corpus_of(*TEXTS))
LENGTHS = np.array([len(entry.pieces) for entry in ENTRIES])


def measured(*heads: planted.HeadMap, average: Average = "pooled") -> HeadGrid:
    recording = planted.recording_of(planted.corpus_of(*TEXTS), [list(heads)]).with_derived([CONFIDENCE])
    found = confidence.function(recording, None, average=average, seed=0)
    assert isinstance(found, HeadGrid)
    return found


def test_a_head_that_looks_at_one_piece_is_sure() -> None:
    grid = measured(planted.looking_at(0))
    assert grid.measures["to any"].value[0, 0] == pytest.approx(1)
    assert grid.measures["ordinary to ordinary"].value[0, 0] == pytest.approx(1)
    ordinary = sum(int((entry.pieces.special == Special.NONE).sum()) for entry in ENTRIES)
    assert grid.measures["to ordinary"].value[0, 0] == pytest.approx(ordinary / LENGTHS.sum())


def test_attention_parked_on_separators_does_not_count() -> None:
    grid = measured(planted.at_kind(Special.SEP))
    assert grid.measures["to ordinary"].value[0, 0] == 0
    assert grid.measures["to any"].value[0, 0] > 0.5


@pytest.mark.parametrize("average", ["pooled", "sentences"])
def test_uniform_attention_has_its_closed_form(average: Average) -> None:
    grid = measured(planted.uniform, average=average)
    expected = np.average(1 / LENGTHS, weights=LENGTHS if average == "pooled" else None)
    for name, estimates in grid.measures.items():
        assert estimates.value[0, 0] == pytest.approx(
            expected if name != "ordinary to ordinary" else estimates.value[0, 0]
        )
        assert grid.baselines["uniform attention"][name].value[0, 0] == pytest.approx(estimates.value[0, 0]), name


def test_every_row_by_hand() -> None:
    head = planted.noise(5)
    grid = measured(head)
    rows: dict[str, list[float]] = {name: [] for name in grid.measures}
    for entry in ENTRIES:
        ordinary = entry.pieces.special == Special.NONE
        for i, row in enumerate(head(entry)):
            rows["to ordinary"].append(row[ordinary].max())
            rows["to any"].append(row.max())
            if ordinary[i]:
                rows["ordinary to ordinary"].append(row[ordinary].max())
    for name, values in rows.items():
        assert grid.measures[name].value[0, 0] == pytest.approx(np.mean(values), rel=1e-5), name
