"""features/learning_curves on planted features, and resuming from the cache."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import planted_features as planted
from bertology.analyses import registry
from bertology.analyses.cache import FOLDER
from bertology.analyses.frozen_features import score_grid
from bertology.analyses.run import RunInputs, run_analysis
from bertology.corpus.corpus import Corpus
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.results.measured_shape import change_measure
from bertology.results.shapes import Curve

GOLD, IDENTITY = "call:planted_features:gold_labels", "call:planted_features:identity"
LABEL = "call:planted_features:label_by_word"


def run_curve(corpus: Corpus, features: str, store: Path | None = None, **options: Any) -> Curve:
    progress: list[tuple[int, int]] = []

    def meter(title: str) -> Any:
        def record_progress(done: int, total: int) -> None:
            progress.append((done, total))

        return record_progress

    inputs = RunInputs(corpus, load("tiny"), store=store)
    options = {"features": features, "n_seeds": 2, "n_train_sizes": 3, "min_train_fraction": 0.1, **options}
    curve = run_analysis(registry.get("features/learning_curves"), inputs, options, progress=meter).data
    assert isinstance(curve, Curve) and progress[-1][0] == progress[-1][1]
    return curve


def test_features_with_the_label_are_perfect_at_every_size() -> None:
    curve = run_curve(planted.entities(ambiguous=True), f"{GOLD},{IDENTITY}")
    np.testing.assert_array_equal(curve.measures[GOLD].value, 1.0)
    assert (curve.measures[IDENTITY].value < 0.7).all()
    assert curve.x_name == "training examples" and curve.x.tolist() == [8, 24, 76]
    assert set(curve.baselines) == {"majority class", "most frequent label of the word", "zero"}
    assert curve.baselines["most frequent label of the word"][GOLD].value[-1] < 0.7


def test_memorising_words_needs_data() -> None:
    curve = run_curve(planted.entities(ambiguous=False), IDENTITY, min_train_fraction=0.02, n_train_sizes=4)
    values = curve.measures[IDENTITY].value
    assert values[0] < 0.9 and values[-1] == 1.0 and (np.diff(values) >= 0).all()


def test_difference_vanishes_as_the_weaker_feature_improves() -> None:
    """One feature has the labels, the other must see every word once: both are perfect with full data."""
    features = f"{LABEL},{IDENTITY}"
    curve = run_curve(planted.entities(ambiguous=False), features, min_train_fraction=0.02, n_train_sizes=4)
    difference = curve.measures[f"{LABEL} - {IDENTITY}"]
    expected = curve.measures[LABEL].value - curve.measures[IDENTITY].value
    np.testing.assert_allclose(difference.value, expected, atol=1e-12)
    assert difference.low[0] > 0
    assert difference.value[-1] == 0 and difference.low[-1] < 0 < difference.high[-1]  # equal in a few sentences
    assert (difference.low <= difference.value).all() and (difference.value <= difference.high).all()
    reduction_name = f"reduction of ({LABEL} - {IDENTITY}) with full data"
    reduction = curve.measures[reduction_name]
    np.testing.assert_allclose(reduction.value, difference.value - difference.value[-1], atol=1e-12)
    assert reduction.low[0] > 0 and reduction.low[-1] == reduction.high[-1] == 0
    change_name = change_measure(f"{LABEL} - {IDENTITY}")
    change = curve.measures[change_name]
    assert np.isnan(change.value[:-1]).all() and change.value[-1] <= 0 and change.low[-1] < 0
    assert set(curve.baselines["zero"]) == {f"{LABEL} - {IDENTITY}", reduction_name, change_name}


def test_constant_difference_is_not_reduced() -> None:
    """With ambiguous words more data does not help features of the word alone."""
    curve = run_curve(planted.entities(ambiguous=True), f"{GOLD},{IDENTITY}")
    difference = curve.measures[f"{GOLD} - {IDENTITY}"]
    reduction = curve.measures[f"reduction of ({GOLD} - {IDENTITY}) with full data"]
    assert (difference.low > 0.2).all()
    assert reduction.low[0] < 0.1
    assert (reduction.high - reduction.low)[0] < 2 * (difference.high - difference.low)[0]


def test_interrupted_run_resumes_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, features = planted.sentiments(count=60), f"model,{IDENTITY}"
    uninterrupted = run_curve(corpus, features)
    fit_predict, calls = score_grid.fit_predict, list[int]()

    def interrupted(*args: Any) -> Any:
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return fit_predict(*args)

    monkeypatch.setattr(score_grid, "fit_predict", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_curve(corpus, features, tmp_path)
    stored = [json.loads(file.read_text("utf-8"))["key"] for file in (tmp_path / FOLDER).glob("*.json")]
    cells = [key for key in stored if key["function"].endswith("score_grid.train_and_count")]
    assert [cell["arguments"]["classifier"] for cell in cells] == ["linear"] * 3
    # The features are in the cache, too: they are not extracted again.
    monkeypatch.setattr("bertology.analyses.frozen_features.encoder_states.encode_words", None)
    assert run_curve(corpus, features, tmp_path).model_dump_json() == uninterrupted.model_dump_json()
    assert len(calls) == 4 + 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_train_sizes": 0}, "--n-train-sizes was given 0"),
        ({"min_train_fraction": 0.0}, "--min-train-fraction was given 0.0"),
        ({"min_train_fraction": 2.0}, "--min-train-fraction was given 2.0"),
        ({"classifier": "cnn"}, "was given 'cnn' for the task token"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(Refusal, match=message):
        run_curve(planted.entities(ambiguous=True, count=20), IDENTITY, **options)
