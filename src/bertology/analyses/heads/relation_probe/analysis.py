"""Relation probe: does attention between two words encode whether and how they are related (Reif et al. 2019)?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.analyses.head_grids import UNTRAINED_MODEL
from bertology.analyses.head_selection.answers import input_name, input_text
from bertology.analyses.head_selection.functions import TO_GOVERNOR
from bertology.analyses.heads.relation_probe.word_pairs import (
    N_DIRECTIONS,
    DependencyPairs,
    NegativeSampling,
    pair_attention_site,
    pair_dataset,
)
from bertology.analyses.probing.fitting import assign_control_labels
from bertology.analyses.probing.options import MinExamplesOption
from bertology.analyses.probing.train_test_split import TrainTestSplit, randomised_encoder
from bertology.arrays import Array
from bertology.encoder.encoder import Encoder
from bertology.encoder.token_batch import RecordedInput
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_proportion, exact_where_unanimous, paired_difference
from bertology.number_ranges import PENALTY
from bertology.recording.recording import Recording
from bertology.results.answers import Answer
from bertology.results.measured_shape import MODEL_SERIES, gain_measure
from bertology.results.shapes import Table

BOTH_DIRECTIONS = "both directions"
MAJORITY_CLASS, DISTANCE_ONLY, CONTROL_TASK = "majority class", "distance only", "control task"
RELATED, UNRELATED = "related", "unrelated"
EXISTENCE, RELATION = "relation exists", "which relation"
CONTROL_SUFFIX = ", control"
MAX_OFFSET = 10
"""Larger offsets count as this many words."""


@dataclass(frozen=True)
class _RelationProbeSpec:
    """Seeds of negative pairs and control labels, relations by frequency, and the L2 penalty."""

    seeds: tuple[int, ...]
    relations: tuple[str, ...]
    l2_penalty: float


class _RelationPredictions(NamedTuple):
    """Predictions on the test pairs.

    `existence_correct` is (seed, word, 2): whether the related and the negative pair are classified correctly.
    `predicted` and `gold` are (task, word): the relation.
    """

    existence_correct: Array
    predicted: Array
    gold: Array


@analysis(
    question="Can a linear classifier tell from attention whether two words are related, and by which relation?",
    special_tokens="Special tokens: excluded as sources and targets. Attention is not renormalised.",
    citations=("reif2019",),
    sites=lambda options: (
        pair_attention_site(options["negatives"], tuple(range(options["seed"], options["seed"] + options["n_seeds"]))),
    ),
    annotations=("governors", "relations"),
    version=5,
    answers=True,
)
def relation_probe(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    *,
    negatives: Annotated[
        NegativeSampling,
        "Word pairs without a relation: `any` pair of the same word, or `distance-matched` pairs.",
    ] = "any",
    min_examples: MinExamplesOption = 20,
    l2_penalty: Annotated[
        float,
        PENALTY,
        "L2 penalty on the weights of the classifier: half of it times the squared norm of all classes' weights is "
        "added to the mean loss of n examples (scikit-learn: C = 1 / (penalty n), for two classes 2 / (penalty n)).",
    ] = 0.003,
    split: TrainTestSplit = TrainTestSplit(),
) -> Table:
    """Proportion of word pairs classified correctly, 0 to 1; chance is 0.5 for whether a relation exists.

    A linear classifier sees the attention of all heads between a word and its governor, in `both directions` or from
    `dependent to governor` only (the paper's vector, one number per head). `relation exists`: accuracy on these and as
    many unrelated pairs; `which relation`: accuracy on related pairs; the rows of single relations are their F1 in that
    task. Punctuation, roots and rare relations are excluded. Attention to a split word is summed over its tokens,
    attention from a split word is averaged.

    Baselines: the majority class of the training data; a classifier that sees only the distance and order of the words;
    the same classifiers on the untrained model; and a control task, in which each word form has a random label, which a
    probe can solve only by memorising. With `distance-matched` pairs distance carries no information. The paper trains
    by stochastic gradient descent on a balanced set of the Penn Treebank, with relations of at least 5,000 examples;
    here the same objective is optimised to convergence. `both directions - both directions (half the training data)` is
    what the second half of the training sentences adds, another half for each seed, on the same test words: a score
    that still rises says little about the model.
    """
    seed, seeds = split.seed, split.seeds
    train, test, test_inputs, unused = _train_test_pairs(recording, encoder, split, negatives, seeds)
    relations = _frequent_relations(train.relation, min_examples)
    train, test = (pairs.subset(np.isin(pairs.relation, relations)) for pairs in (train, test))
    if not len(train.sentence_index) or not len(test.sentence_index):
        raise Refusal(
            f"{recording.corpus.name} has no relation with {min_examples} training examples and one test example",
            "a larger treebank",
            "Use one, name another with --train-corpus, or lower --min-examples",
        )
    spec = _RelationProbeSpec(seeds, relations, l2_penalty)
    predictions = _fit_probes(train, test, spec)

    def score(by_features: Mapping[str, _RelationPredictions], suffix: str = "") -> dict[str, Estimates]:
        return {
            name: _scores(test, by_features[f"{name}{suffix}"], spec, seed) for name in (BOTH_DIRECTIONS, TO_GOVERNOR)
        }

    measures = score(predictions)
    simple = {
        MAJORITY_CLASS: _majority_predictions(test, spec),
        DISTANCE_ONLY: _distance_predictions(train, test, spec),
    }
    baselines = {
        name: dict.fromkeys(measures, _scores(test, predicted, spec, seed)) for name, predicted in simple.items()
    }
    baselines[CONTROL_TASK] = {
        name: _accuracies_only(scores) for name, scores in score(predictions, CONTROL_SUFFIX).items()
    }
    half_predictions = _fit_halves(train, test, spec)
    gains: dict[str, Estimates] = {}
    for name, full in measures.items():
        gain = paired_difference(full, _scores(test, half_predictions[name], spec, seed), allow_constant=True)
        assert gain is not None, "proportions are resampled"
        gains[gain_measure(name)] = exact_where_unanimous(gain, lowest=-1.0)
    baselines["zero"] = dict.fromkeys(gains, Estimates.exact(np.zeros(len(relations) + 2)))
    by_series = [(MODEL_SERIES, name, predictions[name]) for name in measures]
    by_series += [(name, None, predicted) for name, predicted in simple.items()]
    if randomised is not None:
        first, second, _, _ = _train_test_pairs(randomised, randomised_encoder(encoder), split, negatives, seeds)
        first, second = (pairs.subset(np.isin(pairs.relation, relations)) for pairs in (first, second))
        untrained = _fit_probes(first, second, spec, control=False)
        baselines[UNTRAINED_MODEL] = score(untrained)
        by_series += [(UNTRAINED_MODEL, name, untrained[name]) for name in measures]
    table = Table(
        measures=measures | gains,
        baselines=baselines,
        units=dict.fromkeys(measures, "accuracy, 0 to 1 (single relations: F1)")
        | dict.fromkeys(gains, "difference, -1 to 1"),
        row_names=(EXISTENCE, RELATION, *relations),
        sample={
            "training sentences": len(np.unique(train.sentence_index)),
            "training words": len(train.sentence_index),
            "test words": len(test.sentence_index),
            **unused,
        },
    )
    return table.with_answers(lambda: _answers(test_inputs, test, by_series, spec))


def _answers(
    inputs: Sequence[RecordedInput],
    test: DependencyPairs,
    by_series: Sequence[tuple[str, str | None, _RelationPredictions]],
    spec: _RelationProbeSpec,
) -> Iterator[Answer]:
    """What is predicted for each test word: its relation, and whether it and a word are related, by features and seed.

    An item is the input and the numbers of both words, from 1. `row` is the task. The classifier of relations is the
    same with every seed and has none.
    """

    def describe(word: int, pair: int) -> Answer:
        recorded_input, (first, second) = inputs[int(test.input_index[word])], test.pairs[word, pair].tolist()
        words = recorded_input.text.words
        return {
            "item": f"{input_name(recorded_input)}:{first + 1}-{second + 1}",
            "text": input_text(recorded_input),
            "word": words[first],
            "other word": words[second],
        }

    for series, features, predictions in by_series:
        condition: Answer = {"series": series, "features": features}
        relations = np.array(spec.relations)[np.stack([predictions.gold[0], predictions.predicted[0]])]
        for word, (gold, predicted) in enumerate(relations.T.tolist()):
            names = {"row": RELATION, "seed": None, "gold": gold, "prediction": predicted}
            yield describe(word, 0) | condition | names | {"correct": float(gold == predicted)}
            for run in np.flatnonzero(test.has_negative[:, word]).tolist():
                both_correct = predictions.existence_correct[run, word].tolist()
                for pair, is_correct in zip((0, run + 1), both_correct, strict=True):
                    right, wrong = (RELATED, UNRELATED) if pair == 0 else (UNRELATED, RELATED)
                    names = {"gold": right, "prediction": right if is_correct else wrong}
                    when = {"row": EXISTENCE, "seed": spec.seeds[run]}
                    yield describe(word, pair) | condition | when | names | {"correct": float(is_correct)}


def _frequent_relations(names: Array, min_examples: int) -> tuple[str, ...]:
    """Relations with enough words, the most frequent first."""
    counts: Counter[str] = Counter(names.tolist())
    ordered = sorted((-count, name) for name, count in counts.items() if count >= min_examples)
    return tuple(name for _, name in ordered)


def _train_test_pairs(
    recording: Recording,
    encoder: Encoder | None,
    split: TrainTestSplit,
    negatives: NegativeSampling,
    seeds: tuple[int, ...],
) -> tuple[DependencyPairs, DependencyPairs, Sequence[RecordedInput], dict[str, int]]:
    """Training and test pairs, the inputs of the test pairs, and the training sentences left out."""
    site = pair_attention_site(negatives, seeds)
    data = split.split(recording, encoder, (site,), analysis_name="heads/relation_probe")
    train, test = (pair_dataset(*part, negatives, seeds) for part in (data.train, data.test))
    return train, test, data.test.recording.inputs, data.sample


_FeatureSets = Sequence[tuple[str, Array, bool]]
"""Name, (feature,) mask of the features used, and whether the labels are those of the control task."""


def _fit_probes(
    train: DependencyPairs, test: DependencyPairs, spec: _RelationProbeSpec, *, control: bool = True
) -> dict[str, _RelationPredictions]:
    """Predictions on the test pairs, by the features that the classifier sees."""
    width = train.features.shape[2]
    masks = {BOTH_DIRECTIONS: np.ones(width, np.bool_), TO_GOVERNOR: np.arange(width) < width // N_DIRECTIONS}
    suffixes = {"": False, CONTROL_SUFFIX: True} if control else {"": False}
    feature_sets = [
        (name + suffix, masks[name], is_control) for name in masks for suffix, is_control in suffixes.items()
    ]
    existence = _predict_existence(train, test, train.features, test.features, spec, feature_sets)
    relations = _predict_relations(train, test, train.features, test.features, spec, feature_sets)
    return {name: _RelationPredictions(existence[name], *relations[name]) for name, _, _ in feature_sets}


def _fit_halves(
    train: DependencyPairs, test: DependencyPairs, spec: _RelationProbeSpec
) -> dict[str, _RelationPredictions]:
    """Predictions of probes that are trained on half of the training sentences, another half for each seed."""
    by_seed = [
        _fit_probes(
            train.of_seed(index).random_half(seed), test.of_seed(index), replace(spec, seeds=(seed,)), control=False
        )
        for index, seed in enumerate(spec.seeds)
    ]
    return {
        name: _RelationPredictions(*map(np.concatenate, zip(*(run[name] for run in by_seed), strict=True)))
        for name in by_seed[0]
    }


def _predict_existence(
    train: DependencyPairs,
    test: DependencyPairs,
    train_features: Array,
    test_features: Array,
    spec: _RelationProbeSpec,
    feature_sets: _FeatureSets,
) -> dict[str, Array]:
    from bertology.numerics.batched_classifier import UNUSED_LABEL, ClassifierConfig, fit_classifiers

    def gold(pairs: DependencyPairs, seed_index: int, is_control: bool) -> Array:
        """(word, pair): 1 for a relation, 0 for none; unused for pairs of other seeds or without a negative pair."""
        labels = np.full(pairs.offsets.shape, UNUSED_LABEL)
        classes = (
            assign_control_labels(pairs.word_forms, spec.seeds[seed_index], np.array([0.5]))
            if is_control
            else (np.arange(pairs.offsets.shape[1]) == 0)
        )
        labels[:, [0, seed_index + 1]] = np.broadcast_to(classes, labels.shape)[:, [0, seed_index + 1]]
        labels[~pairs.has_negative[seed_index]] = UNUSED_LABEL
        return labels

    problems = [(name, i, is_control) for name, _, is_control in feature_sets for i in range(len(spec.seeds))]
    labels = np.stack([gold(train, i, is_control).ravel() for _, i, is_control in problems])
    feature_mask = np.stack([mask for _, mask, _ in feature_sets for _ in spec.seeds])
    defined = np.isfinite(train_features).all(-1).ravel()
    model = fit_classifiers(
        train_features.reshape(1, -1, train_features.shape[-1])[:, defined],
        labels[:, defined],
        2,
        ClassifierConfig(l2_penalties=(spec.l2_penalty,)),
        feature_mask=feature_mask,
    )
    flat = np.nan_to_num(test_features).reshape(1, -1, test_features.shape[-1])
    predicted = model.predict(flat).reshape(len(problems), *test_features.shape[:2])
    correct: dict[str, list[Array]] = {name: [] for name, _, _ in feature_sets}
    for (name, i, is_control), classes in zip(problems, predicted, strict=True):
        correct[name].append((classes == gold(test, i, is_control))[:, [0, i + 1]])
    return {name: np.stack(by_seed) for name, by_seed in correct.items()}


def _predict_relations(
    train: DependencyPairs,
    test: DependencyPairs,
    train_features: Array,
    test_features: Array,
    spec: _RelationProbeSpec,
    feature_sets: _FeatureSets,
) -> dict[str, tuple[Array, Array]]:
    from bertology.numerics.batched_classifier import ClassifierConfig, fit_classifiers

    boundaries = np.cumsum([np.mean(train.relation == name) for name in spec.relations])[:-1]

    def gold(pairs: DependencyPairs, seed: int, is_control: bool) -> Array:
        if is_control:
            return assign_control_labels(pairs.word_forms[:, 0], seed, boundaries)
        return _relation_ids(pairs.relation, spec)

    problems = [
        (name, mask, seed, is_control)
        for name, mask, is_control in feature_sets
        for seed in (spec.seeds if is_control else spec.seeds[:1])
    ]
    labels = np.stack([gold(train, seed, is_control) for _, _, seed, is_control in problems])
    feature_mask = np.stack([mask for _, mask, _, _ in problems])
    config = ClassifierConfig(l2_penalties=(spec.l2_penalty,))
    model = fit_classifiers(train_features[None, :, 0], labels, len(spec.relations), config, feature_mask=feature_mask)
    predicted = model.predict(test_features[None, :, 0])[0]
    results: dict[str, tuple[Array, Array]] = {}
    for name, _, _ in feature_sets:
        indices = [index for index, problem in enumerate(problems) if problem[0] == name]
        results[name] = predicted[indices], np.stack([gold(test, *problems[index][2:]) for index in indices])
    return results


def _relation_ids(names: Array, spec: _RelationProbeSpec) -> Array:
    ids = {name: index for index, name in enumerate(spec.relations)}
    return np.array([ids[name] for name in names.tolist()], np.int64)


def _majority_predictions(test: DependencyPairs, spec: _RelationProbeSpec) -> _RelationPredictions:
    """A relation always exists, and it is the most frequent one of the training data."""
    correct = np.broadcast_to(np.array([True, False]), (len(spec.seeds), len(test.sentence_index), 2))
    return _RelationPredictions(
        correct, np.zeros((1, len(test.sentence_index)), np.int64), _relation_ids(test.relation, spec)[None]
    )


def _distance_predictions(
    train: DependencyPairs, test: DependencyPairs, spec: _RelationProbeSpec
) -> _RelationPredictions:
    """Predictions of classifiers that see only the signed distance of the words."""

    def features(pairs: DependencyPairs) -> Array:
        offsets = np.clip(pairs.offsets, -MAX_OFFSET, MAX_OFFSET)[..., None]
        one_hot = (offsets == np.arange(-MAX_OFFSET, MAX_OFFSET + 1)).astype(np.float32)
        return np.where(np.isfinite(pairs.features[..., :1]), one_hot, np.nan)

    train_features, test_features = features(train), features(test)
    feature_sets = [("distance", np.ones(train_features.shape[-1], np.bool_), False)]
    existence = _predict_existence(train, test, train_features, test_features, spec, feature_sets)
    relations = _predict_relations(train, test, train_features, test_features, spec, feature_sets)
    return _RelationPredictions(existence["distance"], *relations["distance"])


def _scores(test: DependencyPairs, predictions: _RelationPredictions, spec: _RelationProbeSpec, seed: int) -> Estimates:
    """(row,) estimates: both accuracies, then the F1 of each relation, pooled over sentences and seeds."""
    has_negative, predicted, gold = test.has_negative, predictions.predicted, predictions.gold
    # (word,) counts of each row, summed over seeds, then over the words of a sentence.
    correct = [(predictions.existence_correct & has_negative[..., None]).sum((0, 2)), (predicted == gold).sum(0)]
    total = [2 * has_negative.sum(0), np.full(gold.shape[1], len(gold))]
    for relation in range(len(spec.relations)):
        is_predicted, is_gold = predicted == relation, gold == relation
        correct.append(2 * (is_predicted & is_gold).sum(0))
        total.append(is_predicted.sum(0) + is_gold.sum(0))
    numerators, denominators = (np.zeros((int(test.sentence_index.max()) + 1, len(correct))) for _ in range(2))
    np.add.at(numerators, test.sentence_index, np.column_stack(correct))
    np.add.at(denominators, test.sentence_index, np.column_stack(total))
    return bootstrap_proportion(numerators, denominators, seed=seed)


def _accuracies_only(scores: Estimates) -> Estimates:
    """The two accuracies, with missing F1: the control task has no relations."""
    return Estimates.concatenate([scores[:2], Estimates.empty(len(scores.value) - 2)])
