"""Corpora: ordered, immutable collections of examples, with a record of the input that was skipped."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, overload

from bertology.arrays import LazySequence
from bertology.corpus.sentence import (
    ANNOTATIONS,
    LABEL_FIELDS,
    NO_SPAN_LABELS,
    NO_WORD_LABELS,
    ROOT,
    SPAN_ANNOTATIONS,
    WORD_ANNOTATIONS,
    SemanticFrame,
    Sentence,
    Span,
)
from bertology.errors import Refusal, unknown_name

ExampleKind = Literal["sentence", "pair", "question", "choice", "minimal_pair"]
CorpusUnit = Literal["sentence", "document"]
NO_FACTORS: Mapping[str, str] = MappingProxyType({})
NO_LABELS: Mapping[str, str] = MappingProxyType({})
SPARSE_ANNOTATIONS = frozenset({*SPAN_ANNOTATIONS, "frames", "senses", "further_senses"})
"""Annotations that a sentence of an annotated document may lack because it contains nothing to annotate."""


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence, or several texts that belong together.

    | kind | segments | model input |
    |---|---|---|
    | sentence | text | text |
    | pair | first, second | first + second |
    | question | question, passage | question + passage |
    | choice | passage, question, option, option, ... | one input per option: passage + question and option |
    | minimal_pair | acceptable, unacceptable | two inputs |

    `label` is the gold label: a class, a score, or the index of the correct option, always as text. `source` names the
    file, split or article that the example comes from. `factors` are the levels of an experimental design, such as
    `condition` or `attractors`, by the name of the factor. `labels` are all labels of the example by the names that the
    source gives them, such as the columns of a table; `Corpus.with_label` chooses one.
    """

    segments: tuple[Sentence, ...]
    kind: ExampleKind = "sentence"
    label: str | None = None
    id: str = ""
    source: str = ""
    factors: Mapping[str, str] = field(default_factory=lambda: NO_FACTORS)
    labels: Mapping[str, str] = field(default_factory=lambda: NO_LABELS)

    @property
    def text_inputs(self) -> tuple[TextInput, ...]:
        """The model inputs of this example, in order."""
        match self.kind:
            case "sentence":
                return (TextInput((self.segments[0],)),)
            case "pair" | "question":
                return (TextInput(self.segments),)
            case "minimal_pair":
                return tuple(TextInput((segment,)) for segment in self.segments)
            case "choice":
                passage, question, *options = self.segments
                return tuple(TextInput((passage, concatenate_segments((question, option)))) for option in options)


@dataclass(frozen=True, slots=True)
class TextInput:
    """One or two texts that form one model input."""

    segments: tuple[Sentence, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """The words of all segments in order: the word axis of a recording."""
        if len(self.segments) == 1:
            return self.segments[0].words
        return tuple(word for segment in self.segments for word in segment.words)


@dataclass(frozen=True, slots=True)
class SkippedExample:
    """Input that was skipped or changed: `reason` is the short text it is counted under, `location` file and line."""

    reason: str
    location: str


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


class Fingerprint:
    """The fingerprint of a corpus, computed as its examples are read."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def update(self, examples: Iterable[Example]) -> None:
        """Add the next examples."""
        for example in examples:
            self._hash.update(f"{hash_text(example)}{_label_text(example)}\n".encode())

    @property
    def digest(self) -> str:
        """The fingerprint of the examples so far."""
        return self._hash.hexdigest()[:32]


def corpus_from_sentences(sentences: Sequence[Sentence], *, name: str = "corpus", format: str = "") -> Corpus:
    """Make a corpus with one example per sentence."""
    examples = tuple(Example((s,), label=s.label, id=s.id) for s in sentences)
    return Corpus(examples, name=name, format=format)


def _with_label(example: Example, label: str | None) -> Example:
    """The example with another gold label; a single sentence carries it too."""
    if example.kind != "sentence":
        return replace(example, label=label)
    return replace(example, label=label, segments=(replace(example.segments[0], label=label),))


def concatenate_segments(segments: Sequence[Sentence]) -> Sentence:
    """Join texts with a space into one unannotated sentence."""
    words = tuple(word for segment in segments for word in segment.words)
    offsets: list[tuple[int, int]] = []
    position = 0
    for segment in segments:
        offsets.extend((start + position, end + position) for start, end in segment.offsets)
        position += len(segment.text) + 1
    return Sentence(words, " ".join(segment.text for segment in segments), tuple(offsets))


def group_documents(examples: Iterable[Example], unit: CorpusUnit) -> Iterator[Example]:
    """Yield the sentences unchanged, or with the unit `document` one example per run of sentences of a document."""
    if unit == "sentence":
        yield from examples
        return
    for (document, source), group in groupby(examples, key=lambda e: (e.segments[0].document, e.source)):
        if document:
            merged = merge_sentences([example.segments[0] for example in group])
            yield Example((replace(merged, id=document, document=document),), id=document, source=source)
        else:
            yield from group


def merge_sentences(sentences: Sequence[Sentence]) -> Sentence:
    """Join sentences and their annotations into one sentence, with a space between their texts.

    An annotation is kept if all sentences have it; of sparse annotations (spans, frames, senses) one sentence is
    enough, and of labels of words and spans too (words without the label have the label ""). Each tree keeps its root.
    """
    names = (*WORD_ANNOTATIONS, *SPAN_ANNOTATIONS, "frames")
    values: dict[str, list[Any]] = {name: [] for name in names}
    marked_words: dict[str, list[int]] = {}
    start = 0
    for sentence in sentences:
        for name in names:
            annotation = getattr(sentence, name)
            if annotation is not None:
                values[name].extend(_shift_indices(value, name, start) for value in annotation)
            elif name == "senses":
                values[name].extend([None] * len(sentence))
            elif name == "further_senses":
                values[name].extend([()] * len(sentence))
        for role, words in sentence.marked_words.items():
            marked_words.setdefault(role, []).extend(word + start for word in words)
        start += len(sentence)

    def is_kept(name: str) -> bool:
        present = [getattr(sentence, name) is not None for sentence in sentences]
        return any(present) if name in SPARSE_ANNOTATIONS else all(present)

    return replace(
        concatenate_segments(sentences),
        marked_words=MappingProxyType({role: tuple(words) for role, words in marked_words.items()}),
        **_merge_labels(sentences),
        **{name: tuple(values[name]) for name in names if is_kept(name)},
    )


def _merge_labels(sentences: Sequence[Sentence]) -> dict[str, Any]:
    word_names = sorted({name for sentence in sentences for name in sentence.word_labels})
    word_labels = {
        name: tuple(label for s in sentences for label in s.word_labels.get(name, ("",) * len(s)))
        for name in word_names
    }
    span_labels: dict[str, list[Span]] = {}
    start = 0
    for sentence in sentences:
        for name, spans in sentence.span_labels.items():
            span_labels.setdefault(name, []).extend(_shift_indices(span, name, start) for span in spans)
        start += len(sentence)
    return {
        "word_labels": MappingProxyType(word_labels) if word_labels else NO_WORD_LABELS,
        "span_labels": MappingProxyType({name: tuple(spans) for name, spans in span_labels.items()})
        if span_labels
        else NO_SPAN_LABELS,
    }


def _shift_indices(value: Any, annotation: str, start: int) -> Any:
    """Shift the word indices of a governor, span or frame; values of other annotations have none."""
    if annotation == "governors":
        return value if value == ROOT else value + start
    if isinstance(value, Span):
        return replace(value, start=value.start + start, end=value.end + start)
    if isinstance(value, SemanticFrame):
        arguments = tuple(_shift_indices(argument, annotation, start) for argument in value.arguments)
        return replace(value, predicate=value.predicate + start, arguments=arguments)
    return value


STORED_KEYS = {
    "segments": "parts",
    "morphology": "features",
    "governors": "heads",
    "answer_spans": "answers",
    "marked_words": "marks",
}
"""Fields whose JSON key differs from their name.

The keys predate the names. They are part of the text that examples are hashed by; the hash orders the examples of
random splits and samples, so other keys would change published numbers.
"""


def example_to_json(example: Example) -> dict[str, Any]:
    """Return the example as plain JSON values, without empty fields."""
    data: dict[str, Any] = {
        "kind": example.kind,
        STORED_KEYS["segments"]: [sentence_to_json(segment) for segment in example.segments],
    }
    data |= {name: getattr(example, name) for name in ("label", "id", "source") if getattr(example, name)}
    return data | {name: dict(getattr(example, name)) for name in ("factors", "labels") if getattr(example, name)}


def example_from_json(data: Mapping[str, Any]) -> Example:
    """Invert `example_to_json`."""
    return Example(
        tuple(sentence_from_json(segment) for segment in data[STORED_KEYS["segments"]]),
        data["kind"],
        data.get("label"),
        data.get("id", ""),
        data.get("source", ""),
        MappingProxyType(data.get("factors", {})),
        MappingProxyType(data.get("labels", {})),
    )


def hash_text(example: Example) -> str:
    """Return the text that the hash of an example is computed from.

    Hashes predate `Example.factors`: an example without a source is hashed with its factors as the source. They also
    predate labels by name, which do not change the order of examples in splits; only `Corpus.fingerprint` has them.
    """
    data = example_to_json(example)
    data.pop("labels", None)
    for segment in data[STORED_KEYS["segments"]]:
        for name in LABEL_FIELDS:
            segment.pop(name, None)
    factors = data.pop("factors", {})
    if factors and not example.source:
        data["source"] = ";".join(f"{name}={value}" for name, value in factors.items())
    return json.dumps(data, ensure_ascii=False, sort_keys=True)


def _label_text(example: Example) -> str:
    """The labels by name as text, empty if there are none."""
    labels: list[Any] = [dict(example.labels)]
    for segment in example.segments:
        spans = {name: _spans_to_json(values) for name, values in segment.span_labels.items()}
        labels.append({name: list(values) for name, values in segment.word_labels.items()} | {"spans": spans})
    is_empty = not example.labels and not any(s.word_labels or s.span_labels for s in example.segments)
    return "" if is_empty else json.dumps(labels, ensure_ascii=False, sort_keys=True)


def sentence_to_json(sentence: Sentence) -> dict[str, Any]:
    """Return the sentence as plain JSON values, without absent annotations."""
    data: dict[str, Any] = {
        "words": list(sentence.words),
        "text": sentence.text,
        "offsets": [list(offsets) for offsets in sentence.offsets],
    }
    data |= {name: getattr(sentence, name) for name in ("id", "document") if getattr(sentence, name)}
    for name in ANNOTATIONS:
        value: Any = getattr(sentence, name)
        if value is None:
            continue
        if name in SPAN_ANNOTATIONS:
            value = _spans_to_json(value)
        elif name == "frames":
            value = [
                {"predicate": f.predicate, "sense": f.sense, "arguments": _spans_to_json(f.arguments)} for f in value
            ]
        elif name in WORD_ANNOTATIONS:
            value = list(value)
        data[STORED_KEYS.get(name, name)] = value
    if sentence.marked_words:
        data[STORED_KEYS["marked_words"]] = {role: list(words) for role, words in sentence.marked_words.items()}
    if sentence.word_labels:
        data["word_labels"] = {name: list(labels) for name, labels in sentence.word_labels.items()}
    if sentence.span_labels:
        data["span_labels"] = {name: _spans_to_json(spans) for name, spans in sentence.span_labels.items()}
    return data


def sentence_from_json(data: Mapping[str, Any]) -> Sentence:
    """Invert `sentence_to_json`."""
    names = {key: name for name, key in STORED_KEYS.items()}
    values: dict[str, Any] = {names.get(key, key): value for key, value in data.items()}
    values["offsets"] = tuple((start, end) for start, end in values["offsets"])
    for name in values.keys() & {"words", *WORD_ANNOTATIONS}:
        values[name] = tuple(values[name])
    if "further_senses" in values:
        values["further_senses"] = tuple(map(tuple, values["further_senses"]))
    for name in values.keys() & set(SPAN_ANNOTATIONS):
        values[name] = tuple(Span(*span) for span in values[name])
    if "frames" in values:
        values["frames"] = tuple(
            SemanticFrame(frame["predicate"], frame["sense"], tuple(Span(*span) for span in frame["arguments"]))
            for frame in values["frames"]
        )
    if "marked_words" in values:
        marked_words = {role: tuple(words) for role, words in values["marked_words"].items()}
        values["marked_words"] = MappingProxyType(marked_words)
    if "word_labels" in values:
        word_labels = {name: tuple(labels) for name, labels in values["word_labels"].items()}
        values["word_labels"] = MappingProxyType(word_labels)
    if "span_labels" in values:
        span_labels = {name: tuple(Span(*span) for span in spans) for name, spans in values["span_labels"].items()}
        values["span_labels"] = MappingProxyType(span_labels)
    return Sentence(**values)


def _spans_to_json(spans: Sequence[Span]) -> list[list[int | str]]:
    return [[span.start, span.end, span.label] for span in spans]


def seeded_hash(text: str, seed: int) -> bytes:
    """Return a hash to sort by: an order that depends only on the texts and the seed."""
    return hashlib.sha256(f"{seed}\n{text}".encode("utf-8", "surrogatepass")).digest()


def shuffle_by_hash(texts: Iterable[str], seed: int) -> list[str]:
    """Return the distinct texts in an order that depends only on the texts and the seed."""
    return sorted(set(texts), key=lambda text: seeded_hash(text, seed))
