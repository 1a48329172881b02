"""What the tests of recording are made of: an untrained encoder, sentences of mixed lengths, a count of its passes."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

import numpy as np
from hypothesis import HealthCheck, settings

from bertology.corpus.corpus import Corpus, Item, of_sentences
from bertology.corpus.sentence import Sentence, sentence
from bertology.encoder.encoder import Batch, Encoder
from bertology.encoder.load import load
from bertology.encoder.tiny import WORDS
from bertology.recording.frame import Frame
from bertology.recording.plan import Plan
from bertology.recording.recording import Recording

CLOSE = 1e-5

DETERMINED = settings(
    max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@cache
def tiny() -> Encoder:
    """The built-in untrained BERT: 2 layers, 4 heads, with its MLM and NSP heads."""
    return load("tiny")


def random_sentence(random_: random.Random, words: int) -> Sentence:
    """Words the tiny model knows and words it cuts into pieces, with a parse that is a chain."""
    known = WORDS.split()
    chosen = [random_.choice(known) if random_.random() < 0.8 else _strange(random_) for _ in range(words)]
    made = sentence([*chosen, "."])
    heads = tuple(range(-1, words))
    return Sentence(made.words, made.text, made.offsets, heads=heads, relations=("dep",) * (words + 1))


def _strange(random_: random.Random) -> str:
    return "".join(random_.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(random_.randint(3, 8)))


def mixed(count: int, *, longest: int = 14, seed: int = 0) -> Corpus:
    """Sentences of 1 to `longest` words."""
    random_ = random.Random(seed)
    return of_sentences([random_sentence(random_, random_.randint(1, longest)) for _ in range(count)], name="mixed")


def pairs(count: int, *, first: int = 6, second: int = 9, seed: int = 1) -> Corpus:
    """Pairs of sentences of up to so many words."""
    random_ = random.Random(seed)

    def one() -> Item:
        parts = [random_sentence(random_, random_.randint(1, most)) for most in (first, second)]
        return Item(tuple(parts), "pair")

    return Corpus(tuple(one() for _ in range(count)), name="pairs")


@dataclass
class Counting:
    """An encoder that notes the digest of every batch it is run on, and how often it tokenised."""

    inner: Encoder
    note: Callable[[str], None]
    tokenised: int = field(default=0, init=False)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def tokenise(self, inputs: Sequence[Any]) -> Any:
        self.tokenised += 1
        return self.inner.tokenise(inputs)

    def run(self, batch: Batch, **options: Any) -> Any:
        self.note(batch_digest(batch))
        return self.inner.run(batch, **options)


def counting(inner: Encoder, note: Callable[[str], None]) -> Encoder:
    """`inner`, telling `note` of every forward pass."""
    return cast(Encoder, Counting(inner, note))


def batch_digest(batch: Batch) -> str:
    """Which batch this is, by its ids."""
    return hashlib.sha256(repr(batch.ids.shape).encode() + batch.ids.numpy().tobytes()).hexdigest()[:16]


def shard_of_batch(plan: Plan) -> dict[str, int]:
    """The shard of every batch by its digest."""
    return {
        batch_digest(Frame([plan.entries[i] for i in batch]).batch): number
        for number, shard in enumerate(plan.shards)
        for batch in shard
    }


def assert_same_recording(left: Recording, right: Recording, *, tolerance: float = 0.0) -> None:
    """Two recordings hold the same entries, annotation and arrays."""
    assert left.encoder == right.encoder
    assert left.corpus.items == right.corpus.items
    assert left.corpus.fingerprint == right.corpus.fingerprint
    assert dict(left.policy) == dict(right.policy)
    assert dict(left.counts) == dict(right.counts)
    assert len(left) == len(right)
    for a, b in zip(left.entries, right.entries, strict=True):
        assert (a.item, a.variant, a.window, a.input) == (b.item, b.variant, b.window, b.input)
        for name in ("tokens", "words", "straddling", "unknown"):
            assert getattr(a.pieces, name) == getattr(b.pieces, name)
        for name in ("ids", "types", "part", "word", "special"):
            np.testing.assert_array_equal(getattr(a.pieces, name), getattr(b.pieces, name))
    assert sorted(left.sites) == sorted(right.sites)
    for site in left.sites:
        assert len(left[site]) == len(right[site]) == len(left)
        for a, b in zip(left[site], right[site], strict=True):
            assert a.dtype == b.dtype
            assert a.shape == b.shape
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=0, atol=tolerance)
