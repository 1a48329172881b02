"""The baseline of uniform attention covers the tokens that each layer can see, including attention windows."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
import transformers

import planted
import tiny_models
from bertology.analyses import registry
from bertology.analyses.attention.entropy import entropy_site
from bertology.analyses.head_grids import UNIFORM_ATTENTION, uniform_baseline
from bertology.analyses.run import RunInputs, run_analysis
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.read import load_corpus
from bertology.encoder.attention_hook import Gates
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.recording.plan import RecordingConfig
from bertology.recording.recorder import record
from bertology.recording.recording import Recording

WINDOW = 3
TRUNCATING = RecordingConfig(overflow="truncate")

RUNS: list[tuple[str, dict[str, Any]]] = [
    ("attention/targets", {}),
    ("attention/entropy", {}),
    ("attention/distance", {}),
    ("attention/distance", {"average": "macro"}),
    ("attention/confidence", {}),
    ("attention/word_patterns", {}),
    ("attention/pattern_classes", {"show": "layers"}),
    ("attention/pattern_classes", {"show": "heads", "pattern_classifier": "cnn"}),
    ("attention/variability", {"n_positions": 6}),
    ("attention/dependency_alignment", {}),
    ("attention/norms", {}),
    ("attention/mixing_ratio", {}),
    ("attention/sinks", {}),
    ("attention/effective_attention", {}),
    ("attention/rollout", {}),
    ("attention/flow", {}),
    ("heads/semantic_roles", {"role_filter": "all"}),
    ("heads/antecedent_confusion", {"show": "layers"}),
    ("heads/antecedent_confusion", {"show": "heads"}),
]


@cache
def uniform_model() -> HuggingFaceEncoder:
    """A ModernBERT with zero queries: every head has uniform attention over visible tokens; layer 1 has no window."""
    model = tiny_models.model("modernbert")
    for layer in model.layers:
        with torch.no_grad():
            layer.attn.Wqkv.weight[: tiny_models.WIDTH] = 0.0
    return tiny_models.wrap_model(model, "modernbert")


@cache
def corpus(name: str) -> Corpus:
    if name == "heads/antecedent_confusion":
        stimuli = load_corpus("generated:reflexives")
        return replace(stimuli, examples=stimuli.examples[:8])
    sentences = [
        sentence
        for example in load_corpus("english").examples[:40]
        for sentence in example.segments
        if len(sentence) > 5
    ][:5]
    return Corpus(tuple(Example((planted.with_roles(sentence),)) for sentence in sentences), name="english")


def result(name: str, options: dict[str, Any], encoder: HuggingFaceEncoder) -> Any:
    return run_analysis(
        registry.get(name), RunInputs(encoder=encoder, corpus=corpus(name), config=TRUNCATING), options
    ).data


def assert_measures_equal_the_baseline(values: Any) -> None:
    uniform = values.baselines[UNIFORM_ATTENTION]
    assert uniform.keys() & values.measures.keys()
    for measure in uniform.keys() & values.measures.keys():
        measured, baseline = values.measures[measure], uniform[measure]
        assert measured.n.any(), measure
        for field in ("value", "low", "high"):
            np.testing.assert_allclose(getattr(measured, field), getattr(baseline, field), atol=2e-5, err_msg=measure)


@pytest.mark.parametrize(("name", "options"), RUNS)
def test_uniform_attention_in_windows_equals_its_baseline(name: str, options: dict[str, Any]) -> None:
    assert_measures_equal_the_baseline(result(name, options, uniform_model()))


def test_heads_gated_to_uniform_attention_equal_the_baseline() -> None:
    model = tiny_models.encoder("modernbert")
    gated = model.with_gates(Gates(uniform=torch.ones(model.layers, model.heads, dtype=torch.bool)))
    for name in ("attention/entropy", "attention/targets"):
        assert_measures_equal_the_baseline(result(name, {}, gated))


def test_the_baseline_of_a_window_has_its_closed_form() -> None:
    recording = record(uniform_model(), corpus("english"), [entropy_site], config=TRUNCATING)
    baseline = uniform_baseline(recording, entropy_site)
    for recorded_input, (without_window, *with_window) in zip(recording.inputs, baseline[..., 0], strict=True):
        n = len(recorded_input.tokens)
        n_visible = [min(n - 1, position + WINDOW) - max(0, position - WINDOW) + 1 for position in range(n)]
        np.testing.assert_allclose(without_window, np.log(n), atol=1e-5)
        np.testing.assert_allclose(with_window, np.log(n_visible).mean(), atol=1e-5)


def with_windows(recording: Recording, *windows: int | None) -> Recording:
    return replace(recording, encoder=replace(recording.encoder, attention_windows=windows))


def test_the_layer_axis_is_expanded_only_if_windows_matter() -> None:
    recording = planted.make_recording(planted.make_corpus("one two three", "one two"), [[planted.uniform_head]] * 2)
    without_windows = uniform_baseline(recording, entropy_site)
    assert without_windows.shape[:2] == (2, 1)
    for windows in ((None, None), (4, None), (9, 4)):  # no input has more than five tokens
        np.testing.assert_array_equal(
            uniform_baseline(with_windows(recording, *windows), entropy_site), without_windows
        )
    assert uniform_baseline(with_windows(recording, 2, 2), entropy_site).shape[:2] == (2, 1)
    by_layer = uniform_baseline(with_windows(recording, None, 3), entropy_site)
    assert by_layer.shape[:2] == (2, 2)
    np.testing.assert_array_equal(by_layer[:, :1], without_windows)
    assert by_layer[0, 1, 0] < without_windows[0, 0, 0]
    np.testing.assert_array_equal(by_layer[1, 1], without_windows[1, 0])  # a window of three covers four tokens


def test_uniform_attention_in_a_causal_window_equals_its_baseline() -> None:
    config = transformers.MistralConfig(
        vocab_size=len(tiny_models.hf_tokenizer("gpt2")),
        **tiny_models.COMMON,
        num_key_value_heads=tiny_models.HEADS,
        sliding_window=4,
        max_position_embeddings=tiny_models.POSITIONS,
    )
    model: Any = transformers.MistralModel(config)
    for layer in model.layers:
        torch.nn.init.zeros_(layer.self_attn.q_proj.weight)
    encoder = tiny_models.wrap_model(model, "gpt2")
    assert encoder.causal and encoder.attention_windows == (3, 3)
    for name in ("attention/entropy", "attention/distance"):
        assert_measures_equal_the_baseline(result(name, {}, encoder))
