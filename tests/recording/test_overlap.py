"""Overlapped batches give the results of single ones, in order, and so do recordings made with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.recording.material import CLOSE, assert_same_recording, mixed, tiny

from bertology.analyses.attention.targets.analysis import targets_site
from bertology.recording import recorder, recording_pass
from bertology.recording.overlap import overlap_batches
from bertology.recording.plan import RecordingConfig
from bertology.recording.recorder import record
from bertology.recording.sites import strongest_word_site

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
on_every_device = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_gpu)])
SITES = ["attention", "hidden.words", "logits.mlm", targets_site, strongest_word_site()]


def _prepare(batch: int, device: str) -> torch.Tensor:
    if batch < 0:
        raise ValueError("a batch that cannot be prepared")
    return torch.full((100, 100), float(batch), device=device)


def _run(batch: int, prepared: torch.Tensor) -> Callable[[], float]:
    product = prepared @ prepared
    return lambda: float(product[0, 0] + 0 * prepared[0, 0])


@on_every_device
def test_results_come_in_order(device: str) -> None:
    results = list(overlap_batches(range(20), lambda batch: _prepare(batch, device), _run, device))
    assert results == [(batch, 100.0 * batch * batch) for batch in range(20)]


@on_every_device
def test_an_error_of_the_preparation_reaches_the_caller(device: str) -> None:
    results = overlap_batches([1, 2, 3, 4, -1], lambda batch: _prepare(batch, device), _run, device)
    assert next(results) == (1, 100.0)
    with pytest.raises(ValueError, match="cannot be prepared"):
        list(results)


def _record_as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def overlaps(encoder: object, sites: object) -> bool:
        return True

    for module in (recorder, recording_pass):  # one chooses the plan, the other how batches run
        monkeypatch.setattr(module, "overlaps", overlaps)


def test_shards_of_overlapped_batches_have_the_same_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, config = mixed(60), RecordingConfig(tokens_per_batch=100)
    expected = record(tiny(), corpus, SITES, config=config, folder=tmp_path / "expected")
    _record_as_on_a_gpu(monkeypatch)
    assert_same_recording(record(tiny(), corpus, SITES, config=config, folder=tmp_path / "overlapped"), expected)


def test_a_recording_in_memory_of_overlapped_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, config = mixed(60), RecordingConfig(tokens_per_batch=100)
    expected = record(tiny(), corpus, SITES, config=config)
    _record_as_on_a_gpu(monkeypatch)
    actual = record(tiny(), corpus, SITES, config=config)
    # Other inputs are in a batch, because the plan is made while batches run.
    assert_same_recording(actual, expected, tolerance=CLOSE)
