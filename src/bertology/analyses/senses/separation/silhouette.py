"""Silhouettes and neighbour purity of the senses of one word, and the context of each occurrence."""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.word_senses.occurrences import WordOccurrences
from bertology.errors import Refusal, unknown_name
from bertology.numerics.nearest_neighbours import TIE, FloatArray, IndexArray, cosines

CONTEXT_WORDS = 6
"""Words shown on either side of an occurrence."""


def select_lemma(occurrences: WordOccurrences, word: str) -> IndexArray:
    """The occurrences of a lemma; if empty, of the one whose second sense is most frequent."""
    counts = {
        lemma: Counter(occurrences.senses[occurrences.lemma_indices(lemma)].tolist())
        for lemma in set(occurrences.lemmas.tolist())
    }
    ambiguous = {lemma: count for lemma, count in counts.items() if len(count) > 1}
    if not ambiguous:
        raise Refusal(
            f"No word of the corpus has two senses ({len(counts)} words have one)",
            "a word that occurs with several senses",
            "Use a larger sense-annotated corpus",
        )
    if word and word.lower() not in ambiguous:
        raise unknown_name("word with several senses in the corpus", word.lower(), ambiguous)
    return occurrences.lemma_indices(
        word.lower() or min(ambiguous, key=lambda lemma: (-ambiguous[lemma].most_common(2)[1][1], lemma))
    )


def silhouettes(similarities: FloatArray, senses: NDArray[Any]) -> FloatArray:
    """(occurrence,) silhouettes in cosine distance, -1 to 1; 0 for a sense that occurs once."""
    from sklearn.metrics import silhouette_samples

    if len(set(senses.tolist())) in (1, len(senses)):
        return np.full(len(senses), np.nan)
    distances = np.clip(1 - similarities, 0, None)
    np.fill_diagonal(distances, 0.0)
    return np.asarray(cast("Any", silhouette_samples)(distances, senses.astype(str), metric="precomputed"), np.float64)


def neighbour_purity(similarities: FloatArray, senses: NDArray[Any], documents: NDArray[Any]) -> FloatArray:
    """(occurrence,) whether the nearest neighbour from another document has the same sense; ties are averaged.

    NaN if no other document has the word.
    """
    other_document = documents[:, None] != documents
    purity = np.full(len(senses), np.nan)
    for index in np.flatnonzero(other_document.any(1)).tolist():
        candidates = np.flatnonzero(other_document[index])
        cosines_to = similarities[index, candidates]
        nearest = candidates[cosines_to > cosines_to.max() - TIE]
        purity[index] = (senses[nearest] == senses[index]).mean()
    return purity


def layer_cosines(occurrences: WordOccurrences, indices: IndexArray) -> FloatArray:
    """(layer, occurrence, occurrence) pairwise cosines."""
    vectors = occurrences.examples.features[:, indices]
    return cosines(vectors, vectors)


def context_snippet(occurrences: WordOccurrences, index: int) -> str:
    """The occurrence in brackets, with the surrounding words."""
    words = occurrences.examples.inputs[occurrences.examples.input_index[index]].text.words
    word = int(occurrences.word_index[index])
    before, after = words[max(0, word - CONTEXT_WORDS) : word], words[word + 1 : word + 1 + CONTEXT_WORDS]
    start = ["…"] if word > CONTEXT_WORDS else []
    end = ["…"] if word + 1 + CONTEXT_WORDS < len(words) else []
    return " ".join([*start, *before, f"[{words[word]}]", *after, *end])
