"""Examples for probes of hidden states: a label and one vector per layer, split into training and test data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from bertology.analyses.probing.train_test_split import TrainTestSplit, for_both_models, train_mask
from bertology.arrays import Array, BoolArray, FloatArray, IntArray
from bertology.corpus.sentence import Sentence
from bertology.encoder.encoder import Encoder
from bertology.encoder.token_batch import RecordedInput
from bertology.errors import Refusal
from bertology.recording.recording import Recording

WORD_SITE = "hidden.words"


class ProbeCase(NamedTuple):
    """A labelled span or span pair: its label, its type in the control task, and its spans of words (start, end)."""

    label: str
    control_type: str
    spans: tuple[tuple[int, int], ...]


CaseExtractor = Callable[[RecordedInput], Sequence[ProbeCase]]


@dataclass(frozen=True)
class ProbeTask:
    """What a probe predicts: the annotations it needs, its name, and a function from a sentence to its cases."""

    annotations: tuple[str, ...]
    name: str
    extract: Callable[[Sentence], Iterable[ProbeCase]]
    description: str = ""

    def cases(self, recorded_input: RecordedInput) -> list[ProbeCase]:
        """The cases of all segments of an input."""
        cases: list[ProbeCase] = []
        offset = 0
        for segment in recorded_input.text.segments:
            for case in self.extract(segment):
                cases.append(case._replace(spans=tuple((start + offset, end + offset) for start, end in case.spans)))
            offset += len(segment)
        return cases


@dataclass(frozen=True)
class ProbeExamples:
    """Examples of some inputs.

    `features` is (layer, example, width), the concatenated vectors of the example's spans. `labels`, `control_types`
    and `input_index` (an index into `inputs`) are (example,).
    """

    features: Array
    labels: Array
    control_types: Array
    input_index: Array
    inputs: tuple[RecordedInput, ...]

    def __len__(self) -> int:
        return len(self.labels)

    def subset(self, mask: Array) -> ProbeExamples:
        """The examples selected by a mask."""
        return replace(
            self,
            features=self.features[:, mask],
            labels=self.labels[mask],
            control_types=self.control_types[mask],
            input_index=self.input_index[mask],
        )


@dataclass(frozen=True)
class ProbeDataset:
    """Training and test examples, and their labels by decreasing frequency in the training data.

    `rare_labels` counts the examples of each label that was left out; `unused` are training sentences left out before,
    as entries of the sample.
    """

    train: ProbeExamples
    test: ProbeExamples
    labels: tuple[str, ...]
    rare_labels: dict[str, int]
    unused: Mapping[str, int] = field(default_factory=dict[str, int])

    def label_ids(self, examples: ProbeExamples) -> IntArray:
        """(example,) the index of its label."""
        ids = {label: index for index, label in enumerate(self.labels)}
        return np.array([ids[label] for label in examples.labels.tolist()], np.int64)

    @property
    def label_boundaries(self) -> FloatArray:
        """Inner boundaries of the cumulative label proportions in training, for control labels in the same ones."""
        counts = np.bincount(self.label_ids(self.train), minlength=len(self.labels))
        return np.cumsum(counts / counts.sum())[:-1]

    @property
    def sample(self) -> dict[str, int]:
        """Sizes of the dataset, and of what was left out."""
        sizes = {
            "labels": len(self.labels),
            "training sentences": len(set(self.train.input_index.tolist())),
            "training examples": len(self.train),
            "test examples": len(self.test),
            "rare labels": len(self.rare_labels),
            "examples with rare labels": sum(self.rare_labels.values()),
            **self.unused,
        }
        return {name: size for name, size in sizes.items() if size}


def span_examples(recording: Recording, indices: Sequence[int], extract_cases: CaseExtractor) -> ProbeExamples:
    """The examples of some inputs; a span's vector is the mean over its words that have tokens.

    Inputs are sorted by their tokens, so that the order of the corpus does not matter. Cases with a span without tokens
    are left out.
    """
    order = sorted(indices, key=lambda index: recording.inputs[index].tokens.ids.tobytes())
    states = recording[WORD_SITE]
    vectors: list[Array] = []
    numbered_cases: list[tuple[ProbeCase, int]] = []
    for number, index in enumerate(order):
        recorded_input = recording.inputs[index]
        has_tokens = np.zeros(recorded_input.tokens.n_words, np.bool_)
        has_tokens[[word for word in set(recorded_input.tokens.word_ids.tolist()) if word >= 0]] = True
        cases = [case for case in extract_cases(recorded_input) if _is_usable(case, has_tokens, recorded_input)]
        if cases:
            vectors.append(_span_vectors(np.asarray(states[index], np.float32), cases, has_tokens))
            numbered_cases.extend((case, number) for case in cases)
    return stack_examples(vectors, numbered_cases, [recording.inputs[index] for index in order])


def stack_examples(
    vectors: Sequence[Array], cases: Sequence[tuple[ProbeCase, int]], inputs: Sequence[RecordedInput]
) -> ProbeExamples:
    """Examples from the (layer, case, width) vectors of each input with cases, and all cases with their input index."""
    return ProbeExamples(
        np.concatenate(vectors, 1) if vectors else np.zeros((0, 0, 0), np.float32),
        np.array([case.label for case, _ in cases], np.object_),
        np.array([case.control_type for case, _ in cases], np.object_),
        np.array([input_index for _, input_index in cases], np.int64),
        tuple(inputs),
    )


def task_dataset(
    recording: Recording,
    encoder: Encoder | None,
    task: ProbeTask,
    split: TrainTestSplit,
    min_examples: int,
    *,
    analysis_name: str,
) -> ProbeDataset:
    """The dataset of a task; corpora without its annotations are refused."""
    recording.corpus.require_annotations(*task.annotations, analysis_name=analysis_name)
    data = split.split(recording, encoder, (WORD_SITE,), analysis_name=analysis_name, annotations=task.annotations)
    train, test = (span_examples(*part, task.cases) for part in (data.train, data.test))
    return probe_dataset(train, test, min_examples, analysis_name=analysis_name, unused=data.sample)


def task_datasets(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    task: ProbeTask,
    split: TrainTestSplit,
    min_examples: int,
    *,
    analysis_name: str,
) -> tuple[ProbeDataset, ProbeDataset | None]:
    """The datasets of a task on the model and, if that was recorded, on the untrained model."""
    build = partial(task_dataset, task=task, split=split, min_examples=min_examples, analysis_name=analysis_name)
    return for_both_models(build, recording, randomised, encoder)


def probe_dataset(
    train: ProbeExamples,
    test: ProbeExamples,
    min_examples: int,
    *,
    analysis_name: str,
    unused: Mapping[str, int] | None = None,
) -> ProbeDataset:
    """The examples whose label has at least `min_examples` training examples."""
    train_counts: Counter[str] = Counter(train.labels.tolist())
    test_counts: Counter[str] = Counter(test.labels.tolist())
    _check_labels(train_counts, test_counts, min_examples, analysis_name)
    by_frequency = sorted((-count, label) for label, count in train_counts.items())
    labels = tuple(label for count, label in by_frequency if -count >= min_examples)
    if len(labels) < 2:
        subject = f"only 1 of {len(train_counts)} labels ({labels[0]}) has" if labels else "no label has"
        raise Refusal(
            f"{analysis_name}: {subject} at least {max(1, min_examples)} training examples",
            "2 or more labels",
            "Use a larger corpus, or lower --min-examples",
        )
    train_subset, test_subset = (np.isin(part.labels, labels) for part in (train, test))
    if not test_subset.any():
        raise Refusal(
            f"{analysis_name}: no test example has a label that occurs in the training data",
            "at least one",
            "Use a larger corpus, or lower --min-examples",
        )
    rare = {label: train_counts[label] + test_counts[label] for label in {*train_counts, *test_counts} - set(labels)}
    return ProbeDataset(train.subset(train_subset), test.subset(test_subset), labels, rare, unused or {})


def validation_mask(train: ProbeExamples, fraction: float, seed: int) -> BoolArray:
    """(example,) whether it is held out for validation: whole documents where known, else sentences."""
    held_out = ~train_mask(train.inputs, 1 - fraction, seed=seed)
    mask = held_out[train.input_index]
    if mask.all() or not mask.any():
        n_sentences = len(set(train.input_index.tolist()))
        raise Refusal(
            f"The training data has {n_sentences} sentences, too few to hold out some of them for validation",
            "at least two documents or sentences",
            "Use a larger corpus",
        )
    return mask


def _check_labels(train_counts: Counter[str], test_counts: Counter[str], min_examples: int, analysis_name: str) -> None:
    if not train_counts or not test_counts:
        n_train, n_test = (counts.total() or "no" for counts in (train_counts, test_counts))
        raise Refusal(
            f"{analysis_name} found {n_train} training examples and {n_test} test examples",
            "both",
            "Use a larger annotated corpus, or name another with --train-corpus",
        )
    if len({*train_counts, *test_counts}) < 2:
        raise Refusal(
            f"{analysis_name}: every example has the same label, {next(iter(train_counts))!r}",
            "at least two labels",
            "Use another corpus, or choose another --label",
        )
    unseen = sorted(set(test_counts) - set(train_counts))
    if unseen and min_examples <= 1:
        raise Refusal(
            f"{analysis_name}: the label {unseen[0]!r} occurs in the test data, but not in the training data",
            "test labels that occur in the training data",
            "Train on more data, or leave out rare labels with --min-examples 2 or more",
        )


def _is_usable(case: ProbeCase, has_tokens: BoolArray, recorded_input: RecordedInput) -> bool:
    """Whether every span has a token; spans outside the sentence are refused."""
    words = recorded_input.text.words
    for start, end in case.spans:
        if not 0 <= start < end <= len(words):
            raise Refusal(
                f"The span from word {start} to {end} labelled {case.label!r} is empty or outside its sentence of "
                f"{len(words)} words ({' '.join(words)[:60]!r})",
                "spans of at least one word",
                "Correct the annotation",
            )
    return all(has_tokens[start:end].any() for start, end in case.spans)


def _span_vectors(states: Array, cases: Sequence[ProbeCase], has_tokens: BoolArray) -> Array:
    """(layer, case, spans x width) concatenated means over the words of each span."""
    vectors: list[Array] = []
    for span_number in range(len(cases[0].spans)):
        weights = np.zeros((len(cases), len(has_tokens)), np.float32)
        for row, case in enumerate(cases):
            start, end = case.spans[span_number]
            weights[row, start:end] = has_tokens[start:end]
        vectors.append((weights / weights.sum(1, keepdims=True)) @ states)
    return np.concatenate(vectors, -1)
