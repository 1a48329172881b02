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
from bertology.estimates.resampling import RESAMPLES, percentile_interval, resampled_means
from bertology.recording.recording import Recording
from bertology.results.shapes import LayerCurve

IndexArray = NDArray[np.intp]

MAX_OCCURRENCES = 200
"""A sample of this many occurrences of a more frequent word: 19,900 pairs, more than the paper's 1,000."""

SELF_SIMILARITY, INTRA_SENTENCE = "self-similarity", "intra-sentence similarity"
EXPLAINABLE_VARIANCE, ANISOTROPY = "maximum explainable variance", "anisotropy"
VARIANCE_ABOVE_RANDOM = "explainable variance above random groups"
UNITS = {
    SELF_SIMILARITY: "cosine minus anisotropy, -2 to 2",
    INTRA_SENTENCE: "cosine minus anisotropy, -2 to 2",
    EXPLAINABLE_VARIANCE: "proportion of variance minus that of all occurrences, -1 to 1",
    VARIANCE_ABOVE_RANDOM: "proportion of variance minus that of random groups of the same sizes, -1 to 1",
    ANISOTROPY: "cosine, -1 to 1",
}


@analysis(
    question="How context-specific are word representations, and how anisotropic is each layer?",
    special_tokens="Special tokens: in the model's input, not analysed; a word is a token of the vocabulary, as in the "
    "paper's BERT experiments.",
    citations=("ethayarajh2019",),
    sites=("hidden",),
    version=2,
    cost=Cost(seconds_per_word=0.0005),
)
def contextuality(
    recording: Recording,
    randomised: Recording | None,
    *,
    min_occurrences: Annotated[int, "Minimum number of sentences a word must occur in."] = 5,
    centre: Annotated[
        bool, "Centre vectors before computing the explainable variance, as the released code does."
    ] = False,
    seed: Annotated[int, "Random seed (sampling, bootstrap)."] = 0,
) -> LayerCurve:
    """Similarity of a word's representations in different contexts, corrected for anisotropy; 0: as random words.

    `anisotropy` is the mean cosine of two occurrences in different sentences, over all such pairs: 0 if directions are
    uniform, 1 if there is one direction. `self-similarity` is the mean cosine between occurrences of a word in
    different sentences, and `intra-sentence similarity` the mean cosine between the tokens of a sentence and their
    mean, both minus anisotropy. `maximum explainable variance` is the proportion of the variance of a word's
    occurrences along their first singular vector (uncentred), minus that of all occurrences. The paper estimates what
    is subtracted from 1,000 random occurrences, the released code with replacement, so that a vector can be paired
    with itself. The explainable variance of few occurrences is high by chance (at least 1/n), which this does not
    correct: `explainable variance above random groups` subtracts from each word's value that of as many random
    occurrences of other words and sentences, and is 0 if the word makes no difference. `shuffled words`: the same
    measures with occurrences shuffled among groups of the same sizes. Intervals are over words or sentences and include
    the sampling error of what is subtracted. Punctuation is excluded.
    """
    curves = partial(_curves, min_occurrences=min_occurrences, centre=centre, seed=seed)
    measures, shuffled = curves(recording), curves(recording, shuffle=True)
    baselines = {
        "shuffled words": {name: shuffled[name] for name in measures if name != ANISOTROPY},
        "isotropic (0)": {ANISOTROPY: Estimates.exact(np.zeros(measures[ANISOTROPY].shape))},
    }
    if randomised is not None:
        baselines["untrained model"] = curves(randomised)
    return LayerCurve(measures=measures, baselines=baselines, units=UNITS)


def _curves(
    recording: Recording, min_occurrences: int, centre: bool, seed: int, *, shuffle: bool = False
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
    lengths = np.array([len(input_positions) for input_positions in positions if len(input_positions)])
    starts = np.cumsum(lengths) - lengths
    rows = np.arange(lengths.sum())
    random_groups = _random_groups(words, len(rows), generator)
    if shuffle:
        words, random_groups = random_groups, _random_groups(words, len(rows), generator)
        rows = generator.permutation(rows)
    sentences = np.split(rows, starts[1:])
    by_layer: dict[str, list[Estimates]] = defaultdict(list)
    for layer in range(hidden[0].shape[0]):
        vectors = np.concatenate(
            [states[layer][selected] for states, selected in zip(hidden, positions, strict=True)]
        ).astype(np.float64)
        units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(min=1e-12)
        anisotropy = _resampled_anisotropy(units, starts, lengths, seed)
        explained = np.array([_explained_variance(vectors[group], centre) for group in words])
        explained_by_chance = np.array([_explained_variance(vectors[group], centre) for group in random_groups])
        samples = {
            SELF_SIMILARITY: (np.array([_mean_cosine(units[group]) for group in words]), anisotropy),
            INTRA_SENTENCE: (np.array([_mean_cosine_to_mean(vectors[group]) for group in sentences]), anisotropy),
            EXPLAINABLE_VARIANCE: (explained, _resampled_explained_variance(vectors, starts, centre, seed)),
            VARIANCE_ABOVE_RANDOM: (explained - explained_by_chance, np.zeros(RESAMPLES + 1)),
        }
        for name, (values, subtracted) in samples.items():
            by_layer[name].append(_difference(values, subtracted, seed if name == INTRA_SENTENCE else seed + 1))
        by_layer[ANISOTROPY].append(_difference(np.zeros(len(lengths)), -anisotropy, seed))
    return {name: Estimates.stack(estimates) for name, estimates in by_layer.items()}


def _difference(values: FloatArray, subtracted: FloatArray, seed: int) -> Estimates:
    """The mean of (row,) values minus a statistic, given as its value followed by its resampled values.

    Both are resampled: with the seed of the statistic, rows are sentences and are resampled together with it.
    """
    resampled = resampled_means(values, np.ones(len(values)), seed=seed) - subtracted[1:]
    low, high = percentile_interval(resampled)
    measured = np.isfinite(values)
    value = np.asarray(values[measured].mean() - subtracted[0])
    estimates = Estimates(value=value, low=low, high=high, n=np.asarray(measured.sum()))
    return estimates.with_resampled(resampled, len(values))


def _resampled_anisotropy(units: FloatArray, starts: IndexArray, lengths: IndexArray, seed: int) -> FloatArray:
    """Mean cosine over all pairs of occurrences in different sentences, followed by its values for resampled sentences.

    A statistic of pairs varies twice as much with each sentence as the sentence's own mean cosine with the others does.
    """
    sums = np.add.reduceat(units, starts, axis=0)
    n_pairs = (lengths * (lengths.sum() - lengths)).astype(np.float64)
    cosines = (sums @ sums.sum(0) - np.square(sums).sum(1)) / n_pairs
    value = float(cosines @ n_pairs / n_pairs.sum())
    return np.concatenate([[value], 2 * resampled_means(cosines, n_pairs, seed=seed) - value])


def _resampled_explained_variance(vectors: FloatArray, starts: IndexArray, centre: bool, seed: int) -> FloatArray:
    """Explained variance of all occurrences, followed by its values for resampled sentences.

    The first singular vector maximises the explained variance, which therefore hardly changes with it: it is kept.
    """
    rows = vectors - vectors.mean(0) if centre else vectors
    first = np.linalg.eigh(rows.T @ rows)[1][:, -1]
    squares = np.add.reduceat(np.square(rows).sum(1), starts)
    explained = np.add.reduceat(np.square(rows @ first), starts) / squares.clip(min=1e-300)
    value = explained @ squares / squares.sum() if squares.sum() > 0 else float("nan")
    return np.concatenate([[value], resampled_means(explained, squares, seed=seed)])


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


def _random_groups(words: list[IndexArray], n_rows: int, generator: np.random.Generator) -> list[IndexArray]:
    """Groups of as many random occurrences as each word has."""
    shuffled = generator.permutation(n_rows)
    return [shuffled[rows] for rows in words]


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
