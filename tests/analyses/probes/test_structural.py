"""Planted trees are found, noise gives chance; the scores are those of the reference method, written out again here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.stats import rankdata

import planted
import planted_trees
from bertology.analyses.probes.structural import difference_of, structural
from bertology.analyses.run import Subject, run
from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import Corpus, Item, of_sentences
from bertology.corpus.sentence import ROOT, Sentence, sentence
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.maths.structural_probe import Member, Probes
from bertology.measures.division import Division
from bertology.measures.probes import tree_lessons as tree_lessons_module
from bertology.measures.probes.contextless import contextless, decayed
from bertology.measures.probes.tree_lessons import Batches, TreeLessons, gold_edges, scored_words, tree_lessons
from bertology.measures.probes.tree_probes import Fitting, parts_of
from bertology.measures.probes.tree_scores import (
    DEPTH,
    DISTANCE,
    ROOT_FOUND,
    UUAS,
    Scores,
    by_chain,
    by_probes,
    scores_of,
)
from bertology.recording.recorder import record
from bertology.recording.recording import Recording
from bertology.results.shapes import Arcs, Curve, LayerCurve

SCORES = (UUAS, DISTANCE, ROOT_FOUND, DEPTH)
CORPUS = planted_trees.short_sentences()
QUICK = {"seeds": 2, "epochs": 60, "batch": 5}  # small batches: there are few sentences
Numbers = NDArray[Any]


def measured(recording: Recording, **options: Any) -> LayerCurve:
    found = run(structural, Subject(recording=recording), {**QUICK, **options}).data
    assert isinstance(found, LayerCurve)
    return found


@pytest.fixture(scope="module")
def planted_curve() -> LayerCurve:
    return measured(planted_trees.recording_of(CORPUS, planted_trees.noise, planted_trees.mixed))


def all_of(recording: Recording) -> TreeLessons:
    derived = recording.with_derived([planted_trees.SITE])
    return tree_lessons(derived, range(len(recording)))


def test_states_that_embed_the_tree_give_every_score_exactly() -> None:
    lessons = all_of(planted_trees.recording_of(CORPUS, planted_trees.embedded))
    width = planted_trees.WIDTH
    same = torch.eye(width).repeat(1, 2)[None]
    probes = Probes((Member("distance", width, 0), Member("depth", width, 0)), same, torch.zeros(0), torch.zeros(0))
    found = scores_of(lessons, by_probes(probes, lessons, width)).measures(seed=0)
    assert found[UUAS].value[0] == 1.0
    np.testing.assert_allclose(found[DISTANCE].value[0], 1.0, atol=1e-6)
    np.testing.assert_allclose(found[DEPTH].value[0], 1.0, atol=1e-6)
    assert found[ROOT_FOUND].value[0] == 1.0


def test_a_planted_tree_is_found(planted_curve: LayerCurve) -> None:
    values = {name: planted_curve.measures[name].value[1] for name in SCORES}
    assert values[UUAS] > 0.99
    assert values[ROOT_FOUND] > 0.99
    assert values[DISTANCE] > 0.9  # gold distances tie, those of a fitted probe never quite do
    assert values[DEPTH] > 0.85


def test_noise_gives_chance(planted_curve: LayerCurve) -> None:
    chain = planted_curve.baselines["linear chain"]
    for name in (UUAS, DISTANCE):
        assert planted_curve.measures[name].value[0] < chain[name].value[0]
    assert abs(planted_curve.measures[DEPTH].value[0]) < 0.2
    assert planted_curve.measures[DISTANCE].value[0] < 0.45  # a word is nearest to itself, whatever the states
    assert planted_curve.measures[ROOT_FOUND].value[0] < 0.4


def test_the_baselines_are_there(planted_curve: LayerCurve) -> None:
    names = {"linear chain", "embedding layer", "decayed embeddings", "projected embeddings"}
    assert set(planted_curve.baselines) == names
    for name in SCORES:
        assert planted_curve.baselines["embedding layer"][name].value[1] == planted_curve.measures[name].value[0]
    assert "left out" not in planted_curve.units[UUAS]


# The reference method again, a sentence at a time, with scipy.


def reference(lessons: TreeLessons, weights: Numbers, depth_weights: Numbers) -> dict[str, float]:
    hits = edges = roots = 0
    by_length: dict[str, dict[int, list[float]]] = {DISTANCE: {}, DEPTH: {}}
    for place, entry in enumerate(lessons.entries):
        tree = entry.input.parts[0]
        heads, tags = tree.heads or (), tree.pos or ()
        states = lessons.states[place][1].astype(np.float64)
        predicted = np.square((states[:, None] - states[None]) @ weights).sum(-1)
        depths = np.square(states @ depth_weights).sum(-1)
        gold = _paths(heads)
        words = [word for word, tag in enumerate(tags) if tag != "PUNCT"]
        truth = _spanning(gold[np.ix_(words, words)])
        hits += len(truth & _spanning(predicted[np.ix_(words, words)]))
        edges += len(truth)
        roots += heads[min(words, key=lambda word: depths[word])] == ROOT
        if 5 <= len(heads) <= 50:
            rows = [_rank_correlation(a, b) for a, b in zip(predicted, gold, strict=True)]
            by_length[DISTANCE].setdefault(len(heads), []).extend(rows)
            by_length[DEPTH].setdefault(len(heads), []).append(_rank_correlation(depths, gold[heads.index(ROOT)]))
    averages = {name: float(np.mean([np.mean(some) for some in found.values()])) for name, found in by_length.items()}
    return {UUAS: hits / edges, ROOT_FOUND: roots / len(lessons.entries), **averages}


def _rank_correlation(first: Numbers, second: Numbers) -> float:
    return float(np.corrcoef(rankdata(first), rankdata(second))[0, 1])


def _paths(heads: tuple[int, ...]) -> Numbers:
    count = len(heads)
    found = np.where(np.eye(count, dtype=bool), 0.0, np.inf)
    for word, head in enumerate(heads):
        if head != ROOT:
            found[word, head] = found[head, word] = 1
    for middle in range(count):
        found = np.minimum(found, found[:, middle, None] + found[None, middle])
    return found


def _spanning(distances: Numbers) -> set[tuple[int, int]]:
    tree = minimum_spanning_tree(np.triu(distances + 1e-9, 1)).tocoo()
    return {(int(min(e)), int(max(e))) for e in zip(tree.row, tree.col, strict=True)}


def test_the_scores_are_those_of_the_reference_method() -> None:
    corpus = corpus_named("english", limit=60)
    recording = record(load("tiny"), corpus, ["hidden.words"])
    found = measured(recording, seeds=1, epochs=3, rank=8, batch=20)
    learned, tested = parts_of(recording, None, Division("", 0, 0.7, 0), purpose="test")
    probes = Fitting(1, 3, 0.01, 20, False, 0).fit(learned, ("distance", "depth"), [8], "cpu")
    weights = probes.weights[1].double().numpy()
    expected = reference(tested, weights[:, :8], weights[:, 8:])
    for name in SCORES:
        np.testing.assert_allclose(found.measures[name].value[1], expected[name], atol=1e-6, err_msg=name)


def test_the_chain_is_the_chain() -> None:
    lessons = all_of(planted_trees.recording_of(CORPUS, planted_trees.noise))
    found = scores_of(lessons, by_chain(lessons))
    hits = edges = first = 0
    for entry in lessons.entries:
        words = np.flatnonzero(scored_words(entry, legacy=False))
        gold = gold_edges(entry, scored_words(entry, legacy=False))
        hits += sum(b == a + 1 for a, b in gold.tolist())
        edges += len(gold)
        first += (entry.input.parts[0].heads or ())[words[0]] == ROOT
    assert found.hits.sum() == hits
    assert found.edges.sum() == edges
    assert found.root.sum() == first


def tree(words: str, heads: tuple[int, ...], xpos: tuple[str, ...] | None = None, **layers: Any) -> Sentence:
    relations = tuple("root" if head == ROOT else "dep" for head in heads)
    return replace(sentence(words.split()), heads=heads, relations=relations, xpos=xpos, **layers)


def entry_of(given: Sentence) -> planted.Entry:
    return planted.entries_of(of_sentences([given], name="one"))[0]


def test_punctuation_that_carries_words_is_bridged() -> None:
    # a <- , -> b: without the comma a and b are two steps apart, and joined by the shortest link there is
    given = tree("a , b c", (1, 3, 1, ROOT), pos=("X", "PUNCT", "X", "X"))
    entry = entry_of(given)
    words = scored_words(entry, legacy=False)
    assert words.tolist() == [True, False, True, True]
    assert gold_edges(entry, words).tolist() in ([[0, 1], [0, 2]], [[0, 1], [1, 2]])
    assert len(gold_edges(entry, words)) == 2


def test_punctuation_by_tag() -> None:
    given = tree("-LRB- $ , x", (3, 3, 3, ROOT), ("-LRB-", "$", ",", "NN"), pos=("PUNCT", "SYM", "PUNCT", "X"))
    assert scored_words(entry_of(given), legacy=False).tolist() == [False, True, False, True]
    assert scored_words(entry_of(given), legacy=True).tolist() == [False, True, False, True]
    assert scored_words(entry_of(replace(given, pos=None)), legacy=False).tolist() == [False, True, False, True]
    hyphen = tree("a - b", (2, 2, ROOT), ("NN", "HYPH", "NN"), pos=("X", "PUNCT", "X"))
    assert scored_words(entry_of(hyphen), legacy=False).tolist() == [True, False, True]
    assert scored_words(entry_of(hyphen), legacy=True).tolist() == [True, True, True]
    bare = replace(given, pos=None, xpos=None, relations=("punct", "dep", "punct", "root"))
    assert scored_words(entry_of(bare), legacy=False).tolist() == [False, True, False, True]
    with pytest.raises(Refusal, match="XPOS"):
        scored_words(entry_of(bare), legacy=True)


def test_ranks_are_swept_in_one_layer() -> None:
    recording = planted_trees.recording_of(CORPUS, planted_trees.noise, planted_trees.mixed)
    found = run(structural, Subject(recording=recording), {**QUICK, "show": "ranks"}).data
    assert isinstance(found, Curve)
    assert found.points.tolist() == [1, 2, 4, 8, 16]
    values = found.measures[UUAS].value
    assert values[-1] > 0.98 > values[0]
    assert found.baselines["embedding layer"][UUAS].value.max() < values[-1]
    alone = measured(recording, rank=4).measures[UUAS].value[1]
    np.testing.assert_allclose(values[2], alone, atol=1e-9)
    for name in SCORES:
        scores, less = found.measures[name], found.measures[f"{name} less full rank"]
        np.testing.assert_allclose(less.value[:-1], scores.value[:-1] - scores.value[-1], atol=1e-9, err_msg=name)
        assert np.isnan(less.value[-1]) and less.n[-1] == 0 and (less.n[:-1] == scores.n[:-1]).all()
    for name in (UUAS, DISTANCE):  # one dimension may hold depths, but not the distances of a tree
        assert found.measures[f"{name} less full rank"].high[0] < 0


def test_scores_of_the_same_sentences_are_compared_by_their_differences() -> None:
    """Half of the sentences are hard for both; the second finds one edge fewer in each."""
    hits = np.where(np.arange(60) % 2, 10.0, 4.0)[:, None, None]
    level = np.full((60, 1, 1), 0.5)
    second = Scores(hits, np.full(60, 12.0), level, level, level, np.full(60, 13))
    first = replace(second, hits=hits - 1)
    less = difference_of(first, second, seed=0, same=False)["UUAS less full rank"]
    assert (less.value, less.low, less.high) == (pytest.approx(-1 / 12),) * 3
    own = [scores.measures(seed=0)[UUAS] for scores in (first, second)]
    assert own[0].high[0] > own[1].low[0]  # their own intervals cannot tell them apart


def test_predicted_trees_are_arcs() -> None:
    recording = planted_trees.recording_of(CORPUS, planted_trees.noise, planted_trees.mixed)
    options = {**QUICK, "show": "trees", "layer": 1, "examples": 3}
    found = run(structural, Subject(recording=recording), options).data
    assert isinstance(found, Arcs)
    assert len(found.sentences) == 3
    right = total = 0
    for diagram in found.sentences:
        gold = {frozenset((arc.start, arc.end)) for arc in diagram.gold}
        right += sum(frozenset((arc.start, arc.end)) in gold for arc in diagram.arcs)
        total += len(diagram.arcs)
        assert all(arc.label for arc in diagram.gold)
    assert right >= total - 1


def test_what_cannot_be_used_is_left_out_and_told() -> None:
    one = tree("Yes", (ROOT,), pos=("X",))
    corpus = Corpus((*CORPUS.items[:40], Item((one,)), Item((one, one), "pair"), Item((sentence(["no", "tree"]),))))
    found = measured(planted_trees.recording_of(corpus, planted_trees.noise), epochs=2)
    for reason in ("1 of one word", "1 pairs of texts", "1 without a tree of one root"):
        assert reason in found.units[UUAS]


@pytest.mark.parametrize("kept", [1, 2])
def test_too_few_sentences_are_refused(kept: int) -> None:
    recording = planted_trees.recording_of(replace(CORPUS, items=CORPUS.items[:kept]), planted_trees.noise)
    with pytest.raises(Refusal, match="to train on"):
        measured(recording)


def test_sentences_of_one_word_are_refused_with_a_reason() -> None:
    ones = of_sentences([tree(word, (ROOT,), pos=("X",)) for word in ("a", "b", "c", "d")], name="ones")
    with pytest.raises(Refusal, match="of one word"):
        measured(planted_trees.recording_of(ones, planted_trees.noise))


def test_impossible_options_are_refused() -> None:
    recording = planted_trees.recording_of(CORPUS, planted_trees.noise)
    for options, words in (
        ({"seeds": 0}, "seeds"),
        ({"epochs": 0}, "epochs"),
        ({"layer": 5, "show": "trees"}, "layer"),
    ):
        with pytest.raises(Refusal, match=words):
            measured(recording, **options)
    with pytest.raises(Refusal, match="--train"):
        measured(recording, train="english")


def test_another_corpus_can_train() -> None:
    encoder = load("tiny")
    tested = replace(CORPUS, items=CORPUS.items[:20])
    options = {"train": "english", "train_limit": 40, "seeds": 1, "epochs": 2}
    for half in (False, True):
        found = run(structural, Subject(tested, encoder), {**options, "half": half}).data
        assert isinstance(found, LayerCurve)
        assert "trained on 4" in found.units[UUAS] or "trained on 3" in found.units[UUAS]
        assert "tested on 20" in found.units[UUAS]
        assert "random weights" in found.baselines


def test_batches_are_the_same_kept_and_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    lessons = all_of(planted_trees.recording_of(CORPUS, planted_trees.noise, planted_trees.mixed))
    kept = Batches(lessons, 7, "cpu")
    monkeypatch.setattr(tree_lessons_module, "KEPT", 0)
    made = Batches(lessons, 7, "cpu")
    assert kept[0].states is kept[0].states
    assert made[0].states is not made[0].states
    assert made[0].trees is made[0].trees
    assert sorted(size for batch in made for size in batch.trees.sizes) == sorted(lessons.lengths)
    for one, other in zip(kept, made, strict=True):
        torch.testing.assert_close(one.states, other.states, rtol=0, atol=0)


def test_layers_alone_are_kept_where_all_together_are_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    lessons = all_of(planted_trees.recording_of(CORPUS, planted_trees.noise, planted_trees.mixed))
    lessons = replace(lessons, states=lessons.states.with_more([10 + states[:1] for states in lessons.states]))
    layers = len(lessons.states[0])
    one = 4 * sum(lessons.lengths) * planted_trees.WIDTH
    whole = Batches(lessons, 7, "cpu")
    shared = whole.of_layers([1])
    assert shared[0].states.data_ptr() == whole[0].states[1].data_ptr()
    monkeypatch.setattr(tree_lessons_module, "KEPT", one)
    large = Batches(lessons, 7, "cpu")
    assert large[0].states is not large[0].states
    for chosen in [*([layer] for layer in range(layers)), [0, layers - 1]]:
        some = large.of_layers(chosen)
        assert (some[0].states is some[0].states) == (len(chosen) == 1)
        assert some[0].trees is large[0].trees
        for own, expected in zip(some, whole, strict=True):
            torch.testing.assert_close(own.states, expected.states[chosen], rtol=0, atol=0)


def test_probes_are_the_same_with_layers_kept_together_and_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    lessons = all_of(planted_trees.recording_of(CORPUS, planted_trees.noise, planted_trees.mixed))
    fitting = Fitting(seeds=2, epochs=6, rate=0.01, batch=5, legacy=False, seed=0)
    together = fitting.fit(lessons, ("distance", "depth"), [3], "cpu")
    monkeypatch.setattr(tree_lessons_module, "KEPT", 4 * sum(lessons.lengths) * planted_trees.WIDTH)
    alone = fitting.fit(lessons, ("distance", "depth"), [3], "cpu")
    # Where states lie may change a last digit of a product, as fitting a probe alone does.
    torch.testing.assert_close(together.weights, alone.weights, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(together.losses, alone.losses)
    assert torch.equal(together.epochs, alone.epochs)


def test_layers_are_chosen_before_and_after_rows_are_added() -> None:
    lessons = all_of(planted_trees.recording_of(CORPUS, planted_trees.noise, planted_trees.mixed))
    more = [10 + states[:2] for states in lessons.states]
    few = lessons.states.of_layers([1]).with_more(more)
    np.testing.assert_array_equal(few[3], np.concatenate([lessons.states[3][1:2], more[3]]))
    np.testing.assert_array_equal(few.of_layers([2, 0])[3], np.stack([more[3][1], lessons.states[3][1]]))
    np.testing.assert_array_equal(few.of([5, 3]).of_layers([1])[1], more[3][:1])
    np.testing.assert_array_equal(few.of_layers([2, 0]).of_layers([1])[3], lessons.states[3][1:2])


def test_legacy_changes_the_decay() -> None:
    states = np.eye(3, dtype=np.float32)
    np.testing.assert_allclose(decayed(states)[0], np.array([1, 0.5, 0.25]) / 1.75, atol=1e-6)
    np.testing.assert_allclose(decayed(states, twice=True)[0], np.array([2, 0.5, 0.25]) / 2.75, atol=1e-6)


def test_projections_do_not_depend_on_company() -> None:
    generator = np.random.default_rng(0)
    several = [generator.normal(size=(length, 7)).astype(np.float32) for length in (3, 5, 3, 2)]
    together = contextless(several)
    for states, found in zip(several, together, strict=True):
        assert found.shape == (2, *states.shape)
        np.testing.assert_allclose(contextless([states])[0], found, atol=1e-6)
    assert not np.allclose(together[0][1], contextless(several, seed=1)[0][1])
