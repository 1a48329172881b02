"""Corpora: ordered, immutable collections of examples, with a record of the input that was skipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, overload

from bertology.arrays import LazySequence
from bertology.corpus.example import Example, SkippedExample
from bertology.corpus.hashing import Fingerprint
from bertology.corpus.sentence import Sentence
from bertology.errors import Refusal, unknown_name


class LabelNames(NamedTuple):
    """The names of labels of examples, of words and of spans, with the number of examples that have each."""

    examples: Counter[str]
    words: Counter[str]
    spans: Counter[str]


class ExampleCounts(NamedTuple):
    """What `Corpus` counts over all examples: fingerprint, words, annotations, names of labels and skipped input."""

    fingerprint: str
    words: int
    annotations: Counter[str]
    label_names: LabelNames
    skipped: Counter[str]


class StoredExamples(LazySequence[Example]):
    """Examples that are read on access, and what was counted when they were first read."""

    counts: ExampleCounts

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the examples."""
        return self.counts.fingerprint


@dataclass(frozen=True)
class Corpus(Sequence[Example]):
    """Examples in order, with the name and format of their source and the input that was skipped."""

    examples: Sequence[Example]
    name: str = "corpus"
    format: str = ""
    skipped: tuple[SkippedExample, ...] = field(default=(), compare=False)

    def __repr__(self) -> str:
        skipped = f", {len(self.skipped)} skipped or changed" if self.skipped else ""
        examples = "1 example" if len(self) == 1 else f"{len(self)} examples"
        return f"Corpus({self.name!r}, {examples}{skipped})"

    def __len__(self) -> int:
        return len(self.examples)

    @overload
    def __getitem__(self, index: int) -> Example: ...
    @overload
    def __getitem__(self, index: slice) -> Corpus: ...
    def __getitem__(self, index: int | slice) -> Example | Corpus:
        if isinstance(index, slice):
            return replace(self, examples=tuple(self.examples[index]))
        return self.examples[index]

    def __iter__(self) -> Iterator[Example]:
        return iter(self.examples)

    @property
    def sentences(self) -> Iterator[Sentence]:
        """All segments of all examples."""
        return (segment for example in self.examples for segment in example.segments)

    @cached_property
    def annotations(self) -> Counter[str]:
        """The number of segments with each annotation; `label` and `minimal pairs` count examples.

        An example has the annotation `label` if it has a label under any name.
        """
        if isinstance(self.examples, StoredExamples):
            return self.examples.counts.annotations
        counts: Counter[str] = Counter()
        for example in self.examples:
            for segment in example.segments:
                counts.update(segment.annotations() - {"label"})
            counts["label"] += example.label is not None or bool(example.labels)
            counts["minimal pairs"] += example.kind == "minimal_pair"
        return +counts

    @cached_property
    def label_names(self) -> LabelNames:
        """The names of the labels of examples, words and spans, each with the number of examples that have it."""
        if isinstance(self.examples, StoredExamples):
            return self.examples.counts.label_names
        names = LabelNames(Counter(), Counter(), Counter())
        for example in self.examples:
            names.examples.update(example.labels.keys())
            names.words.update({name for segment in example.segments for name in segment.word_labels})
            names.spans.update({name for segment in example.segments for name in segment.span_labels})
        return names

    @property
    def annotation_list(self) -> str:
        """All annotations and names of labels, for messages."""
        lists = {"": self.annotations, "labels": self.label_names.examples}
        lists |= {"word labels": self.label_names.words, "span labels": self.label_names.spans}
        described = [f"{kind}: {', '.join(sorted(names))}".removeprefix(": ") for kind, names in lists.items() if names]
        return "; ".join(described) or "no annotations"

    def with_label(self, name: str = "") -> Corpus:
        """Return the corpus with the label of this name as the label of its examples.

        Without a name, and for the name `label`, the label is the one that the examples have, or else the only name.
        """
        names = self.label_names.examples
        has_label = any(example.label is not None for example in self.examples)
        if name not in names:
            if name in ("", "label") and has_label:
                return self
            if name and names:
                raise unknown_name(f"label of {self.name}", name, names, remedy="Name it with --label")
            if len(names) != 1:
                raise Refusal(
                    f"{self.name} has several labels for each example"
                    if names
                    else f"The examples of {self.name} have no label ({self.annotation_list})",
                    f"the name of one of: {', '.join(sorted(names))}" if names else "labelled examples",
                    "Name the label with --label"
                    if names
                    else "Use a table (TSV, CSV or JSON lines) with a column of labels, named with --label",
                )
            (name,) = names
        return replace(self, examples=tuple(_with_label(example, example.labels.get(name)) for example in self))

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all words, offsets, annotations and labels."""
        if isinstance(self.examples, StoredExamples):
            return self.examples.fingerprint
        fingerprint = Fingerprint()
        fingerprint.update(self.examples)
        return fingerprint.digest

    def require_annotations(self, *annotations: str, analysis_name: str) -> None:
        """Refuse this corpus if no segment has one of the annotations that the analysis needs."""
        missing = [name for name in annotations if not self.annotations[name]]
        if not missing:
            return
        remedy = "Choose another --corpus; `bertology list corpora` shows what each format contains"
        if self.format == "arrays":
            remedy = "Add it to the words of each input (in the .jsonl file beside the .npz files)"
        elif missing == ["label"]:
            remedy = (
                "Choose a --corpus with a label for each example, such as a table with a column of labels (--label "
                "names it); in Python, give them to bertology.corpus as label=..."
            )
        raise Refusal(
            f"{analysis_name} needs the annotation {', '.join(missing)}; {self.name} has {self.annotation_list}",
            f"a corpus annotated with {', '.join(annotations)}",
            remedy,
        )

    def map_sentences(self, function: Callable[[Sentence], Sentence]) -> Corpus:
        """Apply a function to all segments."""
        examples = tuple(
            replace(example, segments=tuple(function(segment) for segment in example.segments))
            for example in self.examples
        )
        return replace(self, examples=examples)

    def with_single_spaces(self) -> Corpus:
        """Return the corpus with single spaces between words."""
        return self.map_sentences(Sentence.with_single_spaces)

    def summary(self) -> dict[str, object]:
        """Return name, fingerprint, size and skipped input, for the provenance of a result."""
        return {
            "name": self.name,
            "format": self.format,
            "fingerprint": self.fingerprint,
            "examples": len(self.examples),
            "words": self.counts.words,
            "skipped": dict(self.counts.skipped),
        }

    @property
    def counts(self) -> ExampleCounts:
        """What is counted over all examples; not counted again where examples are stored."""
        if isinstance(self.examples, StoredExamples):
            return self.examples.counts
        words = sum(len(segment) for segment in self.sentences)
        return ExampleCounts(self.fingerprint, words, self.annotations, self.label_names, self.skipped_counts)

    @property
    def skipped_counts(self) -> Counter[str]:
        """How much input was skipped or changed, by reason."""
        if isinstance(self.examples, StoredExamples):
            return self.examples.counts.skipped
        return Counter(skip.reason for skip in self.skipped)


def corpus_from_sentences(sentences: Sequence[Sentence], *, name: str = "corpus", format: str = "") -> Corpus:
    """Make a corpus with one example per sentence."""
    examples = tuple(Example((s,), label=s.label, id=s.id) for s in sentences)
    return Corpus(examples, name=name, format=format)


def _with_label(example: Example, label: str | None) -> Example:
    """The example with another gold label; a single sentence carries it too."""
    if example.kind != "sentence":
        return replace(example, label=label)
    return replace(example, label=label, segments=(replace(example.segments[0], label=label),))
