"""An ordered, immutable collection of items to show an encoder, and what was skipped while reading them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, overload

from bertology.corpus.sentence import Sentence, from_text
from bertology.errors import Refusal

Kind = Literal["sentence", "pair", "question", "choice", "minimal_pair"]


@dataclass(frozen=True, slots=True)
class Item:
    """One unit of a corpus: a sentence, or several texts that belong together.

    | kind | parts | shown to the encoder as |
    |---|---|---|
    | sentence | text | text |
    | pair | first, second | first + second |
    | question | question, passage | question + passage |
    | choice | passage, question, option, option, ... | one input an option: passage + question and option |
    | minimal_pair | acceptable, unacceptable | two inputs |

    `label` is the gold answer: a class, a score, or the index of the right option, always as text.
    """

    parts: tuple[Sentence, ...]
    kind: Kind = "sentence"
    label: str | None = None
    id: str = ""
    source: str = ""

    @property
    def inputs(self) -> tuple[Input, ...]:
        """What an encoder is shown for this item, in order."""
        match self.kind:
            case "sentence":
                return (Input((self.parts[0],)),)
            case "pair" | "question":
                return (Input(self.parts),)
            case "minimal_pair":
                return tuple(Input((part,)) for part in self.parts)
            case "choice":
                passage, question, *options = self.parts
                return tuple(Input((passage, joined((question, option)))) for option in options)


@dataclass(frozen=True, slots=True)
class Input:
    """One or two texts that make one sequence for an encoder."""

    parts: tuple[Sentence, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """The words of all parts, one after the other: the word axis of a recording."""
        return tuple(word for part in self.parts for word in part.words)


@dataclass(frozen=True, slots=True)
class Skipped:
    """One thing that was left out, and why: `reason` is a short class, `detail` the place."""

    reason: str
    detail: str


@dataclass(frozen=True)
class Corpus(Sequence[Item]):
    """Items in order, with their name, their format and the count of what could not be read."""

    items: tuple[Item, ...]
    name: str = "corpus"
    format: str = ""
    skipped: tuple[Skipped, ...] = field(default=(), compare=False)

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> Corpus: ...
    def __getitem__(self, index: int | slice) -> Item | Corpus:
        if isinstance(index, slice):
            return replace(self, items=self.items[index])
        return self.items[index]

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    @property
    def sentences(self) -> Iterator[Sentence]:
        """Every part of every item."""
        return (part for item in self.items for part in item.parts)

    @cached_property
    def layers(self) -> Counter[str]:
        """How many parts carry each annotation layer; items count as `label` and as `minimal pairs` where they are."""
        counts: Counter[str] = Counter()
        for item in self.items:
            for part in item.parts:
                counts.update(part.layers() - {"label"})
            counts["label"] += item.label is not None
            counts["minimal pairs"] += item.kind == "minimal_pair"
        return +counts

    @cached_property
    def fingerprint(self) -> str:
        """A hash of every word, offset and annotation: equal content, equal fingerprint."""
        from bertology.corpus.storage import item_to_json

        digest = hashlib.sha256()
        for item in self.items:
            digest.update(json.dumps(item_to_json(item), ensure_ascii=False, sort_keys=True).encode())
            digest.update(b"\n")
        return digest.hexdigest()[:32]

    def require(self, *layers: str, purpose: str) -> None:
        """Refuse this corpus where no part of it carries one of the layers that `purpose` needs."""
        missing = [layer for layer in layers if not self.layers[layer]]
        if missing:
            present = ", ".join(sorted(self.layers)) or "no annotation"
            raise Refusal(
                f"{purpose} needs the annotation {', '.join(missing)}; {self.name} carries {present}",
                f"a corpus annotated with {', '.join(layers)}",
                "Give one with --corpus; `bertology list corpora` shows which formats carry what",
            )

    def map(self, change: Callable[[Sentence], Sentence]) -> Corpus:
        """The same items with every part changed."""
        items = tuple(replace(item, parts=tuple(change(part) for part in item.parts)) for item in self.items)
        return replace(self, items=items)

    def respaced(self) -> Corpus:
        """The same words with one space between them."""
        return self.map(Sentence.respaced)

    def summary(self) -> dict[str, object]:
        """Name, fingerprint, size and skipped input: what goes into a result's provenance."""
        return {
            "name": self.name,
            "format": self.format,
            "fingerprint": self.fingerprint,
            "items": len(self.items),
            "words": sum(len(part) for part in self.sentences),
            "skipped": dict(Counter(skip.reason for skip in self.skipped)),
        }


def joined(parts: Sequence[Sentence]) -> Sentence:
    """Several texts as one, a space between them, words in order; annotation is not carried over."""
    text: list[str] = []
    offsets: list[tuple[int, int]] = []
    position = 0
    for part in parts:
        offsets.extend((a + position, b + position) for a, b in part.offsets)
        text.append(part.text)
        position += len(part.text) + 1
    return Sentence(
        words=tuple(word for part in parts for word in part.words), text=" ".join(text), offsets=tuple(offsets)
    )


def of_sentences(sentences: Sequence[Sentence], *, name: str = "corpus", format: str = "") -> Corpus:
    """A corpus with one item a sentence."""
    items = tuple(Item((s,), label=s.label, id=s.id) for s in sentences)
    return Corpus(items, name=name, format=format)


def read_text(*texts: str | tuple[str, str]) -> Corpus:
    """A corpus of the texts given; a tuple of two is a pair."""
    items: list[Item] = []
    for number, text in enumerate(texts, start=1):
        parts = (text,) if isinstance(text, str) else text
        kind: Kind = "sentence" if isinstance(text, str) else "pair"
        items.append(Item(tuple(from_text(part) for part in parts), kind, id=str(number)))
    return Corpus(tuple(items), name="text")
