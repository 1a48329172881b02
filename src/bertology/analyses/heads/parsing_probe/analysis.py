"""Parsing probe: how much of the dependency tree is in the attention of all heads (Clark et al. 2019, section 5)?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import numpy as np

from bertology.analyses.declaration import Cost, analysis
from bertology.analyses.head_grids import UNTRAINED_MODEL
from bertology.analyses.head_selection.answers import input_name, input_text
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
from bertology.estimates.resampling import (
    bootstrap_proportion,
    bootstrap_sentences_and_seeds,
    range_over_seeds,
    ratio,
)
from bertology.number_ranges import LEARNING_RATE, REPETITIONS, SIZE
from bertology.recording.recording import Recording
from bertology.results.answers import Answer
from bertology.results.measured_shape import MODEL_SERIES, gain_measure
from bertology.results.shapes import Table

if TYPE_CHECKING:
    from torch import nn

    from bertology.analyses.heads.parsing_probe.models import ArcBatch

ATTENTION, ATTENTION_AND_WORDS, DISTANCE_AND_WORDS = "attention", "attention and words", "distance and words"
RIGHT_BRANCHING = "right-branching"
PROBES = (ATTENTION, ATTENTION_AND_WORDS)
UAS, UAS_BY_SEED = "UAS", "UAS (over seeds)"
GAIN = gain_measure(UAS)
LEARNING_RATE_FACTORS = {ATTENTION: 5.0, ATTENTION_AND_WORDS: 1.0, DISTANCE_AND_WORDS: 0.5}
"""Factors of the learning rate: single weights of small attention must grow far, a hidden layer needs small steps."""

OFFSETS = tuple(offset for offset in range(-5, 6) if offset)
RANDOM_VECTORS = "random-vectors:100"

Predictions = list[Array]
"""(seed, word) predicted governors of each test sentence, as candidates: 0 for ROOT, w + 1 for word w."""


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
    version=3,
    cost=Cost(seconds_per_sampled_word=0.007),
    answers=True,
)
def parsing_probe(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    *,
    word_vectors: Annotated[
        str, "Static word vectors, as for --model: glove:PATH or static:MODEL; empty: the model's input embeddings."
    ] = "",
    epochs: Annotated[int, REPETITIONS, "Training epochs."] = 10,
    learning_rate: Annotated[float, LEARNING_RATE, "Initial learning rate of Adam, decaying to zero."] = 0.02,
    hidden_size: Annotated[int, SIZE, "Hidden units of the distances-and-words baseline."] = 256,
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
    seeds)` are the range over seeds. `UAS - UAS (half the training data)` is what the second half of the training
    sentences adds: a score that still rises says little about the model. Attention is stored in float16: 2 bytes x
    layers x heads x words squared per sentence.
    """
    config = _ParsingProbeConfig(split.seeds, epochs, learning_rate, hidden_size, legacy)
    vectors = _load_word_vectors(word_vectors, encoder)
    train, test, unused = _train_test_datasets(recording, encoder, vectors, split)
    train_inputs, test_inputs = train.inputs, test.inputs
    predictions = _train_probes(train, test, config, (*PROBES, DISTANCE_AND_WORDS))
    gain = _training_gain(train, test, config, predictions)
    predictions |= _offset_baselines(train_inputs, test_inputs)
    del train, test  # free the attention before that of the untrained model is loaded
    untrained_predictions: dict[str, Predictions] = {}
    if randomised is not None:
        train, test, _ = _train_test_datasets(randomised, randomised_encoder(encoder), vectors, split)
        untrained_predictions = _train_probes(train, test, config, PROBES)
    table = _build_table(predictions, untrained_predictions, train_inputs, test_inputs, split.seed)
    sample = {**table.sample, **unused}
    notes = {ATTENTION_AND_WORDS: f"Word vectors: {vectors.name}."}
    table = table.model_copy(
        update={
            "measures": {**table.measures, GAIN: gain},
            "baselines": {**table.baselines, "zero": {GAIN: Estimates.exact(np.zeros(len(PROBES)))}},
            "units": {**table.units, GAIN: "difference, -1 to 1"},
            "sample": sample,
            "notes": notes,
        }
    )
    return table.with_answers(lambda: _answers(test_inputs, predictions, untrained_predictions, split.seeds))


def _answers(
    inputs: Sequence[RecordedInput],
    predictions: Mapping[str, Predictions],
    untrained_predictions: Mapping[str, Predictions],
    seeds: tuple[int, ...],
) -> Iterator[Answer]:
    """The governor predicted for each scored word, by series and seed; `row` is the probe, and empty for baselines."""
    by_series = [
        (MODEL_SERIES if name in PROBES else name, name if name in PROBES else None, by_sentence)
        for name, by_sentence in predictions.items()
    ]
    by_series += [(UNTRAINED_MODEL, name, by_sentence) for name, by_sentence in untrained_predictions.items()]
    for index, recorded_input in enumerate(inputs):
        words, gold = ("root", *recorded_input.text.words), gold_governor_candidates(recorded_input)
        for word in np.flatnonzero(is_scored_word(recorded_input)).tolist():
            item = {
                "item": f"{input_name(recorded_input)}:{word + 1}",
                "text": input_text(recorded_input),
                "word": words[word + 1],
                "gold": words[gold[word]],
            }
            for series, row, by_sentence in by_series:
                for run, governors in enumerate(by_sentence[index][:, word].tolist()):
                    yield item | {
                        "series": series,
                        "row": row,
                        "seed": seeds[run] if len(by_sentence[index]) > 1 else None,
                        "prediction": words[governors] if 0 <= governors < len(words) else "",
                        "predicted word": governors,
                        "correct": float(governors == gold[word]),
                    }


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
) -> dict[str, Predictions]:
    """The governors that each probe predicts in each test sentence."""
    from bertology.analyses.heads.parsing_probe.models import predict_governors, train_arc_probe

    train_batches = [batch for _, batch in padded_batches(train_data)]
    test_batches = padded_batches(test_data)
    predictions: dict[str, Predictions] = {}
    for name in names:
        model = _build_probe(name, train_batches[0], config)
        learning_rate = LEARNING_RATE_FACTORS[name] * config.learning_rate
        train_arc_probe(model, train_batches, epochs=config.epochs, learning_rate=learning_rate, seed=config.seeds[0])
        by_sentence: dict[int, Array] = {}
        for indices, batch in test_batches:
            governors = predict_governors(model, batch).numpy()
            by_sentence |= {
                index: governors[:, row, : len(test_data.word_vectors[index])] for row, index in enumerate(indices)
            }
        predictions[name] = [by_sentence[index] for index in range(len(test_data.inputs))]
    return predictions


def _training_gain(
    train_data: ArcDataset, test_data: ArcDataset, config: _ParsingProbeConfig, predictions: Mapping[str, Predictions]
) -> Estimates:
    """(probe,) what the second half of the training data adds to UAS; the half is another one for each seed."""
    by_seed = [
        _train_probes(train_data.random_half(seed), test_data, replace(config, seeds=(seed,)), PROBES)
        for seed in config.seeds
    ]
    n_scored = np.array([is_scored_word(recorded_input).sum() for recorded_input in test_data.inputs], np.float64)
    gains: list[Array] = []
    for name in PROBES:
        full = _count_correct(predictions[name], test_data.inputs)
        half = np.concatenate([_count_correct(run[name], test_data.inputs) for run in by_seed])
        gains.append(full - half)
    # (seed, sentence, probe, difference and words)
    sums = np.stack([np.stack([gain, np.broadcast_to(n_scored, gain.shape)], -1) for gain in gains], 2)
    return bootstrap_sentences_and_seeds(
        sums, lambda totals: ratio(totals[..., 0], totals[..., 1], empty=np.nan), seed=config.seeds[0]
    )


def _build_probe(name: str, batch: ArcBatch, config: _ParsingProbeConfig) -> nn.Module:
    from bertology.analyses.heads.parsing_probe.models import AttentionProbe, AttentionWordsProbe, DistanceProbe

    n_heads, width = batch.attention.shape[2], batch.vectors.shape[2]
    if name == ATTENTION:
        return AttentionProbe(n_heads, config.seeds)
    if name == ATTENTION_AND_WORDS:
        return AttentionWordsProbe(n_heads, width, config.seeds, use_next_word=config.legacy)
    return DistanceProbe(width, config.hidden_size, config.seeds, use_next_word=config.legacy)


def _offset_baselines(
    train_inputs: Sequence[RecordedInput], test_inputs: Sequence[RecordedInput]
) -> dict[str, Predictions]:
    """The governors predicted by right-branching and by the offset that is best on the training data."""

    def at_offset(inputs: Sequence[RecordedInput], offset: int) -> Predictions:
        return [np.arange(1, len(recorded_input.text.words) + 1)[None] + offset for recorded_input in inputs]

    best = max(OFFSETS, key=lambda offset: _count_correct(at_offset(train_inputs, offset), train_inputs).sum())
    return {RIGHT_BRANCHING: at_offset(test_inputs, 1), FIXED_OFFSET: at_offset(test_inputs, best)}


def _count_correct(predictions: Predictions, inputs: Sequence[RecordedInput]) -> Array:
    """(seed, sentence) correct governors of the scored words."""
    by_sentence = [
        ((governors == gold_governor_candidates(recorded_input)) & is_scored_word(recorded_input)).sum(1)
        for governors, recorded_input in zip(predictions, inputs, strict=True)
    ]
    return np.stack(by_sentence, 1).astype(np.float64)


def _build_table(
    predictions: Mapping[str, Predictions],
    untrained_predictions: Mapping[str, Predictions],
    train_inputs: Sequence[RecordedInput],
    test_inputs: Sequence[RecordedInput],
    seed: int,
) -> Table:
    n_scored = np.array([is_scored_word(recorded_input).sum() for recorded_input in test_inputs], np.float64)

    def estimate(names: Sequence[str], by_probe: Mapping[str, Predictions]) -> dict[str, Estimates]:
        correct = [_count_correct(by_probe[name], test_inputs) for name in names]
        pooled = [bootstrap_proportion(counts.mean(0), n_scored, seed=seed) for counts in correct]
        by_seed = [_range_by_seed(counts, n_scored) for counts in correct]
        return {UAS: Estimates.stack(pooled), UAS_BY_SEED: Estimates.stack(by_seed)}

    baselines = {
        name: estimate((name, name), predictions) for name in (RIGHT_BRANCHING, FIXED_OFFSET, DISTANCE_AND_WORDS)
    }
    if untrained_predictions:
        baselines[UNTRAINED_MODEL] = estimate(PROBES, untrained_predictions)
    n_train = sum(int((gold_governor_candidates(recorded_input) >= 0).sum()) for recorded_input in train_inputs)
    return Table(
        measures=estimate(PROBES, predictions),
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
