"""Parsing probe: how much of the dependency tree is in the attention of all heads (Clark et al. 2019, section 5)?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import numpy as np
from annotated_types import Ge

from bertology.analyses.declaration import Cost, analysis
from bertology.analyses.head_grids import UNTRAINED_MODEL
from bertology.analyses.head_selection.gold_links import FIXED_OFFSET
from bertology.analyses.heads.parsing_probe.dataset import (
    ArcDataset,
    arc_dataset,
    gold_governor_candidates,
    is_scored_word,
    padded_batches,
    special_attention_site,
    word_attention_site,
)
from bertology.analyses.probing.train_test_split import TrainTestSplit, randomised_encoder
from bertology.arrays import Array
from bertology.encoder.encoder import Encoder, TaskEncoder
from bertology.encoder.load import load, static_encoder
from bertology.encoder.token_batch import RecordedInput
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_proportion, range_over_seeds, ratio
from bertology.recording.recording import Recording
from bertology.results.shapes import Table

if TYPE_CHECKING:
    from torch import nn

    from bertology.analyses.heads.parsing_probe.models import ArcBatch

ATTENTION, ATTENTION_AND_WORDS, DISTANCE_AND_WORDS = "attention", "attention and words", "distance and words"
RIGHT_BRANCHING = "right-branching"
PROBES = (ATTENTION, ATTENTION_AND_WORDS)
UAS, UAS_BY_SEED = "UAS", "UAS (over seeds)"
LEARNING_RATE_FACTORS = {ATTENTION: 5.0, ATTENTION_AND_WORDS: 1.0, DISTANCE_AND_WORDS: 0.5}
"""Factors of the learning rate: single weights of small attention must grow far, a hidden layer needs small steps."""

OFFSETS = tuple(offset for offset in range(-5, 6) if offset)
RANDOM_VECTORS = "random-vectors:100"


@dataclass(frozen=True)
class _ParsingProbeConfig:
    seeds: tuple[int, ...]
    epochs: int
    learning_rate: float
    hidden_size: int
    legacy: bool


@analysis(
    question="How well can dependency governors be predicted from the attention of all heads together (UAS)?",
    special_tokens="Special tokens: excluded as sources and targets. Attention to and from [CLS] and [SEP] "
    "scores ROOT.",
    citations=("clark2019",),
    sites=(word_attention_site, special_attention_site),
    annotations=("governors", "relations"),
    version=2,
    cost=Cost(seconds_per_sampled_word=0.006),
)
def parsing_probe(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    *,
    word_vectors: Annotated[
        str, "Static word vectors, as for --model: glove:PATH or static:MODEL; empty: the model's input embeddings."
    ] = "",
    epochs: Annotated[int, Ge(1), "Training epochs."] = 10,
    learning_rate: Annotated[float, "Initial learning rate of Adam, decaying to zero."] = 0.02,
    hidden_size: Annotated[int, "Hidden units of the distances-and-words baseline."] = 256,
    legacy: Annotated[
        bool, "Reproduce the released code: pair each candidate with the vector of the following word."
    ] = False,
    split: TrainTestSplit = TrainTestSplit(),
) -> Table:
    """Unlabelled attachment score (UAS): proportion of words whose governor is predicted, 0 to 1, without punctuation.

    A probe scores each word j as the governor of word i by a weighted sum of all heads' attention from i to j and from
    j to i. `attention` learns one weight per head and direction; in `attention and words` a weight is a linear function
    of the static vectors of both words. ROOT is scored by the attention to and from [CLS] and [SEP], mixed by two
    learned weights. Attention to a split word is summed over its tokens, attention from a split word is averaged. A
    word is no candidate for its own governor. Words without tokens, or whose governor has none, are not scored. If the
    model has no input embeddings and --word-vectors is empty, words have random vectors.

    Baselines: right-branching (the governor is the next word); the fixed offset that is best on the training data; a
    hidden layer over the vectors of both words and their distance; the same probes on the attention of the untrained
    model (embeddings too, where Clark et al. keep those). The released code trains on one sentence at a time with Adam
    at 0.002 for one epoch of 36,160 sentences; here on batches of about thirty sentences for several epochs, with
    higher learning rates that decay to zero and vectors scaled to a mean norm of 1. It pairs each candidate with the
    vector of the following word: that is --legacy. Intervals of `UAS` are over test sentences, those of `UAS (over
    seeds)` are the range over seeds. Attention is stored in float16: 2 bytes x layers x heads x words squared per
    sentence.
    """
    config = _ParsingProbeConfig(split.seeds, epochs, learning_rate, hidden_size, legacy)
    vectors = _load_word_vectors(word_vectors, encoder)
    train, test, unused = _train_test_datasets(recording, encoder, vectors, split)
    train_inputs, test_inputs = train.inputs, test.inputs
    correct = _train_probes(train, test, config, (*PROBES, DISTANCE_AND_WORDS))
    correct |= _offset_baselines(train_inputs, test_inputs)
    del train, test  # free the attention before that of the untrained model is loaded
    untrained_correct: dict[str, Array] = {}
    if randomised is not None:
        train, test, _ = _train_test_datasets(randomised, randomised_encoder(encoder), vectors, split)
        untrained_correct = _train_probes(train, test, config, PROBES)
    table = _build_table(correct, untrained_correct, train_inputs, test_inputs, split.seed)
    sample = {**table.sample, **unused}
    notes = {ATTENTION_AND_WORDS: f"Word vectors: {vectors.name}."}
    return table.model_copy(update={"sample": sample, "notes": notes})


def _load_word_vectors(word_vectors: str, encoder: Encoder | None) -> Encoder:
    if not word_vectors and isinstance(encoder, TaskEncoder):
        return static_encoder(encoder)
    return load(word_vectors or RANDOM_VECTORS)


def _train_test_datasets(
    recording: Recording, encoder: Encoder | None, word_vectors: Encoder, split: TrainTestSplit
) -> tuple[ArcDataset, ArcDataset, dict[str, int]]:
    """Training and test data, with vectors scaled to a mean norm of 1 in training, and training sentences left out."""
    sites = (word_attention_site, special_attention_site)
    data = split.split(recording, encoder, sites, analysis_name="heads/parsing_probe")
    train, test = (arc_dataset(part.recording, word_vectors, part.indices) for part in (data.train, data.test))
    if not train.inputs or not test.inputs:
        raise Refusal(
            f"{recording.corpus.name} has too few sentences with a tree: {len(train.inputs)} for training, "
            f"{len(test.inputs)} for testing",
            "at least one sentence for each",
            "Use a larger treebank, or name another with --train-corpus",
        )
    mean_norm = float(np.concatenate([np.linalg.norm(v, axis=1) for v in train.word_vectors]).mean()) or 1.0
    train, test = (
        replace(part, word_vectors=tuple(vectors / mean_norm for vectors in part.word_vectors))
        for part in (train, test)
    )
    return train, test, data.sample


def _train_probes(
    train_data: ArcDataset, test_data: ArcDataset, config: _ParsingProbeConfig, names: Sequence[str]
) -> dict[str, Array]:
    """(seed, sentence) correct governors of each probe in each test sentence."""
    from bertology.analyses.heads.parsing_probe.models import predict_governors, train_arc_probe

    train_batches = [batch for _, batch in padded_batches(train_data)]
    test_batches = padded_batches(test_data)
    correct: dict[str, Array] = {}
    for name in names:
        model = _build_probe(name, train_batches[0], config)
        learning_rate = LEARNING_RATE_FACTORS[name] * config.learning_rate
        train_arc_probe(model, train_batches, epochs=config.epochs, learning_rate=learning_rate, seed=config.seeds[0])
        correct[name] = np.zeros((len(config.seeds), len(test_data.inputs)))
        for indices, batch in test_batches:
            is_correct = (predict_governors(model, batch) == batch.gold).numpy()
            for row, index in enumerate(indices):
                is_scored = is_scored_word(test_data.inputs[index])
                correct[name][:, index] = is_correct[:, row, : len(is_scored)][:, is_scored].sum(1)
    return correct


def _build_probe(name: str, batch: ArcBatch, config: _ParsingProbeConfig) -> nn.Module:
    from bertology.analyses.heads.parsing_probe.models import AttentionProbe, AttentionWordsProbe, DistanceProbe

    n_heads, width = batch.attention.shape[2], batch.vectors.shape[2]
    if name == ATTENTION:
        return AttentionProbe(n_heads, config.seeds)
    if name == ATTENTION_AND_WORDS:
        return AttentionWordsProbe(n_heads, width, config.seeds, use_next_word=config.legacy)
    return DistanceProbe(width, config.hidden_size, config.seeds, use_next_word=config.legacy)


def _offset_baselines(train_inputs: Sequence[RecordedInput], test_inputs: Sequence[RecordedInput]) -> dict[str, Array]:
    """(1, sentence) correct governors of right-branching and of the offset that is best on the training data."""

    def count_correct(inputs: Sequence[RecordedInput], offset: int) -> Array:
        return np.array([_count_at_offset(recorded_input, offset) for recorded_input in inputs], np.float64)

    best = max(OFFSETS, key=lambda offset: count_correct(train_inputs, offset).sum())
    return {
        RIGHT_BRANCHING: count_correct(test_inputs, 1)[None],
        FIXED_OFFSET: count_correct(test_inputs, best)[None],
    }


def _count_at_offset(recorded_input: RecordedInput, offset: int) -> int:
    gold = gold_governor_candidates(recorded_input)
    return int((is_scored_word(recorded_input) & (gold == np.arange(1, len(gold) + 1) + offset)).sum())


def _build_table(
    correct: dict[str, Array],
    untrained_correct: dict[str, Array],
    train_inputs: Sequence[RecordedInput],
    test_inputs: Sequence[RecordedInput],
    seed: int,
) -> Table:
    n_scored = np.array([is_scored_word(recorded_input).sum() for recorded_input in test_inputs], np.float64)

    def estimate(names: Sequence[str], correct_by_probe: dict[str, Array]) -> dict[str, Estimates]:
        pooled = [bootstrap_proportion(correct_by_probe[name].mean(0), n_scored, seed=seed) for name in names]
        by_seed = [_range_by_seed(correct_by_probe[name], n_scored) for name in names]
        return {UAS: Estimates.stack(pooled), UAS_BY_SEED: Estimates.stack(by_seed)}

    baselines = {name: estimate((name, name), correct) for name in (RIGHT_BRANCHING, FIXED_OFFSET, DISTANCE_AND_WORDS)}
    if untrained_correct:
        baselines[UNTRAINED_MODEL] = estimate(PROBES, untrained_correct)
    n_train = sum(int((gold_governor_candidates(recorded_input) >= 0).sum()) for recorded_input in train_inputs)
    return Table(
        measures=estimate(PROBES, correct),
        baselines=baselines,
        units=dict.fromkeys((UAS, UAS_BY_SEED), "proportion of words, 0 to 1"),
        row_names=PROBES,
        sample={
            "training sentences": len(train_inputs),
            "training words": n_train,
            "test sentences": len(test_inputs),
            "test words": int(n_scored.sum()),
        },
    )


def _range_by_seed(correct: Array, n_scored: Array) -> Estimates:
    total = n_scored.sum()
    estimates = range_over_seeds(ratio(correct.sum(1), total, empty=np.nan))
    return estimates.with_n(len(correct) if total else 0)
