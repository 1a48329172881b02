"""Planted heads have their class by rule and by CNN; short patterns have none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, confusion_matrix

import planted
from bertology.analyses.attention.pattern_classes import AGREEMENT, KAPPA, cohen_kappa, pattern_classes
from bertology.analyses.attention_patterns.site import MIN_TOKENS, pattern_class_site
from bertology.analyses.attention_patterns.synthetic import PATTERN_CLASSES, synthetic_attention
from bertology.encoder.tokens import SpecialToken
from bertology.results.shapes import HeadGrid, Table

LONG = tuple(" ".join(f"w{number}{place}" for place in range(9 + 3 * number)) for number in range(6))
PAIRS = tuple((text, text.replace("w", "v")) for text in LONG)


def shaped(shape: str, seed: int) -> planted.HeadAttention:
    """A head with synthetic patterns, a different one for each sentence."""

    def head(recorded_input: planted.RecordedInput) -> planted.FloatArray:
        draw = np.random.default_rng([seed, *recorded_input.tokens.ids.tolist()])
        return synthetic_attention(shape, len(recorded_input.tokens), 0.2, draw)

    return head


def by_part(recorded_input: planted.RecordedInput) -> planted.FloatArray:
    """A head that attends to all tokens of the same sentence, including the [SEP] after it."""
    side = np.maximum.accumulate(np.maximum(recorded_input.tokens.segment_ids, 0))
    same = (side[:, None] == side[None, :]).astype(float)
    return same / same.sum(1, keepdims=True)


def shown(texts: Sequence[str | tuple[str, str]], layers: list[list[planted.HeadAttention]], **options: Any) -> Any:
    settled = pattern_classes.resolve_options(options)
    recording = planted.make_recording(planted.make_corpus(*texts), layers).with_sites(
        [pattern_class_site(settled["special_tokens"])]
    )
    return pattern_classes.function(recording, None, **settled)


@pytest.mark.parametrize("classifier", ["rule", "cnn"])
def test_planted_heads_have_their_class(classifier: str) -> None:
    heads = [shaped(shape, number) for number, shape in enumerate(PATTERN_CLASSES)]
    grid = shown(LONG, [heads, heads[::-1]], show="heads", pattern_classifier=classifier)
    assert isinstance(grid, HeadGrid)
    for number, shape in enumerate(PATTERN_CLASSES):
        shares = grid.measures[shape].value
        assert shares[0, number] >= 0.8
        assert shares[1, len(PATTERN_CLASSES) - 1 - number] >= 0.8
        np.testing.assert_allclose(sum(grid.measures[name].value for name in PATTERN_CLASSES), 1)


def test_proportions_by_layer_and_over_all_layers() -> None:
    table = shown(
        LONG, [[shaped("vertical", 1), planted.uniform_head], [planted.offset_head(-1), planted.offset_head(1)]]
    )
    assert isinstance(table, Table)
    assert table.row_names == ("layer 1", "layer 2", "all layers")
    np.testing.assert_allclose(table.measures["vertical"].value, [0.5, 0, 0.25])
    np.testing.assert_allclose(table.measures["diagonal"].value, [0, 1, 0.5])
    np.testing.assert_allclose(table.measures["heterogeneous"].value, [0.5, 0, 0.25])
    np.testing.assert_allclose(table.baselines["uniform attention"]["heterogeneous"].value, 1)
    both = table.measures[KAPPA][2]
    assert [both.value, both.low, both.high] == pytest.approx([1, 1, 1])
    assert np.isnan(table.measures[KAPPA].value[1])  # one class only: kappa is undefined


def test_agreement_and_kappa_equal_a_direct_computation() -> None:
    """A head whose class depends on the sentence, and one that only the CNN recognises."""
    faint = [0.42, 0.5]

    def head(number: int) -> planted.HeadAttention:
        def made(recorded_input: planted.RecordedInput) -> planted.FloatArray:
            line = (
                planted.special_head(SpecialToken.CLS)(recorded_input)
                if len(recorded_input.tokens) % 2
                else planted.offset_head(-1)(recorded_input)
            )
            return faint[number] * line + (1 - faint[number]) * planted.random_head(number)(recorded_input)

        return made

    heads = [head(0), head(1)]
    by_rule, by_network = (
        shown(LONG, [heads], show="heads", pattern_classifier=classifier) for classifier in ("rule", "cnn")
    )
    chance = sum(by_rule.measures[name].value * by_network.measures[name].value for name in PATTERN_CLASSES)
    np.testing.assert_allclose(by_rule.baselines["chance"][AGREEMENT].value, chance)
    table = shown(LONG, [heads])
    site = pattern_class_site()
    result = planted.make_recording(planted.make_corpus(*LONG), [heads]).with_sites([site]).stack(site)
    labels = result.argmax(-1).reshape(-1, 2)
    assert len(np.unique(labels[:, 0])) > 1 and (labels[:, 0] != labels[:, 1]).any()
    assert table.measures[KAPPA].value[1] == pytest.approx(cohen_kappa_score(labels[:, 0], labels[:, 1]))
    low, high = table.measures[KAPPA].low[1], table.measures[KAPPA].high[1]
    assert low < table.measures[KAPPA].value[1] < high < 1


def test_sentences_of_a_pair_are_blocks() -> None:
    for classifier in ("rule", "cnn"):
        grid = shown(PAIRS, [[by_part, planted.uniform_head]], show="heads", pattern_classifier=classifier)
        assert grid.measures["block"].value[0].tolist() == [1, 0]


def test_without_special_tokens_the_line_of_separators_is_gone() -> None:
    heads: list[planted.HeadAttention] = [
        lambda recorded_input: (
            0.7 * planted.special_head(SpecialToken.SEP)(recorded_input) + 0.3 * planted.offset_head(-1)(recorded_input)
        )
    ]
    mask = shown(LONG, [heads], show="heads")
    assert mask.measures["vertical"].value[0, 0] + mask.measures["vertical and diagonal"].value[0, 0] == 1
    dropped = shown(LONG, [heads], show="heads", special_tokens="exclude")
    assert dropped.measures["diagonal"].value[0, 0] == 1


def test_short_patterns_are_not_classified() -> None:
    short = " ".join("abcde"[: MIN_TOKENS - 3])
    grid = shown((short, *LONG), [[planted.offset_head(1)]], show="heads")
    assert grid.measures["diagonal"].n[0, 0] == len(LONG)
    nothing = shown((short,), [[planted.offset_head(1), planted.uniform_head]])
    assert (nothing.measures[KAPPA].n == 0).all()
    assert np.isnan(nothing.measures["diagonal"].value).all()


def test_kappa_equals_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    first = rng.integers(4, size=200)
    second = np.where(rng.random(200) < 0.6, first, rng.integers(4, size=200))
    joint = confusion_matrix(first, second)
    assert cohen_kappa(joint) == pytest.approx(cohen_kappa_score(first, second))
    np.testing.assert_allclose(cohen_kappa(np.stack([joint, 7.0 * joint])), cohen_kappa_score(first, second))


def test_kappa_of_full_agreement_of_chance_and_of_a_single_class() -> None:
    assert cohen_kappa(np.diag([3.0, 4.0])) == pytest.approx(1)
    assert cohen_kappa(np.full((3, 3), 2.0)) == pytest.approx(0)
    assert np.isnan(cohen_kappa(np.array([[5.0, 0.0], [0.0, 0.0]])))
