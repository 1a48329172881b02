"""Do the phrases of one kind lie together, and in which layers (jawahar2019, section 4)?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.declaration import analysis
from bertology.corpus.tree_chunks import chunks_of, outside
from bertology.errors import Refusal
from bertology.recording.annotation import pieces_of_words
from bertology.recording.recording import Recording
from bertology.results.estimate import Estimates
from bertology.results.sampling import over_seeds
from bertology.results.shapes import LayerCurve, Scatter
from bertology.results.spread import BY_SEED

Floats = NDArray[np.floating[Any]]

NMI, ADJUSTED = "NMI", "adjusted mutual information"
OUTSIDE = "O"
RARE = 3
"""A kind with fewer spans than this has no cluster to find."""


@dataclass(frozen=True)
class _Phrase:
    """A span by the place of its entry, its first and last piece, its kind and its words."""

    entry: int
    first: int
    last: int
    kind: str
    words: str


@analysis(
    question="Do phrases of one kind lie together, and in which layers?",
    special="seen by the model; they are in no span",
    cites=("jawahar2019",),
    sites=("hidden",),
)
def phrases(
    recording: Recording,
    randomised: Recording | None,
    *,
    spans: Annotated[int, "how many chunks are drawn"] = 3000,
    outsiders: Annotated[int, "how many runs of words in no chunk are drawn, as a kind of their own"] = 500,
    share: Annotated[float, "the share of the spans that k-means is fitted to; the others are scored"] = 6 / 7,
    average: Annotated[
        Literal["geometric", "arithmetic"], "the mean of both entropies that mutual information is divided by"
    ] = "geometric",
    seeds: Annotated[int, "how many times spans are drawn, divided and clustered"] = 5,
    picture: Annotated[
        Literal["none", "pca", "tsne"], "show one layer's spans in the plane instead of numbers"
    ] = "none",
    layer: Annotated[int, "the layer of the picture, 0 the embeddings"] = 1,
    seed: Annotated[int, "the first of these seeds"] = 0,
) -> LayerCurve | Scatter:
    """Normalised mutual information (NMI) of k-means clusters and kinds of phrases, 0 unrelated to 1 the same.

    A span is [s; e; s * e; s - e], with s the first piece of its first word and e the last piece of its last. There are
    as many clusters as kinds; k-means is fitted to most spans and scored on the others. Chunks are the annotated ones;
    where there are none they are derived from dependency trees, which gives more kinds to single words. Few spans make
    NMI high by chance: read it beside `shuffled labels`, or as `adjusted mutual information`, which is 0 by chance. The
    paper's NMI of 2019 divides by the geometric mean of the entropies. Intervals reach from the lowest seed to the
    highest. `picture` shows the spans of one `layer` by their first two principal components or by t-SNE (perplexity
    30), which claims nothing.
    """
    found = _phrases(recording)
    if picture != "none":
        return _scatter(recording, _drawn(found, spans, outsiders, seed), picture, layer, seed)

    def curves(given: Recording) -> list[dict[str, Estimates]]:
        """By the kinds, and by the kinds shuffled."""
        own = range(seed, seed + seeds)
        runs = np.array([_scores(given, _drawn(found, spans, outsiders, one), share, average, one) for one in own])
        return [
            dict(zip((NMI, ADJUSTED), map(over_seeds, np.moveaxis(some, 1, 0)), strict=True))
            for some in runs.swapaxes(0, 1)
        ]

    told, shuffled = curves(recording)
    baselines = {"shuffled labels": shuffled}
    if randomised is not None:
        baselines["random weights"] = curves(randomised)[0]
    return LayerCurve(
        measures=told,
        baselines=baselines,
        units={NMI: f"0 unrelated to 1 the same; {BY_SEED}", ADJUSTED: f"0 as by chance to 1 the same; {BY_SEED}"},
    )


def _phrases(recording: Recording) -> list[_Phrase]:
    """Every span of the recording in an order of its own; kinds that are too rare are left out."""
    order = sorted(range(len(recording)), key=lambda place: recording.entries[place].pieces.ids.tobytes())
    found: list[_Phrase] = []
    annotated = False
    for place in order:
        entry, start = recording.entries[place], 0
        pieces = pieces_of_words(entry)
        for part in entry.input.parts:
            chunks = chunks_of(part)
            annotated = annotated or chunks is not None
            for span in (*chunks, *outside(part, chunks)) if chunks is not None else ():
                ends = [pieces.get(start + span.start), pieces.get(start + span.end - 1)]
                if ends[0] and ends[1]:
                    words = " ".join(part.words[span.start : span.end])
                    found.append(_Phrase(place, ends[0][0], ends[1][-1], span.label, words))
            start += len(part)
    kinds, counts = np.unique([phrase.kind for phrase in found], return_counts=True)
    kept = [phrase for phrase in found if counts[kinds == phrase.kind][0] >= RARE]
    if len({phrase.kind for phrase in kept}) < 2:
        what = "no chunks and no trees to derive them from" if not annotated else f"only {len(kept)} usable chunks"
        raise Refusal(
            f"{recording.corpus.name} has {what}",
            f"at least two kinds of phrases with {RARE} spans each",
            "Use a chunked corpus (CoNLL-2000 columns) or a CoNLL-U treebank",
        )
    return kept


def _drawn(found: Sequence[_Phrase], spans: int, outsiders: int, seed: int) -> list[_Phrase]:
    """A random sample in a random order, chunks and outsiders as many as asked for or as there are."""
    generator = np.random.default_rng(seed)
    chosen: list[_Phrase] = []
    for most, is_outside in ((spans, False), (outsiders, True)):
        own = [phrase for phrase in found if (phrase.kind == OUTSIDE) == is_outside]
        chosen += [own[place] for place in generator.permutation(len(own))[:most]]
    return [chosen[place] for place in generator.permutation(len(chosen))]


def _vectors(states: Sequence[Floats], phrases: Sequence[_Phrase], layer: int) -> Floats:
    """(span, 4 x width), from the (layer, piece, width) states of each span's entry."""
    both = list(zip(states, phrases, strict=True))
    first = np.stack([own[layer, phrase.first] for own, phrase in both]).astype(np.float32)
    last = np.stack([own[layer, phrase.last] for own, phrase in both]).astype(np.float32)
    return np.concatenate([first, last, first * last, first - last], 1)


def _states(recording: Recording, phrases: Sequence[_Phrase]) -> list[Floats]:
    """The states of each span's entry, as plain views: a map of a file is slow to take single numbers from."""
    hidden = recording["hidden"]
    own = {place: np.asarray(hidden[place]) for place in {phrase.entry for phrase in phrases}}
    return [own[phrase.entry] for phrase in phrases]


def _scores(recording: Recording, phrases: Sequence[_Phrase], share: float, average: str, seed: int) -> Floats:
    """(kinds and kinds shuffled, measure, layer): the same clusters beside both."""
    from sklearn.metrics import adjusted_mutual_info_score, normalized_mutual_info_score

    kinds = np.array([phrase.kind for phrase in phrases])
    count = len(set(kinds))
    fitted = min(max(round(share * len(phrases)), count), len(phrases) - 2)
    tested = [some[fitted:] for some in (kinds, np.random.default_rng(seed).permutation(kinds))]
    states = _states(recording, phrases)
    found = np.zeros((len(tested), 2, len(states[0])))
    for layer in range(len(states[0])):
        clusters = _clusters(_vectors(states, phrases, layer), fitted, count, seed)
        for place, own in enumerate(tested):
            found[place, 0, layer] = normalized_mutual_info_score(own, clusters, average_method=average)
            found[place, 1, layer] = adjusted_mutual_info_score(own, clusters)
    return found


def _clusters(vectors: Floats, fitted: int, count: int, seed: int) -> NDArray[np.int32]:
    """The cluster of each span after the first `fitted`, which k-means was fitted to."""
    from sklearn.cluster import KMeans

    different = len({row.tobytes() for row in vectors[:fitted]})
    settings: dict[str, Any] = {"n_init": 1, "random_state": seed}
    means = KMeans(min(count, different), **settings).fit(vectors[:fitted])
    return np.asarray(means.predict(vectors[fitted:]), np.int32)


def _scatter(recording: Recording, phrases: Sequence[_Phrase], how: str, layer: int, seed: int) -> Scatter:
    layers = recording["hidden"][0].shape[0]
    if not 0 <= layer < layers:
        raise Refusal(f"There is no layer {layer}", f"a layer from 0 to {layers - 1}", "Choose one with --layer")
    vectors = _vectors(_states(recording, phrases), phrases, layer)
    centred = vectors - vectors.mean(0)
    if how == "pca":
        left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
        points = left[:, :2] * sizes[:2]
        axes = ("first component", "second component")
    else:
        from sklearn.manifold import TSNE

        perplexity = min(30.0, (len(phrases) - 1) / 3)
        points = TSNE(init="pca", perplexity=perplexity, random_state=seed).fit_transform(centred)
        axes = ("t-SNE 1", "t-SNE 2")
    return Scatter(
        points=points.astype(np.float64),
        labels=tuple(phrase.words for phrase in phrases),
        groups=tuple(phrase.kind for phrase in phrases),
        axes_named=axes,
    )
