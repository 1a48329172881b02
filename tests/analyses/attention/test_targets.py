"""Planted heads are recognised: a head that looks one back is called previous, not next."""

from __future__ import annotations

import numpy as np
import pytest

import planted
from bertology.analyses.attention.targets import TARGETS, targets
from bertology.encoder.pieces import Special
from bertology.results.shapes import HeadGrid

TEXTS = ("a b c .", "d e , f g h", ("i j", "k l m n"), "o", "p q r s t u v !")


def measured(*heads: planted.HeadMap) -> HeadGrid:
    recording = planted.recording_of(planted.corpus_of(*TEXTS), [list(heads)]).with_derived([TARGETS])
    found = targets.function(recording, None, seed=0)
    assert isinstance(found, HeadGrid)
    return found


def value(grid: HeadGrid, measure: str, head: int = 0) -> float:
    return float(grid.measures[measure].value[0, head])


def test_previous_and_next_are_not_swapped() -> None:
    grid = measured(planted.looking_at(-1), planted.looking_at(1))
    assert value(grid, "to previous, ordinary", 0) == pytest.approx(1)
    assert value(grid, "to next, ordinary", 0) == pytest.approx(0)
    assert value(grid, "to next, ordinary", 1) == pytest.approx(1)
    assert value(grid, "to previous, ordinary", 1) == pytest.approx(0)


def test_clarks_neighbour_shares_divide_by_all_pieces() -> None:
    grid = measured(planted.looking_at(-1))
    lengths = [len(entry.pieces) for entry in planted.entries_of(planted.corpus_of(*TEXTS))]
    assert value(grid, "to previous") == pytest.approx(np.mean([(n - 1) / n for n in lengths]))
    assert value(grid, "to itself") == pytest.approx(np.mean([1 / n for n in lengths]))


def test_special_tokens_are_told_apart() -> None:
    grid = measured(planted.at_kind(Special.CLS), planted.at_kind(Special.SEP))
    assert value(grid, "to [CLS]", 0) == pytest.approx(1)
    assert value(grid, "to [SEP]", 0) == pytest.approx(0)
    for measure in ("to [SEP]", "[SEP] to [SEP]", "other to [SEP]"):
        assert value(grid, measure, 1) == pytest.approx(1)


def test_a_head_that_only_separators_use() -> None:
    def only_from_separators(entry: planted.Entry) -> planted.Floats:
        separator = entry.pieces.special == Special.SEP
        return np.where(separator[:, None], planted.at_kind(Special.SEP)(entry), np.eye(len(separator)))

    grid = measured(only_from_separators)
    assert value(grid, "[SEP] to [SEP]") == pytest.approx(1)
    assert value(grid, "other to [SEP]") == pytest.approx(0)


def test_the_uniform_baseline_is_what_a_uniform_head_measures() -> None:
    grid = measured(planted.uniform, planted.noise(3))
    for name, estimates in grid.measures.items():
        expected = grid.baselines["uniform attention"][name].value[0, 0]
        assert estimates.value[0, 0] == pytest.approx(expected, abs=1e-6), name


def test_every_share_by_hand() -> None:
    head = planted.noise(7)
    grid = measured(head)
    shares: list[list[float]] = []
    for entry in planted.entries_of(planted.corpus_of(*TEXTS)):
        attention, pieces, n = head(entry), entry.pieces, len(entry.pieces)
        kinds = np.zeros((n, n, 7), bool)
        for i in range(n):
            for j in range(n):
                kinds[i, j] = (
                    pieces.special[j] == Special.CLS,
                    pieces.special[j] == Special.SEP,
                    pieces.tokens[j] in {".", ",", "!"},
                    i == j,
                    j == i - 1,
                    j == i + 1,
                    i != j and pieces.word[i] == pieces.word[j] >= 0,
                )
        by_kind = [float((attention * kinds[..., k]).sum() / n) for k in range(7)]
        shares.append([*by_kind, float((attention * ~kinds.any(-1)).sum() / n)])
    found = [value(grid, name) for name in list(grid.measures)[:8]]
    np.testing.assert_allclose(found, np.mean(shares, axis=0), atol=1e-6)


def test_a_sentence_without_a_neighbour_does_not_count() -> None:
    grid = measured(planted.looking_at(-1))
    assert grid.measures["to previous, ordinary"].n[0, 0] == len(TEXTS) - 1
    assert grid.measures["to previous"].n[0, 0] == len(TEXTS)
