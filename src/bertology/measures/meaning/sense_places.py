"""The occurrences of one word in space: how far apart its senses are, and where each occurrence stands in its text."""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from bertology.errors import Refusal, unknown_name
from bertology.maths.neighbours import TIE, Floats, Places, cosines
from bertology.measures.meaning.sense_material import Occurrences

WINDOW = 6
"""Words shown on either side of an occurrence."""


def chosen_word(own: Occurrences, word: str) -> Places:
    """The occurrences of the word; unnamed, of the one whose second sense is the most frequent."""
    counts = {lemma: Counter(own.sense[own.where(lemma)].tolist()) for lemma in set(own.lemma.tolist())}
    several = {lemma: count for lemma, count in counts.items() if len(count) > 1}
    if not several:
        raise Refusal(
            f"No word of the corpus has two senses ({len(counts)} have one)",
            "a word that occurs with several senses",
            "Use a larger corpus with senses",
        )
    if word and word.lower() not in several:
        raise unknown_name("word with several senses in the corpus", word.lower(), several)
    return own.where(word.lower() or min(several, key=lambda lemma: (-several[lemma].most_common(2)[1][1], lemma)))


def silhouettes(similarities: Floats, senses: NDArray[Any]) -> Floats:
    """(occurrence,) -1 to 1: by how much its own sense is nearer, in cosine distance, than the nearest other one.

    As scikit-learn has it: 0 for the only occurrence of a sense.
    """
    from sklearn.metrics import silhouette_samples

    if len(set(senses.tolist())) in (1, len(senses)):
        return np.full(len(senses), np.nan)
    distances = np.clip(1 - similarities, 0, None)
    np.fill_diagonal(distances, 0.0)
    return np.asarray(cast("Any", silhouette_samples)(distances, senses.astype(str), metric="precomputed"), np.float64)


def purities(similarities: Floats, senses: NDArray[Any], documents: NDArray[Any]) -> Floats:
    """(occurrence,) whether its nearest neighbour from another document has its sense, those as near counting alike.

    NaN where no other document has the word.
    """
    elsewhere = documents[:, None] != documents
    found = np.full(len(senses), np.nan)
    for place in np.flatnonzero(elsewhere.any(1)).tolist():
        others = np.flatnonzero(elsewhere[place])
        near = similarities[place, others]
        level = others[near > near.max() - TIE]
        found[place] = (senses[level] == senses[place]).mean()
    return found


def layer_cosines(own: Occurrences, places: Places) -> Floats:
    """(layer, occurrence, occurrence) cosines of the occurrences with each other."""
    vectors = own.examples.features[:, places]
    return cosines(vectors, vectors)


def in_context(own: Occurrences, place: int) -> str:
    """The occurrence between brackets, with the words around it."""
    words = own.examples.entries[own.examples.entry[place]].input.words
    word = int(own.word[place])
    before, after = words[max(0, word - WINDOW) : word], words[word + 1 : word + 1 + WINDOW]
    start = ["…"] if word > WINDOW else []
    end = ["…"] if word + 1 + WINDOW < len(words) else []
    return " ".join([*start, *before, f"[{words[word]}]", *after, *end])
