"""Corpora whose labels follow from single words: a tiny model must learn them almost perfectly."""

from __future__ import annotations

import random
from dataclasses import replace

from bertology.corpus.bio import encode
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.sentence import ROOT, Sentence, Span, sentence_from_words

FILLER = ("the", "of", "and", "to", "in", "was", "with", "by", "on", "not", "he", "this", "are", "or", "his", "from")
GOOD, BAD = ("happy", "rich", "strong"), ("sad", "poor", "weak")
NAMES = ("king", "queen", "doctor")


def planted_corpus(task: str, size: int = 120, *, seed: int = 0, shuffled: bool = False) -> Corpus:
    """A corpus for a task; `shuffled` permutes the labels, so that there is nothing to learn."""
    rng = random.Random(seed)
    examples = [MAKERS[task](rng, number) for number in range(size)]
    if shuffled:
        labels = [example.label for example in examples]
        rng.shuffle(labels)
        examples = [replace(example, label=label) for example, label in zip(examples, labels, strict=True)]
    return Corpus(tuple(examples), name=f"planted {task}")


def _sentence(rng: random.Random, *words: str) -> Sentence:
    """The words and some filler, in random order."""
    shuffled = [*rng.choices(FILLER, k=rng.randint(3, 7)), *words]
    rng.shuffle(shuffled)
    return sentence_from_words(shuffled)


def _labelled_text(rng: random.Random, number: int) -> Example:
    """`good` if the text has a good word."""
    is_good = bool(number % 2)
    sentence = _sentence(rng, rng.choice(GOOD if is_good else BAD))
    return Example((sentence,), label="good" if is_good else "bad", id=str(number))


def _labelled_pair(rng: random.Random, number: int) -> Example:
    """`good` if the second text has a good word."""
    is_good = bool(number % 2)
    second = _sentence(rng, rng.choice(GOOD if is_good else BAD))
    return Example((_sentence(rng), second), "pair", "good" if is_good else "bad", str(number))


def _tagged_sentence(rng: random.Random, number: int) -> Example:
    """Some words are names."""
    sentence = _sentence(rng, rng.choice(NAMES), rng.choice(NAMES))
    spans = [Span(index, index + 1, "PER") for index, word in enumerate(sentence.words) if word in NAMES]
    pos = tuple("NOUN" if word in NAMES else "X" for word in sentence.words)
    tagged = replace(sentence, tags=encode(spans, len(sentence)), entities=tuple(spans), pos=pos)
    return Example((tagged,), id=str(number))


def _parsed_sentence(rng: random.Random, number: int) -> Example:
    """The name is the root and governs all other words; good words have another relation."""
    sentence = _sentence(rng, rng.choice(NAMES), rng.choice(GOOD))
    root = next(index for index, word in enumerate(sentence.words) if word in NAMES)
    governors = tuple(ROOT if index == root else root for index in range(len(sentence)))
    relations = tuple(
        "root" if index == root else "amod" if word in GOOD else "det" for index, word in enumerate(sentence.words)
    )
    return Example((replace(sentence, governors=governors, relations=relations),), id=str(number))


def _question(rng: random.Random, number: int) -> Example:
    """The answer is the name in the passage."""
    sentence = _sentence(rng, rng.choice(NAMES))
    answer = next(index for index, word in enumerate(sentence.words) if word in NAMES)
    passage = replace(sentence, answer_spans=(Span(answer, answer + 1),))
    return Example((sentence_from_words(["who", "was", "it"]), passage), "question", "answerable", str(number))


def _multiple_choice(rng: random.Random, number: int) -> Example:
    """The good option is correct."""
    correct = rng.randrange(2)
    options = [sentence_from_words([rng.choice(GOOD if index == correct else BAD)]) for index in range(2)]
    question = sentence_from_words(["how", "is", "it"])
    return Example((_sentence(rng), question, *options), "choice", str(correct), str(number))


MAKERS = {
    "sentence": _labelled_text,
    "pair": _labelled_pair,
    "token": _tagged_sentence,
    "dependency": _parsed_sentence,
    "qa": _question,
    "choice": _multiple_choice,
}
