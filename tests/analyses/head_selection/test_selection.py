"""Heads no better than the baseline are rarely called better, and planted heads are found, whatever the seed."""

from __future__ import annotations

import numpy as np

from bertology.analyses.head_selection.gold_links import CHANCE, FIXED_OFFSET, LinkCounts
from bertology.analyses.head_selection.selection import (
    BEST_ACCURACY,
    HELD_OUT_ACCURACY,
    P_VALUE,
    difference_measure,
    selection_table,
)
from bertology.results.shapes import Table

OFFSET_RATES = (0.4, 0.3, 0.1)


def sample_links(seed: int, n_units: int, rates: list[list[float]]) -> LinkCounts:
    """Random answers of heads with these rates, (layer, head), and of offsets of which the best has a rate of 0.4."""
    generator = np.random.default_rng(seed)
    total = generator.integers(1, 4, (n_units, 1))
    correct = generator.binomial(total[..., None], rates)[..., None, None]
    offsets = generator.binomial(total, OFFSET_RATES)[..., None]
    return LinkCounts(
        ("nsubj",),
        ("",),
        tuple(f"text {unit:04d}" for unit in range(n_units)),
        correct.astype(np.uint16),
        total.astype(np.uint16),
        {FIXED_OFFSET: offsets.astype(float), CHANCE: 0.1 * total[..., None]},
        {FIXED_OFFSET: ("-1", "+1", "+2"), CHANCE: ("",)},
    )


def table_of(counts: LinkCounts, seed: int) -> Table:
    return selection_table(counts, None, baseline=FIXED_OFFSET, min_examples=20, seed=seed)


def test_noise_is_above_the_offset_as_rarely_as_the_level_says() -> None:
    """200 data sets in which every head has the rate of the best offset."""
    above, significant, optimism = [], [], []
    for seed in range(200):
        table = table_of(sample_links(seed, 40, [[0.4] * 4] * 4), seed)
        above.append(table.measures[difference_measure(FIXED_OFFSET)].low[0] > 0)
        significant.append(table.measures[P_VALUE].value[0] < 0.05)
        optimism.append(table.measures[BEST_ACCURACY].value[0] - table.measures[HELD_OUT_ACCURACY].value[0])
    assert np.mean(above) <= 0.025
    assert np.mean(significant) <= 0.05
    assert np.mean(optimism) > 0.03


def test_a_planted_head_is_found_with_every_seed() -> None:
    counts = sample_links(1, 100, [[0.4] * 4, [0.4, 0.4, 0.7, 0.4]])
    for seed in range(8):
        table = table_of(counts, seed)
        assert table.attribute("head", 0) == table.attribute("best_head", 0) == "2-3"
        assert float(table.attribute("chosen_in", 0) or 0) > 0.9
        assert table.measures[difference_measure(FIXED_OFFSET)].low[0] > 0.1
        assert table.measures[P_VALUE].value[0] < 0.05


def test_heads_of_equal_accuracy_share_the_selections() -> None:
    table = table_of(sample_links(2, 100, [[0.6] * 8]), 0)
    assert float(table.attribute("chosen_in", 0) or 0) < 0.6


def test_the_offset_is_selected_on_all_sentences() -> None:
    """The baseline is at least as good as any offset, so that a head cannot win by a badly selected one."""
    for seed in range(20):
        counts = sample_links(seed, 30, [[0.3] * 4])
        table = table_of(counts, seed)
        best = counts.baseline_correct[FIXED_OFFSET][..., 0].sum(0).max() / counts.total.sum()
        assert np.isclose(table.baselines[FIXED_OFFSET][HELD_OUT_ACCURACY].value[0], best)
