"""The encoder and corpus of the benchmarks: from ../shared if present, otherwise built-in and synthetic ones."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bertology.corpus.corpus import Corpus, corpus_from_sentences
from bertology.corpus.read import read
from bertology.corpus.sentence import sentence_from_words
from bertology.encoder.builtin import TINY_WORDS
from bertology.encoder.encoder import ModelInputs
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.load import load
from bertology.encoder.token_batch import TokenBatch
from bertology.recording.plan import RecordingConfig, RecordingPlan, make_plan

SHARED = Path(__file__).parents[3] / "shared"
MODEL = SHARED / "models" / "gte-small"
DEV = SHARED / "data" / "ud" / "en_ewt-ud-dev.conllu"
TRAIN = SHARED / "data" / "ud" / "en_ewt-ud-train.conllu"


@dataclass(frozen=True)
class BenchmarkSetup:
    """An encoder, a corpus, its recording plan, and the same weights in plain transformers models."""

    encoder: HuggingFaceEncoder
    corpus: Corpus
    plan: RecordingPlan
    plain_model: Callable[[str], Any]

    @property
    def texts(self) -> list[str]:
        """The sentences in file order."""
        return [example.segments[0].text for example in self.corpus]

    def batches(self) -> list[ModelInputs]:
        """The padded batches of the plan."""
        return [
            TokenBatch([self.plan.inputs[i] for i in batch]).model_inputs
            for shard in self.plan.shards
            for batch in shard
        ]

    def with_corpus(self, corpus: Corpus) -> BenchmarkSetup:
        """The same encoder on another corpus."""
        return BenchmarkSetup(
            self.encoder, corpus, make_plan(self.encoder, corpus, RecordingConfig()), self.plain_model
        )


def prepare_setup(model: str, corpus: Corpus, config: RecordingConfig = RecordingConfig()) -> BenchmarkSetup:
    """Load the named or default model and plan the recording of the corpus."""
    encoder = load(model or (str(MODEL) if MODEL.is_dir() else "tiny"))
    assert isinstance(encoder, HuggingFaceEncoder), "the benchmarks compare with plain transformers"

    @cache
    def plain_model(attention: str) -> Any:
        config = type(encoder.model.config).from_dict(encoder.model.config.to_dict())
        config._attn_implementation = attention
        model = type(encoder.model)(config)
        model.load_state_dict(encoder.model.state_dict())
        return model.eval()

    return BenchmarkSetup(encoder, corpus, make_plan(encoder, corpus, config), plain_model)


def padding_ratio(plan: RecordingPlan) -> float:
    """The number of padding tokens relative to real tokens."""
    batches = [[len(plan.inputs[i].tokens) for i in batch] for shard in plan.shards for batch in shard]
    return sum(max(lengths) * len(lengths) for lengths in batches) / sum(map(sum, batches)) - 1


def load_sentences(count: int) -> Corpus:
    """The first sentences of a treebank, or synthetic ones with the same distribution of lengths."""
    file = DEV if count <= 2000 else TRAIN
    if file.is_file():
        return read(file, limit=count)
    rng = random.Random(0)
    vocabulary = TINY_WORDS.split()
    lengths = [min(80, max(1, round(rng.lognormvariate(2.4, 0.8)))) for _ in range(count)]
    return corpus_from_sentences(
        [sentence_from_words([rng.choice(vocabulary) for _ in range(n)]) for n in lengths], name="synthetic sentences"
    )
