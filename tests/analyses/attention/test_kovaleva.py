"""Planted heads get the shape they were given, by rule and by network; short maps get none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

import planted
from bertology.analyses.attention.kovaleva import LEAST_PIECES, kovaleva, shapes
from bertology.encoder.pieces import Special
from bertology.maths.map_shapes import SHAPES, synthesised
from bertology.results.shapes import HeadGrid, Table

LONG = tuple(" ".join(f"w{number}{place}" for place in range(9 + 3 * number)) for number in range(6))
PAIRS = tuple((text, text.replace("w", "v")) for text in LONG)


def shaped(shape: str, seed: int) -> planted.HeadMap:
    """A head whose maps are synthesised, each sentence's its own."""

    def head(entry: planted.Entry) -> planted.Floats:
        draw = np.random.default_rng([seed, *entry.pieces.ids.tolist()])
        return synthesised(shape, len(entry.pieces), 0.2, draw)

    return head


def by_part(entry: planted.Entry) -> planted.Floats:
    """A head that looks at its own sentence, the [SEP] after it included."""
    side = np.maximum.accumulate(np.maximum(entry.pieces.part, 0))
    same = (side[:, None] == side[None, :]).astype(float)
    return same / same.sum(1, keepdims=True)


def shown(texts: Sequence[str | tuple[str, str]], layers: list[list[planted.HeadMap]], **options: Any) -> Any:
    settled = kovaleva.settled(options)
    recording = planted.recording_of(planted.corpus_of(*texts), layers).with_derived([shapes(settled["special"])])
    return kovaleva.function(recording, None, **settled)


@pytest.mark.parametrize("classifier", ["rule", "network"])
def test_planted_heads_get_their_shape(classifier: str) -> None:
    heads = [shaped(shape, number) for number, shape in enumerate(SHAPES)]
    grid = shown(LONG, [heads, heads[::-1]], by="heads", classifier=classifier)
    assert isinstance(grid, HeadGrid)
    for number, shape in enumerate(SHAPES):
        shares = grid.measures[shape].value
        assert shares[0, number] >= 0.8
        assert shares[1, len(SHAPES) - 1 - number] >= 0.8
        np.testing.assert_allclose(sum(grid.measures[name].value for name in SHAPES), 1)


def test_shares_by_layer_and_in_all() -> None:
    table = shown(LONG, [[shaped("vertical", 1), planted.uniform], [planted.looking_at(-1), planted.looking_at(1)]])
    assert isinstance(table, Table)
    assert table.rows_named == ("layer 1", "layer 2", "all layers")
    np.testing.assert_allclose(table.measures["vertical"].value, [0.5, 0, 0.25])
    np.testing.assert_allclose(table.measures["diagonal"].value, [0, 1, 0.5])
    np.testing.assert_allclose(table.measures["heterogeneous"].value, [0.5, 0, 0.25])
    np.testing.assert_allclose(table.baselines["uniform attention"]["heterogeneous"].value, 1)
    both = table.measures["kappa"][2]
    assert [both.value, both.low, both.high] == pytest.approx([1, 1, 1])
    assert np.isnan(table.measures["kappa"].value[1])  # one class only: nothing can be said beyond chance


def test_agreement_beyond_chance_by_hand() -> None:
    """A head of one shape in some sentences and of another in the rest, and one that only the rule is blind to."""
    faint = [0.42, 0.5]

    def head(number: int) -> planted.HeadMap:
        def made(entry: planted.Entry) -> planted.Floats:
            line = planted.at_kind(Special.CLS)(entry) if len(entry.pieces) % 2 else planted.looking_at(-1)(entry)
            return faint[number] * line + (1 - faint[number]) * planted.noise(number)(entry)

        return made

    heads = [head(0), head(1)]
    by_rule, by_network = (shown(LONG, [heads], by="heads", classifier=who) for who in ("rule", "network"))
    chance = sum(by_rule.measures[name].value * by_network.measures[name].value for name in SHAPES)
    np.testing.assert_allclose(by_rule.baselines["by chance"]["agreement"].value, chance)
    table = shown(LONG, [heads])
    site = shapes()
    found = planted.recording_of(planted.corpus_of(*LONG), [heads]).with_derived([site]).stacked(site)
    labels = found.argmax(-1).reshape(-1, 2)
    assert len(np.unique(labels[:, 0])) > 1 and (labels[:, 0] != labels[:, 1]).any()
    assert table.measures["kappa"].value[1] == pytest.approx(cohen_kappa_score(labels[:, 0], labels[:, 1]))
    low, high = table.measures["kappa"].low[1], table.measures["kappa"].high[1]
    assert low < table.measures["kappa"].value[1] < high < 1


def test_sentences_of_a_pair_are_blocks() -> None:
    for classifier in ("rule", "network"):
        grid = shown(PAIRS, [[by_part, planted.uniform]], by="heads", classifier=classifier)
        assert grid.measures["block"].value[0].tolist() == [1, 0]


def test_without_special_tokens_the_line_of_separators_is_gone() -> None:
    heads: list[planted.HeadMap] = [
        lambda entry: 0.7 * planted.at_kind(Special.SEP)(entry) + 0.3 * planted.looking_at(-1)(entry)
    ]
    kept = shown(LONG, [heads], by="heads")
    assert kept.measures["vertical"].value[0, 0] + kept.measures["vertical+diagonal"].value[0, 0] == 1
    dropped = shown(LONG, [heads], by="heads", special="drop")
    assert dropped.measures["diagonal"].value[0, 0] == 1


def test_short_maps_are_not_classified() -> None:
    short = " ".join("abcde"[: LEAST_PIECES - 3])
    grid = shown((short, *LONG), [[planted.looking_at(1)]], by="heads")
    assert grid.measures["diagonal"].n[0, 0] == len(LONG)
    nothing = shown((short,), [[planted.looking_at(1), planted.uniform]])
    assert (nothing.measures["kappa"].n == 0).all()
    assert np.isnan(nothing.measures["diagonal"].value).all()
