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
from typing import Any, Literal, overload

from bertology.corpus.sentence import (
    ANNOTATIONS,
    ROOT,
    SPAN_ANNOTATIONS,
    WORD_ANNOTATIONS,
    SemanticFrame,
    Sentence,
    Span,
    sentence_from_text,
)
from bertology.errors import Refusal

ExampleKind = Literal["sentence", "pair", "question", "choice", "minimal_pair"]
CorpusUnit = Literal["sentence", "document"]
NO_FACTORS: Mapping[str, str] = MappingProxyType({})
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
    `condition` or `attractors`, by the name of the factor.
    """

    segments: tuple[Sentence, ...]
    kind: ExampleKind = "sentence"
    label: str | None = None
    id: str = ""
    source: str = ""
    factors: Mapping[str, str] = field(default_factory=lambda: NO_FACTORS)

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
        return tuple(word for segment in self.segments for word in segment.words)


@dataclass(frozen=True, slots=True)
class SkippedExample:
    """Input that was skipped or changed: `reason` is the short text it is counted under, `location` file and line."""

    reason: str
    location: str


@dataclass(frozen=True)
class Corpus(Sequence[Example]):
    """Examples in order, with the name and format of their source and the input that was skipped."""

    examples: tuple[Example, ...]
    name: str = "corpus"
    format: str = ""
    skipped: tuple[SkippedExample, ...] = field(default=(), compare=False)

    def __len__(self) -> int:
        return len(self.examples)

    @overload
    def __getitem__(self, index: int) -> Example: ...
    @overload
    def __getitem__(self, index: slice) -> Corpus: ...
    def __getitem__(self, index: int | slice) -> Example | Corpus:
        if isinstance(index, slice):
            return replace(self, examples=self.examples[index])
        return self.examples[index]

    def __iter__(self) -> Iterator[Example]:
        return iter(self.examples)

    @property
    def sentences(self) -> Iterator[Sentence]:
        """All segments of all examples."""
        return (segment for example in self.examples for segment in example.segments)

    @cached_property
    def annotations(self) -> Counter[str]:
        """The number of segments with each annotation; `label` and `minimal pairs` count examples."""
        counts: Counter[str] = Counter()
        for example in self.examples:
            for segment in example.segments:
                counts.update(segment.annotations() - {"label"})
            counts["label"] += example.label is not None
            counts["minimal pairs"] += example.kind == "minimal_pair"
        return +counts

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all words, offsets and annotations."""
        digest = hashlib.sha256()
        for example in self.examples:
            digest.update(f"{hash_text(example)}\n".encode())
        return digest.hexdigest()[:32]

    def require_annotations(self, *annotations: str, analysis_name: str) -> None:
        """Refuse this corpus if no segment has one of the annotations that the analysis needs."""
        missing = [name for name in annotations if not self.annotations[name]]
        if missing:
            present = ", ".join(sorted(self.annotations)) or "no annotations"
            raise Refusal(
                f"{analysis_name} needs the annotation {', '.join(missing)}; {self.name} has {present}",
                f"a corpus annotated with {', '.join(annotations)}",
                "Add it to the words of each input (in the .jsonl file beside the .npz files)"
                if self.format == "arrays"
                else "Choose another --corpus; `bertology list corpora` shows what each format contains",
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
            "words": sum(len(segment) for segment in self.sentences),
            "skipped": dict(Counter(skip.reason for skip in self.skipped)),
        }


def corpus_from_sentences(sentences: Sequence[Sentence], *, name: str = "corpus", format: str = "") -> Corpus:
    """Make a corpus with one example per sentence."""
    examples = tuple(Example((s,), label=s.label, id=s.id) for s in sentences)
    return Corpus(examples, name=name, format=format)


def corpus_from_texts(*texts: str | tuple[str, str]) -> Corpus:
    """Make a corpus of plain texts; a tuple of two texts is a pair."""
    examples: list[Example] = []
    for number, text in enumerate(texts, start=1):
        segments = (text,) if isinstance(text, str) else text
        kind: ExampleKind = "sentence" if isinstance(text, str) else "pair"
        examples.append(Example(tuple(sentence_from_text(segment) for segment in segments), kind, id=str(number)))
    return Corpus(tuple(examples), name="text")


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
    enough. Each tree keeps its root.
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
        **{name: tuple(values[name]) for name in names if is_kept(name)},
    )


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
    return data | ({"factors": dict(example.factors)} if example.factors else {})


def example_from_json(data: Mapping[str, Any]) -> Example:
    """Invert `example_to_json`."""
    return Example(
        tuple(sentence_from_json(segment) for segment in data[STORED_KEYS["segments"]]),
        data["kind"],
        data.get("label"),
        data.get("id", ""),
        data.get("source", ""),
        MappingProxyType(data.get("factors", {})),
    )


def hash_text(example: Example) -> str:
    """Return the text that the hash of an example is computed from.

    Hashes predate `Example.factors`: an example without a source is hashed with its factors as the source.
    """
    data = example_to_json(example)
    factors = data.pop("factors", {})
    if factors and not example.source:
        data["source"] = ";".join(f"{name}={value}" for name, value in factors.items())
    return json.dumps(data, ensure_ascii=False, sort_keys=True)


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
    return Sentence(**values)


def _spans_to_json(spans: Sequence[Span]) -> list[list[int | str]]:
    return [[span.start, span.end, span.label] for span in spans]


def seeded_hash(text: str, seed: int) -> bytes:
    """Return a hash to sort by: an order that depends only on the texts and the seed."""
    return hashlib.sha256(f"{seed}\n{text}".encode("utf-8", "surrogatepass")).digest()


def shuffle_by_hash(texts: Iterable[str], seed: int) -> list[str]:
    """Return the distinct texts in an order that depends only on the texts and the seed."""
    return sorted(set(texts), key=lambda text: seeded_hash(text, seed))
