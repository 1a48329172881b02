"""`probes/surface_baselines`: planted surface cues are found, and other features stay at chance."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.analyses import registry
from bertology.analyses.run import RunInputs, run_analysis
from bertology.corpus.corpus import Corpus, corpus_from_sentences
from bertology.corpus.example import Example
from bertology.corpus.read import load_corpus
from bertology.corpus.sentence import sentence_from_words
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.results.shapes import Table

N_EXAMPLES = 400
LENGTH, WORDS, BIGRAMS = "sentence length", "bag of words", "bag of bigrams"


def table(corpus: Corpus) -> Table:
    data = run_analysis(registry.get("probes/surface_baselines"), RunInputs(corpus, load("tiny"))).data
    assert isinstance(data, Table)
    return data


def make_corpus(cue: str, *, split: bool = False) -> Corpus:
    """Labels that follow from the length, from a word, from the order of two words, or from nothing."""
    generator = np.random.default_rng(0)
    examples: list[Example] = []
    for number in range(N_EXAMPLES):
        label = bool(generator.integers(2))
        words = [f"w{index}" for index in generator.integers(50, size=6)]
        if cue == LENGTH:
            words = words[: 5 + label]
        if cue == WORDS:
            words[int(generator.integers(6))] = "yes" if label else "no"
        if cue == BIGRAMS:
            words[2:4] = ["left", "right"] if label else ["right", "left"]
        source = ("test" if number % 5 == 0 else "train") if split else ""
        examples.append(Example((sentence_from_words(words),), label=str(label), source=source))
    return Corpus(tuple(examples), name=cue)


@pytest.mark.parametrize("cue", [LENGTH, WORDS, BIGRAMS, "none"])
@pytest.mark.parametrize("split", [True, False])
def test_only_the_planted_cue_is_found(cue: str, split: bool) -> None:
    data = table(make_corpus(cue, split=split))
    # The number of words and the words in a bag are not independent, nor are words and bigrams.
    dependent = {(LENGTH, WORDS), (WORDS, BIGRAMS)}
    for row, value in zip(data.row_names, data.measures["accuracy"].value, strict=True):
        if row == cue:
            assert value > 0.95, row
        elif (cue, row) not in dependent:
            assert 0.3 < value < 0.7, row
    shuffled = data.baselines["shuffled labels"]["accuracy"].value
    assert ((shuffled > 0.25) & (shuffled < 0.75)).all()
    if split:
        assert data.measures["accuracy"].n[0] == data.sample["test sentences"] == N_EXAMPLES / 5


def test_a_bag_of_words_does_not_solve_tasks_of_word_order() -> None:
    for task in ("bigram_shift", "odd_man_out"):
        data = table(load_corpus(f"tasks:{task}:english"))
        accuracy = data.measures["accuracy"][data.row_names.index(WORDS)]
        assert accuracy.low < 0.5 < accuracy.high, task


def test_corpora_with_fewer_than_two_labels_are_refused() -> None:
    unlabelled = corpus_from_sentences([sentence_from_words(["a", str(n)]) for n in range(5)])
    with pytest.raises(Refusal, match="label"):
        table(unlabelled)
    same_label = Corpus(tuple(Example(example.segments, label="same") for example in unlabelled), name="same")
    with pytest.raises(Refusal, match="at least two labels"):
        table(same_label)
