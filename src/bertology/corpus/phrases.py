"""Phrases with roles: what a grammar's spaces are made of, and how a finished phrase becomes a sentence with marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from bertology.corpus.sentence import Sentence, sentence
from bertology.corpus.spaces import Space, among, mapped, product


class Token(NamedTuple):
    """A word and the role that a mark gives it, if any."""

    text: str
    role: str = ""


Phrase = tuple[Token, ...]


def listed(words: str) -> tuple[str, ...]:
    """A word list written as one text."""
    return tuple(words.split())


def word(*texts: str, role: str = "") -> Space[Phrase]:
    """One of the words; a text with blanks is several words."""
    return among([tuple(Token(part, role) for part in text.split()) for text in texts])


def sequence(*parts: Space[Phrase]) -> Space[Phrase]:
    """The phrases one after the other."""
    return mapped(product(*parts), lambda phrases: tuple(token for phrase in phrases for token in phrase))


def marked(phrase: Phrase, roles: Sequence[str]) -> Sentence:
    """The words with single blanks between them and a mark for each of the roles, empty where no word has it."""
    return replace(sentence([token.text for token in phrase]), marks=_marks(phrase, roles))


def written(phrase: Phrase, roles: Sequence[str]) -> Sentence:
    """As `marked`, as natural text: a capital at the beginning and a full stop at the end."""
    first, *rest = (token.text for token in phrase)
    words = [first[0].upper() + first[1:], *rest, "."]
    plain = sentence(words, space_after=[True] * (len(words) - 2) + [False, True])
    return replace(plain, marks=_marks(phrase, roles))


def _marks(phrase: Phrase, roles: Sequence[str]) -> Mapping[str, tuple[int, ...]]:
    found = {role: tuple(i for i, token in enumerate(phrase) if token.role == role) for role in roles}
    return MappingProxyType(found)
