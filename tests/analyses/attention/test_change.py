"""Planted change: heads that stay, turn round, look elsewhere; parity with scipy; padding and special tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cosine, jensenshannon

import planted
from bertology.analyses.attention.change import CHANGE, MEASURES, SHAPE, change, compare
from bertology.analyses.run import Subject, run
from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import Corpus, Input
from bertology.encoder.attend import LayerActivations
from bertology.encoder.encoder import Batch, Output
from bertology.encoder.load import load
from bertology.encoder.pieces import Pieces, Special
from bertology.errors import Refusal
from bertology.recording.frame import Frame
from bertology.results.result import Result
from bertology.results.shapes import HeadGrid, LayerCurve, Table

TEXTS = [" ".join(f"w{(start + step) % 30}" for step in range(9 + start % 4)) for start in range(12)]
CORPUS = planted.corpus_of(*TEXTS)
Layers = Sequence[Sequence[planted.HeadMap]]


class Planted:
    """An encoder that attends as it is told and can do nothing else."""

    name, width, causal, mask_id, device, max_pieces = "other", 8, False, None, "cpu", 512
    reach: tuple[int | None, ...] = ()
    outputs: frozenset[str] = frozenset()

    def __init__(self, corpus: Corpus, layers: Layers) -> None:
        self.fingerprint = "f" * 32
        self.layers, self.heads = len(layers), len(layers[0])
        self._maps = layers
        self._entries = {tuple(entry.pieces.ids.tolist()): entry for entry in planted.entries_of(corpus)}

    def tokenise(self, inputs: Sequence[Input]) -> list[Pieces]:
        known = {entry.input.words: entry.pieces for entry in self._entries.values()}
        return [known[shown.words] for shown in inputs]

    def run(
        self,
        batch: Batch,
        *,
        on_layer: Callable[[LayerActivations], None] | None = None,
        hidden: bool = False,
        objective: Any = None,
    ) -> Output:
        entries = [
            self._entries[tuple(row[mask > 0].tolist())] for row, mask in zip(batch.ids, batch.mask, strict=True)
        ]
        for number, heads in enumerate(self._maps):
            maps = torch.zeros(len(entries), len(heads), *([batch.ids.shape[1]] * 2))
            for row, entry in enumerate(entries):
                size = len(entry.pieces)
                for place, head in enumerate(heads):
                    maps[row, place, :size, :size] = torch.from_numpy(head(entry))
            if on_layer:
                on_layer(LayerActivations(number, maps))
        return Output((), {})


BEFORE: Layers = [[planted.looking_at(-1), planted.at_kind(Special.SEP), planted.noise(1)]]
AFTER: Layers = [[planted.looking_at(-1), planted.looking_at(1), planted.noise(2)]]


def compared(after: Layers = AFTER, **options: object) -> Result:
    recording = planted.recording_of(CORPUS, BEFORE)
    return run(change, Subject(CORPUS, recording=recording, against=Planted(CORPUS, after)), options)


def test_a_head_that_stays_is_told_from_one_that_turns() -> None:
    grid = compared().data
    assert isinstance(grid, HeadGrid)
    for name in MEASURES[:2]:
        assert grid.measures[name].value[0, 0] == pytest.approx(1, abs=1e-6)
    assert grid.measures["divergence"].value[0, 0] == pytest.approx(0, abs=1e-6)
    assert grid.measures["cosine"].value[0, 1] < 0.3
    assert grid.measures["divergence"].value[0, 1] > 0.5
    np.testing.assert_array_equal(grid.measures[SHAPE].value[0, :2], [0, 1])
    assert (grid.measures["divergence"].value <= np.log(2) + 1e-6).all()


def test_a_head_that_looked_at_separators_only_has_nothing_left_between_ordinary_pieces() -> None:
    grid = compared().data
    assert isinstance(grid, HeadGrid)
    assert grid.measures["divergence, ordinary"].n[0, 1] == 0
    assert np.isnan(grid.measures["divergence, ordinary"].value[0, 1])
    assert grid.measures["divergence, ordinary"].n[0, 2] == len(TEXTS)


@pytest.mark.parametrize("ordinary", [False, True])
def test_parity_with_scipy_on_cropped_maps(ordinary: bool) -> None:
    entries = planted.entries_of(CORPUS)
    heads = planted.noise(1), planted.noise(2)
    expected: list[tuple[float, float]] = []
    for entry in entries:
        kept = np.flatnonzero(entry.pieces.special == Special.NONE) if ordinary else np.arange(len(entry.pieces))
        one, other = (head(entry)[np.ix_(kept, kept)] for head in heads)
        one, other = one / one.sum(1, keepdims=True), other / other.sum(1, keepdims=True)
        divergence = np.mean([jensenshannon(a, b) ** 2 for a, b in zip(one, other, strict=True)])
        expected.append((1 - cosine(one.ravel(), other.ravel()), float(divergence)))
    grid = compared().data
    assert isinstance(grid, HeadGrid)
    names = MEASURES[int(ordinary)], MEASURES[2 + int(ordinary)]
    found = [grid.measures[name].value[0, 2] for name in names]
    np.testing.assert_allclose(found, np.mean(expected, 0), atol=1e-5)


def test_what_padding_attends_to_counts_for_nothing() -> None:
    entries = planted.entries_of(planted.corpus_of("a b c", "a b c d e f"))
    frame = Frame(entries)
    generator = torch.Generator().manual_seed(0)
    own, other = (torch.rand(2, 3, frame.width, frame.width, generator=generator) for _ in range(2))
    short = slice(len(entries[0].pieces))
    padded = compare(own, other, frame)[:1]
    own[0, :, short.stop :] = 7.0
    own[0, :, :, short.stop :] = 7.0
    torch.testing.assert_close(compare(own, other, frame)[:1], padded)
    alone = compare(own[:1, :, short, short], other[:1, :, short, short], Frame(entries[:1]))
    torch.testing.assert_close(alone, padded)


def test_another_head_is_the_one_before_it() -> None:
    after: Layers = [[planted.at_kind(Special.SEP), planted.noise(1), planted.looking_at(-1)]]
    grid = compared(after).data
    assert isinstance(grid, HeadGrid)
    # Every head of before is found one place to the left in after, the first one at the end.
    np.testing.assert_allclose(grid.baselines["another head"]["cosine"].value, 1, atol=1e-6)
    np.testing.assert_allclose(grid.baselines["another head"]["divergence"].value, 0, atol=1e-6)
    assert (grid.measures["cosine"].value < 0.9).all()


def test_shapes_that_differ_by_chance_by_hand() -> None:
    """A head that is vertical in a third of the inputs before and in two thirds after, diagonal in the others."""

    def turning(rest: int) -> planted.HeadMap:
        def head(entry: planted.Entry) -> planted.Floats:
            vertical = TEXTS.index(" ".join(entry.input.words)) % 3 >= rest
            return (planted.at_kind(Special.SEP) if vertical else planted.looking_at(-1))(entry)

        return head

    recording = planted.recording_of(CORPUS, [[turning(2)]])
    grid = run(change, Subject(CORPUS, recording=recording, against=Planted(CORPUS, [[turning(1)]]))).data
    assert isinstance(grid, HeadGrid)
    assert grid.measures[SHAPE].value[0, 0] == pytest.approx(1 / 3)
    assert grid.baselines["by chance"][SHAPE].value[0, 0] == pytest.approx(1 - 2 * (1 / 3 * 2 / 3))


def test_layers_and_the_table_of_shapes() -> None:
    curve, table = compared(show="layers").data, compared(show="shapes").data
    assert isinstance(curve, LayerCurve) and isinstance(table, Table)
    assert curve.measures["cosine"].shape == (1,) and curve.first == 1
    assert table.rows_named[0] == "1-2"
    assert "vertical in planted" in table.notes["1-2"] and "diagonal in other" in table.notes["1-2"]
    same = compared(BEFORE, show="shapes").data
    assert isinstance(same, Table) and "no head changed" in next(iter(same.notes.values()))


def test_functions_that_are_gained_and_lost() -> None:
    corpus = corpus_named("english", limit=60)
    steady = planted.looking_at(-1)
    before, after = [[steady, planted.looking_at(1)]], [[steady, planted.noise(3)]]
    recording = planted.recording_of(corpus, before)
    subject = Subject(corpus, recording=recording, against=Planted(corpus, after))
    table = run(change, subject, {"show": "functions"}).data
    assert isinstance(table, Table)
    rows = dict(zip(table.rows_named, table.measures["change"].value, strict=True))
    assert table.notes == {"1-2 next word": "lost"}
    assert rows["1-2 next word"] < -0.5 and rows["1-1 previous word"] == 0
    with pytest.raises(Refusal, match="relations"):
        compared(show="functions")


def test_a_model_against_itself_and_random_weights_beside_it() -> None:
    corpus = corpus_named("english", limit=6)
    grid = run(change, Subject(corpus, load("tiny"), against=load("tiny"))).data
    assert isinstance(grid, HeadGrid)
    np.testing.assert_allclose(grid.measures["cosine"].value, 1, atol=1e-5)
    np.testing.assert_allclose(grid.measures["divergence"].value, 0, atol=1e-6)
    assert (grid.measures[SHAPE].value == 0).all()
    assert (grid.baselines["random weights"]["cosine"].value < 1 - 5e-5).all()  # untrained: all is even


def test_models_that_do_not_fit_are_refused() -> None:
    with pytest.raises(Refusal, match="as many layers"):
        compared([AFTER[0][:2]])
    other = Planted(CORPUS, AFTER)
    changed = {entry.input.words: Pieces(**_other_ids(entry.pieces)) for entry in planted.entries_of(CORPUS)}
    other.tokenise = lambda inputs: [changed[shown.words] for shown in inputs]
    with pytest.raises(Refusal, match="vocabulary"):
        run(change, Subject(CORPUS, recording=planted.recording_of(CORPUS, BEFORE), against=other))


def _other_ids(pieces: Pieces) -> dict[str, Any]:
    kept = {name: getattr(pieces, name) for name in ("tokens", "types", "part", "word", "special", "words")}
    return kept | {"ids": pieces.ids + 500}


def test_the_site_is_filed_under_the_other_model() -> None:
    site = CHANGE.beside(Planted(CORPUS, AFTER))
    assert "f" * 16 in site.identity and CHANGE.name in site.identity
