"""Clustering of span representations by phrase type, layer by layer (jawahar2019, section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np

from bertology.analyses.declaration import Cost, analysis
from bertology.analyses.probing.options import Layer, NSeedsOption, SeedOption, resolve_layer
from bertology.arrays import Array, FloatArray
from bertology.corpus.chunking import runs_outside_chunks, sentence_chunks
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import percentile_interval, ratio, resampled_runs, resampled_sums
from bertology.number_ranges import FRACTION, LAYER
from bertology.recording.recording import Recording
from bertology.results.illustrations import Scatter
from bertology.results.shapes import LayerCurve

NMI, ADJUSTED_MI = "NMI", "adjusted mutual information"
NON_PHRASE = "O"
N_LABELLINGS = 2
"""Phrase types and shuffled phrase types."""
MIN_SPANS = 3
"""Phrase types with fewer spans are left out."""


@dataclass(frozen=True)
class _PhraseSpan:
    """A span: the index of its input, the positions of its first and last token, its phrase type and its words."""

    input_index: int
    first: int
    last: int
    phrase_type: str
    words: str


@analysis(
    question="In which layers do span representations cluster by phrase type?",
    special_tokens="Special tokens: in the model's input, not analysed.",
    citations=("jawahar2019",),
    sites=("hidden",),
    version=2,
    cost=Cost(seconds_per_sampled_word=0.004),
)
def phrase_clusters(
    recording: Recording,
    randomised: Recording | None,
    *,
    show: Annotated[
        Literal["scores", "points"], "`scores` (by layer) or `points` (the spans of one layer in the plane)."
    ] = "scores",
    sample_size: Annotated[int, "Number of chunks, sampled at random."] = 3000,
    non_phrase_spans: Annotated[int, "Number of spans outside any chunk, sampled as a class of their own."] = 500,
    train_fraction: Annotated[float, FRACTION, "Fraction of spans k-means is fitted on; the rest are scored."] = 6 / 7,
    average_method: Annotated[
        Literal["geometric", "arithmetic"],
        "Mean of the two entropies in the denominator of NMI: `geometric` (as in the paper) or `arithmetic`.",
    ] = "geometric",
    n_seeds: NSeedsOption = 5,
    projection: Annotated[Literal["pca", "tsne"], "With --show points: `pca` or `tsne`."] = "pca",
    layer: Annotated[
        Layer,
        LAYER,
        "Layer to show with --show points; 0: embeddings, negative: counted from the last (-1); `auto`: the last.",
    ] = 1,
    seed: SeedOption = 0,
) -> LayerCurve | Scatter:
    """Normalised mutual information (NMI) of k-means clusters and phrase types, 0 (unrelated) to 1 (identical).

    A span is represented by [s; e; s * e; s - e], where s is the first token of its first word and e the last token of
    its last word. There are as many clusters as phrase types; k-means is fitted on most spans and scored on the others.
    Chunks are the annotated ones, or are derived from dependency trees, which give more types to single words. Few
    spans make NMI high by chance: compare it with `shuffled labels`, or use `adjusted mutual information`, which is 0
    by chance. The paper's NMI of 2019 divides by the geometric mean of the entropies. Seeds draw other spans to fit and
    to score, and other initial clusters. Intervals resample the sentences of scored spans and seeds; as repeated spans
    raise mutual information, resamples are shifted to have the mean of the score. `points` shows the spans of one layer
    by their first two principal components or by t-SNE (perplexity 30).
    """
    spans = _extract_spans(recording)
    if show == "points":
        n_layers = recording["hidden"][0].shape[0]
        layer_index = resolve_layer(layer, n_layers, auto=n_layers - 1)
        sample = _sample_spans(spans, sample_size, non_phrase_spans, seed)
        return _build_scatter(recording, sample, projection, layer_index, seed)

    def curves(model_recording: Recording) -> list[dict[str, Estimates]]:
        """Scores against the phrase types, and against shuffled phrase types."""
        runs = [
            _cluster(
                model_recording,
                _sample_spans(spans, sample_size, non_phrase_spans, run_seed),
                train_fraction,
                run_seed,
            )
            for run_seed in range(seed, seed + n_seeds)
        ]
        return [
            bootstrap_information([run.relabelled(labelling) for run in runs], average_method, seed=seed)
            for labelling in range(N_LABELLINGS)
        ]

    measures, shuffled = curves(recording)
    baselines = {"shuffled labels": shuffled}
    if randomised is not None:
        baselines["untrained model"] = curves(randomised)[0]
    units = {NMI: "mutual information, 0 to 1", ADJUSTED_MI: "mutual information, 0 (chance) to 1"}
    return LayerCurve(measures=measures, baselines=baselines, units=units)


def _extract_spans(recording: Recording) -> list[_PhraseSpan]:
    """All spans, independent of the order of the corpus, without those of rare phrase types."""
    order = sorted(range(len(recording)), key=lambda index: recording.inputs[index].tokens.ids.tobytes())
    spans: list[_PhraseSpan] = []
    has_chunks = False
    for index in order:
        recorded_input, offset = recording.inputs[index], 0
        tokens = recorded_input.tokens.positions_by_word()
        for segment in recorded_input.text.segments:
            chunks = sentence_chunks(segment)
            has_chunks = has_chunks or chunks is not None
            for span in (*chunks, *runs_outside_chunks(segment, chunks)) if chunks is not None else ():
                first, last = tokens.get(offset + span.start), tokens.get(offset + span.end - 1)
                if first and last:
                    words = " ".join(segment.words[span.start : span.end])
                    spans.append(_PhraseSpan(index, first[0], last[-1], span.label, words))
            offset += len(segment)
    types, counts = np.unique([span.phrase_type for span in spans], return_counts=True)
    frequent = set(types[counts >= MIN_SPANS].tolist())
    kept = [span for span in spans if span.phrase_type in frequent]
    if len(frequent) < 2:
        problem = f"only {len(kept)} usable chunks" if has_chunks else "neither chunks nor trees to derive them from"
        raise Refusal(
            f"{recording.corpus.name} has {problem}",
            f"at least two phrase types with {MIN_SPANS} spans each",
            "Use a chunked corpus (CoNLL-2000 columns) or a CoNLL-U treebank",
        )
    return kept


def _sample_spans(
    spans: Sequence[_PhraseSpan], sample_size: int, non_phrase_spans: int, seed: int
) -> list[_PhraseSpan]:
    """A random sample of chunks and of spans outside chunks, in random order."""
    generator = np.random.default_rng(seed)
    sample: list[_PhraseSpan] = []
    for size, is_outside in ((sample_size, False), (non_phrase_spans, True)):
        candidates = [span for span in spans if (span.phrase_type == NON_PHRASE) == is_outside]
        sample += [candidates[index] for index in generator.permutation(len(candidates))[:size]]
    return [sample[index] for index in generator.permutation(len(sample))]


def _span_vectors(states: Sequence[Array], spans: Sequence[_PhraseSpan], layer: int) -> Array:
    """(span, 4 x width) vectors, from the (layer, token, width) states of each span's input."""
    pairs = list(zip(states, spans, strict=True))
    first = np.stack([hidden[layer, span.first] for hidden, span in pairs]).astype(np.float32)
    last = np.stack([hidden[layer, span.last] for hidden, span in pairs]).astype(np.float32)
    return np.concatenate([first, last, first * last, first - last], 1)


def _span_states(recording: Recording, spans: Sequence[_PhraseSpan]) -> list[Array]:
    """The states of each span's input, as plain views: indexing a memory map is slow."""
    hidden = recording["hidden"]
    states = {index: np.asarray(hidden[index]) for index in {span.input_index for span in spans}}
    return [states[span.input_index] for span in spans]


@dataclass(frozen=True)
class ClusteredSpans:
    """Scored spans of one seed: (span,) sentences, (labelling, span) labels and (layer, span) clusters.

    The labellings are phrase types and shuffled phrase types.
    """

    sentences: Array
    labels: Array
    clusters: Array

    def relabelled(self, labelling: int) -> ClusteredSpans:
        """The same clusters with one labelling only."""
        return replace(self, labels=self.labels[labelling : labelling + 1])

    def scores(self, average_method: str) -> FloatArray:
        """(measure, layer) NMI and adjusted mutual information of clusters and labels."""
        from sklearn.metrics import adjusted_mutual_info_score, normalized_mutual_info_score

        labels = self.labels[0]
        nmi = [normalized_mutual_info_score(labels, c, average_method=average_method) for c in self.clusters]
        return np.array([nmi, [adjusted_mutual_info_score(labels, clusters) for clusters in self.clusters]])

    def tables(self, sentences: Array) -> FloatArray:
        """(sentence, layer, label, cluster) numbers of spans, for the sentences of all seeds."""
        rows = np.searchsorted(sentences, self.sentences)
        labels = np.unique(self.labels[0], return_inverse=True)[1]
        shape = (len(sentences), len(self.clusters), int(labels.max()) + 1, int(self.clusters.max()) + 1)
        layers = np.arange(len(self.clusters))[:, None]
        cells = np.ravel_multi_index(np.broadcast_arrays(rows, layers, labels, self.clusters), shape)
        return np.bincount(cells.ravel(), minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)


def _cluster(recording: Recording, spans: Sequence[_PhraseSpan], train_fraction: float, seed: int) -> ClusteredSpans:
    """The clusters of the spans that k-means was not fitted on, by layer."""
    types = np.array([span.phrase_type for span in spans])
    n_types = len(set(types))
    n_train = min(max(round(train_fraction * len(spans)), n_types), len(spans) - 2)
    labels = np.stack([types, np.random.default_rng(seed).permutation(types)])[:, n_train:]
    states = _span_states(recording, spans)
    clusters = [
        _predict_clusters(_span_vectors(states, spans, layer), n_train, n_types, seed)
        for layer in range(len(states[0]))
    ]
    return ClusteredSpans(np.array([span.input_index for span in spans[n_train:]]), labels, np.stack(clusters))


def bootstrap_information(runs: Sequence[ClusteredSpans], average_method: str, *, seed: int) -> dict[str, Estimates]:
    """(layer,) NMI and adjusted mutual information, averaged over seeds, with intervals over sentences and seeds.

    Expected mutual information is that of all spans of a seed. A resample has some spans several times, which raises
    mutual information: resamples are shifted to have the mean of the score.
    """
    scores = np.stack([run.scores(average_method) for run in runs])
    sentences = np.unique(np.concatenate([run.sentences for run in runs]))
    resampled: list[FloatArray] = []
    for run, run_scores in zip(runs, scores, strict=True):
        # The same seed draws the same sentences for all runs.
        table, resampled_tables = resampled_sums(run.tables(sentences)[None], seed=seed)
        resampled.append(_information(resampled_tables, _expected_information(table, run_scores[1]), average_method))
    values = scores.mean(0)
    averages = resampled_runs(np.stack(resampled), seed=seed)
    averages += values - averages.mean(0)
    low, high = percentile_interval(averages)
    n = np.full(values.shape[1], len(sentences))
    low, high = np.minimum(low, values), np.maximum(high, values)
    return {
        name: Estimates(value=values[i], low=low[i], high=high[i], n=n).with_resampled(averages[:, i], len(sentences))
        for i, name in enumerate((NMI, ADJUSTED_MI))
    }


def _entropies(tables: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(...,) mutual information and both entropies, in nats, of (..., label, cluster) counts."""
    joint = tables / np.maximum(tables.sum((-1, -2), keepdims=True), 1)
    entropies = [
        np.maximum(0, -np.sum(p * np.log(np.where(p > 0, p, 1)), -1))  # rounding can give a small negative number
        for p in (joint.sum(-1), joint.sum(-2), joint.reshape(*joint.shape[:-2], -1))
    ]
    return entropies[0] + entropies[1] - entropies[2], entropies[0], entropies[1]


def _expected_information(tables: FloatArray, adjusted: FloatArray) -> FloatArray:
    """(layer,) mutual information expected by chance, from the adjusted one."""
    information, first, second = _entropies(tables)
    is_perfect = adjusted >= 1
    return np.where(
        is_perfect, 0, (information - adjusted * (first + second) / 2) / np.where(is_perfect, 1, 1 - adjusted)
    )


def _information(tables: FloatArray, expected: FloatArray, average_method: str) -> FloatArray:
    """(..., measure, layer) NMI and adjusted mutual information of (..., layer, label, cluster) counts."""
    information, first, second = _entropies(tables)
    arithmetic = (first + second) / 2
    mean = np.sqrt(first * second) if average_method == "geometric" else arithmetic
    return np.stack([ratio(information, mean), ratio(information - expected, arithmetic - expected)], -2)


def _predict_clusters(vectors: Array, n_train: int, n_clusters: int, seed: int) -> Array:
    """The k-means cluster of each span after the first `n_train`, on which k-means is fitted."""
    from sklearn.cluster import KMeans

    n_distinct = len({row.tobytes() for row in vectors[:n_train]})
    settings: dict[str, Any] = {"n_init": 1, "random_state": seed}
    kmeans = KMeans(min(n_clusters, n_distinct), **settings).fit(vectors[:n_train])
    return np.asarray(kmeans.predict(vectors[n_train:]), np.int32)


def _build_scatter(
    recording: Recording, spans: Sequence[_PhraseSpan], projection: str, layer: int, seed: int
) -> Scatter:
    vectors = _span_vectors(_span_states(recording, spans), spans, layer)
    centred = vectors - vectors.mean(0)
    if projection == "pca":
        left, singular_values, _ = np.linalg.svd(centred, full_matrices=False)
        points = left[:, :2] * singular_values[:2]
        axis_names = ("first component", "second component")
    else:
        from sklearn.manifold import TSNE

        perplexity = min(30.0, (len(spans) - 1) / 3)
        points = TSNE(init="pca", perplexity=perplexity, random_state=seed).fit_transform(centred)
        axis_names = ("t-SNE 1", "t-SNE 2")
    return Scatter(
        points=points.astype(np.float64),
        labels=tuple(span.words for span in spans),
        groups=tuple(span.phrase_type for span in spans),
        axis_names=axis_names,
    )
