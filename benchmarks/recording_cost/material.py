"""What the benchmarks run on: a real encoder and a real corpus where they lie beside the checkout, else made ones."""

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
class Setting:
    """The encoder, a corpus, the batches bertology makes of it, and the same weights in plain transformers models."""

    encoder: HuggingFaceEncoder
    corpus: Corpus
    plan: RecordingPlan
    plain_model: Callable[[str], Any]

    @property
    def texts(self) -> list[str]:
        """The sentences in file order."""
        return [example.segments[0].text for example in self.corpus]

    def batches(self) -> list[ModelInputs]:
        """The batches, padded and ready."""
        return [
            TokenBatch([self.plan.inputs[i] for i in batch]).model_inputs
            for shard in self.plan.shards
            for batch in shard
        ]

    def part(self, corpus: Corpus) -> Setting:
        """The same encoder on another corpus."""
        return Setting(self.encoder, corpus, make_plan(self.encoder, corpus, RecordingConfig()), self.plain_model)


def setting(model: str, corpus: Corpus, config: RecordingConfig = RecordingConfig()) -> Setting:
    """A model by name, or the real one, or the built-in one, and the plan for the corpus."""
    encoder = load(model or (str(MODEL) if MODEL.is_dir() else "tiny"))
    assert isinstance(encoder, HuggingFaceEncoder), "the benchmark is about transformers"

    @cache
    def plain(attention: str) -> Any:
        config = type(encoder.model.config).from_dict(encoder.model.config.to_dict())
        config._attn_implementation = attention
        made = type(encoder.model)(config)
        made.load_state_dict(encoder.model.state_dict())
        return made.eval()

    return Setting(encoder, corpus, make_plan(encoder, corpus, config), plain)


def padding(plan: RecordingPlan) -> float:
    """Padding as a share of the real tokens."""
    batches = [[len(plan.inputs[i].tokens) for i in batch] for shard in plan.shards for batch in shard]
    return sum(max(lengths) * len(lengths) for lengths in batches) / sum(map(sum, batches)) - 1


def load_sentences(count: int) -> Corpus:
    """So many sentences of a treebank, or made ones of the same mixture of lengths where it is absent."""
    file = DEV if count <= 2000 else TRAIN
    if file.is_file():
        return read(file, limit=count)
    random_ = random.Random(0)
    known = TINY_WORDS.split()
    lengths = [min(80, max(1, round(random_.lognormvariate(2.4, 0.8)))) for _ in range(count)]
    return corpus_from_sentences(
        [sentence_from_words([random_.choice(known) for _ in range(n)]) for n in lengths], name="made sentences"
    )
