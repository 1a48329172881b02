"""`probes/structural`: planted trees are found, noise is at chance, and scores equal those of a reference method."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.stats import rankdata

import planted_trees
from bertology.analyses.probes.structural.analysis import (
    context_free_states,
    decay_average,
    score_differences,
    structural,
)
from bertology.analyses.probes.structural.scores import (
    DEPTH,
    DISTANCE,
    ROOT_ACCURACY,
    UUAS,
    StructuralScores,
    chain_baseline,
    probe_predictor,
    score_trees,
)
from bertology.analyses.probing.train_test_split import TrainTestSplit
from bertology.analyses.run import RunInputs, run_analysis
from bertology.analyses.structural_probing.dataset import TreeDataset, gold_edges, scored_word_mask, tree_dataset
from bertology.analyses.structural_probing.probe import ProbeSpec, StructuralProbes
from bertology.analyses.structural_probing.training import StructuralProbeConfig, split_trees
from bertology.arrays import Array
from bertology.corpus.corpus import Corpus, corpus_from_sentences
from bertology.corpus.example import Example
from bertology.corpus.read import load_corpus
from bertology.corpus.sentence import ROOT, Sentence, sentence_from_words
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.recording.recorder import record
from bertology.recording.recording import Recording
from bertology.results.illustrations import Arcs
from bertology.results.measured_shape import change_measure, gain_measure
from bertology.results.shapes import Curve, LayerCurve

SCORES = (UUAS, DISTANCE, ROOT_ACCURACY, DEPTH)
CORPUS = planted_trees.short_sentences()
QUICK = {"n_seeds": 2, "epochs": 60, "batch_size": 5}  # small batches, as there are few sentences


def curve(recording: Recording, **options: Any) -> LayerCurve:
    data = run_analysis(structural, RunInputs(recording=recording), {**QUICK, **options}).data
    assert isinstance(data, LayerCurve)
    return data


def planted_recording() -> Recording:
    return planted_trees.make_recording(CORPUS, planted_trees.noise_states, planted_trees.mapped_states)


@pytest.fixture(scope="module")
def planted_curve() -> LayerCurve:
    return curve(planted_recording())


def all_trees(recording: Recording) -> TreeDataset:
    return tree_dataset(recording.with_sites([planted_trees.SITE]), range(len(recording)))


def test_states_that_embed_the_tree_exactly_have_perfect_scores() -> None:
    dataset = all_trees(planted_trees.make_recording(CORPUS, planted_trees.exact_states))
    width = planted_trees.WIDTH
    specs = (ProbeSpec("distance", width, 0), ProbeSpec("depth", width, 0))
    identity = torch.eye(width).repeat(1, 2)[None]
    probes = StructuralProbes(specs, identity, torch.zeros(0), torch.zeros(0))
    measures = score_trees(dataset, probe_predictor(probes, dataset, width)).measures(seed=0)
    assert measures[UUAS].value[0] == 1.0
    np.testing.assert_allclose(measures[DISTANCE].value[0], 1.0, atol=1e-6)
    np.testing.assert_allclose(measures[DEPTH].value[0], 1.0, atol=1e-6)
    assert measures[ROOT_ACCURACY].value[0] == 1.0


def test_a_planted_tree_is_found(planted_curve: LayerCurve) -> None:
    values = {name: planted_curve.measures[name].value[1] for name in SCORES}
    assert values[UUAS] > 0.99
    assert values[ROOT_ACCURACY] > 0.99
    assert values[DISTANCE] > 0.9  # gold distances have ties, predicted ones do not
    assert values[DEPTH] > 0.85


def test_noise_is_at_chance(planted_curve: LayerCurve) -> None:
    chain = planted_curve.baselines["linear chain"]
    for name in (UUAS, DISTANCE):
        assert planted_curve.measures[name].value[0] < chain[name].value[0]
    assert abs(planted_curve.measures[DEPTH].value[0]) < 0.2
    assert planted_curve.measures[DISTANCE].value[0] < 0.45  # a word is nearest to itself, whatever the states
    assert planted_curve.measures[ROOT_ACCURACY].value[0] < 0.4


def test_depth_is_found_in_wide_states_of_few_sentences() -> None:
    """With batches of similar length, which differ in depth, the correlation is 0.71 and the root accuracy 0.21."""
    corpus = planted_trees.sentences_of_all_lengths(440, seed=0)
    dataset = all_trees(planted_trees.make_recording(corpus, planted_trees.wide_states))
    train, test = dataset.subset(range(340)), dataset.subset(range(340, 440))
    probes = StructuralProbeConfig().fit(train, ("distance", "depth"), [64], [0, 1, 2])
    measures = score_trees(test, probe_predictor(probes, test, 64)).measures(seed=0)
    assert measures[DEPTH].value[0] > 0.8
    assert measures[ROOT_ACCURACY].value[0] > 0.35


def test_all_baselines_are_included(planted_curve: LayerCurve) -> None:
    names = {"linear chain", "embedding layer", "decayed embeddings", "random BiLSTM embeddings", "zero"}
    assert set(planted_curve.baselines) == names
    for name in SCORES:
        assert planted_curve.baselines["embedding layer"][name].value[1] == planted_curve.measures[name].value[0]
    assert not any("skipped" in name for name in planted_curve.sample)


def test_the_gain_from_twice_the_training_data_is_small_for_a_planted_tree_and_none_for_noise(
    planted_curve: LayerCurve,
) -> None:
    gain = planted_curve.measures[gain_measure(UUAS)]
    assert gain.interval == "bootstrap" and (gain.n == planted_curve.sample["test sentences"]).all()
    assert gain.high[1] < 0.1  # 72 training sentences suffice for 16 dimensions
    assert gain.low[0] < 0 < gain.high[0]
    for name in SCORES:
        assert (planted_curve.baselines["zero"][gain_measure(name)].value == 0).all()
        embeddings = planted_curve.baselines["embedding layer"][gain_measure(name)]
        assert embeddings.value[1] == planted_curve.measures[gain_measure(name)].value[0]


def test_gains_are_differences_of_the_scores_on_the_same_sentences() -> None:
    generator = np.random.default_rng(0)
    shape = (40, 2, 3)

    def scores() -> StructuralScores:
        correlations = [
            np.where(generator.random((40, 1, 1)) < 0.2, np.nan, generator.normal(size=shape)) for _ in "12"
        ]
        edges, roots = generator.integers(5, size=shape).astype(float), generator.random(shape)
        return StructuralScores(
            edges, np.full(40, 5.0), correlations[0], roots, correlations[1], lengths, tuple(range(40)), 40
        )

    lengths = generator.integers(5, 9, size=40)
    difference = scores() - scores()
    over_sentences, over_seeds = difference.measures(seed=0), difference.measures_over_seeds(seed=0)
    for name in SCORES:
        np.testing.assert_allclose(over_sentences[name].value, over_seeds[name].value, atol=1e-12, err_msg=name)
        assert (over_seeds[name].low < over_seeds[name].value).all()
        assert (over_seeds[name].value < over_seeds[name].high).all()


def test_ranges_over_seeds_contain_the_scores(planted_curve: LayerCurve) -> None:
    for name in (UUAS, ROOT_ACCURACY):
        over_seeds = planted_curve.measures[f"{name} (range over seeds)"]
        assert over_seeds.interval == "range" and (over_seeds.n == QUICK["n_seeds"]).all()
        assert (over_seeds.low <= over_seeds.value).all() and (over_seeds.value <= over_seeds.high).all()
        np.testing.assert_allclose(over_seeds.value, planted_curve.measures[name].value, atol=1e-9)


# The reference method, one sentence at a time, with SciPy.


def reference_scores(dataset: TreeDataset, weights: Array, depth_weights: Array) -> dict[str, float]:
    n_correct = n_edges = n_roots = 0
    by_length: dict[str, dict[int, list[float]]] = {DISTANCE: {}, DEPTH: {}}
    for index, recorded in enumerate(dataset.inputs):
        sentence = recorded.text.segments[0]
        governors, tags = sentence.governors or (), sentence.pos or ()
        states = dataset.states[index][1].astype(np.float64)
        predicted = np.square((states[:, None] - states[None]) @ weights).sum(-1)
        depths = np.square(states @ depth_weights).sum(-1)
        gold = path_lengths(governors)
        words = [word for word, tag in enumerate(tags) if tag != "PUNCT"]
        gold_tree = spanning_tree(gold[np.ix_(words, words)])
        n_correct += len(gold_tree & spanning_tree(predicted[np.ix_(words, words)]))
        n_edges += len(gold_tree)
        n_roots += governors[min(words, key=lambda word: depths[word])] == ROOT
        if 5 <= len(governors) <= 50:
            rows = [rank_correlation(a, b) for a, b in zip(predicted, gold, strict=True)]
            by_length[DISTANCE].setdefault(len(governors), []).extend(rows)
            depth = rank_correlation(depths, gold[governors.index(ROOT)])
            by_length[DEPTH].setdefault(len(governors), []).append(depth)
    averages = {
        name: float(np.mean([np.mean(values) for values in lengths.values()])) for name, lengths in by_length.items()
    }
    return {UUAS: n_correct / n_edges, ROOT_ACCURACY: n_roots / len(dataset.inputs), **averages}


def rank_correlation(first: Array, second: Array) -> float:
    return float(np.corrcoef(rankdata(first), rankdata(second))[0, 1])


def path_lengths(governors: tuple[int, ...]) -> Array:
    n_words = len(governors)
    paths = np.where(np.eye(n_words, dtype=bool), 0.0, np.inf)
    for word, governor in enumerate(governors):
        if governor != ROOT:
            paths[word, governor] = paths[governor, word] = 1
    for middle in range(n_words):
        paths = np.minimum(paths, paths[:, middle, None] + paths[None, middle])
    return paths


def spanning_tree(distances: Array) -> set[tuple[int, int]]:
    tree = minimum_spanning_tree(np.triu(distances + 1e-9, 1)).tocoo()
    return {(int(min(edge)), int(max(edge))) for edge in zip(tree.row, tree.col, strict=True)}


def test_scores_equal_those_of_the_reference_method() -> None:
    recording = record(load("tiny"), load_corpus("english", limit=60), ["hidden.words"])
    data = curve(recording, n_seeds=1, epochs=3, rank=8, batch_size=20)
    train, test = split_trees(recording, None, TrainTestSplit(), analysis_name="test")
    probes = StructuralProbeConfig(epochs=3).fit(train, ("distance", "depth"), [8], [0])
    weights = probes.weights[1].double().numpy()
    expected = reference_scores(test, weights[:, :8], weights[:, 8:])
    for name in SCORES:
        np.testing.assert_allclose(data.measures[name].value[1], expected[name], atol=1e-6, err_msg=name)


def test_the_chain_baseline_links_adjacent_words() -> None:
    dataset = all_trees(planted_trees.make_recording(CORPUS, planted_trees.noise_states))
    scores = score_trees(dataset, chain_baseline(dataset))
    n_correct = n_edges = n_roots = 0
    for recorded in dataset.inputs:
        is_scored = scored_word_mask(recorded, legacy=False)
        gold = gold_edges(recorded, is_scored)
        n_correct += sum(b == a + 1 for a, b in gold.tolist())
        n_edges += len(gold)
        n_roots += (recorded.text.segments[0].governors or ())[np.flatnonzero(is_scored)[0]] == ROOT
    assert scores.correct_edges.sum() == n_correct
    assert scores.n_edges.sum() == n_edges
    assert scores.root_correct.sum() == n_roots


def test_ranks_are_compared_in_one_layer() -> None:
    recording = planted_recording()
    data = run_analysis(structural, RunInputs(recording=recording), {**QUICK, "show": "ranks"}).data
    assert isinstance(data, Curve)
    assert data.x.tolist() == [1, 2, 4, 8, 16]
    assert data.sample["layer"] == 1
    values = data.measures[UUAS].value
    assert values[-1] > 0.98 > values[0]
    assert data.baselines["embedding layer"][UUAS].value.max() < values[-1]
    np.testing.assert_allclose(values[2], curve(recording, rank=4).measures[UUAS].value[1], atol=1e-9)
    np.testing.assert_allclose(values[-1], curve(recording, rank="full").measures[UUAS].value[1], atol=1e-9)
    for name in SCORES:
        scores, differences = data.measures[name], data.measures[f"{name} - {name} (full rank)"]
        expected = scores.value[:-1] - scores.value[-1]
        np.testing.assert_allclose(differences.value[:-1], expected, atol=1e-9, err_msg=name)
        assert np.isnan(differences.value[-1]) and differences.n[-1] == 0
        assert (differences.n[:-1] == scores.n[:-1]).all()
        change = data.measures[change_measure(f"{name} - {name} (full rank)")]
        assert np.isfinite(change.value[:-1]).all() and np.isnan(change.value[-1])
        assert (change.low[:-1] <= change.value[:-1]).all() and (change.value[:-1] <= change.high[:-1]).all()
    for name in (UUAS, DISTANCE):  # one dimension can encode depths, but not the distances of a tree
        assert data.measures[f"{name} - {name} (full rank)"].high[0] < 0


def test_scores_on_the_same_sentences_are_compared_by_their_differences() -> None:
    """Half of the sentences are hard for both probes; the second finds one edge fewer in each."""
    correct_edges = np.where(np.arange(60) % 2, 10.0, 4.0)[:, None, None]
    constant = np.full((60, 1, 1), 0.5)
    reference = StructuralScores(
        correct_edges, np.full(60, 12.0), constant, constant, constant, np.full(60, 13, np.int64), tuple(range(60)), 60
    )
    worse = replace(reference, correct_edges=correct_edges - 1)
    difference = score_differences(worse, reference, seed=0, is_reference=False)[f"{UUAS} - {UUAS} (full rank)"]
    assert (difference.value, difference.low, difference.high) == (pytest.approx(-1 / 12),) * 3
    separate = [scores.measures(seed=0)[UUAS] for scores in (worse, reference)]
    assert separate[0].high[0] > separate[1].low[0]  # separate intervals overlap


def test_models_that_skip_other_sentences_are_resampled_together() -> None:
    """A skipped sentence is a row that is drawn and not measured; scores, n and gains are those of the others."""
    generator = np.random.default_rng(0)
    edges, roots = generator.integers(8, size=(50, 1, 3)).astype(float), generator.random((50, 1, 3))
    correlations = generator.random((2, 50, 1, 3))
    lengths = generator.integers(5, 9, size=50)
    every = StructuralScores(
        edges, np.full(50, 8.0), correlations[0], roots, correlations[1], lengths, tuple(range(50)), 50
    )
    used = np.delete(np.arange(50), [4, 30])
    skipping = StructuralScores(
        edges[used], np.full(48, 8.0), correlations[0][used], roots[used], correlations[1][used], lengths[used],
        tuple(used.tolist()), 50,
    )  # fmt: skip
    alone = replace(skipping, rows=tuple(range(48)), n_rows=48)
    for name in SCORES:
        first, second, third = (scores.measures(seed=0)[name] for scores in (every, skipping, alone))
        assert first.n == 50 and second.n == third.n == 48 and first.n_rows == second.n_rows == 50
        np.testing.assert_allclose(second.value, third.value)
        assert first.resampled is not None and second.resampled is not None and third.resampled is not None
        together, apart = (
            np.corrcoef(first.resampled[:, 0], s[:, 0])[0, 1] for s in (second.resampled, third.resampled)
        )
        assert together > 0.9 and abs(apart) < 0.15, name
    assert skipping.measures_over_seeds(seed=0) == alone.measures_over_seeds(seed=0)


def test_the_baseline_of_one_layer_is_resampled_with_the_others(planted_curve: LayerCurve) -> None:
    for name in SCORES:
        for baseline in ("linear chain", "embedding layer"):
            assert np.isfinite(planted_curve.paired_differences[baseline][name].value).all()
            assert planted_curve.kept_resamples[baseline, name].n_rows[0] == planted_curve.sample["test sentences"]


def test_predicted_trees_are_arcs() -> None:
    options = {**QUICK, "show": "trees", "layer": -1, "n_examples": 3}
    data = run_analysis(structural, RunInputs(recording=planted_recording()), options).data
    assert isinstance(data, Arcs)
    assert len(data.sentences) == 3
    n_correct = n_arcs = 0
    for diagram in data.sentences:
        gold = {frozenset((arc.start, arc.end)) for arc in diagram.gold}
        n_correct += sum(frozenset((arc.start, arc.end)) in gold for arc in diagram.arcs)
        n_arcs += len(diagram.arcs)
        assert all(arc.label for arc in diagram.gold)
    assert n_correct >= n_arcs - 1


def single_word(word: str) -> Sentence:
    return replace(sentence_from_words([word]), governors=(ROOT,), relations=("root",), pos=("X",))


def test_skipped_sentences_are_counted_by_reason() -> None:
    yes = single_word("Yes")
    no_tree = sentence_from_words(["no", "tree"])
    examples = (*CORPUS.examples[:40], Example((yes,)), Example((yes, yes), "pair"), Example((no_tree,)))
    data = curve(planted_trees.make_recording(Corpus(examples), planted_trees.noise_states), epochs=2)
    for reason in ("one word", "text pairs", "no tree with one root"):
        assert sum(count for name, count in data.sample.items() if f"({reason})" in name) == 1


@pytest.mark.parametrize("n_sentences", [1, 2])
def test_too_few_sentences_are_refused(n_sentences: int) -> None:
    corpus = replace(CORPUS, examples=CORPUS.examples[:n_sentences])
    with pytest.raises(Refusal, match="training and"):
        curve(planted_trees.make_recording(corpus, planted_trees.noise_states))


def test_sentences_of_one_word_are_refused_with_a_reason() -> None:
    corpus = corpus_from_sentences([single_word(word) for word in ("a", "b", "c", "d")], name="single words")
    with pytest.raises(Refusal, match="one word"):
        curve(planted_trees.make_recording(corpus, planted_trees.noise_states))


def test_impossible_options_are_refused() -> None:
    recording = planted_trees.make_recording(CORPUS, planted_trees.noise_states)
    for options, message in (
        ({"n_seeds": 0}, "n-seeds"),
        ({"epochs": 0}, "epochs"),
        ({"rank": 0}, "rank"),
        ({"layer": 5, "show": "trees"}, "layer"),
        ({"layer": -3, "show": "trees"}, "layer"),
    ):
        with pytest.raises(Refusal, match=f"--{message}"):
            curve(recording, **options)
    with pytest.raises(Refusal, match="--train-corpus"):
        curve(recording, train_corpus="english")


def test_probes_can_be_trained_on_another_corpus() -> None:
    inputs = RunInputs(replace(CORPUS, examples=CORPUS.examples[:20]), load("tiny"))
    options = {"train_corpus": "english", "train_size": 40, "n_seeds": 1, "epochs": 2}
    for float16 in (False, True):
        data = run_analysis(structural, inputs, {**options, "float16": float16}).data
        assert isinstance(data, LayerCurve)
        assert 30 <= data.sample["training sentences"] <= 40
        assert data.sample["test sentences"] == 20
        assert "untrained model" in data.baselines


def test_the_released_code_counts_a_word_twice_in_its_average() -> None:
    states = np.eye(3, dtype=np.float32)
    np.testing.assert_allclose(decay_average(states)[0], np.array([1, 0.5, 0.25]) / 1.75, atol=1e-6)
    np.testing.assert_allclose(
        decay_average(states, count_self_twice=True)[0], np.array([2, 0.5, 0.25]) / 2.75, atol=1e-6
    )


def test_context_free_states_do_not_depend_on_other_sentences() -> None:
    generator = np.random.default_rng(0)
    embeddings = [generator.normal(size=(length, 7)).astype(np.float32) for length in (3, 5, 3, 2)]
    together = context_free_states(embeddings)
    for states, context_free in zip(embeddings, together, strict=True):
        assert context_free.shape == (2, *states.shape)
        np.testing.assert_allclose(context_free_states([states])[0], context_free, atol=1e-6)
    assert not np.allclose(together[0][1], context_free_states(embeddings, seed=1)[0][1])
