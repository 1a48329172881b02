"""Planted heads that stay or change are measured as such; parity with scipy; padding and special tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cosine, jensenshannon

import planted
from bertology.analyses.attention.model_similarity.analysis import (
    CLASS_CHANGE,
    MEASURES,
    compare_attention,
    model_similarity,
    model_similarity_site,
)
from bertology.analyses.run import RunInputs, run_analysis
from bertology.corpus.corpus import Corpus, TextInput
from bertology.corpus.read import load_corpus
from bertology.encoder.attention_hook import LayerActivations
from bertology.encoder.encoder import ModelInputs, ModelOutput
from bertology.encoder.load import load
from bertology.encoder.token_batch import TokenBatch
from bertology.encoder.tokens import SpecialToken, TokenisedInput
from bertology.errors import Refusal
from bertology.results.result import Result
from bertology.results.shapes import HeadGrid, LayerCurve, Table

TEXTS = [" ".join(f"w{(start + step) % 30}" for step in range(9 + start % 4)) for start in range(12)]
CORPUS = planted.make_corpus(*TEXTS)
Layers = Sequence[Sequence[planted.HeadAttention]]


class Planted:
    """An encoder with planted attention and nothing else."""

    name, width, causal, mask_token_id, device, max_length = "other", 8, False, None, "cpu", 512
    attention_windows: tuple[int | None, ...] = ()
    task_heads: frozenset[str] = frozenset()

    def __init__(self, corpus: Corpus, layers: Layers) -> None:
        self.fingerprint = "f" * 32
        self.layers, self.heads = len(layers), len(layers[0])
        self._maps = layers
        self._entries = {
            tuple(recorded_input.tokens.ids.tolist()): recorded_input
            for recorded_input in planted.recorded_inputs(corpus)
        }

    def tokenise(self, inputs: Sequence[TextInput]) -> list[TokenisedInput]:
        known = {recorded_input.text.words: recorded_input.tokens for recorded_input in self._entries.values()}
        return [known[shown.words] for shown in inputs]

    def forward(
        self,
        batch: ModelInputs,
        *,
        on_layer: Callable[[LayerActivations], None] | None = None,
        hidden: bool = False,
        objective: Any = None,
    ) -> ModelOutput:
        recorded_inputs = [
            self._entries[tuple(row[mask > 0].tolist())]
            for row, mask in zip(batch.input_ids, batch.attention_mask, strict=True)
        ]
        for number, heads in enumerate(self._maps):
            maps = torch.zeros(len(recorded_inputs), len(heads), *([batch.input_ids.shape[1]] * 2))
            for row, recorded_input in enumerate(recorded_inputs):
                size = len(recorded_input.tokens)
                for place, head in enumerate(heads):
                    maps[row, place, :size, :size] = torch.from_numpy(head(recorded_input))
            if on_layer:
                on_layer(LayerActivations(number, maps))
        return ModelOutput((), {})


BEFORE: Layers = [[planted.offset_head(-1), planted.special_head(SpecialToken.SEP), planted.random_head(1)]]
AFTER: Layers = [[planted.offset_head(-1), planted.offset_head(1), planted.random_head(2)]]


def compared(after: Layers = AFTER, **options: object) -> Result:
    recording = planted.make_recording(CORPUS, BEFORE)
    return run_analysis(
        model_similarity, RunInputs(CORPUS, recording=recording, against=Planted(CORPUS, after)), options
    )


def test_unchanged_heads_differ_from_changed_heads() -> None:
    grid = compared().data
    assert isinstance(grid, HeadGrid)
    for name in MEASURES[:2]:
        assert grid.measures[name].value[0, 0] == pytest.approx(1, abs=1e-6)
    assert grid.measures["Jensen-Shannon divergence"].value[0, 0] == pytest.approx(0, abs=1e-6)
    assert grid.measures["cosine similarity"].value[0, 1] < 0.3
    assert grid.measures["Jensen-Shannon divergence"].value[0, 1] > 0.5
    np.testing.assert_array_equal(grid.measures[CLASS_CHANGE].value[0, :2], [0, 1])
    assert (grid.measures["Jensen-Shannon divergence"].value <= np.log(2) + 1e-6).all()


def test_a_head_with_only_separator_targets_has_no_divergence_without_special_tokens() -> None:
    grid = compared().data
    assert isinstance(grid, HeadGrid)
    assert grid.measures["Jensen-Shannon divergence (no special tokens)"].n[0, 1] == 0
    assert np.isnan(grid.measures["Jensen-Shannon divergence (no special tokens)"].value[0, 1])
    assert grid.measures["Jensen-Shannon divergence (no special tokens)"].n[0, 2] == len(TEXTS)


@pytest.mark.parametrize("ordinary", [False, True])
def test_measures_equal_those_of_scipy_on_cropped_attention(ordinary: bool) -> None:
    recorded_inputs = planted.recorded_inputs(CORPUS)
    heads = planted.random_head(1), planted.random_head(2)
    expected: list[tuple[float, float]] = []
    for recorded_input in recorded_inputs:
        kept = (
            np.flatnonzero(recorded_input.tokens.special_kinds == SpecialToken.NONE)
            if ordinary
            else np.arange(len(recorded_input.tokens))
        )
        one, other = (head(recorded_input)[np.ix_(kept, kept)] for head in heads)
        one, other = one / one.sum(1, keepdims=True), other / other.sum(1, keepdims=True)
        divergence = np.mean([jensenshannon(a, b) ** 2 for a, b in zip(one, other, strict=True)])
        expected.append((1 - cosine(one.ravel(), other.ravel()), float(divergence)))
    grid = compared().data
    assert isinstance(grid, HeadGrid)
    names = MEASURES[int(ordinary)], MEASURES[2 + int(ordinary)]
    outcome = [grid.measures[name].value[0, 2] for name in names]
    np.testing.assert_allclose(outcome, np.mean(expected, 0), atol=1e-5)


def test_attention_of_padding_does_not_count() -> None:
    recorded_inputs = planted.recorded_inputs(planted.make_corpus("a b c", "a b c d e f"))
    batch = TokenBatch(recorded_inputs)
    generator = torch.Generator().manual_seed(0)
    own, other = (torch.rand(2, 3, batch.padded_length, batch.padded_length, generator=generator) for _ in range(2))
    short = slice(len(recorded_inputs[0].tokens))
    padded = compare_attention(own, other, batch)[:1]
    own[0, :, short.stop :] = 7.0
    own[0, :, :, short.stop :] = 7.0
    torch.testing.assert_close(compare_attention(own, other, batch)[:1], padded)
    alone = compare_attention(own[:1, :, short, short], other[:1, :, short, short], TokenBatch(recorded_inputs[:1]))
    torch.testing.assert_close(alone, padded)


def test_the_different_head_is_the_previous_one() -> None:
    after: Layers = [[planted.special_head(SpecialToken.SEP), planted.random_head(1), planted.offset_head(-1)]]
    grid = compared(after).data
    assert isinstance(grid, HeadGrid)
    # Every head is moved by one position to the left, the first one to the end.
    np.testing.assert_allclose(grid.baselines["different head of the layer"]["cosine similarity"].value, 1, atol=1e-6)
    np.testing.assert_allclose(
        grid.baselines["different head of the layer"]["Jensen-Shannon divergence"].value, 0, atol=1e-6
    )
    assert (grid.measures["cosine similarity"].value < 0.9).all()


def test_the_chance_of_a_class_change() -> None:
    """A head that is vertical in a third of the inputs before and in two thirds after, else diagonal."""

    def turning(rest: int) -> planted.HeadAttention:
        def head(recorded_input: planted.RecordedInput) -> planted.FloatArray:
            vertical = TEXTS.index(" ".join(recorded_input.text.words)) % 3 >= rest
            return (planted.special_head(SpecialToken.SEP) if vertical else planted.offset_head(-1))(recorded_input)

        return head

    recording = planted.make_recording(CORPUS, [[turning(2)]])
    grid = run_analysis(
        model_similarity, RunInputs(CORPUS, recording=recording, against=Planted(CORPUS, [[turning(1)]]))
    ).data
    assert isinstance(grid, HeadGrid)
    assert grid.measures[CLASS_CHANGE].value[0, 0] == pytest.approx(1 / 3)
    assert grid.baselines["chance"][CLASS_CHANGE].value[0, 0] == pytest.approx(1 - 2 * (1 / 3 * 2 / 3))


def test_layers_and_pattern_classes() -> None:
    curve, table = compared(show="layers").data, compared(show="pattern-classes").data
    assert isinstance(curve, LayerCurve) and isinstance(table, Table)
    assert curve.measures["cosine similarity"].shape == (1,) and curve.first_layer == 1
    assert table.row_names[0] == "1-2"
    assert (table.attribute("class_before", 0), table.attribute("class_after", 0)) == ("vertical", "diagonal")
    same = compared(BEFORE, show="pattern-classes").data
    assert isinstance(same, Table) and "No head changed" in next(iter(same.notes.values()))


def test_gained_and_lost_functions() -> None:
    corpus = load_corpus("english", limit=60)
    steady = planted.offset_head(-1)
    before, after = [[steady, planted.offset_head(1)]], [[steady, planted.random_head(3)]]
    recording = planted.make_recording(corpus, before)
    subject = RunInputs(corpus, recording=recording, against=Planted(corpus, after))
    table = run_analysis(model_similarity, subject, {"show": "functions"}).data
    assert isinstance(table, Table)
    rows = dict(zip(table.row_names, table.measures["change in score"].value, strict=True))
    assert dict(zip(table.row_names, table.attributes["status"], strict=True))["1-2 next word"] == "lost"
    assert table.attributes["status"].count("lost") == 1 and "gained" not in table.attributes["status"]
    assert rows["1-2 next word"] < -0.5 and rows["1-1 previous word"] == 0
    with pytest.raises(Refusal, match="relations"):
        compared(show="functions")


def test_a_model_equals_itself_and_differs_from_the_untrained_model() -> None:
    corpus = load_corpus("english", limit=6)
    grid = run_analysis(model_similarity, RunInputs(corpus, load("tiny"), against=load("tiny"))).data
    assert isinstance(grid, HeadGrid)
    np.testing.assert_allclose(grid.measures["cosine similarity"].value, 1, atol=1e-5)
    np.testing.assert_allclose(grid.measures["Jensen-Shannon divergence"].value, 0, atol=1e-6)
    assert (grid.measures[CLASS_CHANGE].value == 0).all()
    assert (grid.baselines["untrained model"]["cosine similarity"].value < 1 - 5e-5).all()  # untrained: nearly uniform


def test_models_that_do_not_fit_are_refused() -> None:
    with pytest.raises(Refusal, match="same number of layers"):
        compared([AFTER[0][:2]])
    other = Planted(CORPUS, AFTER)
    changed = {
        recorded_input.text.words: TokenisedInput(**_other_ids(recorded_input.tokens))
        for recorded_input in planted.recorded_inputs(CORPUS)
    }
    other.tokenise = lambda inputs: [changed[shown.words] for shown in inputs]
    with pytest.raises(Refusal, match="vocabulary"):
        run_analysis(
            model_similarity, RunInputs(CORPUS, recording=planted.make_recording(CORPUS, BEFORE), against=other)
        )


def _other_ids(pieces: TokenisedInput) -> dict[str, Any]:
    kept = {
        name: getattr(pieces, name)
        for name in ("tokens", "type_ids", "segment_ids", "word_ids", "special_kinds", "n_words")
    }
    return kept | {"ids": pieces.ids + 500}


def test_the_site_name_contains_the_other_model() -> None:
    site = model_similarity_site.bind(Planted(CORPUS, AFTER))
    assert "f" * 16 in site.storage_key and model_similarity_site.name in site.storage_key
