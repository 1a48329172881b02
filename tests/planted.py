"""Planted truth: recordings whose attention and hidden states are made by the test, so that the answer is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.corpus.corpus import Corpus, Input, Item
from bertology.corpus.sentence import Frame, Sentence, Span, from_text
from bertology.encoder.pieces import Pieces, Special
from bertology.recording.entry import Entry
from bertology.recording.recording import EncoderCard, Recording

Floats = NDArray[np.float64]
HeadMap = Callable[[Entry], Floats]


def corpus_of(*texts: str | tuple[str, str]) -> Corpus:
    """A corpus of sentences and pairs without annotation."""
    items: list[Item] = []
    for text in texts:
        if isinstance(text, str):
            items.append(Item((from_text(text),)))
        else:
            items.append(Item((from_text(text[0]), from_text(text[1])), "pair"))
    return Corpus(tuple(items), name="planted")


ROLES = {"nsubj": "ARG0", "obj": "ARG1", "obl": "ARGM-LOC", "advmod": "ARGM-ADV"}


def with_roles(sentence: Sentence) -> Sentence:
    """The sentence with a frame for each verb, whose roles are filled as the tree has it."""
    relations, heads = sentence.relations or (), sentence.heads or ()
    frames: list[Frame] = []
    for verb, tag in enumerate(sentence.pos or ()):
        filled = [
            Span(word, word + 1, ROLES[relations[word]])
            for word, head in enumerate(heads)
            if head == verb and relations[word] in ROLES
        ]
        if tag == "VERB" and filled:
            frames.append(Frame(verb, "", tuple(filled)))
    return replace(sentence, frames=tuple(frames))


def asked(corpus: Corpus) -> Corpus:
    """Every sentence as a passage with the words in its middle for an answer, the one before it as the question."""
    parts = list(corpus.sentences)
    items: list[Item] = []
    for question, passage in pairwise(parts):
        middle = len(passage) // 2
        items.append(Item((question, replace(passage, answers=(Span(middle, middle + 1),))), "question"))
    return replace(corpus, items=tuple(items))


def entries_of(corpus: Corpus) -> tuple[Entry, ...]:
    """[CLS] words [SEP] (words [SEP]): one piece a word, ids by a stable numbering of the words."""
    vocabulary = {word: number for number, word in enumerate(sorted({w for s in corpus.sentences for w in s.words}))}
    return tuple(
        Entry(number, variant, 0, shown, pieces_of(shown, vocabulary))
        for number, item in enumerate(corpus)
        for variant, shown in enumerate(item.inputs)
    )


def pieces_of(shown: Input, vocabulary: dict[str, int]) -> Pieces:
    """[CLS] words [SEP], one piece a word, numbered by the vocabulary."""
    tokens, part, word, special, ids = ["[CLS]"], [-1], [-1], [int(Special.CLS)], [1]
    count = 0
    for index, sentence in enumerate(shown.parts):
        for text in sentence.words:
            tokens.append(text)
            part.append(index)
            word.append(count)
            special.append(int(Special.NONE))
            ids.append(10 + vocabulary[text])
            count += 1
        tokens.append("[SEP]")
        part.append(-1)
        word.append(-1)
        special.append(int(Special.SEP))
        ids.append(2)
    return Pieces(
        ids=np.array(ids, np.int32),
        tokens=tuple(tokens),
        types=np.maximum(np.array(part, np.int32), 0),
        part=np.array(part, np.int32),
        word=np.array(word, np.int32),
        special=np.array(special, np.int32),
        words=count,
    )


def recording_of(
    corpus: Corpus, layers: Sequence[Sequence[HeadMap]], hidden: Callable[[Entry], Floats] | None = None
) -> Recording:
    """A recording in which head h of layer l has the map `layers[l][h](entry)`."""
    entries = entries_of(corpus)
    maps: list[NDArray[Any]] = [
        np.stack([np.stack([head(entry) for head in layer]) for layer in layers]).astype(np.float32)
        for entry in entries
    ]
    sites: dict[str, Sequence[NDArray[Any]]] = {"attention": maps}
    if hidden is not None:
        sites["hidden"] = [hidden(entry).astype(np.float32) for entry in entries]
    card = EncoderCard("planted", "0" * 32, len(layers), len(layers[0]), 8)
    return Recording(card, corpus, entries, sites)


def uniform(entry: Entry) -> Floats:
    """A head that looks at all pieces alike."""
    n = len(entry.pieces)
    return np.full((n, n), 1 / n)


def looking_at(offset: int) -> HeadMap:
    """A head that looks `offset` pieces away, and at itself where there is no such piece."""

    def head(entry: Entry) -> Floats:
        n = len(entry.pieces)
        places = np.arange(n) + offset
        places = np.where((places < 0) | (places >= n), np.arange(n), places)
        return np.eye(n)[places]

    return head


def at_kind(kind: Special) -> HeadMap:
    """A head that spreads its attention over the special pieces of one kind."""

    def head(entry: Entry) -> Floats:
        there = (entry.pieces.special == kind).astype(np.float64)
        return np.tile(there / there.sum(), (len(there), 1))

    return head


def noise(seed: int) -> HeadMap:
    """A head whose rows are random distributions."""

    def head(entry: Entry) -> Floats:
        n = len(entry.pieces)
        return np.random.default_rng([seed, *entry.pieces.ids.tolist()]).dirichlet(np.ones(n), size=n)

    return head
