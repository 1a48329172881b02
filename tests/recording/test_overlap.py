"""Overlapped batches give the results of single ones, in order, and so do recordings made with them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
import torch
from tests.recording.material import CLOSE, assert_same_recording, mixed, tiny
from torch.utils._python_dispatch import TorchDispatchMode

from bertology.analyses.attention.targets.analysis import targets_site
from bertology.encoder import attention_hook
from bertology.encoder.token_batch import TokenBatch
from bertology.recording import recorder, recording_pass, site_collector
from bertology.recording.overlap import overlap_batches
from bertology.recording.plan import RecordingConfig, make_plan
from bertology.recording.recorder import record
from bertology.recording.site_collector import SiteCollector
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


def test_the_switch_interval_is_restored_after_an_error() -> None:
    def run(batch: int, prepared: torch.Tensor) -> Callable[[], float]:
        assert sys.getswitchinterval() < before
        raise ValueError("a batch that cannot be run")

    before = sys.getswitchinterval()
    with pytest.raises(ValueError, match="cannot be run"):
        list(overlap_batches([1], lambda batch: _prepare(batch, "cpu"), run, "cpu"))
    assert sys.getswitchinterval() == before


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


class _WaitsForDevice(TorchDispatchMode):
    """Collects the operations whose result the host must know to go on: on a GPU it waits for them."""

    NAMES = ("_local_scalar_dense", "is_nonzero", "equal", "nonzero", "masked_select", "_unique2")

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        by_mask = name == "index" and any(index is not None and index.dtype == torch.bool for index in args[1])
        if name in self.NAMES or by_mask:
            self.names.append(name)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("has_padding", [True, False])
def test_the_host_waits_for_nothing_while_it_submits_a_batch(
    monkeypatch: pytest.MonkeyPatch, has_padding: bool
) -> None:
    launch = pytest.importorskip("bertology.statistics.triton.launch", reason="needs Triton")
    kernels = MagicMock()
    monkeypatch.setattr(launch, "kernels", kernels)
    monkeypatch.setattr(site_collector, "supports_fused", lambda layer: True)  # pyright: ignore[reportUnknownLambdaType]
    monkeypatch.setattr(attention_hook, "_is_half_precision_gpu", lambda query: True)  # pyright: ignore[reportUnknownLambdaType]
    monkeypatch.setattr(attention_hook, "fused_attention", _attention_on_cpu)
    plan = make_plan(tiny(), mixed(10), RecordingConfig())
    batch = TokenBatch(plan.inputs if has_padding else plan.inputs[:1])
    collector = SiteCollector(batch, [targets_site, strongest_word_site()], tiny().layers, half_precision=True)
    collector.prepare(fused=True)
    assert batch.model_inputs.has_padding == has_padding
    with torch.inference_mode(), _WaitsForDevice() as waits:
        collector.submit(tiny().forward(batch.model_inputs, on_layer=collector.on_layer))
    assert kernels.row_statistics_kernel.__getitem__.call_count == tiny().layers
    assert waits.names == []


def _attention_on_cpu(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scaling: float, mask: torch.Tensor | None
) -> tuple[torch.Tensor, None]:
    """`fused_attention` without kernels that only a GPU has."""
    attend = torch.nn.functional.scaled_dot_product_attention
    return attend(query, key, value, attn_mask=mask, scale=scaling), None
