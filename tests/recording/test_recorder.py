"""Recording in memory: exact shapes, the same numbers in any batch and order, reduced sites equal to naive ones."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
import torch
from tests.recording.material import CLOSE, assert_same_recording, mixed, pairs, tiny

from bertology.analyses.attention.entropy import entropy_site
from bertology.analyses.attention.targets.analysis import MEASURES, targets_site
from bertology.arrays import FloatArray
from bertology.corpus.corpus import Corpus
from bertology.encoder.attention_hook import LayerActivations
from bertology.encoder.encoder import Encoder, ModelOutput
from bertology.encoder.load import load
from bertology.encoder.token_batch import TokenBatch
from bertology.encoder.tokens import SpecialToken, TokenisedInput
from bertology.errors import Refusal
from bertology.recording.objectives import build_objective
from bertology.recording.plan import RecordingConfig
from bertology.recording.recorder import find_recording, record
from bertology.recording.sites import ReducedSite

CORPUS = Corpus((*mixed(24), *pairs(9)), name="sentences and pairs")
SITES = [
    "attention",
    "hidden",
    "query",
    "key",
    "value",
    "head_output",
    "logits.mlm",
    "logits.nsp",
    targets_site,
    entropy_site,
]
IsTarget = Callable[[int, int], bool]


def test_arrays_have_the_shape_of_their_input() -> None:
    encoder = tiny()
    recording = record(encoder, CORPUS, SITES, config=RecordingConfig(tokens_per_batch=100))
    layers, heads, width = encoder.layers, encoder.heads, encoder.width
    vocabulary = recording["logits.mlm"][0].shape[-1]
    for index, recorded in enumerate(recording.inputs):
        n = len(recorded.tokens)
        assert recording["attention"][index].shape == (layers, heads, n, n)
        assert recording["hidden"][index].shape == (layers + 1, n, width)
        for site in ("query", "key", "value", "head_output"):
            assert recording[site][index].shape == (layers, heads, n, width // heads)
        assert recording["logits.mlm"][index].shape == (n, vocabulary)
        assert recording["logits.nsp"][index].shape == (2,)
        assert recording[targets_site][index].shape == (layers, heads, len(MEASURES))
        np.testing.assert_allclose(recording["attention"][index].sum(-1), 1, atol=CLOSE)


@pytest.mark.parametrize("tokens_per_batch", [1, 60, 5000])
def test_the_batch_size_changes_nothing(tokens_per_batch: int) -> None:
    expected = record(tiny(), CORPUS, SITES)
    recording = record(tiny(), CORPUS, SITES, config=RecordingConfig(tokens_per_batch=tokens_per_batch))
    assert_same_recording(expected, recording, tolerance=CLOSE)


def test_the_order_of_sentences_changes_nothing() -> None:
    forward = record(tiny(), CORPUS, SITES)
    backward = record(tiny(), Corpus(CORPUS.examples[::-1]), SITES)
    for site in forward.sites:
        for a, b in zip(forward[site], list(backward[site])[::-1], strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=CLOSE)


def test_attention_and_hidden_states_are_those_of_the_model() -> None:
    encoder = tiny()
    recording = record(encoder, CORPUS, ["attention", "hidden"])
    for index in (0, 7, 30):
        layers: list[LayerActivations] = []
        with torch.inference_mode():
            batch = TokenBatch([recording.inputs[index]])
            output = encoder.forward(batch.model_inputs, on_layer=layers.append, hidden=True)
        attention = torch.cat([layer.attention for layer in layers]).numpy()
        np.testing.assert_allclose(recording["attention"][index], attention, atol=CLOSE)
        np.testing.assert_allclose(recording["hidden"][index], torch.cat(output.hidden_states).numpy(), atol=CLOSE)


def test_reduced_sites_equal_naive_statistics_of_the_attention() -> None:
    sites = ["attention", targets_site, entropy_site]
    recording = record(tiny(), CORPUS, sites, config=RecordingConfig(tokens_per_batch=150))
    for index, recorded in enumerate(recording.inputs):
        attention = np.asarray(recording["attention"][index], np.float64)
        targets = [[_naive_targets(head, recorded.tokens) for head in layer] for layer in attention]
        np.testing.assert_allclose(recording[targets_site][index], targets, atol=CLOSE)
        entropies = [[_naive_entropies(head, recorded.tokens) for head in layer] for layer in attention]
        np.testing.assert_allclose(recording[entropy_site][index], entropies, atol=CLOSE)


def _naive_entropies(weights: FloatArray, tokens: TokenisedInput) -> list[float]:
    def entropy(row: FloatArray) -> float:
        row = row[row > 0] / row.sum()
        return float(-(row * np.log(row)).sum())

    non_special = np.flatnonzero(tokens.special_kinds == SpecialToken.NONE)
    cls = np.flatnonzero(tokens.special_kinds == SpecialToken.CLS)
    return [
        float(np.mean([entropy(row) for row in weights])),
        float(np.mean([entropy(weights[i]) for i in cls])),
        float(np.mean([entropy(weights[i][non_special]) for i in non_special])),
    ]


def _naive_targets(weights: FloatArray, tokens: TokenisedInput) -> list[float]:
    """The measures of `targets_site`, in its order."""
    n = len(tokens)
    kinds: list[int] = tokens.special_kinds.tolist()
    punctuation = [
        kind == SpecialToken.NONE and all(unicodedata.category(c)[0] == "P" for c in token.strip("#"))
        for token, kind in zip(tokens.tokens, kinds, strict=True)
    ]

    def is_sep(i: int, j: int) -> bool:
        return kinds[j] == SpecialToken.SEP

    def is_previous(i: int, j: int) -> bool:
        return j == i - 1

    def is_next(i: int, j: int) -> bool:
        return j == i + 1

    tests: list[IsTarget] = [
        lambda i, j: kinds[j] == SpecialToken.CLS,
        is_sep,
        lambda i, j: punctuation[j],
        lambda i, j: i == j,
        is_previous,
        is_next,
        lambda i, j: i != j and tokens.word_ids[i] == tokens.word_ids[j] >= 0,
    ]

    def mean(rows: list[int], is_target: IsTarget) -> float:
        sums = [sum(weights[i, j] for j in range(n) if is_target(i, j)) for i in rows]
        return float(np.mean(sums)) if rows else np.nan

    all_rows = list(range(n))
    measures = [mean(all_rows, test) for test in tests]
    measures.append(mean(all_rows, lambda i, j: not any(test(i, j) for test in tests)))
    measures.append(mean([i for i in all_rows if kinds[i] == SpecialToken.SEP], is_sep))
    measures.append(mean([i for i in all_rows if kinds[i] != SpecialToken.SEP], is_sep))
    for test, step in ((is_previous, -1), (is_next, 1)):
        rows = [
            i
            for i in all_rows
            if kinds[i] == SpecialToken.NONE and 0 <= i + step < n and kinds[i + step] == SpecialToken.NONE
        ]
        measures.append(mean(rows, test))
    return measures


def test_sites_derived_from_a_recording_equal_those_of_the_pass() -> None:
    recorded = record(tiny(), CORPUS, [targets_site, entropy_site])
    derived = record(tiny(), CORPUS, ["attention"]).with_sites([targets_site, entropy_site])
    for site in (targets_site, entropy_site):
        np.testing.assert_allclose(recorded.stack(site), derived.stack(site), atol=CLOSE)


def _mean_attention_to_words(layer: LayerActivations, batch: TokenBatch, prepared: None) -> torch.Tensor:
    max_words = max(recorded.tokens.n_words for recorded in batch.inputs)
    is_token_of_word = (batch.word_ids[:, :, None] == torch.arange(max_words)).float()
    return layer.attention.mean(2, keepdim=True).matmul(is_token_of_word[:, None]).squeeze(2)


def test_a_reduction_over_words_is_cut_to_the_words_of_each_input() -> None:
    site = ReducedSite("test.words", ("to_word",), "mean attention to each word", _mean_attention_to_words)
    batched = record(tiny(), CORPUS, [site])
    single = record(tiny(), CORPUS, [site], config=RecordingConfig(tokens_per_batch=1))
    for index, recorded in enumerate(batched.inputs):
        assert batched[site][index].shape == (2, 4, recorded.tokens.n_words)
        np.testing.assert_allclose(batched[site][index][..., 0] >= 0, True)
    assert_same_recording(batched, single, tolerance=1.0)  # shapes; means over padded rows differ on purpose


@pytest.mark.parametrize("objective", ["mlm", "prediction"])
def test_gradients_do_not_depend_on_the_batch(objective: str) -> None:
    batched, single = (
        record(tiny(), CORPUS, ["attention_gradient"], config=RecordingConfig(objective=objective, tokens_per_batch=n))
        for n in (2000, 1)
    )
    largest = max(float(np.abs(array).max()) for array in batched["attention_gradient"])
    assert largest > CLOSE
    assert_same_recording(batched, single, tolerance=largest / 1000)


def test_masked_tokens_depend_on_the_seed() -> None:
    first, second = (
        record(tiny(), CORPUS, ["attention_gradient"], config=RecordingConfig(seed=seed)) for seed in (0, 1)
    )
    assert any(
        np.abs(a - b).max() > CLOSE
        for a, b in zip(first["attention_gradient"], second["attention_gradient"], strict=True)
    )


def test_a_single_score_is_the_objective_itself() -> None:
    """Its log-probability, and so every gradient, would be 0."""
    regression = cast(Encoder, SimpleNamespace(name="regression", task_heads=frozenset({"label"}), mask_token_id=None))
    batch = TokenBatch(record(tiny(), mixed(2), ["logits.nsp"]).inputs)
    _, objective = build_objective(regression, "auto", batch, 0)
    assert objective(ModelOutput((), {"label": torch.tensor([[2.0], [0.5]])})).item() == 2.5


def test_a_reduction_reads_attention_and_gradient_together() -> None:
    site = ReducedSite(
        "test.attention_times_gradient",
        ("sum",),
        "sum of attention times its gradient",
        lambda layer, batch, prepared: _attention_times_gradient(layer)[..., None],
        needs_gradient=True,
    )
    config = RecordingConfig(objective="prediction")
    recording = record(tiny(), CORPUS, ["attention_gradient", site, "attention"], config=config)
    for index in range(len(recording)):
        expected = (recording["attention"][index] * recording["attention_gradient"][index]).sum((-1, -2))
        np.testing.assert_allclose(recording[site][index][..., 0], expected, atol=1e-4)


def _attention_times_gradient(layer: LayerActivations) -> torch.Tensor:
    assert layer.gradient is not None
    return (layer.attention * layer.gradient).sum((-1, -2))


def test_half_precision_is_for_raw_sites_only() -> None:
    sites = ["attention", "hidden", targets_site]
    full, half = (record(tiny(), CORPUS, sites, config=RecordingConfig(half_precision=flag)) for flag in (False, True))
    for index in range(len(full)):
        assert half["attention"][index].dtype == half["hidden"][index].dtype == np.float16
        assert half[targets_site][index].dtype == np.float32
        np.testing.assert_allclose(half["attention"][index], full["attention"][index], atol=2**-11)
        np.testing.assert_array_equal(half[targets_site][index], full[targets_site][index])


def test_a_bfloat16_encoder_is_recorded_in_float32() -> None:
    full = record(tiny(), CORPUS, ["attention", "hidden"])
    sites = ["attention", "hidden", "query", "logits.mlm", targets_site]
    bfloat16 = record(load("tiny", dtype="bfloat16"), CORPUS, sites)
    for index in range(len(full)):
        assert bfloat16["attention"][index].dtype == bfloat16["query"][index].dtype == np.float32
        np.testing.assert_allclose(bfloat16["attention"][index], full["attention"][index], atol=0.02)
        np.testing.assert_allclose(bfloat16["attention"][index].sum(-1), 1, atol=CLOSE)
        assert np.isfinite(bfloat16["hidden"][index]).all()


def test_static_vectors_have_hidden_states_only() -> None:
    encoder = load("random-vectors:8")
    recording = record(encoder, mixed(5), ["hidden"])
    for index, recorded in enumerate(recording.inputs):
        assert recording["hidden"][index].shape == (1, len(recorded.tokens), 8)
    with pytest.raises(Refusal, match="has static vectors and no attention"):
        record(encoder, mixed(5), ["attention"])


def test_progress_counts_every_token() -> None:
    calls: list[tuple[int, int]] = []
    recording = record(
        tiny(),
        CORPUS,
        [targets_site],
        config=RecordingConfig(tokens_per_batch=80),
        progress=lambda done, total: calls.append((done, total)),
    )
    n_tokens = sum(len(recorded.tokens) for recorded in recording.inputs)
    assert calls[0] == (0, n_tokens)
    assert calls[-1] == (n_tokens, n_tokens)
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)


def test_unavailable_sites_are_refused_with_the_available_ones() -> None:
    with pytest.raises(Refusal, match="no task head label"):
        record(tiny(), CORPUS, ["logits.label"])
    with pytest.raises(Refusal, match="Did you mean 'attention'"):
        record(tiny(), CORPUS, ["atention"])
    with pytest.raises(Refusal, match=r"has no site 'hidden' \(it has: attention\.targets"):
        record(tiny(), CORPUS, [targets_site])["hidden"]


def test_the_name_of_a_site_must_be_a_folder_name() -> None:
    with pytest.raises(ValueError, match="letters"):
        ReducedSite("a/b", (), "nothing", _mean_attention_to_words)


def test_the_summary_names_model_corpus_configuration_and_counts() -> None:
    summary = record(tiny(), CORPUS, [], config=RecordingConfig(seed=3)).summary()
    assert sorted(summary) == ["config", "corpus", "counts", "inputs", "model"]
    assert summary["inputs"] == len(CORPUS)
    assert summary["config"]["seed"] == 3


def test_a_recording_is_found_only_when_all_of_its_shards_are_there(tmp_path: Path) -> None:
    encoder, corpus = tiny(), mixed(12)
    assert find_recording(encoder, corpus, ["attention"], store=tmp_path) is None
    recording = record(encoder, corpus, ["attention"], store=tmp_path)
    found = find_recording(encoder, corpus, ["attention"], store=tmp_path)
    assert found is not None
    assert_same_recording(recording, found)
    assert find_recording(encoder, corpus, ["attention", "hidden"], store=tmp_path) is None
    next(tmp_path.rglob("*.safetensors")).unlink()
    assert find_recording(encoder, corpus, ["attention"], store=tmp_path) is None
    assert not list(tmp_path.rglob("hidden"))
