"""Accuracy of surface cues on a labelled sentence task, without a model: length, words, bigrams (conneau2018)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Annotated

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.analyses.evaluation.answers import example_item
from bertology.analyses.probing.options import ExampleLabelOption, check_example_label
from bertology.analyses.probing.train_test_split import train_mask
from bertology.arrays import Array, BoolArray
from bertology.encoder.token_batch import RecordedInput
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_proportion
from bertology.number_ranges import FRACTION
from bertology.recording.recording import Recording
from bertology.results.answers import Answer
from bertology.results.measured_shape import MODEL_SERIES
from bertology.results.shapes import Table

SURFACE_FEATURES: dict[str, Callable[[Sequence[str]], Sequence[str]]] = {
    "sentence length": lambda words: [str(len(words))],
    "bag of words": lambda words: words,
    "bag of bigrams": lambda words: [" ".join(pair) for pair in pairwise(["", *words, ""])],
}
"""The features of a sentence, from its lower-cased words."""


@analysis(
    question="How accurately can the labels of a sentence task be predicted from surface cues alone, without a model?",
    special_tokens="Special tokens: not used; only words are.",
    citations=("conneau2018",),
    annotations=("label",),
    check_corpus=check_example_label,
    version=2,
    answers=True,
)
def surface_baselines(
    recording: Recording,
    *,
    label: ExampleLabelOption = "",
    train_fraction: Annotated[
        float, FRACTION, "Fraction of sentences used for training, in whole documents, if the corpus has no splits."
    ] = 0.7,
    seed: Annotated[int, "Random seed (split, shuffled labels, bootstrap)."] = 0,
) -> Table:
    """Accuracy of naive Bayes on surface features, 0 to 1: the number of words, the words, or the word bigrams.

    High probing accuracy on a task that these features solve says little about a model. Trained on the examples whose
    source is `train` and tested on `test` (or `validation`), as in SentEval's files and `tasks:`; without such splits,
    trained on a fraction of the documents. Baselines: the most frequent training label, and the same features with
    shuffled training labels. Intervals are over test sentences.
    """
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.naive_bayes import MultinomialNB

    examples = recording.corpus.with_label(label).examples
    inputs = [
        recorded_input
        for recorded_input in recording.inputs
        if not recorded_input.input_index
        and not recorded_input.window_index
        and examples[recorded_input.example_index].label is not None
    ]
    inputs.sort(key=lambda recorded: (recorded.text.words, str(examples[recorded.example_index].label)))
    sources = [examples[recorded_input.example_index].source for recorded_input in inputs]
    is_train, is_test = _train_test_masks(inputs, sources, train_fraction, seed)
    labels = np.array([str(examples[recorded_input.example_index].label) for recorded_input in inputs])
    names, counts = np.unique(labels[is_train], return_counts=True)
    if not is_test.any() or len(names) < 2:
        raise Refusal(
            f"{recording.corpus.name} has {is_train.sum()} training sentences with {len(names)} labels and "
            f"{is_test.sum()} test sentences",
            "at least two labels, and sentences for training and testing",
            "Use a larger labelled corpus, for example tasks:bigram_shift:english",
        )
    shuffled_labels = labels.copy()
    shuffled_labels[is_train] = np.random.default_rng(seed).permutation(labels[is_train])
    majority = str(names[counts.argmax()])

    words = [[word.lower() for word in recorded_input.text.words] for recorded_input in inputs]
    train, test = ([words[index] for index in np.flatnonzero(mask).tolist()] for mask in (is_train, is_test))

    def predict(train_labels: Array) -> list[Array]:
        """(test sentence,) labels predicted from each feature."""
        predictions: list[Array] = []
        for extract_features in SURFACE_FEATURES.values():
            vectoriser = CountVectorizer(analyzer=extract_features)  # pyright: ignore[reportArgumentType]  # a function is allowed
            classifier = MultinomialNB().fit(vectoriser.fit_transform(train), train_labels[is_train])
            predictions.append(classifier.predict(vectoriser.transform(test)))
        return predictions

    predictions = {
        MODEL_SERIES: predict(labels),
        "majority class": [np.full(int(is_test.sum()), majority)] * len(SURFACE_FEATURES),
        "shuffled labels": predict(shuffled_labels),
    }
    gold = labels[is_test]
    accuracies = {
        series: {"accuracy": Estimates.stack([_accuracy(predicted == gold, seed) for predicted in by_feature])}
        for series, by_feature in predictions.items()
    }

    def answers() -> Iterator[Answer]:
        """The label predicted for each test sentence; `row` is the surface feature."""
        numbers = [inputs[index].example_index for index in np.flatnonzero(is_test).tolist()]
        for series, by_feature in predictions.items():
            for row, predicted in zip(SURFACE_FEATURES, by_feature, strict=True):
                for number, prediction in zip(numbers, predicted.tolist(), strict=True):
                    item = example_item(examples[number], number)
                    condition = {"series": series, "row": row, "prediction": str(prediction)}
                    yield item | condition | {"correct": float(prediction == item["gold"])}

    table = Table(
        measures=accuracies.pop(MODEL_SERIES),
        baselines=accuracies,
        units={"accuracy": "proportion of sentences, 0 to 1"},
        sample={
            "labels": len(names),
            "training sentences": int(is_train.sum()),
            "test sentences": int(is_test.sum()),
        },
        row_names=tuple(SURFACE_FEATURES),
    )
    return table.with_answers(answers)


def _accuracy(is_correct: BoolArray, seed: int) -> Estimates:
    return bootstrap_proportion(is_correct.astype(np.float64), np.ones(len(is_correct)), seed=seed)


def _train_test_masks(
    inputs: Sequence[RecordedInput], sources: Sequence[str], train_fraction: float, seed: int
) -> tuple[BoolArray, BoolArray]:
    """(input,) whether it is for training, and whether it is for testing."""
    splits = np.array(sources, dtype=object)
    is_train = splits == "train"
    is_test = splits == "test" if (splits == "test").any() else splits == "validation"
    if is_train.any() and is_test.any():
        return is_train.astype(np.bool_), is_test.astype(np.bool_)
    is_train = train_mask(inputs, train_fraction, seed=seed)
    return is_train, ~is_train
