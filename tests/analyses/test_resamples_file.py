"""Resampled values are stored beside a result and found again with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bertology.analyses import registry
from bertology.analyses.resamples_file import load_resamples, save_resamples
from bertology.analyses.run import RunInputs, run_all
from bertology.checked_files import DamagedFileError
from bertology.corpus.read import load_corpus
from bertology.encoder.load import load
from bertology.errors import DamagedFileWarning
from bertology.results.measured_shape import MODEL_SERIES, N_KEPT_RESAMPLES, Resamples
from bertology.results.shapes import HeadGrid


def test_values_are_read_back_by_series_and_measure(tmp_path: Path) -> None:
    resamples = {
        ("model", "a, b"): Resamples(np.arange(6.0).reshape(3, 2), np.array([5, 7])),
        ("chance", "a, b"): Resamples(np.ones((3, 2)), np.array([4, 4])),
    }
    digest = save_resamples(tmp_path / "file.npz", resamples)
    stored = load_resamples(tmp_path / "file.npz", digest)
    assert set(stored) == set(resamples) and len(stored) == 2
    for key, (values, n_rows) in resamples.items():
        np.testing.assert_array_equal(stored[key].values, values)
        np.testing.assert_array_equal(stored[key].n_rows, n_rows)
    for file in ("missing.npz", "file.npz"):
        with pytest.raises(DamagedFileError, match=r"missing.npz is missing|file.npz is damaged"):
            load_resamples(tmp_path / file, "of another file")


def test_a_result_whose_resamples_are_missing_is_computed_again(tmp_path: Path) -> None:
    """Without them models would be compared in another way, which no number would tell."""
    inputs = RunInputs(corpus=load_corpus("english", limit=12), encoder=load("tiny"), store=tmp_path)
    requests = [(registry.get("attention/entropy"), {})]
    first = run_all(requests, inputs, cache_results=True).results()[0]
    [file] = tmp_path.rglob("*.npz")
    intact = file.read_bytes()
    file.unlink()
    with pytest.warns(DamagedFileWarning, match="is missing. Its value is computed again"):
        again = run_all(requests, inputs, cache_results=True).results()[0]
    assert again.to_json() == first.to_json() and file.read_bytes() == intact


def test_a_stored_result_has_the_resamples_of_the_computed_one(tmp_path: Path) -> None:
    inputs = RunInputs(corpus=load_corpus("english", limit=12), encoder=load("tiny"), store=tmp_path)
    requests = [(registry.get("attention/entropy"), {})]
    first, second = (run_all(requests, inputs, cache_results=True).results()[0].data for _ in range(2))
    assert isinstance(first, HeadGrid) and isinstance(second, HeadGrid)
    [measure, *_] = first.measures
    resamples = second.kept_resamples[MODEL_SERIES, measure]
    assert resamples.values.shape == (N_KEPT_RESAMPLES, *first.measures[measure].shape)
    assert (resamples.n_rows == 12).all()
    np.testing.assert_array_equal(resamples.values, first.kept_resamples[MODEL_SERIES, measure].values)
    np.testing.assert_allclose(resamples.values.mean(0), first.measures[measure].value, rtol=0.1)
