"""Corpora whose answers are easy to see in their words: what a tiny model must learn nearly without a fault."""

from __future__ import annotations

import random
from dataclasses import replace

from bertology.corpus.bio import encode
from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.sentence import ROOT, Sentence, Span, sentence

FILLER = ("the", "of", "and", "to", "in", "was", "with", "by", "on", "not", "he", "this", "are", "or", "his", "from")
GOOD, BAD = ("happy", "rich", "strong"), ("sad", "poor", "weak")
NAMES = ("king", "queen", "doctor")


def planted(task: str, count: int = 120, *, seed: int = 0, shuffled: bool = False) -> Corpus:
    """A corpus for a task; `shuffled` gives the labels to other items, so that there is nothing to learn."""
    draw = random.Random(seed)
    items = [MAKERS[task](draw, number) for number in range(count)]
    if shuffled:
        labels = [item.label for item in items]
        draw.shuffle(labels)
        items = [replace(item, label=label) for item, label in zip(items, labels, strict=True)]
    return Corpus(tuple(items), name=f"planted {task}")


def _words(draw: random.Random, *planted: str) -> Sentence:
    words = [*draw.choices(FILLER, k=draw.randint(3, 7)), *planted]
    draw.shuffle(words)
    return sentence(words)


def _sentence(draw: random.Random, number: int) -> Item:
    """Good where a good word is there."""
    good = bool(number % 2)
    return Item((_words(draw, draw.choice(GOOD if good else BAD)),), label="good" if good else "bad", id=str(number))


def _pair(draw: random.Random, number: int) -> Item:
    """The second text decides."""
    good = bool(number % 2)
    second = _words(draw, draw.choice(GOOD if good else BAD))
    return Item((_words(draw), second), "pair", "good" if good else "bad", str(number))


def _token(draw: random.Random, number: int) -> Item:
    """Some words are names."""
    part = _words(draw, draw.choice(NAMES), draw.choice(NAMES))
    spans = [Span(place, place + 1, "PER") for place, word in enumerate(part.words) if word in NAMES]
    pos = tuple("NOUN" if word in NAMES else "X" for word in part.words)
    return Item((replace(part, tags=encode(spans, len(part)), entities=tuple(spans), pos=pos),), id=str(number))


def _dependency(draw: random.Random, number: int) -> Item:
    """The one name is the root, and all other words hang on it; good words by another relation."""
    part = _words(draw, draw.choice(NAMES), draw.choice(GOOD))
    root = next(place for place, word in enumerate(part.words) if word in NAMES)
    heads = tuple(ROOT if place == root else root for place in range(len(part)))
    relations = tuple(
        "root" if place == root else "amod" if word in GOOD else "det" for place, word in enumerate(part.words)
    )
    return Item((replace(part, heads=heads, relations=relations),), id=str(number))


def _qa(draw: random.Random, number: int) -> Item:
    """The answer is the name in the passage."""
    part = _words(draw, draw.choice(NAMES))
    place = next(place for place, word in enumerate(part.words) if word in NAMES)
    passage = replace(part, answers=(Span(place, place + 1),))
    return Item((sentence(["who", "was", "it"]), passage), "question", "answerable", str(number))


def _choice(draw: random.Random, number: int) -> Item:
    """The good option."""
    right = draw.randrange(2)
    options = [sentence([draw.choice(GOOD if place == right else BAD)]) for place in range(2)]
    return Item((_words(draw), sentence(["how", "is", "it"]), *options), "choice", str(right), str(number))


MAKERS = {
    "sentence": _sentence,
    "pair": _pair,
    "token": _token,
    "dependency": _dependency,
    "qa": _qa,
    "choice": _choice,
}
