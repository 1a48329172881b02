"""Classifiers on planted features, seed splits, and metrics compared with other implementations."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import accuracy_score

import planted_features as planted
from bertology.analyses.cache import AnalysisCache
from bertology.analyses.frozen_features import downstream_models as downstream
from bertology.analyses.frozen_features.dataset import DatasetOptions, FrozenFeatureDataset, build_dataset
from bertology.analyses.frozen_features.downstream_models import DownstreamClassifier, fit_predict, parse_classifiers
from bertology.analyses.frozen_features.extractors import FunctionFeatureExtractor
from bertology.analyses.frozen_features.score_grid import ScoreGrid, score_from_counts
from bertology.corpus.corpus import Corpus
from bertology.corpus.sentence import Sentence
from bertology.errors import Refusal
from bertology.training.tasks.token_classification import count_correct_spans


def make_dataset(corpus: Corpus, *, n_seeds: int = 2, sample_size: int = 0) -> FrozenFeatureDataset:
    return build_dataset(corpus, DatasetOptions(sample_size=sample_size, n_seeds=n_seeds), analysis_name="test")


def scores(corpus: Corpus, function: Any, classifier: DownstreamClassifier, n_train_sizes: int = 3) -> Any:
    """(seed, size) test scores."""
    dataset = make_dataset(corpus)
    vectors = FunctionFeatureExtractor("planted", function).extract(dataset.sentences)
    counts = ScoreGrid(dataset, AnalysisCache()).run([vectors], [classifier], dataset.train_sizes(n_train_sizes, 0.1))
    return score_from_counts(counts.sum(1))[:, 0, 0]


@pytest.mark.parametrize(
    ("corpus", "function", "classifier"),
    [
        (planted.entities(ambiguous=True), planted.gold_labels, "linear"),
        (planted.sentiments(), planted.gold_labels, "linear"),
    ],
)
def test_vectors_with_the_label_are_perfect_at_every_size(
    corpus: Corpus, function: Any, classifier: DownstreamClassifier
) -> None:
    np.testing.assert_array_equal(scores(corpus, function, classifier), 1.0)


@pytest.mark.parametrize(
    ("corpus", "classifier"), [(planted.entities(ambiguous=True), "bilstm-crf"), (planted.sentiments(), "cnn")]
)
def test_networks_learn_planted_labels(corpus: Corpus, classifier: DownstreamClassifier) -> None:
    assert (scores(corpus, planted.gold_labels, classifier, n_train_sizes=1) == 1.0).all()


def test_word_identity_is_enough_only_for_unambiguous_words() -> None:
    unambiguous, ambiguous = planted.entities(ambiguous=False), planted.entities(ambiguous=True)
    assert (scores(unambiguous, planted.identity, "linear", n_train_sizes=1) == 1.0).all()
    assert (abs(scores(ambiguous, planted.identity, "linear", n_train_sizes=1) - 0.5) < 0.15).all()
    assert (scores(ambiguous, planted.context, "linear", n_train_sizes=1) == 1.0).all()


def test_bilstm_needs_no_context_in_the_features() -> None:
    assert (scores(planted.entities(ambiguous=True), planted.identity, "bilstm-crf", n_train_sizes=1) > 0.9).all()


def test_pair_classifier_compares_the_texts() -> None:
    assert (scores(planted.pairs(), planted.identity, "linear", n_train_sizes=1) > 0.97).all()


def ill_conditioned(words: Sequence[str]) -> Any:
    """Noise by word and by sentence, with very different variances along different directions."""
    vectors = np.stack([np.random.default_rng(sum(map(ord, word))).normal(size=24) for word in words])
    vectors = vectors + 0.3 * np.random.default_rng(sum(map(ord, "".join(words)))).normal(size=vectors.shape)
    return vectors * np.geomspace(1, 3e-3, 24) @ np.random.default_rng(1).normal(size=(24, 24))


def test_linear_classifiers_are_solved_to_convergence(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = make_dataset(planted.entities(ambiguous=True))
    vectors = FunctionFeatureExtractor("ill-conditioned", ill_conditioned).extract(dataset.sentences)
    predictions = fit_predict(dataset, vectors, "linear", dataset.train_sizes(1, 0.1)[0])
    monkeypatch.setitem(downstream.SETTINGS["linear"], "tolerance", 1e-7)
    assert predictions == fit_predict(dataset, vectors, "linear", dataset.train_sizes(1, 0.1)[0])


def test_noise_scores_at_chance() -> None:
    for corpus, function in (
        (planted.sentiments(shuffled=True), planted.identity),
        (planted.sentiments(), planted.noise),
    ):
        assert (abs(scores(corpus, function, "linear") - 0.5) < 0.25).all()


def test_training_sets_are_nested_and_disjoint_from_validation_and_test() -> None:
    dataset = make_dataset(planted.sentiments(), n_seeds=3)
    assert len({split.train for split in dataset.seed_splits}) == 3
    for split in dataset.seed_splits:
        assert not set(split.train) & set(split.validation)
        assert len(split.train) + len(split.validation) == len(dataset.train)
    assert not {example.segments[0].text for example in dataset.train} & {
        example.segments[0].text for example in dataset.test
    }
    sizes = dataset.train_sizes(7, 0.01)
    assert sizes[0] == 2 and sizes[-1] == dataset.max_train_size and sizes == sorted(set(sizes))
    ratios = np.array(sizes[3:]) / np.array(sizes[2:-1])
    np.testing.assert_allclose(ratios, 100 ** (1 / 6), rtol=0.15)


def test_order_of_the_corpus_has_no_effect() -> None:
    corpus = planted.sentiments()
    reversed_corpus = replace(corpus, examples=corpus.examples[::-1])
    assert make_dataset(corpus) == make_dataset(reversed_corpus)
    assert len(make_dataset(corpus, sample_size=40).train) == 30


def test_labels_of_test_examples_are_not_used() -> None:
    dataset = make_dataset(planted.entities(ambiguous=True))
    changed = replace(
        dataset, test=tuple(replace(example, segments=without_tags(example.segments)) for example in dataset.test)
    )
    vectors = FunctionFeatureExtractor("planted", planted.gold_labels).extract(dataset.sentences)
    assert fit_predict(dataset, vectors, "linear", 20) == fit_predict(changed, vectors, "linear", 20)


def without_tags(segments: Sequence[Sentence]) -> tuple[Sentence, ...]:
    return tuple(replace(sentence, tags=("O",) * len(sentence)) for sentence in segments)


def test_accuracy_equals_that_of_scikit_learn() -> None:
    dataset = make_dataset(planted.sentiments())
    vectors = FunctionFeatureExtractor("planted", planted.noise).extract(dataset.sentences)
    sums = ScoreGrid(dataset, AnalysisCache()).run([vectors], ["linear"], [30])[:, :, 0, 0, 0]
    gold = [example.label for example in dataset.test]
    for counts, predicted in zip(sums, fit_predict(dataset, vectors, "linear", 30), strict=True):
        assert score_from_counts(counts.sum(0)) == pytest.approx(accuracy_score(gold, predicted))


def seqeval_spans(tags: list[str]) -> set[tuple[int, int, str]]:
    """Spans in seqeval's default mode, in which an I tag of another type starts a span."""
    spans: set[tuple[int, int, str]] = set()
    start = 0
    for index in range(1, len(tags) + 1):
        ended = index == len(tags) or tags[index][0] in "BO" or tags[index][2:] != tags[index - 1][2:]
        if ended:
            if tags[index - 1] != "O":
                spans.add((start, index, tags[index - 1][2:]))
            start = index
    return spans


def test_span_f1_equals_that_of_seqeval() -> None:
    generator = np.random.default_rng(0)
    gold, predicted = (
        [generator.choice(["O", "B-A", "I-A", "B-B", "I-B"], 9).tolist() for _ in range(60)] for _ in range(2)
    )
    counts = count_correct_spans(gold, predicted)
    n_shared = sum(
        len(seqeval_spans(first) & seqeval_spans(second)) for first, second in zip(gold, predicted, strict=True)
    )
    n_spans = sum(len(seqeval_spans(tags)) for tags in (*gold, *predicted))
    assert counts.score == pytest.approx(2 * n_shared / n_spans)
    try:
        seqeval = importlib.import_module("seqeval.metrics")
    except ImportError:
        pytest.skip("seqeval is not installed; its scheme is re-implemented above")
    assert counts.score == pytest.approx(seqeval.f1_score(gold, predicted))


@pytest.mark.parametrize(("names", "task"), [("cnn", "token"), ("", "pair"), ("linear,linear", "sentence")])
def test_unknown_classifiers_are_refused(names: str, task: str) -> None:
    with pytest.raises(Refusal, match="--classifiers"):
        parse_classifiers(names, task)


def test_unsuitable_corpora_are_refused() -> None:
    corpus = planted.sentiments()
    one_label = replace(corpus, examples=tuple(replace(example, label="good") for example in corpus))
    for data, options, message in (
        (one_label, DatasetOptions(sample_size=0, n_seeds=2), "classes|labels"),
        (corpus, DatasetOptions("pair", sample_size=0, n_seeds=1), "no examples for the task pair"),
        (corpus[:3], DatasetOptions(sample_size=0, n_seeds=1), "3 usable examples"),
    ):
        with pytest.raises(Refusal, match=message):
            build_dataset(data, options, analysis_name="test")
