"""Unchanged and changed planted heads differ in all measures, which equal those of scipy and ignore padding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cosine, jensenshannon

import planted
from bertology.analyses import registry
from bertology.analyses.attention.model_similarity.analysis import (
    CLASS_CHANGE,
    MEASURES,
    compare_attention,
    model_similarity,
    model_similarity_site,
)
from bertology.analyses.run import Request, RunInputs, run_all, run_analysis
from bertology.arrays import IntArray
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import TextInput
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


class PlantedEncoder:
    """An encoder with planted attention and nothing else."""

    name, width, causal, mask_token_id, device, max_length = "other", 8, False, None, "cpu", 512
    attention_windows: tuple[int | None, ...] = ()
    task_heads: frozenset[str] = frozenset()

    def __init__(self, corpus: Corpus, layers: Layers) -> None:
        self.fingerprint = "f" * 32
        self.layers, self.heads = len(layers), len(layers[0])
        self._heads = layers
        self._inputs_by_ids = {
            tuple(recorded_input.tokens.ids.tolist()): recorded_input
            for recorded_input in planted.recorded_inputs(corpus)
        }

    def tokenise(self, inputs: Sequence[TextInput]) -> list[TokenisedInput]:
        tokens_by_words = {
            recorded_input.text.words: recorded_input.tokens for recorded_input in self._inputs_by_ids.values()
        }
        return [tokens_by_words[text.words] for text in inputs]

    def forward(
        self,
        batch: ModelInputs,
        *,
        on_layer: Callable[[LayerActivations], None] | None = None,
        hidden: bool = False,
        logits: bool = True,
        objective: Any = None,
    ) -> ModelOutput:
        recorded_inputs = [
            self._inputs_by_ids[tuple(row[mask > 0].tolist())]
            for row, mask in zip(batch.input_ids, batch.attention_mask, strict=True)
        ]
        for layer, heads in enumerate(self._heads):
            attention = torch.zeros(len(recorded_inputs), len(heads), *([batch.input_ids.shape[1]] * 2))
            for row, recorded_input in enumerate(recorded_inputs):
                size = len(recorded_input.tokens)
                for index, head in enumerate(heads):
                    attention[row, index, :size, :size] = torch.from_numpy(head(recorded_input))
            if on_layer:
                on_layer(LayerActivations(layer, attention))
        return ModelOutput((), {})


BEFORE: Layers = [[planted.offset_head(-1), planted.special_head(SpecialToken.SEP), planted.random_head(1)]]
AFTER: Layers = [[planted.offset_head(-1), planted.offset_head(1), planted.random_head(2)]]


def compare(after: Layers = AFTER, **options: object) -> Result:
    recording = planted.make_recording(CORPUS, BEFORE)
    return run_analysis(
        model_similarity, RunInputs(CORPUS, recording=recording, against=PlantedEncoder(CORPUS, after)), options
    )


def test_unchanged_heads_differ_from_changed_heads() -> None:
    grid = compare().data
    assert isinstance(grid, HeadGrid)
    for name in MEASURES[:2]:
        assert grid.measures[name].value[0, 0] == pytest.approx(1, abs=1e-6)
    assert grid.measures["Jensen-Shannon divergence"].value[0, 0] == pytest.approx(0, abs=1e-6)
    assert grid.measures["cosine similarity"].value[0, 1] < 0.3
    assert grid.measures["Jensen-Shannon divergence"].value[0, 1] > 0.5
    np.testing.assert_array_equal(grid.measures[CLASS_CHANGE].value[0, :2], [0, 1])
    assert (grid.measures["Jensen-Shannon divergence"].value <= np.log(2) + 1e-6).all()


def test_a_head_with_only_separator_targets_has_no_divergence_without_special_tokens() -> None:
    grid = compare().data
    assert isinstance(grid, HeadGrid)
    assert grid.measures["Jensen-Shannon divergence (no special tokens)"].n[0, 1] == 0
    assert np.isnan(grid.measures["Jensen-Shannon divergence (no special tokens)"].value[0, 1])
    assert grid.measures["Jensen-Shannon divergence (no special tokens)"].n[0, 2] == len(TEXTS)


@pytest.mark.parametrize("non_special", [False, True])
def test_measures_equal_those_of_scipy_on_cropped_attention(non_special: bool) -> None:
    recorded_inputs = planted.recorded_inputs(CORPUS)
    heads = planted.random_head(1), planted.random_head(2)
    expected: list[tuple[float, float]] = []
    for recorded_input in recorded_inputs:
        positions = (
            np.flatnonzero(recorded_input.tokens.special_kinds == SpecialToken.NONE)
            if non_special
            else np.arange(len(recorded_input.tokens))
        )
        before, after = (head(recorded_input)[np.ix_(positions, positions)] for head in heads)
        before, after = before / before.sum(1, keepdims=True), after / after.sum(1, keepdims=True)
        divergence = np.mean([jensenshannon(a, b) ** 2 for a, b in zip(before, after, strict=True)])
        expected.append((1 - cosine(before.ravel(), after.ravel()), float(divergence)))
    grid = compare().data
    assert isinstance(grid, HeadGrid)
    names = MEASURES[int(non_special)], MEASURES[2 + int(non_special)]
    values = [grid.measures[name].value[0, 2] for name in names]
    np.testing.assert_allclose(values, np.mean(expected, 0), atol=1e-5)


def test_attention_of_padding_does_not_count() -> None:
    recorded_inputs = planted.recorded_inputs(planted.make_corpus("a b c", "a b c d e f"))
    batch = TokenBatch(recorded_inputs)
    generator = torch.Generator().manual_seed(0)
    first, second = (torch.rand(2, 3, batch.padded_length, batch.padded_length, generator=generator) for _ in range(2))
    unpadded = slice(len(recorded_inputs[0].tokens))
    padded = compare_attention(first, second, batch)[:1]
    first[0, :, unpadded.stop :] = 7.0
    first[0, :, :, unpadded.stop :] = 7.0
    torch.testing.assert_close(compare_attention(first, second, batch)[:1], padded)
    alone = compare_attention(
        first[:1, :, unpadded, unpadded], second[:1, :, unpadded, unpadded], TokenBatch(recorded_inputs[:1])
    )
    torch.testing.assert_close(alone, padded)


def test_the_different_head_is_the_previous_one() -> None:
    after: Layers = [[planted.special_head(SpecialToken.SEP), planted.random_head(1), planted.offset_head(-1)]]
    grid = compare(after).data
    assert isinstance(grid, HeadGrid)
    # Every head is moved by one position to the left, the first one to the end.
    np.testing.assert_allclose(grid.baselines["different head of the layer"]["cosine similarity"].value, 1, atol=1e-6)
    np.testing.assert_allclose(
        grid.baselines["different head of the layer"]["Jensen-Shannon divergence"].value, 0, atol=1e-6
    )
    assert (grid.measures["cosine similarity"].value < 0.9).all()


def test_chance_of_a_class_change_assumes_independent_classes() -> None:
    """A head that is vertical in a third of the inputs before and in two thirds after, else diagonal."""

    def vertical_from(remainder: int) -> planted.HeadAttention:
        def head(recorded_input: planted.RecordedInput) -> planted.FloatArray:
            vertical = TEXTS.index(" ".join(recorded_input.text.words)) % 3 >= remainder
            return (planted.special_head(SpecialToken.SEP) if vertical else planted.offset_head(-1))(recorded_input)

        return head

    recording = planted.make_recording(CORPUS, [[vertical_from(2)]])
    grid = run_analysis(
        model_similarity, RunInputs(CORPUS, recording=recording, against=PlantedEncoder(CORPUS, [[vertical_from(1)]]))
    ).data
    assert isinstance(grid, HeadGrid)
    assert grid.measures[CLASS_CHANGE].value[0, 0] == pytest.approx(1 / 3)
    assert grid.baselines["chance"][CLASS_CHANGE].value[0, 0] == pytest.approx(1 - 2 * (1 / 3 * 2 / 3))


def test_layers_and_pattern_classes() -> None:
    curve, table = compare(show="layers").data, compare(show="pattern-classes").data
    assert isinstance(curve, LayerCurve) and isinstance(table, Table)
    assert curve.measures["cosine similarity"].shape == (1,) and curve.first_layer == 1
    assert table.row_names[0] == "1-2"
    assert (table.attribute("class_before", 0), table.attribute("class_after", 0)) == ("vertical", "diagonal")
    same = compare(BEFORE, show="pattern-classes").data
    assert isinstance(same, Table) and "No head changed" in next(iter(same.notes.values()))


def test_gained_and_lost_functions() -> None:
    corpus = load_corpus("english", limit=60)
    unchanged = planted.offset_head(-1)
    before, after = [[unchanged, planted.offset_head(1)]], [[unchanged, planted.random_head(3)]]
    recording = planted.make_recording(corpus, before)
    inputs = RunInputs(corpus, recording=recording, against=PlantedEncoder(corpus, after))
    table = run_analysis(model_similarity, inputs, {"show": "functions"}).data
    assert isinstance(table, Table)
    changes = dict(zip(table.row_names, table.measures["change in score"].value, strict=True))
    assert dict(zip(table.row_names, table.attributes["status"], strict=True))["1-2 next word"] == "lost"
    assert table.attributes["status"].count("lost") == 1 and "gained" not in table.attributes["status"]
    assert changes["1-2 next word"] < -0.5 and changes["1-1 previous word"] == 0
    with pytest.raises(Refusal, match="relations"):
        compare(show="functions")


def test_a_model_equals_itself_and_differs_from_the_untrained_model() -> None:
    corpus = load_corpus("english", limit=6)
    grid = run_analysis(model_similarity, RunInputs(corpus, load("tiny"), against=load("tiny"))).data
    assert isinstance(grid, HeadGrid)
    np.testing.assert_allclose(grid.measures["cosine similarity"].value, 1, atol=1e-5)
    np.testing.assert_allclose(grid.measures["Jensen-Shannon divergence"].value, 0, atol=1e-6)
    assert (grid.measures[CLASS_CHANGE].value == 0).all()
    assert (grid.baselines["untrained model"]["cosine similarity"].value < 1 - 5e-5).all()  # untrained: nearly uniform


def test_models_with_other_heads_are_refused() -> None:
    with pytest.raises(Refusal, match="same number of layers"):
        compare([AFTER[0][:2]])


class SplittingEncoder(PlantedEncoder):
    """The planted encoder with another vocabulary, in which every word has two tokens.

    Both tokens of a word attend as its one token did, and each receives half of its attention: between words nothing
    changes.
    """

    @staticmethod
    def _copies(tokens: TokenisedInput) -> IntArray:
        """The position in the unsplit input of every token."""
        return np.repeat(np.arange(len(tokens)), np.where(tokens.word_ids >= 0, 2, 1))

    def tokenise(self, inputs: Sequence[TextInput]) -> list[TokenisedInput]:
        split: list[TokenisedInput] = []
        for tokens in super().tokenise(inputs):
            copies = self._copies(tokens)
            arrays = {
                name: getattr(tokens, name)[copies] for name in ("type_ids", "segment_ids", "word_ids", "special_kinds")
            }
            strings = tuple(f"{tokens.tokens[position]}/2" for position in copies)
            ids = tokens.ids[copies] + 500
            split.append(TokenisedInput(ids=ids, tokens=strings, n_words=tokens.n_words, **arrays))
        return split

    def forward(
        self,
        batch: ModelInputs,
        *,
        on_layer: Callable[[LayerActivations], None] | None = None,
        hidden: bool = False,
        logits: bool = True,
        objective: Any = None,
    ) -> ModelOutput:
        unsplit = {
            tuple(recorded.tokens.ids[self._copies(recorded.tokens)] + 500): recorded
            for recorded in self._inputs_by_ids.values()
        }
        for layer, heads in enumerate(self._heads):
            attention = torch.zeros(len(batch.input_ids), len(heads), *([batch.input_ids.shape[1]] * 2))
            for row, (ids, mask) in enumerate(zip(batch.input_ids, batch.attention_mask, strict=True)):
                recorded = unsplit[tuple(ids[mask > 0].tolist())]
                copies = self._copies(recorded.tokens)
                shares = 1 / np.bincount(copies)[copies]
                for index, head in enumerate(heads):
                    pattern = torch.from_numpy(head(recorded)[np.ix_(copies, copies)] * shares)
                    attention[row, index, : len(copies), : len(copies)] = pattern
            if on_layer:
                on_layer(LayerActivations(layer, attention))
        return ModelOutput((), {})


def test_models_with_different_tokens_are_compared_word_by_word() -> None:
    recording = planted.make_recording(CORPUS, BEFORE)
    grid = run_analysis(
        model_similarity, RunInputs(CORPUS, recording=recording, against=SplittingEncoder(CORPUS, AFTER))
    ).data
    same_tokens = compare().data
    assert isinstance(grid, HeadGrid) and isinstance(same_tokens, HeadGrid)
    assert grid.sample == {"texts compared word by word": len(TEXTS)} and same_tokens.sample == {}
    for name in MEASURES:
        for found, expected in (
            (grid.measures[name], same_tokens.measures[name]),
            (
                grid.baselines_of(name)["different head of the layer"],
                same_tokens.baselines_of(name)["different head of the layer"],
            ),
        ):
            np.testing.assert_allclose(found.value, expected.value, atol=1e-6)
            np.testing.assert_array_equal(found.n, expected.n)


def test_texts_too_long_for_the_other_model_are_missing_in_a_comparison_of_words() -> None:
    encoder = SplittingEncoder(CORPUS, AFTER)
    encoder.max_length = (
        max(len(tokens) for tokens in encoder.tokenise([r.text for r in planted.recorded_inputs(CORPUS)])) - 1
    )
    site = model_similarity_site.bind(encoder, "words")
    values = planted.make_recording(CORPUS, BEFORE).with_sites([site]).stack(site)
    n_words = np.array([len(text.split()) for text in TEXTS])
    np.testing.assert_array_equal(np.isnan(values[:, 0, 0, 0, 0]), n_words == n_words.max())


def test_a_partner_that_cannot_be_compared_leaves_other_analyses_alone() -> None:
    corpus = load_corpus("english", limit=6)
    requests: list[Request] = [(model_similarity, {}), (registry.get("attention/targets"), {})]
    similarity, targets = run_all(requests, RunInputs(corpus, load("tiny"), against=load("mini"))).outcomes
    assert isinstance(similarity, Refusal) and "tiny has 2 layers of 4 heads" in str(similarity)
    assert isinstance(targets, Result)


def test_the_site_name_contains_the_other_model() -> None:
    site = model_similarity_site.bind(PlantedEncoder(CORPUS, AFTER))
    assert "f" * 16 in site.storage_key and model_similarity_site.name in site.storage_key
