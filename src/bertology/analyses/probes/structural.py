"""Is the dependency tree in the geometry of the hidden states (hewitt2019structural)?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.corpus.sentence import ROOT
from bertology.encoder.encoder import Encoder
from bertology.maths.spanning_trees import spanning_trees
from bertology.measures.division import Division, random_form
from bertology.measures.probes.contextless import NAMES, contextless
from bertology.measures.probes.options import Batch, Epochs, Half, Rate, Share, Train, TrainLimit
from bertology.measures.probes.tree_lessons import SITE, TreeLessons, gold_heads, scored_words
from bertology.measures.probes.tree_probes import Fitting, chosen_layer, device_of, parts_of
from bertology.measures.probes.tree_scores import UNITS, Scores, by_chain, by_probes, everywhere, scores_of, units
from bertology.recording.annotation import word_layer
from bertology.recording.recording import Recording
from bertology.results.estimate import Estimates
from bertology.results.sampling import joined
from bertology.results.shapes import Arc, ArcDiagram, Arcs, Curve, LayerCurve

KINDS = ("distance", "depth")
LESS_FULL = " less full rank"
Measures = dict[str, Estimates]


@analysis(
    question="Is the dependency tree in the geometry of the hidden states?",
    special="seen by the model, no words: they have no place in the tree and are left out",
    cites=("hewitt2019structural",),
    sites=(SITE,),
    layers=("heads",),
    version=3,
)
def structural(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    *,
    show: Annotated[
        Literal["layers", "ranks", "trees"], "scores by layer, scores by rank in one layer, or predicted trees"
    ] = "layers",
    rank: Annotated[int, "dimensions of the probe; 0 for the model's width, as in the paper's tables"] = 64,
    layer: Annotated[int, "the layer of --show ranks and trees, 0 the embeddings; -1: two thirds up"] = -1,
    train: Train = "",
    train_limit: TrainLimit = 0,
    share: Share = 0.7,
    half: Half = False,
    seeds: Annotated[int, "how many times each probe is trained, from different initial weights"] = 3,
    epochs: Epochs = 40,
    rate: Rate = 0.01,
    batch: Batch = 20,
    examples: Annotated[int, "how many trees --show trees gives"] = 5,
    legacy: Annotated[bool, "as the released code: punctuation by Penn tags, moments of Adam kept"] = False,
    seed: Annotated[int, "seed of the first probe, of the division and of the bootstrap"] = 0,
) -> LayerCurve | Curve | Arcs:
    """Undirected unlabelled attachment score (UUAS) by layer: share of tree edges found, 0 to 1; and three more scores.

    The distance probe is a linear map under which squared distances between words are as long as the paths between them
    in the tree, the depth probe one under which squared lengths are depths; both miss as little as they can in L1, over
    the square of the sentence's words and over its words. `UUAS` compares the minimum spanning tree of the predicted
    distances with that of the gold ones, punctuation taken out of both first, pooled over sentences. `distance
    Spearman` correlates each word's row of distances (itself and punctuation in it), averaged over sentences of one
    length and then over the lengths 5 to 50; `depth Spearman` the depths likewise. `root accuracy` is how often the
    word of least depth that is no punctuation is the root. A word is the mean of its pieces. Punctuation is UPOS
    `PUNCT` (else the Penn tags, else the relation `punct`).

    Layer 0 is the embeddings, layer n the output of block n: BERT-base 7 of the paper, counted from 0, is layer 8.
    Adam's rate falls to a tenth whenever the loss of a held-out tenth of the training sentences has no new minimum,
    its moments are forgotten then, and the best epoch is kept; the paper uses its development set for this, and the
    released code keeps the moments: `legacy`, which also takes the tags '' , . : `` -LRB- -RRB- for punctuation. All
    layers, seeds and ranks are fitted together, in the same batches of sentences of like length; the paper's are mixed.
    The first rate is ten times the paper's: on a thousand sentences that ends at the same loss in a third of the time.
    The paper's model read cased text as segment 1 without splitting punctuation off words: that is the model's matter.
    Left out and counted are pairs, sentences of one word, and those with a word that no piece belongs to, as where a
    piece covers two words (`--spacing words` avoids that in the test corpus).

    Baselines: words in a chain; the embedding layer, which knows positions where the paper's (ELMo's) does not; the
    embeddings averaged with weights that halve at each step (`legacy`: the word itself twice) and put through a random
    bidirectional LSTM; the model with random weights. Intervals are over test sentences; those `by seed` reach from
    the lowest seed to the highest. With `--show ranks` each score also stands less that of the full rank on the same
    sentences, whose interval resamples the differences; at the full rank itself there is none. Memory: 4 bytes x
    (layers + 1) x width a word of training and test, 2 with `half`.
    """
    division = Division(train, train_limit, share, seed, half)
    fitting = Fitting(seeds, epochs, rate, batch, legacy, seed)
    learned, tested = parts_of(recording, encoder, division, purpose="probes/structural")
    layers, _, width = learned.states[0].shape
    rank = min(rank, width) if rank > 0 else width
    device = device_of(encoder)
    if show == "trees":
        return _trees(learned, tested, fitting, chosen_layer(layer, layers), rank, examples, device)
    note = _sizes(learned, tested, legacy)
    chain = scores_of(tested, by_chain(tested), legacy=legacy).measures(seed=seed)
    fresh = None
    if show == "ranks":
        chosen, ranks = [0, chosen_layer(layer, layers)], _ranks(width)
        own = _by_rank(*_of_layers(learned, tested, chosen), fitting, ranks, device)
        if randomised is not None:
            parts = parts_of(randomised, random_form(encoder), division, purpose="probes/structural")
            fresh = _by_rank(*_of_layers(*parts, chosen[1:]), fitting, ranks, device)
        return _curve(own, fresh, everywhere(chain, len(ranks)), ranks, f"layer {chosen[1]}; {note}")
    own = _scored(*_with_contextless(learned, tested, legacy, seed), fitting, rank, device).measures(seed=seed)
    if randomised is not None:
        parts = parts_of(randomised, random_form(encoder), division, purpose="probes/structural")
        fresh = _scored(*parts, fitting, rank, device).measures(seed=seed)
    return _layer_curve(own, fresh, everywhere(chain, layers), layers, units(note))


def _sizes(learned: TreeLessons, tested: TreeLessons, legacy: bool) -> str:
    """How much was trained and tested on, and what was left out."""
    edges = sum(max(0, int(scored_words(entry, legacy=legacy).sum()) - 1) for entry in tested.entries)
    sizes = f"trained on {len(learned.entries)} sentences, tested on {len(tested.entries)} with {edges} edges"
    left_out = [
        f"{count} {reason} in {name}"
        for name, part in (("training", learned), ("test", tested))
        for reason, count in part.skipped.items()
    ]
    return f"{sizes}; left out: {', '.join(left_out)}" if left_out else sizes


def _of_layers(learned: TreeLessons, tested: TreeLessons, layers: Sequence[int]) -> tuple[TreeLessons, TreeLessons]:
    first, second = (replace(part, states=part.states.of_layers(layers)) for part in (learned, tested))
    return first, second


def _with_contextless(
    learned: TreeLessons, tested: TreeLessons, legacy: bool, seed: int
) -> tuple[TreeLessons, TreeLessons]:
    """The same with two rows below the layers that are made of the embeddings alone."""

    def extended(part: TreeLessons) -> TreeLessons:
        embeddings = [np.array(states[0]) for states in part.states]
        return replace(part, states=part.states.with_more(contextless(embeddings, twice=legacy, seed=seed)))

    return extended(learned), extended(tested)


def _scored(learned: TreeLessons, tested: TreeLessons, fitting: Fitting, rank: int, device: str) -> Scores:
    probes = fitting.fit(learned, KINDS, [rank], device)
    return scores_of(tested, by_probes(probes, tested, rank), legacy=fitting.legacy)


def _layer_curve(
    own: Measures, fresh: Measures | None, chain: Measures, layers: int, named: dict[str, str]
) -> LayerCurve:
    baselines: dict[str, Measures] = {
        "linear chain": chain,
        "embedding layer": {name: found[0].everywhere((layers,)) for name, found in own.items()},
    }
    for place, baseline in enumerate(NAMES, start=layers):
        baselines[baseline] = {name: found[place].everywhere((layers,)) for name, found in own.items()}
    if fresh is not None:
        baselines["random weights"] = fresh
    measures = {name: found[:layers] for name, found in own.items()}
    return LayerCurve(measures=measures, baselines=baselines, units=named)


def _ranks(width: int) -> list[int]:
    """1, 2, 4 ... up to the width, which comes last."""
    return [*(2**power for power in range(width.bit_length()) if 2**power < width), width]


def _by_rank(
    learned: TreeLessons, tested: TreeLessons, fitting: Fitting, ranks: Sequence[int], device: str
) -> list[Measures]:
    """For each layer, the scores (rank,), and how far they lie above those of the last rank on the same sentences."""
    probes = fitting.fit(learned, KINDS, ranks, device)
    scores = [scores_of(tested, by_probes(probes, tested, rank), legacy=fitting.legacy) for rank in ranks]
    found = [
        one.measures(seed=fitting.seed) | difference_of(one, scores[-1], seed=fitting.seed, same=one is scores[-1])
        for one in scores
    ]
    return [
        {name: joined([one[name][layer : layer + 1] for one in found])[:, 0] for name in found[0]}
        for layer in range(len(learned.states[0]))
    ]


def difference_of(these: Scores, others: Scores, *, seed: int, same: bool) -> Measures:
    """(layer,) each score less another of the same sentences, over whose differences the interval is; NaN for itself.

    Every score is a mean over sentences, pooled or not, so that the differences are scored as they are.
    """
    apart = {name: getattr(these, name) - getattr(others, name) for name in ("hits", "distance", "root", "depth")}
    if same:
        apart = dict.fromkeys(apart, np.full(these.hits.shape, np.nan)) | {"edges": np.zeros_like(these.edges)}
    beyond = replace(these, **apart)
    return {f"{name}{LESS_FULL}": found for name, found in beyond.measures(seed=seed).items() if name in UNITS}


def _curve(
    own: list[Measures], fresh: list[Measures] | None, chain: Measures, ranks: Sequence[int], note: str
) -> Curve:
    apart = [f"{name}{LESS_FULL}" for name in UNITS]
    nothing = Estimates.exact(np.zeros(len(ranks)))
    baselines = {"linear chain": chain, "embedding layer": own[0], "no difference": dict.fromkeys(apart, nothing)}
    if fresh is not None:
        baselines["random weights"] = fresh[0]
    points = np.array(ranks, np.float64)
    named = units(note) | dict.fromkeys(apart, "difference on the same sentences, -1 to 1")
    return Curve(measures=own[1], baselines=baselines, along="rank", points=points, units=named)


def _trees(
    learned: TreeLessons, tested: TreeLessons, fitting: Fitting, layer: int, rank: int, examples: int, device: str
) -> Arcs:
    """The first test sentences of five words or more, the first seed's spanning tree beside the gold tree."""
    learned, tested = _of_layers(learned, tested, [layer])
    probes = replace(fitting, seeds=1).fit(learned, KINDS, [rank], device)
    predict = by_probes(probes, tested, rank)
    places = [place for place, length in enumerate(tested.lengths) if length > 4][:examples]
    places = places or list(range(min(examples, len(tested.entries))))
    return Arcs(sentences=tuple(_diagram(tested, place, predict(place)[0][0, 0], fitting.legacy) for place in places))


def _diagram(
    tested: TreeLessons, place: int, distances: np.ndarray[tuple[int, int], np.dtype[np.float32]], legacy: bool
) -> ArcDiagram:
    entry = tested.entries[place]
    counted = scored_words(entry, legacy=legacy)
    words = np.flatnonzero(counted).tolist()
    found = [(words[a], words[b]) for a, b in spanning_trees(distances[np.ix_(counted, counted)]).tolist()]
    relations = word_layer(entry, "relations")
    gold = [
        Arc(start=head, end=word, label=relations[word] or "")
        for word, head in enumerate(gold_heads(entry))
        if head != ROOT and counted[word]
    ]
    arcs = [Arc(start=a, end=b, weight=float(distances[a, b])) for a, b in sorted(found)]
    return ArcDiagram(words=entry.input.words, arcs=tuple(arcs), gold=tuple(gold))
