"""Sense-annotated word occurrences: their vectors, lemmas and parts of speech, and their train/test splits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.probing.dataset import WORD_SITE, ProbeCase, ProbeExamples, span_examples
from bertology.analyses.probing.train_test_split import TrainTestSplit, train_mask
from bertology.corpus.hashing import seeded_hash
from bertology.corpus.sentence import Sentence
from bertology.encoder.encoder import Encoder
from bertology.encoder.token_batch import RecordedInput
from bertology.errors import Refusal
from bertology.numerics.nearest_neighbours import FloatArray, IndexArray
from bertology.recording.recording import Recording

N_CONCATENATED_LAYERS = 4
LAST_FOUR = "last four layers"


@dataclass(frozen=True)
class WordOccurrences:
    """Annotated words: `examples` holds their vectors and senses, the other fields are (occurrence,).

    `lemmas` are in lower case, the word form if no lemma is annotated; `pos` is "" if none is; `word_index` is the
    index on the word axis of the recorded input.
    """

    examples: ProbeExamples
    lemmas: NDArray[Any]
    pos: NDArray[Any]
    word_index: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def senses(self) -> NDArray[Any]:
        """(occurrence,) the sense of each occurrence."""
        return self.examples.labels

    @property
    def representations(self) -> tuple[str, ...]:
        """Names of the representations: every layer, and the last four layers concatenated."""
        return (*(f"layer {layer}" for layer in range(len(self.examples.features))), LAST_FOUR)

    @cached_property
    def documents(self) -> NDArray[Any]:
        """(occurrence,) the document, or the sentence if it has none."""
        names = [i.text.segments[0].document or "\n" + " ".join(i.text.words) for i in self.examples.inputs]
        return np.array(names, np.object_)[self.examples.input_index] if names else np.array([], np.object_)

    @cached_property
    def forms(self) -> NDArray[Any]:
        """(occurrence,) the word form in lower case."""
        indices = zip(self.examples.input_index.tolist(), self.word_index.tolist(), strict=True)
        return np.array([self.examples.inputs[i].text.words[word].lower() for i, word in indices], np.object_)

    @cached_property
    def gold_senses(self) -> list[frozenset[str]]:
        """For each occurrence, the senses that count as right: its sense, and further ones if it has several."""
        further = [
            [
                senses
                for segment in recorded_input.text.segments
                for senses in segment.further_senses or ((),) * len(segment)
            ]
            for recorded_input in self.examples.inputs
        ]
        annotated = zip(self.senses.tolist(), self.examples.input_index.tolist(), self.word_index.tolist(), strict=True)
        return [frozenset({sense, *further[index][word]}) for sense, index, word in annotated]

    def lemma_indices(self, lemma: str) -> IndexArray:
        """Indices of the occurrences of one lemma."""
        return np.flatnonzero(self.lemmas == lemma)


SenseAnnotations = Iterable[tuple[str, Sentence, int]]
"""(sense, sentence, word index) of each annotated word."""


def sense_occurrences(recording: Recording, indices: Sequence[int] | None = None) -> WordOccurrences:
    """The words with a sense annotation, in an order that does not depend on the order of the corpus."""
    return collect_occurrences(recording, range(len(recording)) if indices is None else indices, _sense_annotations)


def collect_occurrences(
    recording: Recording, indices: Sequence[int], extract: Callable[[Sentence], SenseAnnotations]
) -> WordOccurrences:
    """The words selected by `extract`, in an order that does not depend on the order of the corpus."""

    def cases(recorded_input: RecordedInput) -> list[ProbeCase]:
        extracted: list[ProbeCase] = []
        start = 0
        for segment in recorded_input.text.segments:
            extracted.extend(_build_case(*annotation, start) for annotation in extract(segment))
            start += len(segment)
        return extracted

    examples = span_examples(recording, indices, cases)
    fields = [key.rsplit("\t", 2) for key in examples.control_types.tolist()]
    lemmas, pos = (np.array([field[column] for field in fields], np.object_) for column in (0, 1))
    return WordOccurrences(examples, lemmas, pos, np.array([int(field[2]) for field in fields], np.int64))


def _build_case(sense: str, sentence: Sentence, word: int, start: int) -> ProbeCase:
    """A probe case; its control type holds the lemma, the tag and the index on the word axis."""
    lemma = (sentence.lemmas[word] if sentence.lemmas else "") or sentence.words[word]
    pos = sentence.pos[word] if sentence.pos else ""
    index = start + word
    return ProbeCase(sense, f"{lemma.lower()}\t{pos}\t{index}", ((index, index + 1),))


def _sense_annotations(sentence: Sentence) -> SenseAnnotations:
    return ((sense, sentence, word) for word, sense in enumerate(sentence.senses or ()) if sense)


@dataclass(frozen=True)
class SenseSplits:
    """Train and test occurrences, the indices of both in each of several splits, and training sentences left out."""

    train: WordOccurrences
    test: WordOccurrences
    splits: tuple[tuple[IndexArray, IndexArray], ...]
    unused: Mapping[str, int]

    def with_half_training(self) -> SenseSplits:
        """The same splits with a random half of the training sentences, another one in each split."""
        inputs, input_index = self.train.examples.inputs, self.train.examples.input_index
        splits: list[tuple[IndexArray, IndexArray]] = []
        for number, (train, test) in enumerate(self.splits):
            order = sorted(
                set(input_index[train].tolist()),
                key=lambda index: seeded_hash(f"half\n{' '.join(inputs[index].text.words)}", number),
            )
            splits.append((train[np.isin(input_index[train], order[: max(1, len(order) // 2)])], test))
        return replace(self, splits=tuple(splits))

    def n_training_sentences(self) -> int:
        """The number of training inputs with an annotated word in the first split."""
        return len(set(self.train.examples.input_index[self.splits[0][0]].tolist()))

    def n_sentences(self) -> int:
        """The number of test inputs."""
        return len(self.test.examples.inputs)

    @property
    def sample(self) -> dict[str, int]:
        """The sizes of the first split."""
        train, test = self.splits[0]
        senses = {lemma: set(self.train.senses[self.train.lemmas == lemma]) for lemma in set(self.train.lemmas)}
        return {
            "training occurrences": len(train),
            "test occurrences": len(test),
            "splits": len(self.splits),
            "lemmas": len(senses),
            "ambiguous lemmas": sum(len(names) > 1 for names in senses.values()),
            **self.unused,
        }


def split_occurrences(
    recording: Recording, encoder: Encoder | None, split: TrainTestSplit, *, analysis_name: str
) -> SenseSplits:
    """Several splits of the recording by whole documents, or one with another corpus for training."""
    unused: dict[str, int] = {}
    if split.train_corpus:
        data = split.split(recording, encoder, (WORD_SITE,), analysis_name=analysis_name, annotations=("senses",))
        train, test = sense_occurrences(*data.train), sense_occurrences(*data.test)
        unused = data.sample
        splits = [(np.arange(len(train)), np.arange(len(test)))]
    else:
        train = test = sense_occurrences(recording)
        masks = [train_mask(test.examples.inputs, split.train_fraction, seed=seed) for seed in split.seeds]
        is_train = [mask[test.examples.input_index] for mask in masks if len(test)]
        splits = [(np.flatnonzero(mask), np.flatnonzero(~mask)) for mask in is_train]
    if not splits or not any(len(first) and len(second) for first, second in splits):
        raise Refusal(
            f"{analysis_name} found {len(train)} training and {len(test)} test occurrences with a sense",
            "sense-annotated words in at least two documents or sentences",
            "Use a larger sense-annotated corpus, or name another with --train-corpus",
        )
    return SenseSplits(train, test, tuple(splits), unused)


def last_layers(n_layers: int) -> slice:
    """The last four of `n_layers` layers, without the embeddings (layer 0) unless there are no others."""
    return slice(max(1, n_layers - N_CONCATENATED_LAYERS) if n_layers > 1 else 0, None)


def representation_cosines(test: NDArray[Any], train: NDArray[Any]) -> FloatArray:
    """(layer + 1, test, train) cosines of (layer, test, width) with (layer, train, width); last: four layers together.

    The concatenation of the last four layers (fewer in shallow models) is never built: its dot products are sums of
    dot products.
    """
    first, second = test.astype(np.float64), train.astype(np.float64)
    products = first @ second.swapaxes(1, 2)
    squares = [np.square(vectors).sum(-1) for vectors in (first, second)]
    last = last_layers(len(first))
    products = np.concatenate([products, products[last].sum(0, keepdims=True)])
    norms = [np.sqrt(np.concatenate([square, square[last].sum(0, keepdims=True)])) for square in squares]
    scale = norms[0][:, :, None] * norms[1][:, None]
    return np.divide(products, scale, out=np.zeros_like(products), where=scale > 0)


def shuffle_senses(occurrences: WordOccurrences, indices: IndexArray, generator: np.random.Generator) -> NDArray[Any]:
    """(occurrence,) senses, permuted within each lemma at these indices: frequencies stay, the meaning is gone."""
    senses = occurrences.senses.copy()
    for lemma in sorted(set(occurrences.lemmas[indices].tolist())):
        same = indices[occurrences.lemmas[indices] == lemma]
        senses[same] = senses[same][generator.permutation(len(same))]
    return senses


def senses_by_frequency(senses: Sequence[str]) -> list[str]:
    """The distinct senses, most frequent first; ties by name."""
    counts = Counter(senses)
    return sorted(counts, key=lambda sense: (-counts[sense], sense))
