"""The language of a corpus, as far as findings depend on it: English, Chinese or another one."""

from __future__ import annotations

import re
from typing import Literal

from bertology.corpus.corpus import Corpus

Language = Literal["English", "Chinese", "other"]

N_EXAMPLES = 100
"""So many examples decide."""
MIN_HAN_SHARE = 0.3
"""A text with this share of Chinese characters among its letters is taken for Chinese."""
MIN_FUNCTION_WORDS = 0.1
"""A text with this share of English function words is taken for English; it is 0.2 to 0.4 in English prose."""
MIN_WORDS = 50
"""Fewer words do not tell the language."""
FUNCTION_WORDS = frozenset(
    (
        "the", "of", "and", "to", "that", "is", "was", "for", "it", "with", "as", "be", "this", "are", "on", "by",
        "not", "have", "from", "but", "they", "which", "you", "at", "or", "his", "her", "had", "their", "has", "were",
        "we", "she", "he", "i",
    )
)  # fmt: skip


def detect_language(corpus: Corpus) -> Language | None:
    """The language of the first examples by their letters and function words; None if they are too few."""
    text = " ".join(sentence.text for sentence in corpus[:N_EXAMPLES].sentences)
    letters = [letter for letter in text if letter.isalpha()]
    if not letters:
        return None
    if sum("\u4e00" <= letter <= "\u9fff" for letter in letters) > MIN_HAN_SHARE * len(letters):
        return "Chinese"
    words = re.findall(r"[^\W\d_]+", text.lower())
    if len(words) < MIN_WORDS:
        return None
    is_english = sum(word in FUNCTION_WORDS for word in words) > MIN_FUNCTION_WORDS * len(words)
    return "English" if is_english else "other"
