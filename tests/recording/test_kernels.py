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
from bertology.recording.fused import FusedLayers, FusedRows
from bertology.recording.pairs import Pairs, pair_sums
from bertology.recording.recorder import resolve
from bertology.recording.rows import rows_of
from bertology.recording.wanted import Wanted
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


def _layers(frame: Frame, *, masked: bool, window: int | None = None) -> tuple[LayerActivations, LayerActivations]:
    """The same layer without and with maps; with a window no piece sees what is farther away."""
    generator = torch.Generator().manual_seed(3)
    shape = (len(frame.entries), frame.width, 3, 32)
    query, key = (torch.randn(shape, generator=generator).to(DEVICE, KIND).transpose(1, 2) for _ in range(2))
    mask = torch.zeros(shape[0], 1, frame.width, frame.width, dtype=KIND, device=DEVICE)
    mask.masked_fill_(~frame.real[:, None, None], torch.finfo(KIND).min)
    if window is not None:
        places = torch.arange(frame.width, device=DEVICE)
        mask.masked_fill_((places[:, None] - places).abs() > window, torch.finfo(KIND).min)
    given: dict[str, Any] = {"mask": mask if masked else None, "scaling": 0.3}
    exact = torch.softmax(
        (query.double() @ key.double().transpose(-1, -2)) * 0.3 + (mask.double() if masked else 0), -1
    )
    return LayerActivations(0, None, query, key, **given), LayerActivations(0, exact.float(), query, key, **given)


def _taken(layer: LayerActivations, frame: Frame, *wanted: Wanted) -> LayerActivations:
    layers = FusedLayers(frame, wanted or [Wanted()])
    layers.see(layer)
    assert layer.maps is None
    return layers.finished()


@pytest.mark.parametrize("hidden", ["nothing", "padding", "what is far"])
@pytest.mark.parametrize("length", [150, 128])
def test_rows(hidden: str, length: int) -> None:
    frame = _frame(length, 97) if hidden == "padding" else _frame(length)
    without, with_maps = _layers(frame, masked=hidden != "nothing", window=20 if hidden == "what is far" else None)
    found, expected = rows_of(_taken(without, frame), frame), rows_of(with_maps, frame)
    assert isinstance(found, FusedRows)
    real = frame.real[:, None]
    for name in ("peak", "ordinary_peak", "information", "ordinary_information", "ordinary"):
        own, other = getattr(found, name) * real, getattr(expected, name) * real
        torch.testing.assert_close(own, other, rtol=1e-4, atol=1e-4)
    for own, other in zip(found.near, expected.near, strict=True):
        torch.testing.assert_close(own * real, other * real, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found.to_kinds / frame.width, expected.to_kinds / frame.width, rtol=HALF, atol=HALF)


def test_many_special_pieces() -> None:
    kinds = [Special.CLS, *[Special.NONE, Special.SEP] * 20]
    frame = Frame([entry([-1, *[word for place in range(20) for word in (place, -1)]], kinds, 20)], DEVICE)
    without, with_maps = _layers(frame, masked=False)
    found, expected = rows_of(_taken(without, frame), frame), rows_of(with_maps, frame)
    for name in ("ordinary_peak", "ordinary_information", "ordinary"):
        torch.testing.assert_close(getattr(found, name), getattr(expected, name), rtol=1e-4, atol=1e-4)


def test_distances() -> None:
    from bertology.analyses.attention.distance import DISTANCE

    frame = _frame()
    without, with_maps = _layers(frame, masked=True)
    assert DISTANCE.prepare is not None
    prepared = DISTANCE.prepare(frame)
    found, expected = (DISTANCE.reduce(layer, frame, prepared) for layer in (_taken(without, frame), with_maps))
    torch.testing.assert_close(found / frame.width, expected / frame.width, rtol=2e-3, atol=2e-2)


@pytest.mark.parametrize("listed", [5, 20])
@pytest.mark.parametrize("weighed", [0, 1, 3])
def test_sums_over_pairs(listed: int, weighed: int) -> None:
    frame = _frame()
    without, with_maps = _layers(frame, masked=True)
    generator = torch.Generator().manual_seed(4)
    size = (len(frame.entries), frame.width, frame.width)
    chosen = (torch.rand(listed, *size, generator=generator) < 0.01).to(DEVICE)
    chosen[:, :, 70:] = False  # some pieces of the map have no pair at all
    column, row, source, target = torch.nonzero(chosen).T
    weights = torch.rand(max(1, weighed), *size, generator=generator).transpose(0, 1).half().float().to(DEVICE)
    weights *= frame.real[:, None, :, None]  # padding counts for nothing
    places = torch.stack([row, source, target, column])
    scale = torch.rand(2, listed + weighed, generator=generator).to(DEVICE)
    one = Pairs(places, scale, frame.width, weights if weighed else None)
    other = Pairs(places[:, column < 2], scale[:, :2], frame.width)
    taken = _taken(without, frame, Wanted(other), Wanted(one))
    for pairs in (one, other):
        torch.testing.assert_close(pair_sums(taken, pairs), pair_sums(with_maps, pairs), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("window", [None, 40])
def test_strongest_words(window: int | None) -> None:
    frame = _frame()
    without, with_maps = _layers(frame, masked=True, window=window)
    words = words_of(frame)
    absent = ~words.there
    itself = torch.eye(words.count, dtype=torch.bool, device=DEVICE)
    barred = (itself | absent[:, :, None] | absent[:, None, :])[:, None]
    assert bool(absent[0].any())
    taken = _taken(without, frame, Wanted(words=words))
    found, expected = (strongest_words(layer, words, barred, "mean") for layer in (taken, with_maps))
    for own, other in zip(found, expected, strict=True):
        there = other >= 0
        assert bool(((own >= 0) == there).all())
        assert float((own == other).float().mean()) > 0.99  # in half precision two words may be alike


def test_of_words_that_get_alike_the_first_counts() -> None:
    """Also where they stand in different blocks: queries of nothing attend to all pieces alike."""
    frame = _frame(150)
    words = words_of(frame)
    without, _ = _layers(frame, masked=False)
    assert without.query is not None
    without.query = torch.zeros_like(without.query)
    taken = _taken(without, frame, Wanted(words=words))
    sizes = words.size[0, : words.count].cpu().numpy()
    found = strongest_words(taken, words, torch.ones(1, 1, 1, 1, dtype=torch.bool), "mean")[0].cpu().numpy()
    for word in np.flatnonzero(sizes):
        targets = np.where(np.arange(words.count) == word, 0, sizes)  # a word gets as much as it has pieces
        assert (found[:, 0, word] == targets.argmax()).all()
        sources = (np.arange(words.count) != word) & (sizes > 0)
        assert (found[:, 1, word] == sources.argmax()).all()


def test_a_word_alone_has_no_other() -> None:
    frame = Frame([entry([-1, 0, 0, -1], [Special.CLS, Special.NONE, Special.NONE, Special.SEP], 1)], DEVICE)
    words = words_of(frame)
    taken = _taken(_layers(frame, masked=False)[0], frame, Wanted(words=words))
    for found in strongest_words(taken, words, torch.ones(1, 1, 1, 1, dtype=torch.bool), "mean"):
        assert (found == -1).all()


@pytest.mark.parametrize("with_maps", [None, 0, 2])
def test_layers_taken_together_are_each_its_own(monkeypatch: pytest.MonkeyPatch, with_maps: int | None) -> None:
    """Also where one of them has maps, at the beginning or in the middle."""
    from bertology.analyses.attention.confidence import CONFIDENCE
    from bertology.analyses.attention.entropy import ENTROPY
    from bertology.encoder.encoder import Output

    frame = _frame(150)
    layers = [_layers(frame, masked=number > 2)[0] for number in range(6)]
    for number, layer in enumerate(layers):
        layer.layer = number
        assert layer.query is not None
        layer.query = layer.query * (1 + number / 4)

    def taken() -> dict[str, list[np.ndarray[Any, Any]]]:
        catch = Catch(frame, resolve([ENTROPY, CONFIDENCE]), len(layers), half=False)
        for layer in layers:
            shown = LayerActivations(layer.layer, None, layer.query, layer.key, mask=layer.mask, scaling=0.3)
            if layer.layer == with_maps:
                assert shown.attention is shown.maps
            catch.see(shown)
        return catch.finished(Output((), {}))

    together = taken()
    monkeypatch.setattr(fused, "_kernels", lambda: False)
    for identity, arrays in taken().items():
        for own, other in zip(together[identity], arrays, strict=True):
            np.testing.assert_allclose(own, other, rtol=5e-3, atol=5e-3)


def test_what_kernels_cannot_take_goes_through_maps() -> None:
    from bertology.recording.kernel_calls import can_take

    def of(size: int, length: int = 8) -> Tensor:
        return torch.zeros(1, 2, length, size, device=DEVICE, dtype=KIND)

    assert can_take(of(64), of(64), None)
    assert not can_take(of(24), of(24), None)
    assert not can_take(of(16, 3000), of(16, 3000), None)
    assert not can_take(of(64), of(64), torch.zeros(1, 2, 8, 8, device=DEVICE))
