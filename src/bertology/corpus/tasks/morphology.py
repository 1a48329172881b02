"""Tense of the main verb, number of its subject and of its object (conneau2018).

The same lemma is never on both sides of a split, so a probe cannot know the forms it is tested on. A bag of words still
does well where the word itself shows the answer by its ending's piece, or other words agree with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from bertology.corpus.sentence import ROOT, Sentence
from bertology.corpus.sentence_tasks import Candidate, task

LAYERS = ("heads", "relations")
_TENSES = {"VBD": "PAST", "VBZ": "PRES", "VBP": "PRES"}
_FEATURE_TENSES = {"Past": "PAST", "Pres": "PRES"}
_NUMBERS = {"NN": "NN", "NNS": "NNS", "NNP": "NN", "NNPS": "NNS"}
_FEATURE_NUMBERS = {"Sing": "NN", "Plur": "NNS"}


@task("tense", about="whether the main verb is in the past (PAST) or the present (PRES)", layers=LAYERS)
def tense(sentences: Sequence[Sentence], random: Random) -> Iterator[Candidate]:
    """Sentences whose root is itself a finite verb; auxiliaries, the same few words everywhere, do not count."""
    for own in sentences:
        verb = (own.heads or ()).index(ROOT)
        feats = features(own, verb)
        if "Tense" in feats:
            label = _FEATURE_TENSES.get(feats["Tense"]) if feats.get("VerbForm", "Fin") == "Fin" else None
        else:
            label = _TENSES.get(_tag(own, verb))
        if label and not (own.pos and own.pos[verb] == "AUX"):
            yield Candidate(own.words, label, group=_lemma(own, verb))


@task("subject_number", about="whether the main clause's subject is singular (NN) or plural (NNS)", layers=LAYERS)
def subject_number(sentences: Sequence[Sentence], random: Random) -> Iterator[Candidate]:
    """Subjects that are common nouns."""
    return _numbers(sentences, ("nsubj", "nsubjpass"))


@task("object_number", about="whether the main clause's object is singular (NN) or plural (NNS)", layers=LAYERS)
def object_number(sentences: Sequence[Sentence], random: Random) -> Iterator[Candidate]:
    """Direct objects that are common nouns."""
    return _numbers(sentences, ("obj", "dobj"))


def _numbers(sentences: Sequence[Sentence], wanted: tuple[str, ...]) -> Iterator[Candidate]:
    for own in sentences:
        heads, relations = own.heads or (), own.relations or ()
        root = heads.index(ROOT)
        nouns = [
            word
            for word, relation in enumerate(relations)
            if heads[word] == root and relation.split(":")[0] in wanted and _is_noun(own, word)
        ]
        label = number(own, nouns[0]) if len(nouns) == 1 else None
        if label:
            yield Candidate(own.words, label, group=_lemma(own, nouns[0]))


def number(own: Sentence, word: int) -> str | None:
    """NN or NNS, from the features or the tag."""
    return _FEATURE_NUMBERS.get(features(own, word).get("Number", "")) or _NUMBERS.get(_tag(own, word))


def features(own: Sentence, word: int) -> dict[str, str]:
    """The morphological features of a word by name."""
    written = own.features[word] if own.features else ""
    return {name: value for name, equals, value in (pair.partition("=") for pair in written.split("|")) if equals}


def _is_noun(own: Sentence, word: int) -> bool:
    return own.pos[word] == "NOUN" if own.pos else _tag(own, word) in ("NN", "NNS")


def _tag(own: Sentence, word: int) -> str:
    return own.xpos[word] if own.xpos else ""


def _lemma(own: Sentence, word: int) -> str:
    return (own.lemmas or own.words)[word].lower()
