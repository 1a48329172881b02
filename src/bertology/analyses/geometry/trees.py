"""How is the dependency tree drawn in space, and which relations are drawn long (reif2019)?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.declaration import analysis
from bertology.corpus.sentence import ROOT
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.maths.spanning_trees import tree_distances
from bertology.maths.tree_embedding import in_plane, pythagorean, turned_onto
from bertology.measures.division import Division, random_form
from bertology.measures.probes.options import Batch, Epochs, Half, Rate, Share, Train, TrainLimit
from bertology.measures.probes.tree_lessons import SITE, TreeLessons, gold_heads
from bertology.measures.probes.tree_probes import Fitting, chosen_layer, device_of, parts_of
from bertology.recording.annotation import word_layer
from bertology.recording.recording import Recording
from bertology.results.estimate import Estimates
from bertology.results.sampling import joined, pooled_over_sentences
from bertology.results.shapes import Curve, Scatter, Table

if TYPE_CHECKING:
    from bertology.maths.structural_probe import Probes

Numbers = NDArray[Any]

LENGTH, SQUARED, PLAIN = "embedded length", "squared distance", "distance"
ALL = "all"
FARTHEST = 10
"""Longer paths are too few to average."""

WIDEST = 20
"""Words of the sentence that is shown unless one is asked for: more cannot be read."""


@analysis(
    question="How is the dependency tree drawn in space, and which relations are drawn long?",
    special="seen by the model, no words: they have no place in the tree and are left out",
    cites=("reif2019", "hewitt2019structural"),
    sites=(SITE,),
    layers=("heads", "relations"),
    version=2,
)
def trees(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    *,
    show: Annotated[
        Literal["relations", "distances", "sentence"],
        "lengths of edges by relation, distances by tree distance, or one sentence in the plane",
    ] = "relations",
    layer: Annotated[int, "the layer, 0 the embeddings; -1: two thirds up"] = -1,
    rank: Annotated[int, "dimensions of the probe; 0 for the model's width"] = 64,
    minimum: Annotated[int, "a relation counts from this many edges in the test sentences"] = 10,
    sentence: Annotated[
        int, "the sentence to show, by its number in the test corpus from 0; -1: the longest of at most 20 words"
    ] = -1,
    train: Train = "",
    train_limit: TrainLimit = 0,
    share: Share = 0.7,
    half: Half = False,
    seeds: Annotated[int, "how many times the probe is trained, from different initial weights"] = 3,
    epochs: Epochs = 40,
    rate: Rate = 0.01,
    batch: Batch = 20,
    seed: Annotated[int, "seed of the first probe, of the division, the shuffling and of the bootstrap"] = 0,
) -> Table | Curve | Scatter:
    """Squared distance between the ends of a tree's edges under the distance probe, by relation: 1 if drawn true.

    A tree can be put in space so that squared distances are path lengths, each edge a direction of its own (a
    Pythagorean, or power-2, embedding): every edge then has the squared length 1. `embedded length` is the mean over
    edges of one relation (subtypes apart), pooled over test sentences and averaged over seeds. Beside it: the true
    embedding; the same lengths with the relations dealt out anew among all edges; words in a chain, where the squared
    distance of an edge is how far apart its words stand; and the probe of the model with random weights.
    `distances` gives mean squared and plain distances by tree distance: the squared ones of a power-2 embedding lie on
    a straight line, the plain ones on a root. `sentence` shows the words of one sentence in the plane of most variance
    under the first seed's probe, with the edges of its tree, beside the true embedding turned to lie over it.
    The probe is that of `probes/structural`; punctuation is in it and in the tree here.
    """
    division = Division(train, train_limit, share, seed, half)
    fitting = Fitting(seeds, epochs, rate, batch, legacy=False, seed=seed)
    parts = parts_of(recording, encoder, division, purpose="geometry/trees")
    layer = chosen_layer(layer, len(parts[0].states[0]))
    if show == "sentence":
        shown = _to_show(parts[1], sentence)
        found = _Drawn(parts, replace(fitting, seeds=1), layer, rank, device_of(encoder))
        return _picture(found, shown)
    own = _Drawn(parts, fitting, layer, rank, device_of(encoder))
    fresh = None
    if randomised is not None:
        parts = parts_of(randomised, random_form(encoder), division, purpose="geometry/trees")
        fresh = _Drawn(parts, fitting, layer, rank, device_of(encoder))
    if show == "distances":
        return _by_distance(own, fresh, seed)
    return _by_relation(own, fresh, minimum, seed)


class _Drawn:
    """The test sentences under the distance probe of one layer."""

    def __init__(
        self, parts: tuple[TreeLessons, TreeLessons], fitting: Fitting, layer: int, rank: int, device: str
    ) -> None:
        learned, tested = (replace(part, states=part.states.of_layers([layer])) for part in parts)
        width = learned.states[0].shape[-1]
        self.layer = layer
        self.rank = min(rank, width) if rank > 0 else width
        self.learned = learned
        self.tested = tested
        self.probes: Probes = fitting.fit(learned, ("distance",), [self.rank], device)

    def distances(self, place: int) -> Numbers:
        """(word, word) squared distances, the mean over seeds."""
        import torch

        states = torch.from_numpy(np.array(self.tested.states[place], np.float32)).to(self.probes.weights.device)
        return self.probes.distances(states, self.rank)[0].mean(0).cpu().double().numpy()

    def points(self, place: int) -> Numbers:
        """(word, rank) under the only seed's probe."""
        return self.tested.states[place][0].astype(np.float32) @ self.probes.weights[0].cpu().numpy()

    @property
    def note(self) -> str:
        """How much was trained and tested on."""
        left_out = sum(sum(part.skipped.values()) for part in (self.learned, self.tested))
        sizes = f"layer {self.layer}, trained on {len(self.learned.entries)} sentences"
        return f"{sizes}, tested on {len(self.tested.entries)}, {left_out} left out"


def _by_relation(own: _Drawn, fresh: _Drawn | None, minimum: int, seed: int) -> Table:
    edges = _edges(own.tested)
    counts = Counter(relation for _, _, _, relation in edges)
    rows = [ALL, *sorted((r for r, n in counts.items() if n >= minimum), key=lambda r: (-counts[r], r))]
    relations = np.array([relation for _, _, _, relation in edges])
    dealt = np.random.default_rng(seed).permutation(relations)
    apart = np.array([abs(word - head) for _, word, head, _ in edges], np.float64)
    sentences = np.array([place for place, _, _, _ in edges])

    def over(lengths: Numbers, named: Numbers) -> dict[str, Estimates]:
        found = [_pooled(lengths, sentences, (named == row) | (row == ALL), seed) for row in rows]
        return {LENGTH: joined(found)}

    lengths = _lengths(own, edges)
    baselines = {
        "true embedding": {LENGTH: Estimates.exact(np.ones(len(rows)))},
        "shuffled relations": over(lengths, dealt),
        "linear chain": over(apart, relations),
    }
    if fresh is not None:
        baselines["random weights"] = over(_lengths(fresh, edges), relations)
    return Table(
        measures=over(lengths, relations),
        baselines=baselines,
        units={LENGTH: f"squared distance, 0 and up, 1 if drawn true; {own.note}"},
        rows_named=tuple(rows),
        notes={row: f"{counts[row] if row != ALL else len(edges)} edges" for row in rows},
    )


def _edges(lessons: TreeLessons) -> list[tuple[int, int, int, str]]:
    """(sentence, word, head, relation) of every edge."""
    found: list[tuple[int, int, int, str]] = []
    for place, entry in enumerate(lessons.entries):
        named = word_layer(entry, "relations")
        heads = enumerate(gold_heads(entry))
        found.extend((place, word, head, named[word] or "") for word, head in heads if head != ROOT)
    return found


def _lengths(drawn: _Drawn, edges: Sequence[tuple[int, int, int, str]]) -> Numbers:
    """(edge,) squared distances between the ends."""
    found = np.empty(len(edges))
    distances, at = np.empty(0), -1
    for row, (place, word, head, _) in enumerate(edges):
        if place != at:
            distances, at = drawn.distances(place), place
        found[row] = distances[word, head]
    return found


def _pooled(values: Numbers, sentences: Numbers, counted: NDArray[np.bool_], seed: int) -> Estimates:
    """The mean of the values that count, its interval over all sentences there are."""
    size = int(sentences.max()) + 1
    totals = np.bincount(sentences[counted], values[counted], minlength=size)
    return pooled_over_sentences(totals, np.bincount(sentences[counted], minlength=size), seed=seed)


def _by_distance(own: _Drawn, fresh: _Drawn | None, seed: int) -> Curve:
    gold = [tree_distances(gold_heads(entry)) for entry in own.tested.entries]
    points = np.arange(1, min(FARTHEST, max(int(matrix.max()) for matrix in gold)) + 1)

    def over(matrices: Sequence[Numbers]) -> dict[str, Estimates]:
        counts = np.array([[(paths == point).sum() for point in points] for paths in gold], np.float64)
        found: dict[str, Estimates] = {}
        for name, power in ((SQUARED, 1.0), (PLAIN, 0.5)):
            totals = [
                [(matrix[paths == point] ** power).sum() for point in points]
                for matrix, paths in zip(matrices, gold, strict=True)
            ]
            found[name] = pooled_over_sentences(np.array(totals), counts, seed=seed)
        return found

    def predicted(drawn: _Drawn) -> list[Numbers]:
        return [drawn.distances(place) for place in range(len(gold))]

    apart = [np.abs(np.subtract.outer(np.arange(len(paths)), np.arange(len(paths)))).astype(float) for paths in gold]
    true = {SQUARED: Estimates.exact(points), PLAIN: Estimates.exact(np.sqrt(points))}
    baselines = {"true embedding": true, "linear chain": over(apart)}
    if fresh is not None:
        baselines["random weights"] = over(predicted(fresh))
    units = {SQUARED: f"squared distance, 0 and up; {own.note}", PLAIN: f"distance, 0 and up; {own.note}"}
    return Curve(
        measures=over(predicted(own)),
        baselines=baselines,
        along="tree distance",
        points=points.astype(np.float64),
        units=units,
    )


def _to_show(tested: TreeLessons, number: int) -> int:
    """The place of the sentence to show."""
    lengths = tested.lengths
    if number < 0:
        readable = [place for place, length in enumerate(lengths) if length <= WIDEST]
        chosen = readable or range(len(lengths))
        return max(chosen, key=lambda place: lengths[place] if readable else -lengths[place])
    places = {entry.item: place for place, entry in enumerate(tested.entries)}
    if number not in places:
        some = ", ".join(map(str, sorted(places)[:10]))
        raise Refusal(
            f"Sentence {number} is not among the test sentences",
            f"one of {some}{' ...' if len(places) > 10 else ''}",
            "Choose one with --sentence, or leave it out",
        )
    return places[number]


def _picture(drawn: _Drawn, place: int) -> Scatter:
    entry = drawn.tested.entries[place]
    heads = gold_heads(entry)
    model = in_plane(drawn.points(place))
    true = turned_onto(in_plane(pythagorean(heads)), model)
    words, count = entry.input.words, len(heads)
    edges = [(word, head) for word, head in enumerate(heads) if head != ROOT]
    return Scatter(
        points=np.concatenate([model, true]),
        labels=(*words, *words),
        groups=(f"layer {drawn.layer}",) * count + ("true embedding",) * count,
        axes_named=("first direction", "second direction"),
        edges=(*edges, *((a + count, b + count) for a, b in edges)),
    )
