"""Spaces of phrases with marked roles, and their conversion to sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from bertology.corpus.sample_spaces import SampleSpace, map_space, product, uniform
from bertology.corpus.sentence import Sentence, sentence_from_words


class PhraseWord(NamedTuple):
    """A word and the role it is marked with, if any."""

    text: str
    role: str = ""


Phrase = tuple[PhraseWord, ...]


def split_word_list(words: str) -> tuple[str, ...]:
    """Split a word list written as one text."""
    return tuple(words.split())


def phrases(*texts: str, role: str = "") -> SampleSpace[Phrase]:
    """Return the space of the texts as phrases; a text with spaces is several words."""
    return uniform([tuple(PhraseWord(form, role) for form in text.split()) for text in texts])


def sequence(*spaces: SampleSpace[Phrase]) -> SampleSpace[Phrase]:
    """Return the space of concatenated phrases, one of each space."""
    return map_space(product(*spaces), lambda parts: tuple(word for phrase in parts for word in phrase))


def to_marked_sentence(phrase: Phrase, roles: Sequence[str]) -> Sentence:
    """Join the words with single spaces and mark the words of each role, none if no word has it."""
    return replace(sentence_from_words([word.text for word in phrase]), marked_words=_marked_words(phrase, roles))


def to_natural_sentence(phrase: Phrase, roles: Sequence[str]) -> Sentence:
    """Do the same as `to_marked_sentence`, with an initial capital and a final full stop."""
    first, *rest = (word.text for word in phrase)
    words = [first[0].upper() + first[1:], *rest, "."]
    sentence = sentence_from_words(words, space_after=[True] * (len(words) - 2) + [False, True])
    return replace(sentence, marked_words=_marked_words(phrase, roles))


def _marked_words(phrase: Phrase, roles: Sequence[str]) -> Mapping[str, tuple[int, ...]]:
    return MappingProxyType({role: tuple(i for i, word in enumerate(phrase) if word.role == role) for role in roles})
