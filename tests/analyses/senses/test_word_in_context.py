"""senses/word_in_context on planted senses: perfect in the layer that has them, at chance in the other."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import planted
import planted_senses
from bertology.analyses import registry
from bertology.analyses.probing.train_test_split import TrainTestSplit
from bertology.analyses.run import RunInputs, run_analysis
from bertology.analyses.senses.word_in_context.pairs import build_pair_splits, pair_cosines, sample_pairs
from bertology.analyses.word_senses.occurrences import sense_occurrences
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.read import as_corpus, load_corpus, read
from bertology.encoder.load import load
from bertology.encoder.token_batch import RecordedInput
from bertology.errors import Refusal
from bertology.recording.recording import Recording
from bertology.recording.sites import resolve_sites
from bertology.results.shapes import LayerCurve

NAME = "senses/word_in_context"


def curve(recording: Recording, **options: Any) -> LayerCurve:
    data = planted_senses.run(NAME, recording, **options).data
    assert isinstance(data, LayerCurve)
    return data


def test_planted_senses_are_separated_in_their_layer() -> None:
    data = curve(planted_senses.recording(planted_senses.corpus(n_sentences=40), None, planted_senses.sense_direction))
    accuracy, auc = data.measures["accuracy"], data.measures["ROC AUC"]
    assert accuracy.value[1] == auc.value[1] == 1.0
    for chance in (accuracy[0], data.baselines["shuffled labels"]["accuracy"][1]):
        assert chance.low < 0.5 < chance.high
    assert abs(auc.value[0] - 0.5) < 0.2
    assert data.baselines["majority class"]["accuracy"].value[0] == 0.5
    assert data.baselines["same word form"]["accuracy"].value[0] == 0.5
    assert data.baselines["last four layers"]["accuracy"].value[0] == 1.0


@pytest.mark.parametrize("seed", range(5))
def test_pairs_are_balanced_by_lemma_and_from_different_documents(seed: int) -> None:
    occurrences = sense_occurrences(
        planted_senses.recording(planted_senses.corpus(n_sentences=30, first_sense=0.7), None)
    )
    pairs = sample_pairs(occurrences, np.arange(len(occurrences)), np.random.default_rng(seed))
    kinds = Counter(zip(occurrences.lemmas[pairs.first].tolist(), pairs.same_sense.tolist(), strict=True))
    assert len(kinds) == 4 and len(set(kinds.values())) == 1 and min(kinds.values()) > 5
    np.testing.assert_array_equal(occurrences.lemmas[pairs.first], occurrences.lemmas[pairs.second])
    np.testing.assert_array_equal(occurrences.senses[pairs.first] == occurrences.senses[pairs.second], pairs.same_sense)
    assert (occurrences.documents[pairs.first] != occurrences.documents[pairs.second]).all()
    for kind in (True, False):
        used = np.concatenate([pairs.first[pairs.same_sense == kind], pairs.second[pairs.same_sense == kind]])
        assert len(set(used.tolist())) == len(used)


def test_no_document_is_in_training_and_test_pairs() -> None:
    splits = build_pair_splits(
        planted_senses.recording(planted_senses.corpus(), None),
        None,
        TrainTestSplit(train_fraction=0.5, n_seeds=3),
        analysis_name=NAME,
    )
    documents = splits.test.documents
    for split in splits.pair_splits:
        train, test = (set(documents[pairs.first]) | set(documents[pairs.second]) for pairs in split)
        assert not train & test


def test_cosines_are_those_of_concatenated_layers() -> None:
    occurrences = sense_occurrences(
        planted_senses.recording(planted_senses.corpus(), *[planted_senses.sense_direction] * 7, noise=1.0)
    )
    pairs = sample_pairs(occurrences, np.arange(len(occurrences)), np.random.default_rng(0))
    vectors = occurrences.examples.features.astype(float)
    wide = np.concatenate(list(vectors[-4:]), -1)
    for index, view in ((2, vectors[2]), (7, wide)):
        first, second = view[pairs.first], view[pairs.second]
        cosine = (first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
        np.testing.assert_allclose(pair_cosines(occurrences, pairs)[index], cosine)


WIC = "".join(f"{word}\tN\t1-0\tw{n} {word} w{n + 1}\t{word}s w{n}\n" for n in range(20) for word in ("bank", "plant"))
GOLD = "".join("T\nF\n" for _ in range(20))


def test_pairs_of_a_wic_corpus_are_scored(tmp_path: Path) -> None:
    (tmp_path / "train.data.txt").write_text(WIC, "utf-8")
    (tmp_path / "train.gold.txt").write_text(GOLD, "utf-8")
    corpus = read(tmp_path / "train.data.txt")

    def hidden(recorded: RecordedInput) -> planted.FloatArray:
        generator = np.random.default_rng(recorded.tokens.ids.tolist())
        states = generator.normal(size=(2, len(recorded.tokens), 6))
        sentence = recorded.text.segments[0]
        target = 1 + sentence.marked_words["target"][0]
        # In the last layer the vectors of a pair are equal or opposite.
        pair, _, number = sentence.id.rpartition("-")
        vector = np.random.default_rng(int(pair.rpartition("-")[2])).normal(size=6)
        states[1, target] = vector if sentence.label == "T" or number == "1" else -vector
        return states

    recording = planted.make_recording(corpus, [[planted.uniform_head]], hidden)
    data = curve(recording.with_sites(resolve_sites(["hidden.words"])))
    assert data.measures["accuracy"].value[1] == 1.0
    assert data.measures["accuracy"].value[0] < 0.8
    assert data.sample == {"training pairs": 20, "test pairs": 20, "splits": 5}
    assert data.measures["accuracy"].interval == "bootstrap" and data.measures["ROC AUC"].interval == "range"
    with pytest.raises(Refusal, match="WiC"):
        curve(planted_senses.recording(Corpus(corpus.examples[:1], name="half a pair"), None, None))


def test_the_threshold_can_come_from_another_corpus(tmp_path: Path) -> None:
    (tmp_path / "train.data.txt").write_text(WIC, "utf-8")
    (tmp_path / "train.gold.txt").write_text(GOLD, "utf-8")
    inputs = RunInputs(load_corpus("english"), load("tiny"), random_baseline=False)
    data = run_analysis(registry.get(NAME), inputs, {"train_corpus": str(tmp_path), "n_seeds": 2}).data
    assert isinstance(data, LayerCurve)
    assert data.sample["training pairs"] == 40
    assert data.measures["accuracy"].n[0] > 20


def test_a_corpus_without_pairs_is_refused() -> None:
    for corpus in (as_corpus(["nothing marked"]), Corpus(())):
        with pytest.raises(Refusal, match="no training and test pairs"):
            curve(planted_senses.recording(corpus, None, None))
    one_sense = Corpus(
        tuple(Example(example.segments) for example in planted_senses.corpus(n_sentences=20, first_sense=1.0)),
        name="one sense",
    )
    with pytest.raises(Refusal, match="no training and test pairs"):
        curve(planted_senses.recording(one_sense, None, None))
    with pytest.raises(Refusal, match="--n-seeds"):
        curve(planted_senses.recording(planted_senses.corpus(), None, None), n_seeds=0)


def test_answers_have_the_accuracy_of_each_layer() -> None:
    recording = planted_senses.recording(
        planted_senses.corpus(n_sentences=40), None, planted_senses.sense_direction, noise=1.0
    )
    data = curve(recording)
    answers = data.answers()

    def mean_correct(**condition: object) -> float:
        return float(np.mean([a["correct"] for a in answers if all(a[key] == v for key, v in condition.items())]))

    for layer, expected in enumerate(data.measures["accuracy"].value):
        found = mean_correct(series="model", representation=f"layer {layer}")
        assert found == pytest.approx(expected, abs=1e-6)
    for name in ("majority class", "same word form"):
        assert mean_correct(series=name) == pytest.approx(data.baselines[name]["accuracy"].value[0], abs=1e-6)
    assert all((a["gold"] == a["prediction"]) == bool(a["correct"]) for a in answers)
