"""senses/disambiguation on planted senses: perfect in their layer; shuffled senses score as the most frequent one."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from types import ModuleType
from typing import Any, cast

import numpy as np
import pytest

import planted_senses
from bertology.analyses.probing.train_test_split import TrainTestSplit
from bertology.analyses.senses.disambiguation.back_off import load_back_off
from bertology.analyses.word_senses.disambiguation import SenseClassifier, disambiguate
from bertology.analyses.word_senses.occurrences import sense_occurrences, split_occurrences
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.sentence import Sentence, sentence_from_words
from bertology.errors import Refusal
from bertology.recording.recording import Recording
from bertology.results.measured_shape import gain_measure
from bertology.results.shapes import LayerCurve, Matrix

NAME = "senses/disambiguation"


def curve(recording: Recording, **options: Any) -> LayerCurve:
    data = planted_senses.run(NAME, recording, **options).data
    assert isinstance(data, LayerCurve)
    return data


def test_planted_senses_are_separated_in_their_layer() -> None:
    data = curve(planted_senses.recording(planted_senses.corpus(), None, planted_senses.sense_direction))
    accuracy = data.measures["accuracy"]
    assert accuracy.value[1] == 1.0
    assert accuracy.low[0] < 0.5 < accuracy.high[0]
    assert data.baselines["last four layers"]["accuracy"].value[0] == 1.0
    assert data.baselines["embedding layer"]["accuracy"].value[1] == accuracy.value[0]
    assert data.baselines["random sense"]["accuracy"].value[0] == 0.5
    assert data.baselines["upper bound (senses seen in training)"]["accuracy"].value[0] == 1.0
    shuffled = data.baselines["shuffled senses"]["accuracy"][1]
    assert shuffled.low < 0.5 < shuffled.high


def test_shuffled_senses_give_the_score_of_the_most_frequent_sense() -> None:
    corpus = planted_senses.corpus(n_sentences=60, first_sense=0.8)
    generator = np.random.default_rng(3)
    has_second_sense = {lemma: generator.permutation(60) >= 48 for lemma in ("bank", "plant")}
    counts: Counter[str] = Counter()

    def shuffle(sentence: Sentence) -> Sentence:
        lemma = next(sense for sense in sentence.senses or () if sense).partition("%")[0]
        shuffled = f"{lemma}%{int(has_second_sense[lemma][counts[lemma]])}"
        counts[lemma] += 1
        return replace(sentence, senses=tuple(sense and shuffled for sense in sentence.senses or ()))

    # The hidden states encode the senses before shuffling.
    recording = planted_senses.recording(corpus, planted_senses.sense_direction, planted_senses.sense_direction)
    relabelled = corpus.map_sentences(shuffle)
    inputs = tuple(
        replace(recorded, text=example.text_inputs[0])
        for recorded, example in zip(recording.inputs, relabelled, strict=True)
    )
    data = curve(replace(recording, corpus=relabelled, inputs=inputs), k=15, clip_k=False)
    most_frequent = data.baselines["most frequent sense"]["accuracy"][1]
    assert most_frequent.value == pytest.approx(0.8, abs=0.06)
    assert data.measures["accuracy"].value[1] == pytest.approx(most_frequent.value, abs=0.03)


def test_vectors_without_context_give_the_most_frequent_sense() -> None:
    recording = planted_senses.recording(planted_senses.corpus(first_sense=0.7), lambda _: 0, lambda _: 0, noise=0.0)
    data = curve(recording)
    np.testing.assert_array_equal(
        data.measures["accuracy"].value, data.baselines["most frequent sense"]["accuracy"].value
    )


def test_each_of_several_gold_senses_counts_as_right() -> None:
    def with_further_senses(sentence: Sentence) -> Sentence:
        """Both senses of the lemma are gold, the wrong one first in every sentence."""
        other = {sense: f"{sense[:-1]}{1 - int(sense[-1])}" for sense in sentence.senses or () if sense}
        return replace(
            sentence,
            senses=sentence.senses,
            further_senses=tuple((other[sense],) if sense else () for sense in sentence.senses or ()),
        )

    corpus = planted_senses.corpus()
    noise = planted_senses.recording(corpus, None, None)
    assert curve(noise).measures["accuracy"].value[1] < 0.8
    several = corpus.map_sentences(with_further_senses)
    inputs = tuple(
        replace(recorded, text=example.text_inputs[0]) for recorded, example in zip(noise.inputs, several, strict=True)
    )
    data = curve(replace(noise, corpus=several, inputs=inputs))
    assert (data.measures["accuracy"].value == 1.0).all()
    assert data.baselines["random sense"]["accuracy"].value[0] == 1.0


@pytest.mark.parametrize(("k", "method"), [(1, "knn"), (5, "knn"), (1, "centroid")])
def test_predictions_equal_those_of_a_simple_implementation(k: int, method: Any) -> None:
    recording = planted_senses.recording(
        planted_senses.corpus(), None, planted_senses.sense_direction, planted_senses.sense_direction, noise=1.5
    )
    splits = split_occurrences(recording, None, TrainTestSplit(train_fraction=0.6, n_seeds=2), analysis_name=NAME)
    correctness = disambiguate(splits, SenseClassifier(method, k, clip_k=False), None)
    occurrences = sense_occurrences(recording)
    features, lemmas, senses = occurrences.examples.features, occurrences.lemmas, occurrences.senses
    representations = [*features, np.concatenate([features[1], features[2]], -1)]
    for (train, _), split_correctness in zip(splits.splits, correctness, strict=True):
        for representation, vectors in enumerate(representations):
            for row, index in enumerate(split_correctness.test_indices.tolist()):
                candidates = [other for other in train.tolist() if lemmas[other] == lemmas[index]]
                is_correct = predict_sense(vectors, index, candidates, senses, k, method) == senses[index]
                assert bool(split_correctness.by_vectors[representation, row]) == is_correct
    assert not set(splits.splits[0][0]) & set(splits.splits[0][1])


def predict_sense(vectors: Any, index: int, candidates: list[int], senses: Any, k: int, method: str) -> str:
    """The sense of one occurrence by its nearest candidates, or by the nearest centroid of their senses."""

    def similarity(vector: Any) -> float:
        first, second = vectors[index].astype(float), vector.astype(float)
        return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))

    if method == "centroid":
        means = {
            sense: np.mean([vectors[other] for other in candidates if senses[other] == sense], 0)
            for sense in {senses[other] for other in candidates}
        }
        return max(means, key=lambda sense: similarity(means[sense]))
    nearest = sorted(candidates, key=lambda other: -similarity(vectors[other]))[:k]
    return Counter(senses[other] for other in nearest).most_common(1)[0][0]


def test_no_document_is_in_both_splits() -> None:
    splits = split_occurrences(
        planted_senses.recording(planted_senses.corpus(), None, None),
        None,
        TrainTestSplit(n_seeds=3),
        analysis_name=NAME,
    )
    for train, test in splits.splits:
        assert not set(splits.train.documents[train]) & set(splits.test.documents[test])


def corpus_of_unseen_words() -> Corpus:
    """Each of three words is in one document only, so that no word is in both training and test data."""
    examples: list[Example] = []
    for number, word in enumerate(("bank", "banks", "match")):
        for _ in range(4):
            sentence = sentence_from_words([f"w{len(examples)}", word])
            senses = (None, f"{word.removesuffix('s')}%1")
            examples.append(Example((replace(sentence, senses=senses, document=f"d{number}"),)))
    return Corpus(tuple(examples), name="planted")


def test_words_not_in_training_use_the_fallback() -> None:
    recording = planted_senses.recording(corpus_of_unseen_words(), None, None)
    data = curve(recording, fallback="none")
    assert data.measures["proportion unseen"].value[0] == 1.0
    assert data.measures["F1"].value[0] == 0.0
    assert data.measures["accuracy"].value[0] == 0.0
    assert np.isnan(data.measures["accuracy (ambiguous words)"].value[0])
    assert data.measures["accuracy (ambiguous words)"].n[0] == 0
    with_fallback = curve(recording, n_seeds=8).measures
    # The sense of `bank` and `banks` is found by its name if one of them is in training.
    assert 0 < with_fallback["accuracy"].value[0] == with_fallback["accuracy (unseen words)"].value[0] < 1
    assert with_fallback["F1"].value[0] == 0.0
    # `match` is never in training when it is tested: its sense must not come from the test split.
    by_word = planted_senses.run(NAME, recording, n_seeds=8, group_by="lemma").data
    assert isinstance(by_word, Matrix)
    assert by_word.measures["accuracy"].value[0, by_word.column_names.index("match")] == 0.0


def test_f1_ignores_unseen_words() -> None:
    seen = planted_senses.corpus(("bank",), n_sentences=20).examples
    corpus = Corpus((*seen, *corpus_of_unseen_words().examples[-4:]), name="planted")
    data = curve(
        planted_senses.recording(corpus, planted_senses.sense_direction, planted_senses.sense_direction),
        fallback="none",
        n_seeds=10,
    )
    p_seen = 1 - data.measures["proportion unseen"].value[1]
    assert 0 < p_seen < 1
    assert data.measures["F1"].value[1] == pytest.approx(2 * p_seen / (1 + p_seen))
    assert data.measures["accuracy"].value[1] == pytest.approx(p_seen)


def test_scores_by_part_of_speech_and_lemma() -> None:
    recording = planted_senses.recording(planted_senses.corpus(), None, planted_senses.sense_direction)
    for group_by, columns in (("pos", ("NOUN",)), ("lemma", ("bank", "plant"))):
        data = planted_senses.run(NAME, recording, group_by=group_by).data
        assert isinstance(data, Matrix)
        assert (data.row_names, data.column_names) == (("layer 0", "layer 1", "last four layers"), columns)
        np.testing.assert_array_equal(data.measures["accuracy"].value[1:], 1.0)


def test_candidates_can_be_limited_to_the_same_part_of_speech() -> None:
    """The sense of the word follows from its tag; the vectors are noise."""
    tagged = planted_senses.corpus(("light",)).map_sentences(
        lambda sentence: replace(
            sentence, pos=tuple("ADJ" if sense == "light%1" else "NOUN" for sense in sentence.senses or ())
        )
    )
    recording = planted_senses.recording(tagged, None, None)
    assert curve(recording).measures["accuracy"].value[0] < 0.9
    assert curve(recording, same_pos=True).measures["accuracy"].value[0] == 1.0


class FakeSense(str):
    """A sense whose key is its text."""


class FakeWord:
    def senses(self) -> list[FakeSense]:
        return [FakeSense("match%1"), FakeSense("match%2")]


def install_fake_wordnet(monkeypatch: pytest.MonkeyPatch) -> None:
    package, compat, keys = ModuleType("wn"), ModuleType("wn.compat"), ModuleType("wn.compat.sensekey")

    class Error(Exception):
        pass

    class Wordnet:
        def __init__(self, lexicon: str) -> None:
            if lexicon != "installed:1":
                raise Error("no lexicon found")

        def words(self, form: str, pos: str | None = None) -> list[FakeWord]:
            return [FakeWord()] if form == "match" and pos in (None, "n") else []

    package.__dict__.update(Error=Error, Wordnet=Wordnet, compat=compat)
    keys.__dict__["sense_key_getter"] = {"installed:1": str}.get
    compat.__dict__["sensekey"] = keys
    for name, module in (("wn", package), ("wn.compat", compat), ("wn.compat.sensekey", keys)):
        monkeypatch.setitem(sys.modules, name, module)


def test_fallback_to_the_first_sense_of_wordnet(monkeypatch: pytest.MonkeyPatch) -> None:
    install_fake_wordnet(monkeypatch)
    factory = load_back_off("wordnet", "installed:1")
    assert factory is not None
    senses = [factory([])(lemma, pos) for lemma, pos in (("match", "NOUN"), ("match", "VERB"), ("bank", ""))]
    assert senses == ["match%1", None, None]
    with pytest.raises(Refusal, match="wn download missing:1"):
        load_back_off("wordnet", "missing:1")
    data = curve(
        planted_senses.recording(corpus_of_unseen_words(), None, None),
        fallback="wordnet",
        wordnet_lexicon="installed:1",
        n_seeds=8,
    )
    assert 0 < data.measures["accuracy (unseen words)"].value[0] < 1


def test_missing_wn_package_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wn", cast("Any", None))
    with pytest.raises(Refusal, match="pip install wn"):
        load_back_off("wordnet", "omw-en:1.4")


def test_invalid_options_and_corpora_are_refused() -> None:
    recording = planted_senses.recording(planted_senses.corpus(n_sentences=2), None, None)
    with pytest.raises(Refusal, match="--k"):
        curve(recording, k=0)
    with pytest.raises(Refusal, match="--n-seeds"):
        curve(recording, n_seeds=0)
    untagged = planted_senses.corpus().map_sentences(lambda sentence: replace(sentence, pos=None))
    with pytest.raises(Refusal, match="parts of speech"):
        planted_senses.run(NAME, planted_senses.recording(untagged, None, None), group_by="pos")
    one_document = Corpus(planted_senses.corpus(n_sentences=2).examples[:1], name="one document")
    with pytest.raises(Refusal, match="two documents"):
        curve(planted_senses.recording(one_document, None, None))


def test_what_the_second_half_of_the_training_data_adds() -> None:
    """Clearly separated senses need one example each; of many lemmas with few examples more are seen with more data."""
    gain = gain_measure("accuracy")
    flat = curve(planted_senses.recording(planted_senses.corpus(), None, planted_senses.sense_direction, noise=0.05))
    assert flat.measures[gain].value[1] == 0
    lemmas = tuple(f"lemma{number}" for number in range(40))
    corpus = planted_senses.corpus(lemmas, n_sentences=8)
    learning = curve(planted_senses.recording(corpus, None, planted_senses.sense_direction, noise=0.05), n_seeds=3)
    assert learning.measures[gain].low[1] > 0.02
    assert learning.baselines["zero"][gain].value.tolist() == [0, 0]
    # Both senses are equally frequent: the one of the held-out documents is then the rarer one in training.
    most_frequent = learning.baselines["most frequent sense"][gain]
    assert most_frequent.value[0] == most_frequent.value[1] < 0
    assert learning.sample["training sentences"] == learning.sample["training occurrences"]


def test_halves_are_of_training_sentences_only() -> None:
    recording = planted_senses.recording(planted_senses.corpus(), None, planted_senses.sense_direction)
    splits = split_occurrences(recording, None, TrainTestSplit(), analysis_name=NAME)
    half = splits.with_half_training()
    for (train, test), (half_train, half_test) in zip(splits.splits, half.splits, strict=True):
        assert set(half_train.tolist()) < set(train.tolist()) and len(half_train) == len(train) // 2
        np.testing.assert_array_equal(test, half_test)
