"""A plan made while its batches run has the inputs and counts of a plan made before, and full batches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.recording.material import FEW_EXAMPLES, mixed, tiny

from bertology.corpus.corpus import corpus_from_sentences
from bertology.corpus.sentence import sentence_from_words
from bertology.encoder.token_batch import RecordedInput
from bertology.errors import Refusal
from bertology.recording import plan as planning
from bertology.recording.incremental_plan import IncrementalPlan
from bertology.recording.plan import RecordingConfig, make_plan


def _tokens(recorded: RecordedInput) -> tuple[tuple[int, int, int], list[int], list[int]]:
    return recorded.key, recorded.tokens.ids.tolist(), recorded.tokens.word_ids.tolist()


@FEW_EXAMPLES
@given(count=st.integers(1, 60), seed=st.integers(0, 9), max_tokens=st.integers(1, 400))
def test_inputs_and_counts_are_those_of_a_plan(count: int, seed: int, max_tokens: int) -> None:
    corpus, config = mixed(count, seed=seed), RecordingConfig(tokens_per_batch=max_tokens)
    plan, expected = IncrementalPlan(tiny(), corpus, config), make_plan(tiny(), corpus, config)
    batches = list(plan.batches())
    assert list(map(_tokens, plan.inputs)) == list(map(_tokens, expected.inputs))
    assert (plan.counts, plan.n_tokens) == (expected.counts, expected.n_tokens)
    assert sorted(index for batch in batches for index in batch) == list(range(count))
    for batch in batches:
        assert len(batch) == 1 or max(len(plan.inputs[i].tokens) for i in batch) * len(batch) <= max_tokens


def test_the_first_batch_does_not_wait_for_the_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "TOKENISER_BATCH_SIZE", 8)
    plan = IncrementalPlan(tiny(), mixed(200), RecordingConfig(tokens_per_batch=40))
    batches = plan.batches()
    next(batches)
    assert len(plan.inputs) < 40
    assert len(list(batches)) and len(plan.inputs) == 200


def test_batches_of_equal_inputs_are_full() -> None:
    corpus = corpus_from_sentences([sentence_from_words(["the"] * 8)] * 100)
    plan = IncrementalPlan(tiny(), corpus, RecordingConfig(tokens_per_batch=100))
    assert list(map(len, plan.batches())) == [10] * 10


def test_a_corpus_without_inputs_is_refused() -> None:
    corpus = corpus_from_sentences([sentence_from_words(["the"] * 50)] * 3)
    plan = IncrementalPlan(tiny(), corpus, RecordingConfig(overflow="skip", max_length=10))
    with pytest.raises(Refusal, match="no input to record"):
        list(plan.batches())
