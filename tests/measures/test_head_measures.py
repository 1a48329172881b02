"""Uniform attention as a baseline is alike over what a layer's pieces can see, windows included."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
import transformers

import models
import planted
from bertology.analyses import registry
from bertology.analyses.attention.entropy import ENTROPY
from bertology.analyses.run import Subject, run
from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import Corpus, Item
from bertology.encoder.attend import Gates
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.measures.attention.head_measures import uniform_attention
from bertology.recording.policy import Policy
from bertology.recording.recorder import record
from bertology.recording.recording import Recording

REACH = 3
EVEN = "uniform attention"
LONG = Policy(long="truncate")

RUNS: list[tuple[str, dict[str, Any]]] = [
    ("attention/targets", {}),
    ("attention/entropy", {}),
    ("attention/distance", {}),
    ("attention/distance", {"average": "sentences"}),
    ("attention/confidence", {}),
    ("attention/patterns", {}),
    ("attention/kovaleva", {"by": "layers"}),
    ("attention/kovaleva", {"by": "heads", "classifier": "network"}),
    ("attention/variability", {"positions": 6}),
    ("attention/alignment", {}),
    ("attention/norms", {}),
    ("attention/mixing", {}),
    ("attention/sinks", {}),
    ("attention/effective", {}),
    ("attention/rollout", {}),
    ("attention/flow", {}),
    ("heads/roles", {"select": "all"}),
    ("heads/confusion", {"by": "layer"}),
    ("heads/confusion", {"by": "head"}),
]


@cache
def looking_evenly() -> HuggingFaceEncoder:
    """A ModernBERT whose queries are 0: every head attends to all it can see alike, the first layer to everything."""
    made = models.model("modernbert")
    for layer in made.layers:
        with torch.no_grad():
            layer.attn.Wqkv.weight[: models.WIDTH] = 0.0
    return models.wrapped(made, "modernbert")


@cache
def corpus(name: str) -> Corpus:
    if name == "heads/confusion":
        stimuli = corpus_named("generated:reflexives")
        return replace(stimuli, items=stimuli.items[:8])
    parts = [part for item in corpus_named("english").items[:40] for part in item.parts if len(part) > 5][:5]
    return Corpus(tuple(Item((planted.with_roles(part),)) for part in parts), name="english")


def result(name: str, options: dict[str, Any], encoder: HuggingFaceEncoder) -> Any:
    return run(registry.get(name), Subject(encoder=encoder, corpus=corpus(name), policy=LONG), options).data


def assert_baseline_is_measured(found: Any) -> None:
    even = found.baselines[EVEN]
    assert even.keys() & found.measures.keys()
    for measure in even.keys() & found.measures.keys():
        own, chance = found.measures[measure], even[measure]
        assert own.n.any(), measure
        for field in ("value", "low", "high"):
            np.testing.assert_allclose(getattr(own, field), getattr(chance, field), atol=2e-5, err_msg=measure)


@pytest.mark.parametrize(("name", "options"), RUNS)
def test_even_attention_through_windows_is_its_own_baseline(name: str, options: dict[str, Any]) -> None:
    assert_baseline_is_measured(result(name, options, looking_evenly()))


def test_heads_made_uniform_are_their_baseline_too() -> None:
    model = models.encoder("modernbert")
    even = model.gated(Gates(uniform=torch.ones(model.layers, model.heads, dtype=torch.bool)))
    for name in ("attention/entropy", "attention/targets"):
        assert_baseline_is_measured(result(name, {}, even))


def test_the_baseline_of_a_window_has_its_closed_form() -> None:
    recording = record(looking_evenly(), corpus("english"), [ENTROPY], policy=LONG)
    even = uniform_attention(recording, ENTROPY)
    for entry, (whole, near, last) in zip(recording.entries, even[..., 0], strict=True):
        n = len(entry.pieces)
        seen = [min(n - 1, place + REACH) - max(0, place - REACH) + 1 for place in range(n)]
        np.testing.assert_allclose(whole, np.log(n), atol=1e-5)
        np.testing.assert_allclose((near, last), np.log(seen).mean(), atol=1e-5)


def of_windows(recording: Recording, *reach: int | None) -> Recording:
    return replace(recording, encoder=replace(recording.encoder, reach=reach))


def test_layers_are_told_apart_only_where_they_differ() -> None:
    recording = planted.recording_of(planted.corpus_of("one two three", "one two"), [[planted.uniform]] * 2)
    plain = uniform_attention(recording, ENTROPY)
    assert plain.shape[:2] == (2, 1)
    for reach in ((None, None), (4, None), (9, 4)):  # no input has more than five pieces
        np.testing.assert_array_equal(uniform_attention(of_windows(recording, *reach), ENTROPY), plain)
    assert uniform_attention(of_windows(recording, 2, 2), ENTROPY).shape[:2] == (2, 1)
    apart = uniform_attention(of_windows(recording, None, 3), ENTROPY)
    assert apart.shape[:2] == (2, 2)
    np.testing.assert_array_equal(apart[:, :1], plain)
    assert apart[0, 1, 0] < plain[0, 0, 0]
    np.testing.assert_array_equal(apart[1, 1], plain[1, 0])  # four pieces see each other through a window of three


def test_a_window_that_looks_back_is_its_own_baseline() -> None:
    config = transformers.MistralConfig(
        vocab_size=len(models.tokenizer("gpt2")),
        **models.COMMON,
        num_key_value_heads=models.HEADS,
        sliding_window=4,
        max_position_embeddings=models.POSITIONS,
    )
    made: Any = transformers.MistralModel(config)
    for layer in made.layers:
        torch.nn.init.zeros_(layer.self_attn.q_proj.weight)
    backward = models.wrapped(made, "gpt2")
    assert backward.causal and backward.reach == (3, 3)
    for name in ("attention/entropy", "attention/distance"):
        assert_baseline_is_measured(result(name, {}, backward))
