"""Samples and batches of inputs for analyses that run the model."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
import torch
from tests.recording.material import CountingEncoder, tiny

import planted
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.encoder.load import load
from bertology.recording.plan import DEVICE_BATCH_TOKENS, RecordingConfig, make_plan, sample_inputs, token_batches
from bertology.recording.recorder import record

CORPUS = planted.make_corpus(*(f"Word number {n} of many ." for n in range(40)))


def _sample_texts(corpus: Corpus, sample_size: int, seed: int) -> set[str]:
    recording = record(load("tiny"), corpus, [])
    return {recording.inputs[index].text.segments[0].text for index in sample_inputs(recording, sample_size, seed)}


def test_a_sample_depends_on_the_seed_and_not_on_the_order_of_inputs() -> None:
    sample = _sample_texts(CORPUS, 10, 0)
    assert len(sample) == 10
    assert sample == _sample_texts(CORPUS[::-1], 10, 0) != _sample_texts(CORPUS, 10, 1)
    assert len(_sample_texts(CORPUS, 0, 0)) == len(_sample_texts(CORPUS, 99, 0)) == 40


@pytest.mark.parametrize(("gibibytes", "is_large"), [(24, False), (48, True)])
def test_a_gpu_with_much_memory_gets_larger_batches(
    gibibytes: int, is_large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class OnGpu(CountingEncoder):
        device = "cuda:0"

    def properties(device: object) -> SimpleNamespace:
        return SimpleNamespace(total_memory=gibibytes * 2**30)

    monkeypatch.setattr(torch.cuda, "get_device_properties", properties)
    corpus = Corpus((CORPUS[0],) * 2000)
    plan = make_plan(cast(Encoder, OnGpu(tiny(), lambda digest: None)), corpus, RecordingConfig())
    largest = max(len(batch) for shard in plan.shards for batch in shard) * len(plan.inputs[0].tokens)
    assert (largest > DEVICE_BATCH_TOKENS) == is_large


def test_batches_hold_each_sampled_input_once_with_its_index() -> None:
    encoder = load("tiny")
    recording = record(encoder, CORPUS, [])
    batches = list(token_batches(recording, encoder, sample_size=7, seed=3))
    assert sorted(index for indices, _ in batches for index in indices) == sample_inputs(recording, 7, 3)
    for indices, batch in batches:
        assert [recorded.example_index for recorded in batch.inputs] == indices
