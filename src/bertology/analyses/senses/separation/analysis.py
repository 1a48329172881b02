"""How well the senses of one word are separated in each layer (wiedemann2019, reif2019)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.declaration import analysis
from bertology.analyses.planar_projection import ProjectionMethod, project_to_plane
from bertology.analyses.probing.dataset import WORD_SITE
from bertology.analyses.probing.options import Layer, resolve_layer
from bertology.analyses.senses.separation.silhouette import (
    context_snippet,
    layer_cosines,
    neighbour_purity,
    select_lemma,
    silhouettes,
)
from bertology.analyses.word_senses.occurrences import WordOccurrences, sense_occurrences
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_mean, exact_where_unanimous
from bertology.number_ranges import LAYER
from bertology.numerics.nearest_neighbours import FloatArray, IndexArray
from bertology.recording.recording import Recording
from bertology.results.illustrations import Scatter, Trajectory
from bertology.results.shapes import LayerCurve

SeparationView = Literal["layers", "trajectory", "points"]
SILHOUETTE, NEIGHBOUR_PURITY = "silhouette", "nearest neighbour has same sense"
N_SHUFFLES = 20


@analysis(
    question="In which layers are the senses of one word separated, and what do its occurrences look "
    "like in the plane?",
    special_tokens="Special tokens: in the model's input, not analysed; a word is the mean of its tokens.",
    citations=("wiedemann2019", "reif2019"),
    sites=(WORD_SITE,),
    annotations=("senses",),
    version=2,
    test_corpus="english+senses",
)
def separation(
    recording: Recording,
    randomised: Recording | None,
    *,
    lemma: Annotated[str, "Lemma to analyse; empty: the one whose second sense is most frequent."] = "",
    show: Annotated[
        SeparationView,
        "`layers` (separation by layer), `trajectory` (every occurrence through the layers) or `points` (one layer).",
    ] = "layers",
    layer: Annotated[
        Layer, LAYER, "Layer to use; 0: embeddings, negative: counted from the last (-1); `auto`: the last."
    ] = "auto",
    projection: Annotated[
        ProjectionMethod,
        "Projection to the plane: `pca`, `ica`, `tsne` or `umap` over all layers, or `aligned-pca`: "
        "PCA per layer, rotated "
        "to match the previous layer.",
    ] = "pca",
    seed: Annotated[int, "Random seed for the projection, shuffled baselines and the bootstrap."] = 0,
) -> LayerCurve | Trajectory | Scatter:
    """Separation of the senses of one word by layer: silhouette, -1 to 1 (0: none), and neighbour purity, 0 to 1.

    - silhouette: how much nearer, in cosine distance, occurrences of the same sense are than those of the nearest
      other sense, in the full space, not the plane.
    - nearest neighbour has same sense: how often the nearest neighbour from another document has the same sense; within
      a document the topic alone would decide.

    Baselines: `shuffled senses`, the mean of 20 permutations of the senses among the occurrences (for neighbours, the
    probability that two occurrences agree); the untrained model. Intervals are over sentences; n is the number of
    sentences with the word.

    A plot alone proves nothing. Points are coloured by sense and labelled with the surrounding words. Wiedemann et al.
    draw t-SNE and Reif et al. UMAP, which show clusters even where there are none; PCA does not. `points` projects one
    layer; `trajectory` uses one plane for all layers, so that positions can be compared.
    """
    occurrences = sense_occurrences(recording)
    indices = select_lemma(occurrences, lemma)
    if show != "layers":
        return _build_plot(occurrences, indices, show, layer, projection, seed)
    senses = occurrences.senses[indices]
    measures = _measure_separation(occurrences, indices, senses, seed)
    generator = np.random.default_rng([seed, 37])
    shuffled = [generator.permutation(senses) for _ in range(N_SHUFFLES)]
    baselines = {"shuffled senses": _measure_separation(occurrences, indices, shuffled, seed)}
    if randomised is not None:
        untrained = sense_occurrences(randomised)
        baselines["untrained model"] = _measure_separation(untrained, indices, untrained.senses[indices], seed)
    return LayerCurve(
        measures=measures,
        baselines=baselines,
        units={
            SILHOUETTE: "silhouette, -1 to 1 (0: not separated)",
            NEIGHBOUR_PURITY: "proportion of occurrences, 0 to 1",
        },
        sample={f"of sense {sense}": int((senses == sense).sum()) for sense in sorted(set(senses.tolist()))},
    )


SenseLabels = NDArray[Any]


def _measure_separation(
    word_occurrences: WordOccurrences, indices: IndexArray, senses: SenseLabels | list[SenseLabels], seed: int
) -> dict[str, Estimates]:
    """Both measures by layer; for several permutations of the senses, the mean per occurrence."""
    labellings = senses if isinstance(senses, list) else [senses]
    documents = word_occurrences.documents[indices]
    by_layer = layer_cosines(word_occurrences, indices)

    def estimate(measure: Callable[[FloatArray, SenseLabels], FloatArray]) -> Estimates:
        values = np.stack([np.mean([measure(layer, labels) for labels in labellings], 0) for layer in by_layer], 1)
        return bootstrap_mean(_sentence_means(word_occurrences, indices, values), seed=seed)

    return {
        SILHOUETTE: estimate(silhouettes),
        NEIGHBOUR_PURITY: exact_where_unanimous(
            estimate(lambda layer, labels: neighbour_purity(layer, labels, documents))
        ),
    }


def _sentence_means(word_occurrences: WordOccurrences, indices: IndexArray, values: FloatArray) -> FloatArray:
    """(sentence, layer) means of (occurrence, layer), as a word may occur twice in a sentence."""
    sentences = word_occurrences.examples.input_index[indices]
    names = np.unique(sentences)
    return np.stack([values[sentences == name].mean(0) for name in names])


def _build_plot(
    word_occurrences: WordOccurrences,
    indices: IndexArray,
    show: SeparationView,
    layer: Layer,
    projection: ProjectionMethod,
    seed: int,
) -> Trajectory | Scatter:
    states = word_occurrences.examples.features[:, indices]
    labels = tuple(context_snippet(word_occurrences, index) for index in indices.tolist())
    groups = tuple(str(sense) for sense in word_occurrences.senses[indices])
    if show == "trajectory":
        return Trajectory(points=project_to_plane(states, projection, seed=seed), labels=labels, groups=groups)
    number = resolve_layer(layer, len(states), auto=len(states) - 1)
    points = project_to_plane(states[number][None], projection, seed=seed)[0]
    axes = (f"first axis, layer {number}", f"second axis, layer {number}")
    return Scatter(points=points, labels=labels, groups=groups, axis_names=axes)
