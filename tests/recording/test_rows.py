"""What is taken along rows and over pairs, by slices and logarithms, is what its definition says."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from bertology.encoder.attend import LayerActivations
from bertology.encoder.load import load
from bertology.recording import rows
from bertology.recording.frame import Frame
from bertology.recording.pairs import Pairs, pair_sums
from bertology.recording.plan import make_plan
from bertology.recording.policy import Policy
from bertology.recording.rows import rows_of
from recording.test_record import CORPUS
from recording.test_word_level import ENTRIES, maps_of


def _expected(maps: Tensor, frame: Frame) -> dict[str, Tensor]:
    ordinary = frame.ordinary[:, None, None].float()
    entropies = torch.special.entr(maps)
    return {
        "ordinary": (maps * ordinary).sum(-1),
        "peak": maps.amax(-1),
        "ordinary_peak": (maps * ordinary).amax(-1),
        "information": entropies.sum(-1),
        "ordinary_information": (entropies * ordinary).sum(-1),
        "to_kinds": torch.einsum("bhij,bis,bjk->bhsk", maps, _sources(frame), frame.kinds.float()),
        "distances": _distances(maps, frame),
    }


def _distances(maps: Tensor, frame: Frame) -> Tensor:
    """(batch, head, 4), a pair at a time."""
    found = torch.zeros(*maps.shape[:2], 4)
    for row, entry in enumerate(frame.entries):
        place, share = frame.word_place[row].tolist(), frame.word_share[row].tolist()
        for i, j in itertools.product(range(len(entry.pieces)), repeat=2):
            inside = bool(frame.ordinary[row, i] & frame.ordinary[row, j])
            steps = [abs(i - j), abs(i - j) * inside]
            steps += [own * share[i] for own in (abs(place[i] - place[j]), abs(place[i] - place[j]) * inside)]
            found[row] += maps[row, :, i, j, None] * torch.tensor(steps)
    return found


def _sources(frame: Frame) -> Tensor:
    """(batch, piece, source): real pieces, ordinary ones, separators."""
    return torch.stack([frame.real, frame.ordinary, frame.kinds[..., 1]], -1).float()


def _near(maps: Tensor, offset: int) -> Tensor:
    """(batch, head, from): what each piece gives to the one that far away."""
    size = maps.shape[-1]
    found = torch.zeros(maps.shape[:3])
    for place in range(max(0, -offset), size - max(0, offset)):
        found[:, :, place] = maps[:, :, place, place + offset]
    return found


def assert_rows(layer: LayerActivations, frame: Frame) -> None:
    along = rows_of(layer, frame)
    real = frame.real[:, None].float()
    for name, expected in _expected(layer.attention, frame).items():
        found: Tensor = getattr(along, name)
        if name not in {"to_kinds", "distances"}:
            found, expected = found * real, expected * real
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=2e-6, msg=lambda told, name=name: f"{name}: {told}")
    for found, offset in zip(along.near, (0, -1, 1), strict=True):
        torch.testing.assert_close(found, _near(layer.attention, offset))


def test_rows_of_recorded_maps() -> None:
    assert_rows(LayerActivations(0, maps_of(ENTRIES)), Frame(ENTRIES))


@pytest.mark.parametrize("inputs", [1, 6], ids=["alone", "padded"])
def test_rows_of_a_pass(inputs: int) -> None:
    encoder = load("tiny")
    frame = Frame(make_plan(encoder, CORPUS, Policy()).entries[:inputs])
    seen: list[int] = []

    def look(layer: LayerActivations) -> None:
        assert_rows(layer, frame)
        seen.append(layer.layer)

    with torch.inference_mode():
        encoder.run(frame.batch, on_layer=look)
    assert seen == list(range(encoder.layers))


def test_rows_are_the_same_however_many_heads_are_taken_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "CELLS_AT_ONCE", 1)
    assert_rows(LayerActivations(0, maps_of(ENTRIES)), Frame(ENTRIES))


def test_weights_of_nothing_do_no_harm() -> None:
    scores = torch.randn(1, 2, 6, 6, generator=torch.Generator().manual_seed(0))
    scores[..., 3] = -torch.inf
    frame = Frame(ENTRIES[:1])
    assert frame.width == 6
    assert_rows(LayerActivations(0, torch.softmax(scores, -1)), frame)


def test_rows_are_worked_out_once() -> None:
    layer, frame = LayerActivations(0, maps_of(ENTRIES)), Frame(ENTRIES)
    assert rows_of(layer, frame) is rows_of(layer, frame)


def test_maps_are_made_when_somebody_looks() -> None:
    generator = torch.Generator().manual_seed(1)
    query, key = (torch.randn(2, 3, 5, 8, generator=generator) for _ in range(2))
    mask = torch.zeros(2, 1, 5, 5)
    mask[1, ..., 4] = torch.finfo(torch.float32).min
    layer = LayerActivations(0, None, query, key, mask=mask, scaling=0.5)
    assert layer.heads == 3
    assert layer.maps is None
    torch.testing.assert_close(layer.attention, torch.softmax(query @ key.transpose(-1, -2) * 0.5 + mask, -1))
    assert layer.maps is layer.attention


def test_sums_over_pairs() -> None:
    frame, maps = Frame(ENTRIES), maps_of(ENTRIES)
    generator = torch.Generator().manual_seed(2)
    chosen = torch.rand(3, *maps.shape[:1], *maps.shape[2:], generator=generator) < 0.2
    sum_of, row, source, target = torch.nonzero(chosen).T
    scale = torch.rand(len(maps), 5, generator=generator)
    weights = torch.rand(len(maps), 2, *maps.shape[2:], generator=generator)
    pairs = Pairs(torch.stack([row, source, target, sum_of]), scale, frame.width, weights)
    found = pair_sums(LayerActivations(0, maps), pairs)
    listed = torch.einsum("bhij,sbij->bhs", maps, chosen.float())
    weighed = torch.einsum("bhij,bsij->bhs", maps, weights)
    torch.testing.assert_close(found, torch.cat([listed, weighed], -1) * scale[:, None])
