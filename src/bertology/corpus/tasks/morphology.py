"""Morphological tasks: tense of the main verb, number of its subject and of its object (conneau2018).

No lemma is in two splits, so that a probe cannot know the forms it is tested on. A bag of words still does well where
the ending of the word is a token that shows the label, or other words agree with the word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from bertology.corpus.probing_tasks import LabelledCandidate, probing_task
from bertology.corpus.sentence import ROOT, Sentence

REQUIRED_ANNOTATIONS = ("governors", "relations")
_TENSES = {"VBD": "PAST", "VBZ": "PRES", "VBP": "PRES"}
_FEATURE_TENSES = {"Past": "PAST", "Pres": "PRES"}
_NUMBERS = {"NN": "NN", "NNS": "NNS", "NNP": "NN", "NNPS": "NNS"}
_FEATURE_NUMBERS = {"Sing": "NN", "Plur": "NNS"}


@probing_task(
    "tense",
    description="SentEval tense: main verb in the past (PAST) or the present (PRES)",
    annotations=REQUIRED_ANNOTATIONS,
)
def tense(sentences: Sequence[Sentence], rng: Random) -> Iterator[LabelledCandidate]:
    """Use sentences whose root is a finite verb; auxiliaries are excluded because they are few."""
    for sentence in sentences:
        verb = (sentence.governors or ()).index(ROOT)
        features = word_morphology(sentence, verb)
        if "Tense" in features:
            label = _FEATURE_TENSES.get(features["Tense"]) if features.get("VerbForm", "Fin") == "Fin" else None
        else:
            label = _TENSES.get(_tag(sentence, verb))
        if label and not (sentence.pos and sentence.pos[verb] == "AUX"):
            yield LabelledCandidate(sentence.words, label, group=_lemma(sentence, verb))


@probing_task(
    "subject_number",
    description="SentEval subject number: subject of the main clause singular (NN) or plural (NNS)",
    annotations=REQUIRED_ANNOTATIONS,
)
def subject_number(sentences: Sequence[Sentence], rng: Random) -> Iterator[LabelledCandidate]:
    """Use subjects that are common nouns."""
    return _number_candidates(sentences, ("nsubj", "nsubjpass"))


@probing_task(
    "object_number",
    description="SentEval object number: object of the main clause singular (NN) or plural (NNS)",
    annotations=REQUIRED_ANNOTATIONS,
)
def object_number(sentences: Sequence[Sentence], rng: Random) -> Iterator[LabelledCandidate]:
    """Use direct objects that are common nouns."""
    return _number_candidates(sentences, ("obj", "dobj"))


def _number_candidates(sentences: Sequence[Sentence], target_relations: tuple[str, ...]) -> Iterator[LabelledCandidate]:
    for sentence in sentences:
        governors, relations = sentence.governors or (), sentence.relations or ()
        root = governors.index(ROOT)
        nouns = [
            word
            for word, relation in enumerate(relations)
            if governors[word] == root and relation.split(":")[0] in target_relations and _is_noun(sentence, word)
        ]
        label = grammatical_number(sentence, nouns[0]) if len(nouns) == 1 else None
        if label:
            yield LabelledCandidate(sentence.words, label, group=_lemma(sentence, nouns[0]))


def grammatical_number(sentence: Sentence, word: int) -> str | None:
    """Return NN or NNS, from the morphological features or the tag."""
    return _FEATURE_NUMBERS.get(word_morphology(sentence, word).get("Number", "")) or _NUMBERS.get(_tag(sentence, word))


def word_morphology(sentence: Sentence, word: int) -> dict[str, str]:
    """Return the morphological features of a word by name."""
    text = sentence.morphology[word] if sentence.morphology else ""
    return {name: value for name, equals, value in (pair.partition("=") for pair in text.split("|")) if equals}


def _is_noun(sentence: Sentence, word: int) -> bool:
    return sentence.pos[word] == "NOUN" if sentence.pos else _tag(sentence, word) in ("NN", "NNS")


def _tag(sentence: Sentence, word: int) -> str:
    return sentence.xpos[word] if sentence.xpos else ""


def _lemma(sentence: Sentence, word: int) -> str:
    return (sentence.lemmas or sentence.words)[word].lower()
