"""Fixtures of the recording tests: an untrained encoder, sentences of mixed lengths, a count of forward passes."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

import numpy as np
from hypothesis import HealthCheck, settings

from bertology.corpus.corpus import Corpus, corpus_from_sentences
from bertology.corpus.example import Example
from bertology.corpus.sentence import Sentence, sentence_from_words
from bertology.encoder.builtin import TINY_WORDS
from bertology.encoder.encoder import Encoder, ModelInputs
from bertology.encoder.load import load
from bertology.encoder.token_batch import TokenBatch
from bertology.recording.manifest import INDICES, TOKEN_ARRAYS, TOKEN_COUNTS
from bertology.recording.plan import RecordingPlan
from bertology.recording.recording import Recording

CLOSE = 1e-5

FEW_EXAMPLES = settings(
    max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)


@cache
def tiny() -> Encoder:
    """The built-in untrained BERT: 2 layers, 4 heads, with MLM and NSP task heads."""
    return load("tiny")


def random_sentence(rng: random.Random, n_words: int) -> Sentence:
    """Words in the vocabulary of the tiny model and words that it splits, with a parse that is a chain."""
    vocabulary = TINY_WORDS.split()
    words = [rng.choice(vocabulary) if rng.random() < 0.8 else _unknown_word(rng) for _ in range(n_words)]
    sentence = sentence_from_words([*words, "."])
    governors = tuple(range(-1, n_words))
    return Sentence(
        sentence.words, sentence.text, sentence.offsets, governors=governors, relations=("dep",) * (n_words + 1)
    )


def _unknown_word(rng: random.Random) -> str:
    return "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randint(3, 8)))


def mixed(count: int, *, max_words: int = 14, seed: int = 0) -> Corpus:
    """Sentences of 1 to `max_words` words."""
    rng = random.Random(seed)
    return corpus_from_sentences([random_sentence(rng, rng.randint(1, max_words)) for _ in range(count)], name="mixed")


def pairs(count: int, *, max_first: int = 6, max_second: int = 9, seed: int = 1) -> Corpus:
    """Pairs of sentences with at most `max_first` and `max_second` words."""
    rng = random.Random(seed)

    def pair() -> Example:
        segments = [random_sentence(rng, rng.randint(1, max_words)) for max_words in (max_first, max_second)]
        return Example(tuple(segments), "pair")

    return Corpus(tuple(pair() for _ in range(count)), name="pairs")


@dataclass
class CountingEncoder:
    """An encoder that reports the digest of every batch it runs on, and counts its tokenisations."""

    inner: Encoder
    on_forward: Callable[[str], None]
    n_tokenised: int = field(default=0, init=False)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def tokenise(self, inputs: Sequence[Any]) -> Any:
        self.n_tokenised += 1
        return self.inner.tokenise(inputs)

    def forward(self, batch: ModelInputs, **options: Any) -> Any:
        self.on_forward(batch_digest(batch))
        return self.inner.forward(batch, **options)


def counting(inner: Encoder, on_forward: Callable[[str], None]) -> Encoder:
    """`inner`, with a callback for every forward pass."""
    return cast(Encoder, CountingEncoder(inner, on_forward))


def batch_digest(batch: ModelInputs) -> str:
    """A digest of the ids of a batch."""
    ids = batch.input_ids
    return hashlib.sha256(repr(ids.shape).encode() + ids.numpy().tobytes()).hexdigest()[:16]


def shard_of_batch(plan: RecordingPlan) -> dict[str, int]:
    """The shard of every batch by its digest."""
    return {
        batch_digest(TokenBatch([plan.inputs[i] for i in batch]).model_inputs): index
        for index, shard in enumerate(plan.shards)
        for batch in shard
    }


def assert_same_recording(left: Recording, right: Recording, *, tolerance: float = 0.0) -> None:
    """Two recordings hold the same inputs, annotations and arrays."""
    assert left.encoder == right.encoder
    assert left.corpus.examples == right.corpus.examples
    assert left.corpus.fingerprint == right.corpus.fingerprint
    assert dict(left.config) == dict(right.config)
    assert dict(left.counts) == dict(right.counts)
    assert len(left) == len(right)
    for a, b in zip(left.inputs, right.inputs, strict=True):
        assert a.text == b.text
        for name in INDICES:
            assert getattr(a, name) == getattr(b, name)
        for name in ("tokens", *TOKEN_COUNTS):
            assert getattr(a.tokens, name) == getattr(b.tokens, name)
        for name in TOKEN_ARRAYS:
            np.testing.assert_array_equal(getattr(a.tokens, name), getattr(b.tokens, name))
    assert sorted(left.sites) == sorted(right.sites)
    for site in left.sites:
        assert len(left[site]) == len(right[site]) == len(left)
        for a, b in zip(left[site], right[site], strict=True):
            assert a.dtype == b.dtype
            assert a.shape == b.shape
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=0, atol=tolerance)
