"""Word classes of the Open Sesame grammar, taken from the published files, and the shape of a sentence in them."""

from __future__ import annotations

import re
from collections.abc import Sequence

CLASSES = {
    "D": "the some my your our her",
    "X": "can will would could",
    "Y": "do does",
    "P": "around near with upon by behind above below",
    "R": "who that",
    "J": "big small old young bad good hot cold new little",
    "I": "cry smile sleep swim wait move change read eat",
    "T": "dress kick hit hurt clean love accept remember comfort",
    "S": "himself herself themselves",
}
LETTER = {word: letter for letter, words in CLASSES.items() for word in words.split()}
IRREGULAR = {"mice", "wolves", "men", "women", "wives", "ladies"}


def letters(words: Sequence[str]) -> str:
    """Return one letter per word: its class, `G` for a possessor, `C` for a clitic, `N` for any other word."""
    return "".join(LETTER.get(word, "C" if word == "'s" else "G" if word.endswith("'s") else "N") for word in words)


def shape(words: Sequence[str]) -> str:
    """Return the classes with each run of adjectives reduced to one."""
    return re.sub("J+", "J", letters(words))


def is_plural(noun: str) -> bool:
    """Whether a noun is plural, judged by its form."""
    return noun in IRREGULAR or (noun.endswith("s") and noun not in {"princess", "actress"})
