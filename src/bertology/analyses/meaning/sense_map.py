"""Where do the occurrences of one word lie, layer by layer, and do its senses lie apart (wiedemann2019, reif2019)?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.declaration import analysis
from bertology.errors import Refusal
from bertology.maths.neighbours import Floats, Places
from bertology.maths.planes import Method, in_the_plane
from bertology.measures.meaning.sense_material import Occurrences, occurrences
from bertology.measures.meaning.sense_places import chosen_word, in_context, layer_cosines, purities, silhouettes
from bertology.measures.probes.probe_material import WORD_SITE
from bertology.recording.recording import Recording
from bertology.results.estimate import Estimates
from bertology.results.sampling import mean_over_sentences
from bertology.results.shapes import LayerCurve, Scatter, Trajectory

NAME = "meaning/sense_map"
Show = Literal["separation", "paths", "points"]
SILHOUETTE, PURITY = "silhouette", "neighbours of the same sense"
SHUFFLES = 20


@analysis(
    question="Where do the occurrences of one word lie, and do its senses lie apart?",
    special="seen by the model; a word is the mean of its own pieces",
    cites=("wiedemann2019", "reif2019"),
    sites=(WORD_SITE,),
    layers=("senses",),
)
def sense_map(
    recording: Recording,
    randomised: Recording | None,
    *,
    word: Annotated[str, "the word, by its lemma; empty: the one whose second sense is the most frequent"] = "",
    show: Annotated[
        Show,
        "`separation`: how far senses are apart (LayerCurve); `paths`: each occurrence in the plane through the layers "
        "(Trajectory); `points`: in one layer (Scatter)",
    ] = "separation",
    layer: Annotated[int, "with --show points: the layer; -1 the last"] = -1,
    method: Annotated[
        Method,
        "the plane: `pca` of all layers, `aligned`: PCA of each layer turned to the one before, or `ica`, `tsne`, "
        "`umap` (where installed) of all layers",
    ] = "pca",
    seed: Annotated[int, "seed of the plane, of the shuffling and of the bootstrap over sentences"] = 0,
) -> LayerCurve | Trajectory | Scatter:
    """How far apart the senses of one word lie by layer: silhouette -1 to 1, 0 not at all; neighbours 0 to 1.

    - silhouette: by how much occurrences of the same sense are nearer, in cosine distance, than those of the nearest
      other one, in the full space, not the plane.
    - neighbours of the same sense: how often the nearest neighbour from another document has the same sense; within a
      document the topic alone would tell.

    Baselines: `shuffled senses`, the mean of 20 deals of the senses among the occurrences: for neighbours the chance
    that two occurrences agree; random weights. Intervals are over sentences, n is those with the word.

    A picture claims nothing by itself. Points are coloured by sense and labelled with the words around them. Wiedemann
    et al. draw t-SNE and Reif et al. UMAP, which show clusters where there are none; PCA does not. `points` is the
    plane of the chosen layer alone, `paths` one plane for all layers, so that places can be compared.
    """
    own = occurrences(recording)
    places = chosen_word(own, word)
    if show != "separation":
        return _picture(own, places, show, layer, method, seed)
    measures = _separation(own, places, own.sense[places], seed)
    generator = np.random.default_rng([seed, 37])
    deals = [generator.permutation(own.sense[places]) for _ in range(SHUFFLES)]
    baselines = {"shuffled senses": _separation(own, places, deals, seed)}
    if randomised is not None:
        fresh = occurrences(randomised)
        baselines["random weights"] = _separation(fresh, places, fresh.sense[places], seed)
    units = {SILHOUETTE: f"-1 to 1, 0 not apart; {_sizes(own, places)}", PURITY: "share of occurrences, 0 to 1"}
    return LayerCurve(measures=measures, baselines=baselines, units=units)


def _sizes(own: Occurrences, places: Places) -> str:
    senses = own.sense[places].tolist()
    counts = ", ".join(f"{name} {senses.count(name)}" for name in sorted(set(senses)))
    return f"{own.lemma[places[0]]}: {counts}"


Senses = NDArray[Any]


def _separation(own: Occurrences, places: Places, senses: Senses | list[Senses], seed: int) -> dict[str, Estimates]:
    """Both measures by layer; of several deals of senses the mean of each occurrence."""
    deals = senses if isinstance(senses, list) else [senses]
    documents = own.documents[places]
    by_layer = layer_cosines(own, places)

    def each(measure: Callable[[Floats, Senses], Floats]) -> Estimates:
        values = np.stack([np.mean([measure(layer, deal) for deal in deals], 0) for layer in by_layer], 1)
        return mean_over_sentences(_by_sentence(own, places, values), seed=seed)

    return {SILHOUETTE: each(silhouettes), PURITY: each(lambda layer, deal: purities(layer, deal, documents))}


def _by_sentence(own: Occurrences, places: Places, values: Floats) -> Floats:
    """(sentence, layer) means of (occurrence, layer): a word may occur twice in a sentence."""
    sentences = own.examples.entry[places]
    names = np.unique(sentences)
    return np.stack([values[sentences == name].mean(0) for name in names])


def _picture(
    own: Occurrences, places: Places, show: Show, layer: int, method: Method, seed: int
) -> Trajectory | Scatter:
    states = own.examples.features[:, places]
    labels = tuple(in_context(own, place) for place in places.tolist())
    groups = tuple(str(sense) for sense in own.sense[places])
    if show == "paths":
        return Trajectory(points=_plane(states, method, seed), labels=labels, groups=groups)
    if not -len(states) <= layer < len(states):
        raise Refusal(f"There is no layer {layer}", f"a number from 0 to {len(states) - 1}", "Give another --layer")
    number = layer % len(states)
    points = _plane(states[number][None], method, seed)[0]
    axes = (f"first axis, layer {number}", f"second axis, layer {number}")
    return Scatter(points=points, labels=labels, groups=groups, axes_named=axes)


def _plane(states: NDArray[Any], method: Method, seed: int) -> Floats:
    try:
        return in_the_plane(states, method, seed=seed)
    except ModuleNotFoundError as error:
        raise Refusal(
            f"--method {method} needs a package that is not installed ({error.name})",
            "umap-learn",
            "Install it with `pip install umap-learn`, or choose another method",
        ) from error
