"""The numbers that models are compared by: planted peaks and effects, and the best of as many random heads."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.atlas.finding_numbers import expected_best, measure_effect, measure_peak
from bertology.claims.claim import Claim, Greater, NumberSelector, PeakLayer
from bertology.claims.claim_results import ClaimResult
from bertology.claims.judge import judge
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_mean
from bertology.results.measured_shape import Resamples
from bertology.results.result import Result
from bertology.results.shapes import LayerCurve, Table

DEPTH, N_SENTENCES = 6, 80


def planted_result(seed: int = 0) -> Result:
    """A curve over embeddings and six layers that peaks in layer 4, by far more than sentences vary."""
    curve = np.array([0.1, 0.2, 0.3, 0.4, 0.8, 0.4, 0.3])
    values = curve + np.random.default_rng(seed).normal(0.0, 0.1, (N_SENTENCES, DEPTH + 1))
    shape = LayerCurve(
        measures={"score": bootstrap_mean(values, seed=0)},
        baselines={"chance": {"score": Estimates.exact(np.full(DEPTH + 1, 0.25))}},
        first_layer=0,
    )
    return Result(
        analysis="probes/word",
        version=1,
        options={},
        inputs={},
        n=N_SENTENCES,
        data=shape.with_paired_differences(),
        provenance={},
    )


def judged(test: Greater | PeakLayer, data: LayerCurve | Table | None = None) -> ClaimResult:
    result = planted_result()
    result = result if data is None else result.model_copy(update={"data": data})
    claim = Claim(
        id="planted", statement="It peaks.", section="1", published_value="none", analysis="probes/word",
        published_depth=DEPTH, test=test,
    )  # fmt: skip
    return ClaimResult(claim, judge(claim, {"": result}), (result,))


def test_the_peak_is_where_it_was_planted_with_its_relative_depth() -> None:
    peak = measure_peak(judged(PeakLayer(measure="score", layers=(4, 4))))
    assert peak is not None and (peak.layer, peak.low, peak.high, peak.n_layers) == (4, 4, 4, DEPTH)
    assert peak.depths == (4 / 6, 4 / 6, 4 / 6)


def test_the_effect_is_the_distance_to_what_it_is_compared_with_and_has_the_error_of_the_mean() -> None:
    left = NumberSelector(measure="score", layers=(4, 4))
    effect = measure_effect(judged(Greater(left=left, right=left.model_copy(update={"baseline": "chance"}))))
    assert effect is not None and effect.n == N_SENTENCES and effect.standard_error is not None
    assert effect.value == pytest.approx(0.55, abs=0.05)
    assert effect.standard_error == pytest.approx(0.1 / N_SENTENCES**0.5, rel=0.25)
    resampled = effect.resamples()
    assert resampled is not None and resampled.mean() == pytest.approx(effect.value, abs=0.01)
    assert effect.n_rows == N_SENTENCES


def test_layers_that_are_rows_of_a_table_are_resampled_as_those_of_a_curve() -> None:
    test = PeakLayer(measure="score", layers=(3, 4))
    curve = measure_effect(judged(test))
    assert curve is not None and curve.resamples() is not None
    data = planted_result().data
    assert isinstance(data, LayerCurve)
    other_row = Estimates.exact([0.99])
    kept = {
        key: Resamples(np.pad(values, ((0, 0), (1, 0))), np.insert(n_rows, 0, 7))
        for key, (values, n_rows) in data.kept_resamples.items()
    }
    table = Table(
        measures={"score": Estimates.concatenate([other_row, data.measures["score"]])},
        baselines={"chance": {"score": Estimates.exact(np.full(DEPTH + 2, 0.25))}},
        row_names=("masked LM", *(f"layer {layer}" for layer in range(DEPTH + 1))),
        attributes={"layer": (None, *range(DEPTH + 1))},
    )
    assert measure_effect(judged(test, table.with_kept_resamples(kept))) == curve


def test_the_expected_best_of_random_heads() -> None:
    assert expected_best(np.array([0.3]), 9) == 0.3
    assert expected_best(np.array([0.0, 1.0]), 1) == 0.5
    assert expected_best(np.array([0.0, 1.0]), 3) == 1 - 0.5**3
    assert expected_best(np.array([np.nan, 0.0, 1.0]), 2) == 0.75
