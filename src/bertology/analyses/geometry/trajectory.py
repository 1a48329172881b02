"""Through which phases do the states of a question and its passage go, layer by layer (vanaken2019)?"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.declaration import analysis
from bertology.errors import Refusal
from bertology.maths.clusters import FEWEST, MOST, best_clusters, purity, without_clusters
from bertology.maths.planes import Method, in_the_plane
from bertology.measures.geometry.answer_tokens import AnswerTokens
from bertology.recording.recording import Recording
from bertology.results.estimate import Estimates
from bertology.results.sampling import mean_over_sentences
from bertology.results.shapes import LayerCurve, Trajectory

Floats = NDArray[np.float64]
Show = Literal["phases", "picture"]

UNITS: dict[str, str] = {
    "clustering": "silhouette, 0 no clusters to 1 apart",
    "entity purity": "share of pieces, 0 to 1",
    "question to fact": "difference of cosines, -2 to 2",
    "answer separation": "difference of cosine distances, -2 to 2",
}
MEASURES = tuple(UNITS)
DRAWS = 10


@analysis(
    question="Through which phases do the states of a question and its passage go, layer by layer?",
    special="special tokens are left out",
    cites=("vanaken2019", "vanaken2020"),
    sites=("hidden",),
    layers=("answers",),
)
def trajectory(
    recording: Recording,
    randomised: Recording | None,
    *,
    show: Annotated[
        Show, "`phases`: each phase measured over all questions (LayerCurve); `picture`: one in the plane (Trajectory)"
    ] = "phases",
    item: Annotated[int, "which question the picture is of, from 1"] = 1,
    method: Annotated[
        Method,
        "the plane: `pca` of all layers, `aligned`: PCA of each layer turned to the one before, or `ica`, `tsne`, "
        "`umap` (where installed) of all layers",
    ] = "pca",
    clusters: Annotated[int, "clusters of k-means; 0 for the number, 2 to 10, with the best silhouette"] = 0,
    seed: Annotated[int, "seed of the clusters, of chance and of the bootstrap over passages"] = 0,
) -> LayerCurve | Trajectory:
    """How far each of four phases has got by layer, each against its chance: semantic, entities, matching, answer.

    - clustering: mean silhouette of the pieces' states in clusters of k-means in the full space. By chance: normal
      points with the same covariance.
    - entity purity: of entities mentioned more than once, the share of pieces in the entity's most frequent cluster. By
      chance: as many random pieces.
    - question to fact: mean cosine of question and supporting fact (the rest of the sentence with the answer), less
      that of question and the rest of the passage; 0 no nearer. By chance: the other sentences in place of the fact.
    - answer separation: mean cosine distance of the answer from the rest of the passage, less that within the rest; 0
      the answer is a piece like any other. By chance: other stretches of as many pieces. `other answers` are those to
      other questions on the same passage: as answer-like, but not asked for.

    Answers are names and numbers more often than other stretches, and a fact shares words with its question: what layer
    0 has over chance is due to words alone, and an answer is extracted only where it is apart from `other answers`. Van
    Aken et al. describe the phases from pictures and choose k by eye. Each passage counts alike, whatever the number of
    its questions; it is clustered with one of them. Intervals are over passages, and so is n. Where no entities are
    annotated, runs of capitalised words inside a sentence stand for them.

    A picture is coloured by answer, question, supporting fact, entity, other, the first that fits. The released code
    fits one PCA a layer, whose axes are not comparable from layer to layer; here the plane is that of all layers, or
    each layer's is turned to the one before (Procrustes).
    """
    asked = [(place, found) for place, e in enumerate(recording.entries) if (found := AnswerTokens.of(e)) is not None]
    if not asked:
        raise Refusal(
            f"No input of {recording.corpus.name} shows a question, its passage and the answer",
            "questions on passages, in the form of SQuAD, short enough for the model",
            "Give --corpus a file of that form, or --long skip or window where passages are too long",
        )
    if show == "picture":
        return _picture(recording, asked, item, method, seed)
    measures, chance, others = _phases(recording, asked, clusters, seed)
    baselines = {"by chance": chance, "other answers": {MEASURES[-1]: others[MEASURES[-1]]}}
    if randomised is not None:
        baselines["random weights"] = _phases(randomised, asked, clusters, seed)[0]
    return LayerCurve(measures=measures, baselines=baselines, units=UNITS)


Asked = list[tuple[int, AnswerTokens]]


def _picture(recording: Recording, asked: Asked, item: int, method: Method, seed: int) -> Trajectory:
    if not 1 <= item <= len(asked):
        raise Refusal(f"There is no question {item}", f"a number from 1 to {len(asked)}", "Give another --item")
    place, tokens = asked[item - 1]
    states = np.asarray(recording["hidden"][place])[:, tokens.ordinary]
    try:
        points = in_the_plane(states, method, seed=seed)
    except ModuleNotFoundError as error:
        raise Refusal(
            f"--method {method} needs a package that is not installed ({error.name})",
            "umap-learn",
            "Install it with `pip install umap-learn`, or choose another method",
        ) from error
    labels = tuple(tokens.entry.pieces.tokens[piece] for piece in tokens.ordinary)
    return Trajectory(points=points, labels=labels, groups=tokens.classes)


def _phases(recording: Recording, asked: Asked, clusters: int, seed: int) -> list[dict[str, Estimates]]:
    """Each measure by layer, what it would be by chance, and what it is for other answers."""
    related: dict[str, list[AnswerTokens]] = {}
    for _, tokens in asked:
        related.setdefault(tokens.entry.input.parts[1].text, []).append(tokens)
    by_passage: dict[str, list[Floats]] = {}
    # In an order of their own, so that the same question is clustered with its passage however the corpus is arranged.
    for place, tokens in sorted(asked, key=lambda one: one[1].entry.pieces.ids.tobytes()):
        generator = np.random.default_rng([seed, *tokens.entry.pieces.ids.tolist()])
        questions = by_passage.setdefault(tokens.entry.input.parts[1].text, [])
        limits = None if questions else (clusters or FEWEST, clusters or MOST)
        others = {other.answered: tokens.answer_to(other) for other in related[tokens.entry.input.parts[1].text]}
        stretches = [others[span] for span in sorted(others, key=lambda s: (s.start, s.end)) if len(others[span])]
        found = [_measured(layer, tokens, limits, stretches, generator) for layer in recording["hidden"][place]]
        questions.append(np.array(found))
    values = np.stack([_mean(np.stack(by_passage[passage])) for passage in sorted(by_passage)])
    estimates = mean_over_sentences(values, seed=seed)
    return [{name: estimates[:, row, place] for place, name in enumerate(MEASURES)} for row in range(3)]


def _mean(values: Floats) -> Floats:
    """The mean over the first axis of what is there."""
    there = np.isfinite(values)
    total = np.where(there, values, 0.0).sum(0)
    return np.divide(total, there.sum(0), out=np.full_like(total, np.nan), where=there.any(0))


def _measured(
    layer: NDArray[Any],
    tokens: AnswerTokens,
    limits: tuple[int, int] | None,
    others: list[NDArray[np.intp]],
    generator: np.random.Generator,
) -> Floats:
    """(3, measure) the measures of one layer of one question, by chance, and of `others`, which answer other questions.

    `limits` are those of the number of clusters.
    """
    states = layer.astype(np.float64)
    lengths = np.linalg.norm(states, axis=1, keepdims=True)
    units = states / lengths.clip(min=1e-12)
    cosines = units @ units.T
    found = np.full((3, len(MEASURES)), np.nan)
    found[:2, :2] = _clustering(states, tokens, limits, generator)
    found[:2, 2] = _to_fact(cosines, tokens)
    found[:, 3] = _apart(cosines, tokens, others, generator)
    return found


def _clustering(
    states: Floats, tokens: AnswerTokens, limits: tuple[int, int] | None, generator: np.random.Generator
) -> tuple[list[float], list[float]]:
    """Silhouette and purity by entity, and both by chance."""
    points = states[tokens.ordinary]
    found = best_clusters(points, seed=0, fewest=limits[0], most=limits[1]) if limits else None
    if found is None:
        return [float("nan")] * 2, [float("nan")] * 2
    flat = best_clusters(without_clusters(points, generator), seed=0, fewest=found.number, most=found.number)
    places = [np.searchsorted(tokens.ordinary, entity) for entity in tokens.entities]
    drawn = [
        [generator.choice(len(points), len(places_of_one), replace=False) for places_of_one in places]
        for _ in range(DRAWS)
    ]
    chance = [purity(found.labels, groups) for groups in drawn]
    own = [found.silhouette, purity(found.labels, places)]
    return own, [flat.silhouette if flat else float("nan"), float(np.mean(chance))]


def _to_fact(cosines: Floats, tokens: AnswerTokens) -> tuple[float, float]:
    """How much nearer the question is to the supporting fact than to the rest, and to the other sentences likewise."""

    def nearer(sentence: NDArray[np.intp]) -> float:
        rest = np.setdiff1d(tokens.passage, np.concatenate([sentence, tokens.answer]))
        if not len(rest) or not len(sentence):
            return float("nan")
        rows = cosines[tokens.question]
        return float(rows[:, sentence].mean() - rows[:, rest].mean())

    others = [nearer(sentence) for sentence in tokens.sentences if not np.array_equal(sentence, tokens.fact)]
    return nearer(tokens.fact), _average(others)


def _apart(
    cosines: Floats, tokens: AnswerTokens, others: list[NDArray[np.intp]], generator: np.random.Generator
) -> tuple[float, float, float]:
    """How much farther the answer is from the rest of the passage than the rest from itself; so for other stretches."""

    def farther(stretch: NDArray[np.intp]) -> float:
        rest = np.setdiff1d(tokens.passage, stretch)
        if len(rest) < 2:
            return float("nan")
        inside = cosines[np.ix_(rest, rest)]
        within = (inside.sum() - np.trace(inside)) / (len(rest) * (len(rest) - 1))
        return float(within - cosines[np.ix_(stretch, rest)].mean())

    size = len(tokens.answer)
    starts = [s for s in range(len(tokens.passage) - size + 1) if tokens.answer[0] not in tokens.passage[s : s + size]]
    drawn = generator.choice(starts, min(DRAWS, len(starts)), replace=False) if starts else []
    chance = [farther(tokens.passage[start : start + size]) for start in drawn]
    asked_for_others = [farther(stretch) for stretch in others]
    return farther(tokens.answer), _average(chance), _average(asked_for_others)


def _average(values: list[float]) -> float:
    return float(np.mean(values)) if values else float("nan")
