"""Occurrences of words whose sense is known: their vectors, what they are occurrences of, and how they are divided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.corpus.sentence import Sentence
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.maths.neighbours import Floats, Places
from bertology.measures.division import Division, training_part
from bertology.measures.probes.probe_material import WORD_SITE, Case, Examples, span_examples
from bertology.recording.entry import Entry
from bertology.recording.recording import Recording

CONCATENATED = 4
LAST = "last four"


@dataclass(frozen=True)
class Occurrences:
    """Annotated words: `examples` has their vectors and senses, the rest is (occurrence,).

    `lemma` is in lower case, the form where no lemma is annotated; `pos` is "" where none is; `word` is the place on
    the word axis of the entry.
    """

    examples: Examples
    lemma: NDArray[Any]
    pos: NDArray[Any]
    word: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def sense(self) -> NDArray[Any]:
        """(occurrence,) the sense of each."""
        return self.examples.label

    @property
    def views(self) -> tuple[str, ...]:
        """The layers and the last four end to end."""
        return (*(f"layer {number}" for number in range(len(self.examples.features))), LAST)

    @cached_property
    def documents(self) -> NDArray[Any]:
        """(occurrence,) the document, or the sentence where there is none."""
        names = [e.input.parts[0].document or "\n" + " ".join(e.input.words) for e in self.examples.entries]
        return np.array(names, np.object_)[self.examples.entry] if names else np.array([], np.object_)

    @cached_property
    def forms(self) -> NDArray[Any]:
        """(occurrence,) the word as it is written, in lower case."""
        places = zip(self.examples.entry.tolist(), self.word.tolist(), strict=True)
        return np.array([self.examples.entries[e].input.words[word].lower() for e, word in places], np.object_)

    def where(self, lemma: str) -> Places:
        """The occurrences of one word."""
        return np.flatnonzero(self.lemma == lemma)


Occurring = Iterable[tuple[str, Sentence, int]]
"""What an occurrence carries (a sense), its sentence, and its place there."""


def occurrences(recording: Recording, places: Sequence[int] | None = None) -> Occurrences:
    """The words with a sense in some entries, in an order that does not depend on that of the corpus."""
    return gathered(recording, range(len(recording)) if places is None else places, _with_sense)


def gathered(recording: Recording, places: Sequence[int], chosen: Callable[[Sentence], Occurring]) -> Occurrences:
    """The words of some entries that are `chosen`, in an order that does not depend on that of the corpus."""

    def cases(entry: Entry) -> list[Case]:
        found: list[Case] = []
        start = 0
        for part in entry.input.parts:
            found.extend(_case(*one, start) for one in chosen(part))
            start += len(part)
        return found

    examples = span_examples(recording, places, cases)
    parts = [type.rsplit("\t", 2) for type in examples.type.tolist()]
    lemma, pos = (np.array([part[column] for part in parts], np.object_) for column in (0, 1))
    return Occurrences(examples, lemma, pos, np.array([int(part[2]) for part in parts], np.int64))


def _case(sense: str, part: Sentence, word: int, start: int) -> Case:
    """A type is the lemma, the tag and the place on the word axis."""
    lemma = (part.lemmas[word] if part.lemmas else "") or part.words[word]
    pos = part.pos[word] if part.pos else ""
    place = start + word
    return Case(sense, f"{lemma.lower()}\t{pos}\t{place}", ((place, place + 1),))


def _with_sense(part: Sentence) -> Occurring:
    return ((sense, part, word) for word, sense in enumerate(part.senses or ()) if sense)


@dataclass(frozen=True)
class Divided:
    """Occurrences to learn from and to be tested, and which of both belong to each of several divisions."""

    learned: Occurrences
    tested: Occurrences
    runs: tuple[tuple[Places, Places], ...]

    def sentences(self) -> int:
        """How many sentences the tested occurrences may lie in."""
        return len(self.tested.examples.entries)

    @property
    def sizes(self) -> str:
        """How much there is, in words."""
        first, second = self.runs[0]
        lemmas = {word: len(set(self.learned.sense[self.learned.lemma == word])) for word in set(self.learned.lemma)}
        several = sum(count > 1 for count in lemmas.values())
        times = f" in the first of {len(self.runs)} divisions" if len(self.runs) > 1 else ""
        return (
            f"{len(first)} occurrences to learn from, {len(second)} to test{times}; {several} of {len(lemmas)} words "
            "have several senses"
        )


def divided(recording: Recording, encoder: Encoder | None, division: Division, seeds: int, *, purpose: str) -> Divided:
    """Several divisions of the recording into whole documents, or one into another corpus and the recording."""
    if division.corpus:
        first, second = division.parts(recording, encoder, (WORD_SITE,), purpose=purpose, layers=("senses",))
        learned, tested = occurrences(*first), occurrences(*second)
        runs = [(np.arange(len(learned)), np.arange(len(tested)))]
    else:
        learned = tested = occurrences(recording)
        parts = [training_part(tested.examples.entries, division.share, seed=division.seed + n) for n in range(seeds)]
        chosen = [part[tested.examples.entry] for part in parts if len(tested)]
        runs = [(np.flatnonzero(own), np.flatnonzero(~own)) for own in chosen]
    if not runs or not any(len(first) and len(second) for first, second in runs):
        raise Refusal(
            f"{purpose} found {len(learned)} occurrences with a sense to learn from and {len(tested)} to test",
            "words with senses in at least two documents or sentences",
            "Use a larger corpus with senses, or give another to learn from with --train",
        )
    return Divided(learned, tested, tuple(runs))


def last_layers(count: int) -> slice:
    """The last four of so many layers, the embeddings (layer 0) never among them unless there is nothing else."""
    return slice(max(1, count - CONCATENATED) if count > 1 else 0, None)


def view_cosines(tested: NDArray[Any], learned: NDArray[Any]) -> Floats:
    """(layer + 1, case, known) cosines of (layer, case, width) with (layer, known, width), then of the last four.

    The vectors of the last four layers end to end (of all that attend, where there are fewer) need not be made: their
    products are sums of products.
    """
    first, second = tested.astype(np.float64), learned.astype(np.float64)
    products = first @ second.swapaxes(1, 2)
    squares = [np.square(vectors).sum(-1) for vectors in (first, second)]
    last = last_layers(len(first))
    products = np.concatenate([products, products[last].sum(0, keepdims=True)])
    norms = [np.sqrt(np.concatenate([one, one[last].sum(0, keepdims=True)])) for one in squares]
    scale = norms[0][:, :, None] * norms[1][:, None]
    return np.divide(products, scale, out=np.zeros_like(products), where=scale > 0)


def shuffled_senses(own: Occurrences, places: Places, generator: np.random.Generator) -> NDArray[Any]:
    """(occurrence,) with each word's senses at those places dealt anew among them: as frequent, and meaningless."""
    senses = own.sense.copy()
    for lemma in sorted(set(own.lemma[places].tolist())):
        same = places[own.lemma[places] == lemma]
        senses[same] = senses[same][generator.permutation(len(same))]
    return senses


def most_frequent(senses: Sequence[str]) -> list[str]:
    """The different senses, the most frequent first, by name where they are as frequent."""
    counts = Counter(senses)
    return sorted(counts, key=lambda sense: (-counts[sense], sense))
