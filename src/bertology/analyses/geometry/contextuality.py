"""How context-specific word representations are, and how anisotropic each layer is (ethayarajh2019)."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.declaration import Cost, analysis
from bertology.arrays import FloatArray
from bertology.encoder.token_batch import RecordedInput
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_mean
from bertology.recording.recording import Recording
from bertology.results.shapes import LayerCurve

IndexArray = NDArray[np.intp]

MAX_OCCURRENCES = 200
"""A sample of this many occurrences of a more frequent word: 19,900 pairs, more than the paper's 1,000."""

SELF_SIMILARITY, INTRA_SENTENCE = "self-similarity", "intra-sentence similarity"
EXPLAINABLE_VARIANCE, ANISOTROPY = "maximum explainable variance", "anisotropy"
UNITS = {
    SELF_SIMILARITY: "cosine minus random pairs, -2 to 2",
    INTRA_SENTENCE: "cosine minus random pairs, -2 to 2",
    EXPLAINABLE_VARIANCE: "proportion of variance minus random sample, -1 to 1",
    ANISOTROPY: "cosine, -1 to 1",
}


@analysis(
    question="How context-specific are word representations, and how anisotropic is each layer?",
    special_tokens="Special tokens: in the model's input, not analysed; a word is a token of the vocabulary, as in the "
    "paper's BERT experiments.",
    citations=("ethayarajh2019",),
    sites=("hidden",),
    cost=Cost(seconds_per_word=0.0005),
    gallery=True,
)
def contextuality(
    recording: Recording,
    randomised: Recording | None,
    *,
    min_occurrences: Annotated[int, "Minimum number of sentences a word must occur in."] = 5,
    random_pairs: Annotated[int, "Number of random pairs of occurrences for the anisotropy baseline."] = 1000,
    centre: Annotated[
        bool, "Centre vectors before computing the maximum explainable variance, as the released code does."
    ] = False,
    seed: Annotated[int, "Random seed (sampling, bootstrap)."] = 0,
) -> LayerCurve:
    """Similarity of a word's representations in different contexts, corrected for anisotropy; 0: as random words.

    `self-similarity` is the mean cosine between occurrences of a word in different sentences, `intra-sentence
    similarity` the mean cosine between the tokens of a sentence and their mean, `maximum explainable variance` the
    proportion of the variance of a word's occurrences along their first singular vector (uncentred); from each, the
    value for random occurrences is subtracted. `anisotropy` is the mean cosine of random occurrences itself: 0 if
    directions are uniform, 1 if there is one direction. Random pairs are of different occurrences; the released code
    samples with replacement and can pair a vector with itself. Intervals are over words, sentences or random pairs.
    Punctuation is excluded. The explainable variance of few occurrences is high by chance (at least 1/n), which
    subtracting the value of a larger random sample does not correct: compare it with `shuffled words`, in which
    occurrences are shuffled among groups of the same sizes.
    """
    curves = partial(_curves, min_occurrences=min_occurrences, n_pairs=random_pairs, centre=centre, seed=seed)
    measures, shuffled = curves(recording), curves(recording, shuffle=True)
    baselines = {
        "shuffled words": {name: shuffled[name] for name in measures if name != ANISOTROPY},
        "isotropic (0)": {ANISOTROPY: Estimates.exact(np.zeros(measures[ANISOTROPY].shape))},
    }
    if randomised is not None:
        baselines["untrained model"] = curves(randomised)
    return LayerCurve(measures=measures, baselines=baselines, units=UNITS)


def _curves(
    recording: Recording, min_occurrences: int, n_pairs: int, centre: bool, seed: int, *, shuffle: bool = False
) -> dict[str, Estimates]:
    """Each measure by layer; with `shuffle`, occurrences are shuffled among words and sentences."""
    generator = np.random.default_rng(seed)
    # Sorted by tokens, so that the sample does not depend on the order of the corpus.
    order = sorted(range(len(recording)), key=lambda index: recording.inputs[index].tokens.ids.tobytes())
    inputs = [recording.inputs[index] for index in order]
    hidden = [recording["hidden"][index] for index in order]
    positions = [_analysed_positions(recorded_input) for recorded_input in inputs]
    words = _occurrences(inputs, positions, min_occurrences, generator)
    if not words:
        raise Refusal(
            f"No word of {recording.corpus.name} occurs in {min_occurrences} different sentences",
            "a corpus with recurring words",
            "Use a larger corpus, or lower --min-occurrences",
        )
    ends = np.cumsum([len(input_positions) for input_positions in positions])
    first, second = _random_pairs(int(ends[-1]), n_pairs, generator)
    sentences = [rows for rows in np.split(np.arange(ends[-1]), ends[:-1]) if len(rows) > 1]
    if shuffle:
        shuffled = generator.permutation(ends[-1])
        words = [shuffled[rows] for rows in words]
        sentences = [shuffled[rows] for rows in sentences]
    by_layer: dict[str, list[Estimates]] = defaultdict(list)
    for layer in range(hidden[0].shape[0]):
        vectors = np.concatenate([states[layer][rows] for states, rows in zip(hidden, positions, strict=True)]).astype(
            np.float64
        )
        units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(min=1e-12)
        random_cosines = (units[first] * units[second]).sum(1)
        random_rows = generator.permutation(len(vectors))[:MAX_OCCURRENCES]
        values = {
            SELF_SIMILARITY: np.array([_mean_cosine(units[rows]) for rows in words]) - random_cosines.mean(),
            INTRA_SENTENCE: np.array([_mean_cosine_to_mean(vectors[rows]) for rows in sentences])
            - random_cosines.mean(),
            EXPLAINABLE_VARIANCE: np.array([_explained_variance(vectors[rows], centre) for rows in words])
            - _explained_variance(vectors[random_rows], centre),
            ANISOTROPY: random_cosines,
        }
        for name, samples in values.items():
            by_layer[name].append(bootstrap_mean(samples, seed=seed))
    return {name: Estimates.stack(estimates) for name, estimates in by_layer.items()}


def _analysed_positions(recorded_input: RecordedInput) -> IndexArray:
    """Positions of non-special tokens with a letter or digit."""
    tokens = recorded_input.tokens
    is_analysed = [
        kind == SpecialToken.NONE and any(character.isalnum() for character in token)
        for token, kind in zip(tokens.tokens, tokens.special_kinds, strict=True)
    ]
    return np.flatnonzero(is_analysed)


def _occurrences(
    inputs: list[RecordedInput], positions: list[IndexArray], min_occurrences: int, generator: np.random.Generator
) -> list[IndexArray]:
    """For each word in enough sentences, the rows of its first occurrence in each sentence."""
    rows_by_word: dict[int, list[int]] = defaultdict(list)
    start = 0
    for recorded_input, input_positions in zip(inputs, positions, strict=True):
        ids, first_rows = np.unique(recorded_input.tokens.ids[input_positions], return_index=True)
        for word, row in zip(ids.tolist(), first_rows.tolist(), strict=True):
            rows_by_word[word].append(start + row)
        start += len(input_positions)
    words = [np.array(rows) for _, rows in sorted(rows_by_word.items()) if len(rows) >= max(2, min_occurrences)]
    return [generator.permutation(rows)[:MAX_OCCURRENCES] if len(rows) > MAX_OCCURRENCES else rows for rows in words]


def _random_pairs(n_rows: int, n_pairs: int, generator: np.random.Generator) -> tuple[IndexArray, IndexArray]:
    """Rows of pairs of different occurrences."""
    first = generator.integers(n_rows, size=n_pairs)
    second = (first + generator.integers(1, max(2, n_rows), size=n_pairs)) % n_rows
    return first, second


def _mean_cosine(unit_vectors: FloatArray) -> float:
    """Mean cosine over all pairs of different rows, from the norm of the sum of unit vectors."""
    n = len(unit_vectors)
    return float((np.square(unit_vectors.sum(0)).sum() - n) / (n * (n - 1)))


def _mean_cosine_to_mean(vectors: FloatArray) -> float:
    mean = vectors.mean(0)
    norms = np.linalg.norm(vectors, axis=1) * np.linalg.norm(mean)
    return float((vectors @ mean / norms.clip(min=1e-12)).mean())


def _explained_variance(vectors: FloatArray, centre: bool) -> float:
    """Proportion of the sum of squares along the first singular vector: at least 1/min(n, d), 1 for parallel rows."""
    rows = vectors - vectors.mean(0) if centre else vectors
    gram = rows @ rows.T if len(rows) < rows.shape[1] else rows.T @ rows
    total = float(np.trace(gram))
    return float(np.linalg.eigvalsh(gram)[-1]) / total if total > 0 else float("nan")
