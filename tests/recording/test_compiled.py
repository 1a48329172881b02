"""What numba compiles for large maps is what is worked out a step at a time."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

pytest.importorskip("numba", reason="the extra `fast` is not installed")

from bertology.encoder.attend import LayerActivations
from bertology.encoder.load import load
from bertology.recording import compiled
from bertology.recording.compiled import worth_compiling
from bertology.recording.frame import Frame
from bertology.recording.plan import make_plan
from bertology.recording.policy import Policy
from bertology.recording.rows import rows_of
from bertology.recording.word_level import to_words, words_of
from recording.test_record import CORPUS
from recording.test_rows import assert_rows
from recording.test_word_level import ENTRIES, maps_of


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "WORTH", 1)


@pytest.mark.usefixtures("always")
def test_rows() -> None:
    maps = maps_of(ENTRIES)
    assert worth_compiling(maps)
    assert_rows(LayerActivations(0, maps), Frame(ENTRIES))


@pytest.mark.usefixtures("always")
def test_rows_of_a_pass_with_padding() -> None:
    encoder = load("tiny")
    frame = Frame(make_plan(encoder, CORPUS, Policy()).entries[:6])
    assert not bool(frame.real.all())
    with torch.inference_mode():
        encoder.run(frame.batch, on_layer=lambda layer: assert_rows(layer, frame))


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("threads", [2, 3, 8])
def test_threads_share_the_heads(threads: int) -> None:
    maps, frame, before = maps_of(ENTRIES).repeat(1, 3, 1, 1), Frame(ENTRIES), torch.get_num_threads()
    alone, words = rows_of(LayerActivations(0, maps), frame), to_words(maps, words_of(frame))
    expected = [alone.ordinary, alone.peak, alone.information, alone.to_kinds, alone.distances]
    try:
        torch.set_num_threads(threads)
        rows = rows_of(LayerActivations(0, maps), frame)
        found = [rows.ordinary, rows.peak, rows.information, rows.to_kinds, rows.distances]
        shared = to_words(maps, words_of(frame))
    finally:
        torch.set_num_threads(before)
    for one, other in zip([*found, shared], [*expected, words], strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-7)


@pytest.mark.usefixtures("always")
def test_weights_from_all_to_nothing() -> None:
    scores = 40 * torch.randn(1, 3, 6, 6, generator=torch.Generator().manual_seed(0))
    maps = torch.softmax(scores, -1)
    maps[0, 0] = torch.eye(6)
    assert bool((maps == 0).any()) and bool((maps == 1).any())
    assert_rows(LayerActivations(0, maps), Frame(ENTRIES[:1]))


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_what_is_not_a_number_stays_so(sign: float) -> None:
    maps, frame = maps_of(ENTRIES[:1]), Frame(ENTRIES[:1])
    maps[0, 0, 2] = torch.copysign(torch.tensor(torch.nan), torch.tensor(sign))
    rows = rows_of(LayerActivations(0, maps), frame)
    for found in (rows.ordinary, rows.peak, rows.ordinary_peak, rows.information, rows.ordinary_information):
        assert torch.isnan(found[0, 0]).tolist() == [place == 2 for place in range(maps.shape[-1])]
        assert not torch.isnan(found[0, 1]).any()
    assert torch.isnan(rows.distances[0, 0]).all() and not torch.isnan(rows.distances[0, 1]).any()


@pytest.mark.parametrize("special", [False, True])
def test_maps_between_words(special: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    maps, words = maps_of(ENTRIES), words_of(Frame(ENTRIES))
    assert int(words.size[:, : words.count].max()) > 1, "a word of several pieces"
    assert not bool(words.there.all()), "a word without pieces"
    monkeypatch.setattr(compiled, "WORTH", sys.maxsize)
    expected = to_words(maps, words, special=special)
    monkeypatch.setattr(compiled, "WORTH", 1)
    torch.testing.assert_close(to_words(maps, words, special=special), expected, rtol=1e-6, atol=1e-7)


def test_logarithms() -> None:
    from bertology.recording import loops

    weights = np.exp(np.random.default_rng(0).uniform(-87, 0, (1, 4000, 1))).astype(np.float32)
    weights[0, 0], weights[0, 1] = 1.0, np.nextafter(np.float32(1), np.float32(0))
    found = np.empty((2, 1, 4000), np.float32)
    loops.information(weights, np.ones((1, 1), np.float32), found, (0, 1))
    exact = -weights.astype(np.float64) * np.log2(weights.astype(np.float64))
    np.testing.assert_allclose(found[0, 0], exact[0, :, 0], rtol=3e-7)


@pytest.mark.usefixtures("always")
def test_small_double_or_graded_maps_are_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    maps = maps_of(ENTRIES)
    assert not worth_compiling(maps.double())
    assert not worth_compiling(maps.clone().requires_grad_())
    monkeypatch.setattr(compiled, "WORTH", maps.numel() + 1)
    assert not worth_compiling(maps)


@pytest.mark.usefixtures("always")
def test_without_numba_nothingworth_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bertology.recording.loops", None)
    compiled._loops.cache_clear()  # pyright: ignore[reportPrivateUsage]
    try:
        assert not worth_compiling(maps_of(ENTRIES))
    finally:
        compiled._loops.cache_clear()  # pyright: ignore[reportPrivateUsage]
