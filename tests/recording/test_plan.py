"""Plans: every input in one batch within the limit, little padding, shards of bounded size."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.recording.material import FEW_EXAMPLES, mixed, pairs, tiny

from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.sentence import sentence_from_words
from bertology.encoder.encoder import Encoder
from bertology.recording import plan as planning
from bertology.recording.plan import RecordingConfig, affordable_sample_size, make_plan


@FEW_EXAMPLES
@given(count=st.integers(1, 60), seed=st.integers(0, 9), max_tokens=st.integers(1, 400))
def test_every_input_is_in_one_batch_within_the_limit(count: int, seed: int, max_tokens: int) -> None:
    plan = make_plan(tiny(), mixed(count, seed=seed), RecordingConfig(tokens_per_batch=max_tokens))
    batches = [batch for shard in plan.shards for batch in shard]
    assert sorted(index for batch in batches for index in batch) == list(range(count))
    assert [recorded.example_index for recorded in plan.inputs] == list(range(count))
    lengths = [len(recorded.tokens) for recorded in plan.inputs]
    in_order = [lengths[index] for batch in batches for index in batch]
    assert in_order == sorted(in_order)
    for batch in batches:
        assert len(batch) == 1 or max(lengths[i] for i in batch) * len(batch) <= max_tokens


def test_batches_of_mixed_lengths_have_little_padding() -> None:
    plan = make_plan(tiny(), mixed(400, max_words=40), RecordingConfig())
    lengths = [[len(plan.inputs[i].tokens) for i in batch] for shard in plan.shards for batch in shard]
    padded = sum(max(batch) * len(batch) for batch in lengths)
    assert padded / sum(map(sum, lengths)) < 1.06


def test_shards_of_short_inputs_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A site may store as much for a short input as for a long one, which the size of attention does not show."""
    monkeypatch.setattr(planning, "SHARD_INPUTS", 50)
    plan = make_plan(tiny(), mixed(220, max_words=4), RecordingConfig(tokens_per_batch=60))
    sizes = [sum(map(len, shard)) for shard in plan.shards]
    assert sum(sizes) == 220 and max(sizes) <= 50
    assert len(sizes) < 8, "shards are filled"


def test_words_and_tokens_that_do_not_align_are_counted() -> None:
    corpus = Corpus((Example((sentence_from_words(["un", "\u200b", "cat"]),)), *mixed(3), *pairs(2)))
    counts = make_plan(tiny(), corpus, RecordingConfig()).counts
    assert counts["inputs"] == 6
    assert counts["words without tokens"] == 1
    assert counts["words"] == sum(len(sentence) for sentence in corpus.sentences)
    assert counts["split words"] > 0


def test_each_option_of_an_example_is_an_input() -> None:
    segments = tuple(sentence_from_words(text.split()) for text in ("a story .", "who ?", "he", "she"))
    plan = make_plan(
        tiny(), Corpus((Example(segments, "choice"), Example(segments[:2], "minimal_pair"))), RecordingConfig()
    )
    indices = [(recorded.example_index, recorded.input_index) for recorded in plan.inputs]
    assert indices == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_all_fields_but_the_batch_size_are_part_of_the_key() -> None:
    key = RecordingConfig().key_fields()
    assert "tokens_per_batch" not in key
    assert key == RecordingConfig(tokens_per_batch=7).key_fields() != RecordingConfig(max_length=7).key_fields()


@pytest.mark.parametrize(("layers", "width", "expected"), [(8, 256, 60), (12, 768, 21), (48, 1600, 10)])
def test_samples_of_large_models_are_smaller(layers: int, width: int, expected: int) -> None:
    """The size follows from the model and the lengths, never from the time taken."""
    model = cast(Encoder, SimpleNamespace(layers=layers, width=width))
    lengths = [20, 30, 40]
    assert affordable_sample_size(model, lengths, 90, seconds=500.0) == expected
    assert affordable_sample_size(model, lengths, lengths, seconds=1e9, maximum=7) == 7
    assert affordable_sample_size(model, [], 1, seconds=1.0) == 60
