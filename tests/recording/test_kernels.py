"""Statistics taken without a map are those of the map; on a GPU where there is one, else in Triton's interpreter."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # has to be there before Triton is imported
pytest.importorskip("triton", reason="Triton is not installed: it comes with torch for CUDA")

from bertology.encoder.attend import LayerActivations
from bertology.encoder.pieces import Special
from bertology.recording import fused
from bertology.recording.catch import Catch
from bertology.recording.frame import Frame
from bertology.recording.fused import FusedRows
from bertology.recording.pairs import Pairs, pair_sums
from bertology.recording.recorder import resolve
from bertology.recording.rows import rows_of
from bertology.recording.word_level import strongest_words, words_of
from recording.test_word_level import entry

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
KIND = torch.float16 if torch.cuda.is_available() else torch.float32
HALF = 2e-3
"""Sums over what is known of targets are of weights in half precision."""


def _frame(*lengths: int) -> Frame:
    """Inputs longer than a block, with words of one or two pieces and one word that has none."""
    entries: list[Any] = []
    for length in lengths or (150, 97):
        words = [place * 7 // 11 + (place > 40) for place in range(length - 2)]
        kinds = [Special.CLS, *[Special.NONE] * (length - 2), Special.SEP]
        entries.append(entry([-1, *words, -1], kinds, max(words) + 1))
    return Frame(entries, DEVICE)


def _layers(frame: Frame, *, masked: bool) -> tuple[LayerActivations, LayerActivations]:
    """The same layer without and with maps."""
    generator = torch.Generator().manual_seed(3)
    shape = (len(frame.entries), frame.width, 3, 32)
    query, key = (torch.randn(shape, generator=generator).to(DEVICE, KIND).transpose(1, 2) for _ in range(2))
    mask = torch.zeros(shape[0], 1, frame.width, frame.width, dtype=KIND, device=DEVICE)
    mask.masked_fill_(~frame.real[:, None, None], torch.finfo(KIND).min)
    given: dict[str, Any] = {"mask": mask if masked else None, "scaling": 0.3}
    exact = torch.softmax(
        (query.double() @ key.double().transpose(-1, -2)) * 0.3 + (mask.double() if masked else 0), -1
    )
    return LayerActivations(0, None, query, key, **given), LayerActivations(0, exact.float(), query, key, **given)


@pytest.mark.parametrize("masked", [False, True])
def test_rows(masked: bool) -> None:
    frame = _frame() if masked else _frame(150)
    without, with_maps = _layers(frame, masked=masked)
    found, expected = rows_of(without, frame), rows_of(with_maps, frame)
    assert isinstance(found, FusedRows)
    assert without.maps is None
    for name in ("peak", "ordinary_peak", "information", "ordinary_information"):
        torch.testing.assert_close(getattr(found, name), getattr(expected, name), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found.ordinary, expected.ordinary, rtol=HALF, atol=HALF)
    torch.testing.assert_close(found.to_kinds / frame.width, expected.to_kinds / frame.width, rtol=HALF, atol=HALF)


def test_distances() -> None:
    from bertology.analyses.attention.distance import DISTANCE

    frame = _frame()
    without, with_maps = _layers(frame, masked=True)
    assert DISTANCE.prepare is not None
    found, expected = (DISTANCE.reduce(layer, frame, DISTANCE.prepare(frame)) for layer in (without, with_maps))
    torch.testing.assert_close(found / frame.width, expected / frame.width, rtol=2e-3, atol=2e-2)


def test_sums_over_pairs() -> None:
    frame = _frame()
    without, with_maps = _layers(frame, masked=True)
    generator = torch.Generator().manual_seed(4)
    size = (len(frame.entries), frame.width, frame.width)
    chosen = (torch.rand(5, *size, generator=generator) < 0.01).to(DEVICE)
    chosen[:, :, 70:] = False  # some pieces of the map have no pair at all
    column, row, source, target = torch.nonzero(chosen).T
    weights = torch.rand(2, *size, generator=generator).transpose(0, 1).half().float().to(DEVICE)
    scale = torch.rand(2, 5, generator=generator).to(DEVICE)
    for dense in (None, weights):
        pairs = Pairs(torch.stack([row, source, target, column]), scale, frame.width, dense)
        found, expected = (pair_sums(layer, frame, pairs) for layer in (without, with_maps))
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


def test_strongest_words() -> None:
    frame = _frame()
    without, with_maps = _layers(frame, masked=True)
    words = words_of(frame)
    absent = ~words.there
    itself = torch.eye(words.count, dtype=torch.bool, device=DEVICE)
    barred = (itself | absent[:, :, None] | absent[:, None, :])[:, None]
    assert bool(absent[0].any())
    found, expected = (strongest_words(layer, frame, words, barred, "mean") for layer in (without, with_maps))
    for own, other in zip(found, expected, strict=True):
        there = other >= 0
        assert bool(((own >= 0) == there).all())
        assert float((own == other).float().mean()) > 0.99  # in half precision two words may be alike


def test_layers_taken_together_are_each_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    from bertology.analyses.attention.confidence import CONFIDENCE
    from bertology.analyses.attention.entropy import ENTROPY
    from bertology.encoder.encoder import Output

    frame = _frame(150)
    layers = [_layers(frame, masked=number > 2)[0] for number in range(5)]
    for number, layer in enumerate(layers):
        layer.layer = number
        assert layer.query is not None
        layer.query = layer.query * (1 + number / 4)

    def taken() -> dict[str, list[np.ndarray[Any, Any]]]:
        catch = Catch(frame, resolve([ENTROPY, CONFIDENCE]), len(layers), half=False)
        for layer in layers:
            catch.see(LayerActivations(layer.layer, None, layer.query, layer.key, mask=layer.mask, scaling=0.3))
        return catch.finished(Output((), {}))

    together = taken()
    monkeypatch.setattr(fused, "_kernels", lambda: False)
    for identity, arrays in taken().items():
        for own, other in zip(together[identity], arrays, strict=True):
            np.testing.assert_allclose(own, other, rtol=5e-3, atol=5e-3)


def test_what_kernels_cannot_take_goes_through_maps() -> None:
    from bertology.recording.kernel_calls import asked_of

    def of(size: int, length: int = 8) -> Tensor:
        return torch.zeros(1, 2, length, size, device=DEVICE, dtype=KIND)

    assert asked_of(of(64), of(64), None, 1.0) is not None
    assert asked_of(of(24), of(24), None, 1.0) is None
    assert asked_of(of(16, 3000), of(16, 3000), None, 1.0) is None
    assert asked_of(of(64), of(64), torch.zeros(1, 2, 8, 8, device=DEVICE), 1.0) is None
