"""How context-specific are the representations, and in how narrow a cone do they lie (ethayarajh2019)?"""

from __future__ import annotations

from collections import defaultdict
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.declaration import analysis
from bertology.encoder.pieces import Special
from bertology.errors import Refusal
from bertology.recording.entry import Entry
from bertology.recording.recording import Recording
from bertology.results.estimate import Estimates
from bertology.results.sampling import joined, mean_over_sentences
from bertology.results.shapes import LayerCurve

Floats = NDArray[np.floating[Any]]

LARGEST_SAMPLE = 200
"""Of a word that occurs more often a seeded sample is used: all pairs of 200 are 19,900, beyond the paper's 1,000."""


@analysis(
    question="How context-specific are the representations, and in how narrow a cone do they lie?",
    special="special tokens are left out; a word is a piece of the vocabulary, as in the paper's BERT runs",
    cites=("ethayarajh2019",),
    sites=("hidden",),
)
def anisotropy(
    recording: Recording,
    randomised: Recording | None,
    *,
    minimum: Annotated[int, "a word counts from this many occurrences in different sentences"] = 5,
    pairs: Annotated[int, "random pairs of occurrences for the baseline"] = 1000,
    centred: Annotated[
        bool, "take the maximum explainable variance of centred vectors, as the released code does for words"
    ] = False,
    seed: Annotated[int, "seed of the sampling and of the bootstrap"] = 0,
) -> LayerCurve:
    """Contextuality by layer, less what random pairs of words have in common; 0 no more than chance, 1 identical.

    `self-similarity` is the mean cosine between occurrences of one word in different sentences, `intra-sentence` the
    mean cosine between a sentence's mean vector and its pieces, `explainable variance` the share of the variance of a
    word's occurrences along their first singular vector (uncentred); each with the value for random occurrences
    subtracted. `anisotropy` is that random cosine itself: 0 spread in all directions, 1 one direction. Random pairs are
    of different occurrences; the released code draws with replacement and can pair a vector with itself. Intervals
    are over words, sentences or random pairs. Punctuation is left out. The explainable variance of few occurrences is
    high by chance (at least 1/n), which the subtracted value of a larger random sample does not undo: read it beside
    `shuffled words`, where occurrences are dealt out again among groups of the same sizes.
    """
    measures = _curves(recording, minimum, pairs, centred, seed)
    shuffled = _curves(recording, minimum, pairs, centred, seed, shuffle=True)
    baselines = {"shuffled words": {name: shuffled[name] for name in measures if name != "anisotropy"}}
    baselines["isotropic"] = {"anisotropy": Estimates.exact(np.zeros(measures["anisotropy"].shape))}
    if randomised is not None:
        baselines["random weights"] = _curves(randomised, minimum, pairs, centred, seed)
    return LayerCurve(measures=measures, baselines=baselines, units=dict.fromkeys(measures, "cosine or share"))


def _curves(
    recording: Recording, minimum: int, pairs: int, centred: bool, seed: int, *, shuffle: bool = False
) -> dict[str, Estimates]:
    generator = np.random.default_rng(seed)
    # Entries in an order of their own, so that the same sentences give the same sample however they are arranged.
    order = sorted(range(len(recording)), key=lambda index: recording.entries[index].pieces.ids.tobytes())
    entries = [recording.entries[index] for index in order]
    hidden = [recording["hidden"][index] for index in order]
    kept = [_counted(entry) for entry in entries]
    words = _occurrences(entries, kept, minimum, generator)
    if not words:
        raise Refusal(
            f"No word of {recording.corpus.name} occurs in {minimum} different sentences",
            "a corpus in which some words come back",
            "Use a larger corpus, or lower --minimum",
        )
    first, second = _random_pairs(sum(len(places) for places in kept), pairs, generator)
    ends = np.cumsum([len(places) for places in kept])
    sentences = [rows for rows in np.split(np.arange(ends[-1]), ends[:-1]) if len(rows) > 1]
    if shuffle:
        dealt = generator.permutation(ends[-1])
        words = [dealt[rows] for rows in words]
        sentences = [dealt[rows] for rows in sentences]
    by_layer: dict[str, list[Estimates]] = defaultdict(list)
    for layer in range(hidden[0].shape[0]):
        vectors = np.concatenate([h[layer][k] for h, k in zip(hidden, kept, strict=True)]).astype(np.float64)
        units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(min=1e-12)
        chance = (units[first] * units[second]).sum(1)
        drawn = generator.permutation(len(vectors))[:LARGEST_SAMPLE]
        values = {
            "self-similarity": np.array([_mean_cosine(units[rows]) for rows in words]) - chance.mean(),
            "intra-sentence similarity": np.array([_mean_cosine_to_mean(vectors[rows]) for rows in sentences])
            - chance.mean(),
            "explainable variance": np.array([_explained(vectors[rows], centred) for rows in words])
            - _explained(vectors[drawn], centred),
            "anisotropy": chance,
        }
        for name, found in values.items():
            by_layer[name].append(mean_over_sentences(found, seed=seed))
    return {name: joined(found) for name, found in by_layer.items()}


def _counted(entry: Entry) -> NDArray[np.intp]:
    """The places of the pieces that count: ordinary ones with a letter or digit in them."""
    pieces = entry.pieces
    flags = [
        kind == Special.NONE and any(character.isalnum() for character in token)
        for token, kind in zip(pieces.tokens, pieces.special, strict=True)
    ]
    return np.flatnonzero(flags)


def _occurrences(
    entries: list[Entry], kept: list[NDArray[np.intp]], minimum: int, generator: np.random.Generator
) -> list[NDArray[np.intp]]:
    """For each word that occurs in enough sentences, the rows of its first occurrence in each of them."""
    rows: dict[int, list[int]] = defaultdict(list)
    start = 0
    for entry, places in zip(entries, kept, strict=True):
        ids, firsts = np.unique(entry.pieces.ids[places], return_index=True)
        for word, row in zip(ids.tolist(), firsts.tolist(), strict=True):
            rows[word].append(start + row)
        start += len(places)
    found = [np.array(some) for _, some in sorted(rows.items()) if len(some) >= max(2, minimum)]
    return [generator.permutation(some)[:LARGEST_SAMPLE] if len(some) > LARGEST_SAMPLE else some for some in found]


def _random_pairs(rows: int, pairs: int, generator: np.random.Generator) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows of pairs of different occurrences."""
    first = generator.integers(rows, size=pairs)
    second = (first + generator.integers(1, max(2, rows), size=pairs)) % rows
    return first, second


def _mean_cosine(units: Floats) -> float:
    """Mean cosine over all pairs of different rows of length one, from the length of their sum."""
    n = len(units)
    return float((np.square(units.sum(0)).sum() - n) / (n * (n - 1)))


def _mean_cosine_to_mean(vectors: Floats) -> float:
    mean = vectors.mean(0)
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(mean)
    return float((vectors @ mean / lengths.clip(min=1e-12)).mean())


def _explained(vectors: Floats, centred: bool) -> float:
    """Share of the summed squares along the first singular vector: 1/min(n, d) at least, 1 for parallel rows."""
    rows = vectors - vectors.mean(0) if centred else vectors
    gram = rows @ rows.T if len(rows) < rows.shape[1] else rows.T @ rows
    total = float(np.trace(gram))
    return float(np.linalg.eigvalsh(gram)[-1]) / total if total > 0 else float("nan")
