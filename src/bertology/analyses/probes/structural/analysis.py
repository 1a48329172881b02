"""Recover the dependency tree from each layer by linear structural probes (hewitt2019structural)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Literal

import numpy as np

from bertology.analyses.declaration import Cost, analysis
from bertology.analyses.probes.structural.scores import (
    DEPTH,
    DISTANCE,
    RANGE_UNITS,
    UNITS,
    PredictTree,
    StructuralScores,
    chain_baseline,
    probe_predictor,
    score_trees,
    stack_scores,
)
from bertology.analyses.probing.dataset import WORD_SITE
from bertology.analyses.probing.train_test_split import TrainTestSplit, for_both_models
from bertology.analyses.structural_probing.dataset import TreeDataset, gold_governors, scored_word_mask
from bertology.analyses.structural_probing.probe import StructuralProbes
from bertology.analyses.structural_probing.training import StructuralProbeConfig, split_trees
from bertology.arrays import Array
from bertology.corpus.sentence import ROOT
from bertology.encoder.encoder import Encoder
from bertology.encoder.token_batch import word_annotations
from bertology.estimates.estimate import Estimates
from bertology.lazy import torch
from bertology.numerics.spanning_trees import spanning_trees
from bertology.recording.recording import Recording
from bertology.results.answers import Answer
from bertology.results.illustrations import Arc, ArcDiagram, Arcs
from bertology.results.measured_shape import MODEL_SERIES, change_measure, gain_measure
from bertology.results.shapes import Curve, LayerCurve

NAME = "probes/structural"
KINDS = ("distance", "depth")
LINEAR_CHAIN, UNTRAINED = "linear chain", "untrained model"
CONTEXT_FREE_BASELINES = ("decayed embeddings", "random BiLSTM embeddings")
DIFFERENCES = {name: f"{name} - {name} (full rank)" for name in UNITS}
CHANGES = tuple(map(change_measure, DIFFERENCES.values()))
DIFFERENCE_UNIT = "difference, -1 to 1"
Measures = dict[str, Estimates]


@analysis(
    question="How well can the dependency tree be recovered from each layer by a linear structural probe?",
    special_tokens="Special tokens: in the model's input, not analysed; a word is the mean of its tokens.",
    citations=("hewitt2019structural",),
    sites=(WORD_SITE,),
    annotations=("governors",),
    version=7,
    answers=("layers",),
    cost=Cost(seconds_per_word=0.013),
)
def structural(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    *,
    show: Annotated[
        Literal["layers", "ranks", "trees"],
        "`layers` (scores by layer), `ranks` (scores by rank of the probe in one layer) or `trees` (predicted trees).",
    ] = "layers",
    n_examples: Annotated[int, "Number of example trees with --show trees."] = 5,
    legacy: Annotated[
        bool,
        "Reproduce the released code: punctuation by Penn tags, Adam's moments kept when the learning rate drops.",
    ] = False,
    config: StructuralProbeConfig = StructuralProbeConfig(),
    split: TrainTestSplit = TrainTestSplit(),
) -> LayerCurve | Curve | Arcs:
    """Undirected unlabelled attachment score (UUAS), the proportion of tree edges found, 0 to 1; and three more scores.

    The distance probe is a linear map under which squared distances between words approximate their path lengths in the
    tree; under the depth probe squared norms approximate depths. Both minimise the L1 error, divided by the squared
    number of words and by the number of words. `UUAS` compares the minimum spanning tree of predicted distances with
    that of gold distances, both without punctuation, pooled over sentences. `distance Spearman` correlates the
    distances of each word to all words (itself and punctuation included), averaged over sentences of one length and
    then over the lengths 5 to 50; `depth Spearman` the depths likewise. `root accuracy` is the proportion of sentences
    in which the word of least depth that is not punctuation is the root. A word is the mean of its tokens. Punctuation
    is UPOS `PUNCT` (else the Penn tags, else the relation `punct`).

    Layer 0 is the embeddings, layer n the output of layer n: the paper's BERT-base 7, counted from 0, is layer 8 here.
    The learning rate drops to a tenth whenever the loss on a validation tenth of the training sentences has no new
    minimum; Adam's moments are then reset, and the best epoch is kept. The paper uses its development set for this, and
    the released code keeps the moments: `legacy`, which also takes the tags '' , . : `` -LRB- -RRB- for punctuation.
    All layers, seeds and ranks are trained together, in the same batches, each with sentences of all lengths. The
    initial learning rate is ten times the paper's: on a thousand sentences it reaches the same loss in a third of the
    time. The paper's model read cased text as segment 1 without separating punctuation from words; that depends on the
    model here. Skipped and counted are text pairs, sentences of one word, and sentences with a word without tokens, for
    example if a token covers two words (`--spacing words` avoids that in the test corpus).

    Baselines: a chain of words; the embedding layer, which has positions, unlike the paper's (ELMo's); the embeddings
    averaged with weights that halve at each step (`legacy`: the word itself counts twice), and passed through a random
    BiLSTM; the untrained model. Intervals are over test sentences, except ranges over seeds.

    A score that still rises with more training data says little about the model. `UUAS - UUAS (half the training data)`
    and its like are what the second half of the training sentences adds: the difference to the score of probes fitted
    on a random half, another for each seed, on the same test sentences; its interval resamples sentences and seeds. On
    fewer than a thousand training sentences UUAS usually still rises by several points. `--show ranks` adds the
    difference of each score to the full rank on the same sentences, whose interval resamples the differences, and how
    it changes from half the training data; at full rank both are undefined. Memory: 4 bytes x (layers + 1) x width per
    word of training and test data, 2 with `--float16`.
    """
    (train, test), untrained = for_both_models(
        partial(split_trees, split=split, analysis_name=NAME, half_precision=config.float16),
        recording,
        None if show == "trees" else randomised,
        encoder,
    )
    seed, layer, rank = split.seed, config.layer_index(train), config.probe_rank(train)
    device = "cpu" if encoder is None else encoder.device

    def fit(data: TreeDataset, ranks: Sequence[int], seeds: Sequence[int] = split.seeds) -> StructuralProbes:
        return config.fit(data, KINDS, ranks, seeds, device=device, legacy=legacy)

    def score(
        data: tuple[TreeDataset, TreeDataset], ranks: Sequence[int], seeds: Sequence[int] = split.seeds
    ) -> list[StructuralScores]:
        """The scores of the probes of each rank."""
        probes = fit(data[0], ranks, seeds)
        return [score_trees(data[1], probe_predictor(probes, data[1], rank), legacy=legacy) for rank in ranks]

    if show == "trees":
        train, test = _select_layers((train, test), [layer])
        return _build_arcs(test, probe_predictor(fit(train, [rank], [seed]), test, rank), n_examples, legacy)
    sample = _sample(train, test, legacy)
    chain_scores = score_trees(test, chain_baseline(test), legacy=legacy)
    chain = _measure(chain_scores, seed)
    if show == "ranks":
        width = train.states[0].shape[-1]
        ranks = [*(2**power for power in range(width.bit_length()) if 2**power < width), width]
        data = _select_layers((train, test), [0, layer])
        half_runs = [score((data[0].random_half(run), data[1]), ranks, [run]) for run in split.seeds]
        half = [stack_scores(by_run) for by_run in zip(*half_runs, strict=True)]
        embeddings, model = _measure_ranks(score(data, ranks), seed, half)
        baselines = {
            LINEAR_CHAIN: _broadcast(chain, 0, len(ranks)),
            "embedding layer": embeddings,
            "zero": {name: Estimates.exact(np.zeros(len(ranks))) for name in (*DIFFERENCES.values(), *CHANGES)},
        }
        if untrained is not None:
            (baselines[UNTRAINED],) = _measure_ranks(score(_select_layers(untrained, [layer]), ranks), seed)
        return Curve(
            measures=model,
            baselines=baselines,
            units=UNITS | RANGE_UNITS | dict.fromkeys((*DIFFERENCES.values(), *CHANGES), DIFFERENCE_UNIT),
            sample={"layer": layer, **sample},
            x_name="rank",
            x=np.array(ranks, np.float64),
        )

    by_series = {LINEAR_CHAIN: chain_scores}

    def measure_with_gains(data: tuple[TreeDataset, TreeDataset], series: str) -> Measures:
        """The scores, and what the second half of the training data adds to them."""
        (scores,) = score(data, [rank])
        by_series[series] = scores
        half = stack_scores([score((data[0].random_half(run), data[1]), [rank], [run])[0] for run in split.seeds])
        gains = (scores - half).measures_over_seeds(seed=seed)
        return _measure(scores, seed) | {gain_measure(name): gain for name, gain in gains.items()}

    # The context-free baselines are extra layers above the last one.
    n_layers = len(train.states[0])
    extended = _with_context_free(train, legacy, seed), _with_context_free(test, legacy, seed)
    model = measure_with_gains(extended, MODEL_SERIES)
    baselines = {
        LINEAR_CHAIN: _broadcast(chain, 0, n_layers),
        "embedding layer": _broadcast(model, 0, n_layers),
    }
    for index, name in enumerate(CONTEXT_FREE_BASELINES, start=n_layers):
        baselines[name] = _broadcast(model, index, n_layers)
    if untrained is not None:
        baselines[UNTRAINED] = measure_with_gains(untrained, UNTRAINED)
    gain_names = [gain_measure(name) for name in UNITS]
    baselines["zero"] = {name: Estimates.exact(np.zeros(n_layers)) for name in gain_names}
    curve = LayerCurve(
        measures={name: estimates[:n_layers] for name, estimates in model.items()},
        baselines=baselines,
        units=UNITS | RANGE_UNITS | dict.fromkeys(gain_names, DIFFERENCE_UNIT),
        sample=sample,
    )
    return curve.with_answers(lambda: _answers(test, by_series, n_layers, split.seeds))


def _answers(
    test: TreeDataset, by_series: Mapping[str, StructuralScores], n_layers: int, seeds: Sequence[int]
) -> Iterator[Answer]:
    """The scores of each test sentence: `correct` is the proportion of its edges found, UUAS is pooled over edges.

    The context-free baselines are the layers above the last one.
    """
    for index, recorded_input in enumerate(test.inputs):
        sentence = recorded_input.text.segments[0]
        item = {"item": sentence.id or str(recorded_input.example_index + 1), "text": sentence.text}
        for series, scores in by_series.items():
            n_edges = int(scores.n_edges[index])
            by_layer = scores.correct_edges.shape[1] > 1
            for layer, run in np.ndindex(*scores.correct_edges.shape[1:]):
                correct_edges = float(scores.correct_edges[index, layer, run])
                values = {
                    name: float(array[index, layer, run])
                    for name, array in (
                        ("root correct", scores.root_correct),
                        (DISTANCE, scores.distance_spearman),
                        (DEPTH, scores.depth_spearman),
                    )
                }
                yield item | {
                    "series": series if layer < n_layers else CONTEXT_FREE_BASELINES[layer - n_layers],
                    "layer": layer if by_layer and layer < n_layers else None,
                    "seed": seeds[run] if series != LINEAR_CHAIN else None,
                    "edges": n_edges,
                    "correct edges": int(correct_edges),
                    "correct": correct_edges / n_edges if n_edges else None,
                    **{name: value if np.isfinite(value) else None for name, value in values.items()},
                }


def _sample(train: TreeDataset, test: TreeDataset, legacy: bool) -> dict[str, int]:
    """Sizes of the training and test data, and of what was skipped."""
    n_words = [int(scored_word_mask(recorded_input, legacy=legacy).sum()) for recorded_input in test.inputs]
    sizes = {
        "training sentences": len(train.inputs),
        "test sentences": len(test.inputs),
        "test edges": sum(max(0, n - 1) for n in n_words),
    }
    for name, dataset in (("training", train), ("test", test)):
        sizes |= {f"skipped {name} sentences ({reason})": count for reason, count in dataset.skipped.items()}
    return sizes


def _select_layers(data: tuple[TreeDataset, TreeDataset], layers: Sequence[int]) -> tuple[TreeDataset, TreeDataset]:
    return data[0].select_layers(layers), data[1].select_layers(layers)


def _measure(scores: StructuralScores, seed: int) -> Measures:
    return scores.measures(seed=seed) | scores.ranges()


def _broadcast(measures: Measures, index: int, size: int) -> Measures:
    """The estimates of one layer as a baseline of all layers or ranks."""
    return {name: estimates[index : index + 1].broadcast_to((size,)) for name, estimates in measures.items()}


def _measure_ranks(
    scores: Sequence[StructuralScores], seed: int, half: Sequence[StructuralScores] = ()
) -> list[Measures]:
    """For each layer, (rank,) scores and their differences to the last rank on the same sentences.

    With scores of probes fitted on half of the training data, also how the differences change with the second half.
    """
    measures = [
        _measure(rank_scores, seed)
        | score_differences(rank_scores, scores[-1], seed=seed, is_reference=rank_scores is scores[-1])
        for rank_scores in scores
    ]
    for index, half_scores in enumerate(half[:-1]):
        changes = ((scores[index] - scores[-1]) - (half_scores - half[-1])).measures_over_seeds(seed=seed)
        measures[index] |= {change_measure(DIFFERENCES[name]): change for name, change in changes.items()}
    if half:
        measures[-1] |= dict.fromkeys(CHANGES, Estimates.empty(half[-1].correct_edges.shape[1]))
    by_layer = {name: Estimates.stack([by_rank[name] for by_rank in measures], axis=1) for name in measures[0]}
    n_layers = scores[0].correct_edges.shape[1]
    return [{name: estimates[layer] for name, estimates in by_layer.items()} for layer in range(n_layers)]


def score_differences(
    scores: StructuralScores, reference: StructuralScores, *, seed: int, is_reference: bool
) -> Measures:
    """(layer,) differences to the reference scores, with intervals over the differences; NaN for the reference itself.

    Every score is a mean over sentences, so the differences can be scored like the scores.
    """
    if is_reference:
        undefined = np.full(scores.correct_edges.shape, np.nan)
        differences = replace(
            scores,
            correct_edges=undefined,
            n_edges=np.zeros_like(scores.n_edges),
            distance_spearman=undefined,
            root_correct=undefined,
            depth_spearman=undefined,
        )
    else:
        differences = scores - reference
    return {DIFFERENCES[name]: estimates for name, estimates in differences.measures(seed=seed).items()}


def _build_arcs(test: TreeDataset, predict: PredictTree, n_examples: int, legacy: bool) -> Arcs:
    """Predicted and gold trees of the first test sentences with at least five words, for the first seed."""
    indices = [index for index, length in enumerate(test.lengths) if length > 4][:n_examples]
    indices = indices or list(range(min(n_examples, len(test.inputs))))
    return Arcs(sentences=tuple(_build_diagram(test, index, predict(index)[0][0, 0], legacy) for index in indices))


def _build_diagram(test: TreeDataset, index: int, distances: Array, legacy: bool) -> ArcDiagram:
    recorded_input = test.inputs[index]
    is_scored = scored_word_mask(recorded_input, legacy=legacy)
    words = np.flatnonzero(is_scored).tolist()
    edges = [(words[a], words[b]) for a, b in spanning_trees(distances[np.ix_(is_scored, is_scored)]).tolist()]
    relations = word_annotations(recorded_input, "relations")
    gold = [
        Arc(start=governor, end=word, label=relations[word] or "")
        for word, governor in enumerate(gold_governors(recorded_input))
        if governor != ROOT and is_scored[word]
    ]
    arcs = [Arc(start=a, end=b, weight=float(distances[a, b])) for a, b in sorted(edges)]
    return ArcDiagram(words=recorded_input.text.words, arcs=tuple(arcs), gold=tuple(gold))


def _with_context_free(dataset: TreeDataset, legacy: bool, seed: int) -> TreeDataset:
    """The dataset with the context-free baselines as two extra layers."""
    embeddings = [np.array(states[0]) for states in dataset.states]
    extra_layers = context_free_states(embeddings, count_self_twice=legacy, seed=seed)
    return replace(dataset, states=dataset.states.with_extra_layers(extra_layers))


def context_free_states(embeddings: Sequence[Array], *, count_self_twice: bool = False, seed: int = 0) -> list[Array]:
    """(2, word, width) states of each sentence, in the order of `CONTEXT_FREE_BASELINES`, from (word, width) ones.

    `count_self_twice` counts a word twice in its average, as in the released code.
    """
    projections = random_lstm(embeddings, seed=seed)
    return [
        np.stack([decay_average(states, count_self_twice=count_self_twice), projection])
        for states, projection in zip(embeddings, projections, strict=True)
    ]


def decay_average(states: Array, *, count_self_twice: bool = False) -> Array:
    """(word, width) averages over the sentence with weights 2 ** -|i - j|."""
    positions = np.arange(len(states))
    weights = 0.5 ** np.abs(positions[:, None] - positions)
    if count_self_twice:
        np.fill_diagonal(weights, 2.0)
    weights /= weights.sum(1, keepdims=True)
    return (weights.astype(np.float32) @ states.astype(np.float32)).astype(np.float32)


def random_lstm(embeddings: Sequence[Array], *, seed: int = 0) -> list[Array]:
    """(word, width) outputs of a random bidirectional LSTM layer with half the width in each direction."""
    width = embeddings[0].shape[-1]
    by_length: dict[int, list[int]] = defaultdict(list)
    for index, states in enumerate(embeddings):
        by_length[len(states)].append(index)
    outputs: list[Array] = [np.empty(0)] * len(embeddings)
    with torch.random.fork_rng(devices=[]), torch.inference_mode():
        torch.manual_seed(seed)
        lstm = torch.nn.LSTM(width, (width + 1) // 2, bidirectional=True, batch_first=True)
        for indices in by_length.values():
            batch = torch.from_numpy(np.stack([embeddings[index] for index in indices]).astype(np.float32))
            for index, output in zip(indices, lstm(batch)[0].numpy(), strict=True):
                outputs[index] = output[:, :width]
    return outputs
