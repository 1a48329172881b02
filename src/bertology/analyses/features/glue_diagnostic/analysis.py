"""Accuracy by inference category on the GLUE diagnostic set (arora2020, wang2019)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np

from bertology.analyses.cache import AnalysisCache
from bertology.analyses.declaration import Cost, analysis
from bertology.analyses.evaluation.answers import example_item
from bertology.analyses.features.glue_diagnostic.scores import (
    WORD_OVERLAP,
    PairGroup,
    PredictionsByModel,
    category_groups,
    hypothesis_only_features,
    matthews_by_group,
    matthews_changes,
    overlap_features,
)
from bertology.analyses.frozen_features.dataset import (
    DatasetOptions,
    FrozenFeatureDataset,
    NSeedsOption,
    SeedOption,
    build_dataset,
)
from bertology.analyses.frozen_features.extractors import DEFAULT_FEATURES, parse_features
from bertology.analyses.frozen_features.predictions import extract_all, predict_all
from bertology.analyses.probing.train_test_split import (
    TrainFormatOption,
    TrainFormatOptionsOption,
    load_train_corpus,
    without_shared_examples,
)
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.readers.glue_diagnostic import LABELS
from bertology.encoder.encoder import Encoder, TaskEncoder
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.results.answers import Answer
from bertology.results.measured_shape import MODEL_SERIES
from bertology.results.shapes import Table

NAME = "features/glue_diagnostic"
TASK_HEAD = "task head"
HELD_OUT = "held-out training pairs"
MAJORITY, HYPOTHESIS_ONLY, ZERO = "majority class", "hypothesis only", "zero"


@analysis(
    question="Which categories of inference does a model, or a classifier on frozen features, get right?",
    special_tokens="Special tokens: in the model's input, not analysed; a word is the mean of its tokens. A task head "
    "reads both texts in one input.",
    citations=("arora2020", "wang2019"),
    version=2,
    cost=Cost(20.0),
    test_corpus="diagnostic",
    answers=True,
)
def glue_diagnostic(
    encoder: Encoder,
    corpus: Corpus,
    cache: AnalysisCache,
    *,
    features: Annotated[
        str,
        "Frozen features to compare, comma-separated: model, model#6 (layer 6), static, random, untrained, glove:PATH "
        "...; `none` evaluates only the task head.",
    ] = DEFAULT_FEATURES,
    train_corpus: Annotated[str, "Corpus of inference pairs to train on, by name or path."] = "generated:nli@7:300",
    train_size: Annotated[int, "Maximum number of training pairs: the first of --train-corpus (0: all)."] = 0,
    train_format: TrainFormatOption = "",
    train_format_option: TrainFormatOptionsOption = "",
    show: Annotated[
        Literal["categories", "subtypes"], "`categories`: one row per category; `subtypes`: also one row per sub-type."
    ] = "categories",
    class_names: Annotated[
        str, "Class names of the model's task head, in its order, if the model does not name them."
    ] = "",
    n_seeds: NSeedsOption = 3,
    seed: SeedOption = 0,
) -> Table:
    """Matthews correlation between predicted and gold labels of inference pairs by category, -1 to 1 (chance: 0).

    On each frozen feature a linear classifier is trained on --train-corpus, from u, v, |u - v| and u * v of the mean
    vectors of both texts, with the L2 penalty chosen on a validation set that differs by seed. `task head` is the
    model's own task head, if its classes are entailment, neutral and contradiction. `A - B` is the difference of two
    on the same pairs and seeds: two features are alike in a category if its interval is narrow and contains 0. The
    first row has the quarter of --train-corpus that is not trained on: if it is at chance, the classifier has learnt
    nothing, and the other rows mean nothing. A pair counts in each of its categories. `change of (A - B) from half the
    training data` is what the second half of the training pairs of each seed adds to the difference.

    Arora et al. train on GLUE (BiLSTM with attention) and evaluate on GLUE's diagnostic set, which is read with
    `--format glue_diagnostic`. The default --train-corpus is generated from templates, from which features of single
    texts learn next to nothing: give MNLI or SNLI. Baselines: the majority class (0); `hypothesis only`: the same
    classifier without the premise; `word overlap`: a classifier on the number of shared words, and lengths. Intervals
    resample pairs (those with the same hypothesis together) and seeds.
    """
    head_labels = task_head_labels(encoder, LABELS, class_names)
    options = DatasetOptions("pair", sample_size=0, n_seeds=n_seeds, seed=seed)
    train_pairs = load_train_corpus(train_corpus, train_size, train_format, train_format_option)
    dataset, n_held_out, n_skipped = _prepare_dataset(corpus, options, train_pairs, head_labels, encoder)
    full_pair, hypothesis_only, half_trained = _predict(dataset, encoder, features, head_labels, cache)
    overlap_vectors = [overlap_features([*dataset.train, *dataset.test])]
    (overlap,) = predict_all(dataset, overlap_vectors, "linear", cache, train_size=dataset.max_train_size)
    groups = _category_groups(dataset.test, n_held_out, subtypes=show == "subtypes")
    scores, differences = matthews_by_group(dataset.test, full_pair, groups, seed=seed)
    changes = matthews_changes(dataset.test, full_pair, half_trained, groups, seed=seed)
    hypothesis_scores, _ = matthews_by_group(dataset.test, hypothesis_only, groups, seed=seed)
    overlap_scores = matthews_by_group(dataset.test, {WORD_OVERLAP: overlap}, groups, seed=seed)[0][WORD_OVERLAP]
    n = next(iter(scores.values())).n
    zeros = Estimates.exact(np.where(n > 0, 0.0, np.nan), n)
    baselines = {
        MAJORITY: dict.fromkeys(scores, zeros),
        HYPOTHESIS_ONLY: hypothesis_scores,
        WORD_OVERLAP: dict.fromkeys(scores, overlap_scores),
    }
    if differences:
        baselines[ZERO] = dict.fromkeys([*differences, *changes], zeros)
    label_counts = [Counter(str(dataset.test[index].label) for index in group.indices) for group in groups]

    def answers() -> Iterator[Answer]:
        """The labels predicted for each pair, once per category of the pair."""
        by_series = {MODEL_SERIES: full_pair, HYPOTHESIS_ONLY: hypothesis_only, WORD_OVERLAP: {"": overlap}}
        for group in groups:
            for index in group.indices:
                item = example_item(dataset.test[index], index) | {"row": group.name}
                for series, predictions in by_series.items():
                    for name, by_seed in predictions.items():
                        for run, predicted in enumerate(by_seed):
                            yield item | {
                                "series": series,
                                "classifier": name,
                                "run": run + 1,
                                "prediction": predicted[index],
                                "correct": float(predicted[index] == item["gold"]),
                            }

    table = Table(
        row_names=tuple(group.name for group in groups),
        measures=scores | differences | changes,
        baselines=baselines,
        units=dict.fromkeys(scores, "Matthews correlation, -1 to 1")
        | dict.fromkeys(differences, "difference of Matthews correlations, -2 to 2")
        | dict.fromkeys(changes, "change of a difference of Matthews correlations, -4 to 4"),
        sample=dataset.sample | {"long pairs skipped": n_skipped},
        attributes={label: tuple(counts[label] for counts in label_counts) for label in LABELS},
    )
    return table.with_answers(answers)


def _prepare_dataset(
    corpus: Corpus,
    options: DatasetOptions,
    train_corpus: Corpus,
    head_labels: tuple[str, ...] | None,
    encoder: Encoder,
) -> tuple[FrozenFeatureDataset, int, int]:
    """The training pairs, and as test pairs a quarter of --train-corpus followed by all pairs of the corpus.

    Also the number of held-out training pairs and of skipped pairs: if the task head is evaluated, pairs that are too
    long for the model are skipped.
    """
    from bertology.training.data_split import sort_by_content
    from bertology.training.task_selection import select_examples

    if not any(example.kind == "pair" and example.label is not None for example in corpus):
        raise Refusal(
            f"{NAME} needs labelled pairs, and {corpus.name} has none",
            f"inference pairs with the labels {', '.join(LABELS)}",
            "Give --corpus diagnostic, the built-in set, or GLUE's own file diagnostic-full.tsv",
        )
    corpus_pairs = sort_by_content(select_examples(corpus, "pair")[0].examples)
    _check_labels(corpus_pairs, corpus.name)
    train_corpus, n_shared = without_shared_examples(train_corpus, corpus)
    dataset = build_dataset(train_corpus, options, analysis_name=f"{NAME} --train-corpus")
    dataset = replace(dataset, n_shared=n_shared)
    _check_labels([*dataset.train, *dataset.test], train_corpus.name)
    held_out, test = (
        [
            example
            for example, fits in zip(examples, fits_model(encoder, examples), strict=True)
            if fits or head_labels is None
        ]
        for examples in (dataset.test, corpus_pairs)
    )
    n_skipped = len(dataset.test) + len(corpus_pairs) - len(held_out) - len(test)
    return replace(dataset, test=(*held_out, *test)), len(held_out), n_skipped


def _check_labels(examples: Sequence[Example], corpus_name: str) -> None:
    unknown = sorted({str(example.label) for example in examples} - set(LABELS))
    if unknown:
        raise Refusal(
            f"{NAME}: {corpus_name} has the label {unknown[0]!r}",
            f"pairs with the labels {', '.join(LABELS)}",
            "Give another corpus, for example --corpus diagnostic, or rename the labels",
        )


def _predict(
    dataset: FrozenFeatureDataset,
    encoder: Encoder,
    features: str,
    head_labels: tuple[str, ...] | None,
    cache: AnalysisCache,
) -> tuple[PredictionsByModel, PredictionsByModel, PredictionsByModel]:
    """Predictions for the full pairs, for their hypotheses only, and for full pairs with half of the training data."""
    full_pair: dict[str, Sequence[Sequence[str]]] = {}
    hypothesis_only: dict[str, Sequence[Sequence[str]]] = {}
    half_trained: dict[str, Sequence[Sequence[str]]] = {}
    if head_labels is not None:
        for predictions, examples in ((full_pair, list(dataset.test)), (hypothesis_only, hypotheses(dataset.test))):
            predictions[TASK_HEAD] = [predict_pairs(encoder, examples, head_labels)] * len(dataset.seed_splits)
    elif features.strip() == "none":
        raise Refusal(
            f"--features none leaves only the task head of {encoder.name}, which does not have the classes "
            f"{', '.join(LABELS)}",
            "a model fine-tuned on inference, such as mini-pairs",
            "Name features, or give the order of the classes with --class-names",
        )
    if features.strip() != "none":
        vectors = extract_all(dataset, parse_features(features, encoder), cache)
        without_premises = [hypothesis_only_features(feature) for feature in vectors]
        for predictions, inputs, size in (
            (full_pair, vectors, dataset.max_train_size),
            (hypothesis_only, without_premises, dataset.max_train_size),
            (half_trained, vectors, dataset.half_train_size),
        ):
            names = [feature.name for feature in vectors]
            predicted = predict_all(dataset, inputs, "linear", cache, train_size=size)
            predictions.update(zip(names, predicted, strict=True))
    return full_pair, hypothesis_only, half_trained


def _category_groups(examples: Sequence[Example], n_held_out: int, *, subtypes: bool) -> list[PairGroup]:
    """The held-out training pairs, which come first, and the groups of the corpus's pairs."""
    groups = category_groups(examples[n_held_out:], subtypes=subtypes)
    shifted = [PairGroup(group.name, tuple(index + n_held_out for index in group.indices)) for group in groups]
    return [PairGroup(HELD_OUT, tuple(range(n_held_out))), *shifted]


def task_head_labels(encoder: Encoder, labels: Sequence[str], class_names: str = "") -> tuple[str, ...] | None:
    """The classes of the model's task head by id, or None if it has no such head, or one with other classes.

    `class_names` are comma-separated names, for a model that does not name its classes.
    """
    if not isinstance(encoder, TaskEncoder) or "label" not in encoder.task_heads:
        return None
    if class_names:
        names = tuple(name.strip().lower() for name in class_names.split(","))
        if set(names) != set(labels) or len(names) != len(encoder.labels):
            raise Refusal(
                f"--class-names was given {class_names!r} for a task head with {len(encoder.labels)} classes",
                f"{', '.join(labels)}, comma-separated, in the order of the task head",
                "See the model card for the order",
            )
        return names
    lower = tuple(name.lower() for name in encoder.labels)
    return lower if set(lower) == set(labels) else None


def fits_model(encoder: Encoder, examples: Sequence[Example]) -> list[bool]:
    """Whether each pair fits into one input of the model."""
    inputs = [text_input for example in examples for text_input in example.text_inputs]
    return [len(tokens) <= encoder.max_length for tokens in encoder.tokenise(inputs)]


def predict_pairs(encoder: Encoder, examples: Sequence[Example], labels: tuple[str, ...]) -> list[str]:
    """The most probable class of each pair by the task head; all pairs must fit into one input."""
    from bertology.training.tasks.text_classification import TextClassification
    from bertology.training.trainable_model import TrainableModel

    assert isinstance(encoder, TaskEncoder)
    task = TextClassification("pair", labels)
    encoded = task.encode(examples, encoder.tokenise, max_length=encoder.max_length)
    assert len(encoded.examples) == len(examples), "long pairs are skipped before"
    return task.predict(TrainableModel(encoder), encoded)


def hypotheses(examples: Sequence[Example]) -> list[Example]:
    """The second text of each pair as an example with one segment."""
    return [replace(example, segments=example.segments[1:], kind="sentence") for example in examples]
