"""Claims about trained probes, on planted states and at the training sizes of reports: no false `fails` or `holds`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import planted
import planted_probes
import planted_trees
from bertology.analyses import registry
from bertology.analyses.run import RunInputs, run_analysis
from bertology.arrays import Array, FloatArray
from bertology.claims.catalogue import all_claims
from bertology.claims.judge import judge
from bertology.claims.verdict import Verdict
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.sentence import sentence_from_words
from bertology.encoder.token_batch import RecordedInput

SIZES = (42, 150, 500)
WIDTH = 128
N_TEST = 60
BEYOND_ORDER = "trees-beyond-order"
CLAIMS = {claim.id: claim for claim in all_claims()}


@cache
def treebank(n_sentences: int) -> Corpus:
    """The trees of the built-in corpus with random words, as many as needed."""
    generator = np.random.default_rng(0)
    trees = list(planted_trees.short_sentences(300).sentences)
    examples: list[Example] = []
    for number in range(n_sentences):
        tree = trees[number % len(trees)]
        words = [f"w{word}" for word in generator.integers(5000, size=len(tree))]
        annotations = {"governors": tree.governors, "relations": tree.relations, "pos": tree.pos}
        examples.append(Example((replace(sentence_from_words(words), document=f"d{number}", **annotations),)))
    return Corpus(tuple(examples), name="planted trees")


def embed(points: Array, recorded: RecordedInput, noise: float) -> FloatArray:
    """(word, WIDTH) points after a fixed linear map, with noise by sentence."""
    linear_map = np.random.default_rng(7).normal(size=(points.shape[1], WIDTH)) / np.sqrt(points.shape[1])
    generator = np.random.default_rng(recorded.tokens.ids.tolist())
    return points @ linear_map + noise * generator.normal(size=(len(points), WIDTH))


def tree_states(recorded: RecordedInput) -> FloatArray:
    """States that encode the tree."""
    return embed(planted_trees.exact_states(recorded), recorded, 0.5)


def order_states(recorded: RecordedInput) -> FloatArray:
    """States that encode the order of words only: the probe can find a chain, and nothing better."""
    return embed(np.tri(recorded.tokens.n_words, planted_trees.WIDTH, -1), recorded, 0.2)


def structural_verdict(
    states: Callable[[RecordedInput], FloatArray],
    n_train: int,
    *,
    n_test: int = N_TEST,
    n_seeds: int = 2,
    claim: str = BEYOND_ORDER,
) -> Verdict:
    def hidden(recorded: RecordedInput) -> FloatArray:
        layers = np.zeros((3, len(recorded.tokens), WIDTH))
        layers[:, recorded.tokens.word_ids >= 0] = states(recorded)
        return layers

    recording = planted.make_recording(treebank(n_train + n_test), [[planted.uniform_head]] * 2, hidden)
    options = {"train_fraction": n_train / (n_train + n_test), "n_seeds": n_seeds, "rank": 32}
    result = run_analysis(registry.get("probes/structural"), RunInputs(recording=recording), options)
    return judge(CLAIMS[claim], dict.fromkeys(CLAIMS[claim].all_runs, result))


@pytest.mark.slow
@pytest.mark.parametrize("n_train", SIZES)
def test_a_planted_tree_never_fails_and_is_found_with_enough_sentences(n_train: int) -> None:
    verdict = structural_verdict(tree_states, n_train)
    assert verdict.outcome == "holds" or (n_train < 500 and verdict.outcome == "inconclusive"), verdict


@pytest.mark.slow
@pytest.mark.parametrize("n_train", SIZES)
def test_word_order_alone_never_holds_and_few_sentences_decide_nothing(n_train: int) -> None:
    verdict = structural_verdict(order_states, n_train)
    assert verdict.outcome in {"fails", "inconclusive"}, verdict
    if n_train == min(SIZES):
        assert verdict.outcome == "inconclusive"


@pytest.mark.slow
def test_word_order_alone_fails_with_enough_sentences() -> None:
    # Three seeds, as in a report: two halves of the training data say little about what more of it would add.
    assert structural_verdict(order_states, 500, n_test=400, n_seeds=3).outcome == "fails"


def word_verdict(claim: str, n_train: int, *, encoded: bool) -> Verdict:
    corpus = planted_probes.make_corpus(n_train + N_TEST, vocabulary=200)
    layer = planted_probes.tag if encoded else None
    recording = planted_probes.make_recording(corpus, None, layer, layer)
    options = {"train_fraction": n_train / (n_train + N_TEST), "n_seeds": 2}
    result = run_analysis(registry.get("probes/word"), RunInputs(recording=recording), options)
    return judge(CLAIMS[claim], dict.fromkeys(CLAIMS[claim].all_runs, result))


@pytest.mark.parametrize("n_train", SIZES)
@pytest.mark.parametrize("claim", ["linear-probes-are-selective", "labels-are-cheap-to-describe"])
def test_encoded_labels_hold_and_noise_never_does(claim: str, n_train: int) -> None:
    assert word_verdict(claim, n_train, encoded=True).outcome == "holds"
    assert word_verdict(claim, n_train, encoded=False).outcome in {"fails", "inconclusive"}
