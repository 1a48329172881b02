"""Train, validation and test examples for classifiers on frozen features, the same for every feature.

Examples are split once into train and test. Each seed holds out another part of the training examples for validation
and orders the rest; a smaller training set is a prefix of a larger one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.probing.train_test_split import (
    IN_TEST_CORPUS,
    TrainFormatOption,
    TrainFormatOptionsOption,
    load_train_corpus,
    without_shared_examples,
)
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.hashing import shuffle_by_hash
from bertology.corpus.sentence import Sentence
from bertology.errors import Refusal
from bertology.number_ranges import REPETITIONS

if TYPE_CHECKING:
    from bertology.training.tasks.task import Task

TEST_FRACTION = 0.25
VALIDATION_FRACTION = 0.15
MIN_EXAMPLES = 2
"""Minimum number of examples in the smallest training set."""


NSeedsOption = Annotated[
    int, REPETITIONS, "Number of repetitions with different validation sets, data order and initial weights."
]
SeedOption = Annotated[int, "Random seed for sampling, splits, initial weights, shuffled baselines and the bootstrap."]


@dataclass(frozen=True)
class DatasetOptions:
    """The options that determine the dataset."""

    task: Annotated[
        Literal["auto", "sentence", "pair", "token"], "Task to train; `auto`: what the corpus is annotated for."
    ] = "auto"
    label: Annotated[
        str,
        "Label to predict, by the name of a column of the corpus; for --task token also an annotation such as pos or "
        "entities (default: the label of the examples, or the first annotation available).",
    ] = ""
    sample_size: Annotated[int, "Use a random sample of this many examples; a quarter is the test set (0: all)."] = 400
    train_corpus: Annotated[
        str, "Corpus to train on, by name or path; empty: the train split, or a part, of --corpus."
    ] = ""
    train_size: Annotated[int, "Maximum number of training examples: the first of --train-corpus (0: all)."] = 0
    train_format: TrainFormatOption = ""
    train_format_option: TrainFormatOptionsOption = ""
    n_seeds: NSeedsOption = 3
    seed: SeedOption = 0


class SeedSplit(NamedTuple):
    """Train and validation indices of one seed. A smaller training set is a prefix of `train`."""

    seed: int
    train: tuple[int, ...]
    validation: tuple[int, ...]


@dataclass(frozen=True)
class FrozenFeatureDataset:
    """A task, its train and test examples, and the split of the training examples for each seed.

    `n_shared` is the number of examples of --train-corpus left out because they are also in the test corpus.
    """

    task: Task
    train: tuple[Example, ...]
    test: tuple[Example, ...]
    seed_splits: tuple[SeedSplit, ...]
    n_shared: int = 0

    @property
    def max_train_size(self) -> int:
        """The number of training examples available with every seed."""
        return min(len(split.train) for split in self.seed_splits)

    @property
    def half_train_size(self) -> int:
        """Half of `max_train_size`, for what the second half of the training data adds to a score."""
        return max(min(MIN_EXAMPLES, self.max_train_size), self.max_train_size // 2)

    @cached_property
    def sentences(self) -> tuple[Sentence, ...]:
        """All segments of all examples, in order: the sentences that features are extracted from."""
        return tuple(segment for example in (*self.train, *self.test) for segment in example.segments)

    @cached_property
    def label_ids(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Label ids of the train and test examples: one per example, or one per word, concatenated.

        Labels that do not occur in training have the id -1.
        """
        ids = {label: number for number, label in enumerate(self.task.labels)}
        train, test = (
            np.array([ids.get(label, -1) for e in examples for label in example_labels(self.task, e)], np.int64)
            for examples in (self.train, self.test)
        )
        return train, test

    def train_sizes(self, n_sizes: int, min_fraction: float) -> list[int]:
        """Distinct training sizes, from `min_fraction` of the training set to all of it, on a log scale."""
        fractions = np.geomspace(min_fraction, 1, n_sizes) if n_sizes > 1 else np.ones(1)
        smallest = min(MIN_EXAMPLES, self.max_train_size)
        return sorted({max(smallest, round(self.max_train_size * fraction)) for fraction in fractions.tolist()})

    @property
    def sample(self) -> dict[str, int]:
        """The sizes of the dataset."""
        sizes = {
            "labels": len(self.task.labels),
            "training examples": self.max_train_size,
            "validation examples": len(self.seed_splits[0].validation),
            "test examples": len(self.test),
            "seeds": len(self.seed_splits),
        }
        return sizes | ({f"unused training examples ({IN_TEST_CORPUS})": self.n_shared} if self.n_shared else {})


def example_labels(task: Task, example: Example) -> Sequence[str]:
    """The label of an example, or those of its words."""
    if task.name == "token":
        from bertology.training.tasks.token_classification import TokenClassification

        assert isinstance(task, TokenClassification)
        return getattr(example.segments[0], task.annotation)
    return (str(example.label),)


def build_dataset(corpus: Corpus, options: DatasetOptions, *, analysis_name: str) -> FrozenFeatureDataset:
    """The dataset for these options; refused if the corpus is not annotated for the task."""
    from bertology.training.data_split import sort_by_content, split_examples
    from bertology.training.task_selection import build_task, infer_task, select_examples

    name = infer_task(corpus, options.label) if options.task == "auto" else options.task
    if name not in {"sentence", "pair", "token"}:
        raise Refusal(
            f"{analysis_name} does not support the task {name}", "sentence, pair or token", "Choose one with --task"
        )
    usable, label = select_examples(corpus, name, options.label or _default_annotation(corpus, name))
    sample = sort_by_content(usable.examples)[: options.sample_size or None]
    n_shared = 0
    if options.train_corpus:
        test = list(sample)
        train, n_shared = _read_train_examples(options, replace(usable, examples=tuple(test)), name, label)
    else:
        split = split_examples(replace(usable, examples=tuple(sample)), TEST_FRACTION, seed=options.seed)
        train, test = split.train, split.validation
    task = build_task(name, train, label)
    if len(task.labels) < 2:
        raise Refusal(
            f"{analysis_name}: the only training label is {', '.join(task.labels)!r}",
            "at least two labels",
            "Use another corpus",
        )
    splits = tuple(_seed_split(train, seed) for seed in range(options.seed, options.seed + options.n_seeds))
    return FrozenFeatureDataset(task, tuple(train), tuple(test), splits, n_shared)


def _default_annotation(corpus: Corpus, task_name: str) -> str | None:
    """Entities, which Arora et al. tag, rather than parts of speech if a corpus has both."""
    has_entities = corpus.annotations["entities"] and not corpus.annotations["tags"]
    return "entities" if task_name == "token" and has_entities else None


def _read_train_examples(
    options: DatasetOptions, test: Corpus, task_name: str, label: str | None
) -> tuple[list[Example], int]:
    """The usable examples of --train-corpus that are not in the test corpus, and the number of those that are."""
    from bertology.training.data_split import sort_by_content
    from bertology.training.task_selection import select_examples

    corpus = load_train_corpus(
        options.train_corpus, options.train_size, options.train_format, options.train_format_option
    )
    corpus, n_shared = without_shared_examples(corpus, test)
    usable, _ = select_examples(corpus, task_name, label)
    return sort_by_content(usable.examples), n_shared


def _seed_split(examples: Sequence[Example], seed: int) -> SeedSplit:
    """Split by a seeded hash of the text; examples with the same text stay together, and both parts have one."""
    indices_by_text: dict[str, list[int]] = {}
    for index, example in enumerate(examples):
        indices_by_text.setdefault("\n".join(segment.text for segment in example.segments), []).append(index)
    texts = shuffle_by_hash(indices_by_text, seed)
    validation: list[int] = []
    train: list[int] = []
    for number, text in enumerate(texts):
        is_validation = len(validation) < VALIDATION_FRACTION * len(examples) and number < len(texts) - 1
        (validation if is_validation else train).extend(indices_by_text[text])
    if not validation:
        raise Refusal(
            f"All {len(examples)} training examples have the same text",
            "at least two texts",
            "Use a larger corpus",
        )
    return SeedSplit(seed, tuple(train), tuple(validation))
