"""Data ratios and crossing points of constructed curves, and the table of features/data_efficiency."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import planted_features as planted
from bertology.analyses import registry
from bertology.analyses.frozen_features.dataset import DatasetOptions, build_dataset
from bertology.analyses.frozen_features.train_size_curves import CurveComparisons, LearningCurves
from bertology.analyses.run import RunInputs, run_analysis
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.results.shapes import Table

SIZES = (10, 100, 1000)


def comparisons(*curves: tuple[float, ...], n_examples: int = 1000, n_seeds: int = 2) -> CurveComparisons:
    """Curves with these accuracies, the same for every seed; each is correct on other examples."""
    generator = np.random.default_rng(0)
    ranks = np.stack([generator.permutation(n_examples) for _ in curves], 1)
    correct = ranks[..., None] < n_examples * np.array(curves)
    counts = np.stack([correct, np.ones_like(correct)], -1).astype(np.float64)
    options = DatasetOptions(sample_size=0, n_seeds=1)
    dataset = build_dataset(planted.sentiments(count=20), options, analysis_name="test")
    names = tuple(map(str, range(len(curves))))
    by_seed = np.repeat(counts[None], n_seeds, 0)
    return CurveComparisons(LearningCurves(dataset, names, SIZES, by_seed, by_seed[..., 0, :], {}), seed=0)


def test_feature_that_needs_a_tenth_of_the_data() -> None:
    comparison = comparisons((0.7, 0.8, 0.9), (0.6, 0.7, 0.8)).compare(0, 1)
    ratio, crossing = comparison.data_ratio, comparison.crossing_size
    assert comparison.final_difference.value == pytest.approx(0.1) and ratio.value == pytest.approx(10)
    assert ratio.low < 10 < ratio.high and ratio.low > 4
    assert np.isnan(crossing.value) and crossing.n == 0
    assert comparison.p_crossing == 0 and not comparison.ratio_is_bound


def test_crossing_point_of_curves() -> None:
    comparison = comparisons((0.5, 0.65, 0.9), (0.6, 0.65 - 0.05, 0.7)).compare(0, 1)
    crossing = comparison.crossing_size
    assert crossing.value == pytest.approx(10 * 10 ** (2 / 3), rel=0.02) and comparison.p_crossing == 1.0
    assert crossing.low < crossing.value < crossing.high


def test_ratio_is_a_lower_bound_if_the_smallest_size_is_enough() -> None:
    comparison = comparisons((0.85, 0.9, 0.9), (0.6, 0.7, 0.8)).compare(0, 1)
    assert comparison.ratio_is_bound and comparison.data_ratio.value == pytest.approx(100)


def test_ratio_of_the_weaker_feature_is_below_one() -> None:
    curves = comparisons((0.6, 0.7, 0.8), (0.7, 0.8, 0.9))
    assert curves.stronger_first(0, 1) == (1, 0)
    assert curves.compare(0, 1).data_ratio.value == pytest.approx(0.1)
    assert curves.compare(0, 0).data_ratio.value == 1.0


def test_feature_does_not_differ_from_itself() -> None:
    assert comparisons((0.1, 0.2, 0.3)).compare(0, 0).final_difference.value == 0


def run_table(**options: Any) -> Table:
    inputs = RunInputs(planted.entities(ambiguous=True, count=60), load("tiny"))
    options = {"n_seeds": 2, "n_train_sizes": 3, "min_train_fraction": 0.1, **options}
    table = run_analysis(registry.get("features/data_efficiency"), inputs, options).data
    assert isinstance(table, Table)
    return table


def test_table_has_a_row_for_each_pair_of_features() -> None:
    features = [f"call:planted_features:{name}" for name in ("identity", "gold_labels", "noise")]
    table = run_table(features=",".join(features))
    assert table.row_names[0] == f"{features[1]} over {features[0]}" and len(table.row_names) == 3
    assert table.measures["score difference"].low[0] > 0.1
    assert table.attribute("ratio_is_lower_bound", 0) is True
    assert table.measures["data ratio"].value[0] == pytest.approx(38 / 4, rel=0.2)
    assert {measure for measures in table.baselines.values() for measure in measures} == set(table.measures)


def test_one_feature_is_refused() -> None:
    with pytest.raises(Refusal, match="two or more"):
        run_table(features="model")
