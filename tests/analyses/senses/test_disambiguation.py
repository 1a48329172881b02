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
from bertology.corpus.corpus import Corpus, Example
from bertology.corpus.sentence import Sentence, sentence_from_words
from bertology.errors import Refusal
from bertology.results.shapes import LayerCurve, Matrix

NAME = "senses/disambiguation"


def curve(recorded: Any, **options: Any) -> LayerCurve:
    result = planted_senses.run(NAME, recorded, **options).data
    assert isinstance(result, LayerCurve)
    return result


def test_planted_senses_are_separated_in_their_layer() -> None:
    result = curve(planted_senses.recording(planted_senses.corpus(), None, planted_senses.sense_direction))
    accuracy = result.measures["accuracy"]
    assert accuracy.value[1] == 1.0
    assert accuracy.low[0] < 0.5 < accuracy.high[0]
    assert result.baselines["last four layers"]["accuracy"].value[0] == 1.0
    assert result.baselines["embedding layer"]["accuracy"].value[1] == accuracy.value[0]
    assert result.baselines["random sense"]["accuracy"].value[0] == 0.5
    assert result.baselines["upper bound (senses seen in training)"]["accuracy"].value[0] == 1.0
    assert (
        result.baselines["shuffled senses"]["accuracy"][1].low
        < 0.5
        < result.baselines["shuffled senses"]["accuracy"][1].high
    )


def test_shuffled_senses_give_the_score_of_the_most_frequent_sense() -> None:
    corpus = planted_senses.corpus(n_sentences=60, first_sense=0.8)
    generator = np.random.default_rng(3)
    senses = {lemma: generator.permutation(60) >= 48 for lemma in ("bank", "plant")}
    counts: Counter[str] = Counter()

    def shuffle(own: Sentence) -> Sentence:
        lemma = next(sense for sense in own.senses or () if sense).partition("%")[0]
        sense = f"{lemma}%{int(senses[lemma][counts[lemma]])}"
        counts[lemma] += 1
        return replace(own, senses=tuple(old and sense for old in own.senses or ()))

    # The hidden states have the senses from before shuffling.
    recorded = planted_senses.recording(corpus, planted_senses.sense_direction, planted_senses.sense_direction)
    relabelled = corpus.map_sentences(shuffle)
    entries = tuple(
        replace(entry, text=item.text_inputs[0]) for entry, item in zip(recorded.inputs, relabelled, strict=True)
    )
    result = curve(replace(recorded, corpus=relabelled, inputs=entries), k=15, clip_k=False)
    frequent = result.baselines["most frequent sense"]["accuracy"][1]
    assert frequent.value == pytest.approx(0.8, abs=0.06)
    assert result.measures["accuracy"].value[1] == pytest.approx(frequent.value, abs=0.03)


def test_vectors_without_context_give_the_most_frequent_sense() -> None:
    recorded = planted_senses.recording(planted_senses.corpus(first_sense=0.7), lambda _: 0, lambda _: 0, noise=0.0)
    result = curve(recorded)
    np.testing.assert_array_equal(
        result.measures["accuracy"].value, result.baselines["most frequent sense"]["accuracy"].value
    )


@pytest.mark.parametrize(("k", "method"), [(1, "knn"), (5, "knn"), (1, "centroid")])
def test_predictions_equal_those_of_a_simple_implementation(k: int, method: Any) -> None:
    recorded = planted_senses.recording(
        planted_senses.corpus(), None, planted_senses.sense_direction, planted_senses.sense_direction, noise=1.5
    )
    splits = split_occurrences(recorded, None, TrainTestSplit("", 0, 0.6, 0), 2, analysis_name=NAME)
    for run, given in zip(
        splits.splits, disambiguate(splits, SenseClassifier(method, k, clip_k=False), None), strict=True
    ):
        own = sense_occurrences(recorded)
        stacked = [*own.examples.features, np.concatenate([own.examples.features[1], own.examples.features[2]], -1)]
        for view, vectors in enumerate(stacked):
            for number, case in enumerate(given.test_indices.tolist()):
                known = [place for place in run[0].tolist() if own.lemmas[place] == own.lemmas[case]]
                right = _predict(vectors, case, known, own.senses, k, method) == own.senses[case]
                assert bool(given.by_vectors[view, number]) == right
    assert not set(splits.splits[0][0]) & set(splits.splits[0][1])


def _predict(vectors: Any, case: int, known: list[int], senses: Any, k: int, method: str) -> str:
    def cosine(first: Any, second: Any) -> float:
        return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))

    if method == "centroid":
        means = {s: np.mean([vectors[p] for p in known if senses[p] == s], 0) for s in {senses[p] for p in known}}
        return max(means, key=lambda sense: cosine(vectors[case].astype(float), means[sense].astype(float)))
    nearest = sorted(known, key=lambda place: -cosine(vectors[case].astype(float), vectors[place].astype(float)))[:k]
    return Counter(senses[place] for place in nearest).most_common(1)[0][0]


def test_no_document_is_in_both_splits() -> None:
    splits = split_occurrences(
        planted_senses.recording(planted_senses.corpus(), None, None),
        None,
        TrainTestSplit("", 0, 0.7, 0),
        3,
        analysis_name=NAME,
    )
    for first, second in splits.splits:
        assert not set(splits.train.documents[first]) & set(splits.test.documents[second])


def unseen() -> Corpus:
    """Each of three words is in one document only, so that no split has it on both sides."""
    examples: list[Example] = []
    for number, word in enumerate(("bank", "banks", "match")):
        for _ in range(4):
            made = sentence_from_words([f"w{len(examples)}", word])
            senses = (None, f"{word.removesuffix('s')}%1")
            examples.append(Example((replace(made, senses=senses, document=f"d{number}"),)))
    return Corpus(tuple(examples), name="planted")


def test_words_not_in_training_use_the_fallback() -> None:
    recorded = planted_senses.recording(unseen(), None, None)
    result = curve(recorded, fallback="none")
    assert result.measures["proportion unseen"].value[0] == 1.0
    assert result.measures["F1"].value[0] == 0.0
    assert result.measures["accuracy"].value[0] == 0.0
    assert np.isnan(result.measures["accuracy (ambiguous words)"].value[0])
    assert result.measures["accuracy (ambiguous words)"].n[0] == 0
    backed = curve(recorded, n_seeds=8).measures
    # The sense of `bank` and `banks` is result by its name if one of them is in training.
    assert 0 < backed["accuracy"].value[0] == backed["accuracy (unseen words)"].value[0] < 1
    assert backed["F1"].value[0] == 0.0
    # `match` is never in training when it is tested: its sense must not come from the test split.
    by_word = planted_senses.run(NAME, recorded, n_seeds=8, group_by="lemma").data
    assert isinstance(by_word, Matrix)
    assert by_word.measures["accuracy"].value[0, by_word.column_names.index("match")] == 0.0


def test_f1_leaves_out_unseen_words() -> None:
    known = planted_senses.corpus(("bank",), n_sentences=20)
    both = Corpus((*known.examples, *unseen().examples[-4:]), name="planted")
    result = curve(
        planted_senses.recording(both, planted_senses.sense_direction, planted_senses.sense_direction),
        fallback="none",
        n_seeds=10,
    )
    answered = 1 - result.measures["proportion unseen"].value[1]
    assert 0 < answered < 1
    assert result.measures["F1"].value[1] == pytest.approx(2 * answered / (1 + answered))
    assert result.measures["accuracy"].value[1] == pytest.approx(answered)


def test_scores_by_part_of_speech_and_lemma() -> None:
    recorded = planted_senses.recording(planted_senses.corpus(), None, planted_senses.sense_direction)
    for group_by, columns in (("pos", ("NOUN",)), ("lemma", ("bank", "plant"))):
        result = planted_senses.run(NAME, recorded, group_by=group_by).data
        assert isinstance(result, Matrix)
        assert (result.row_names, result.column_names) == (("layer 0", "layer 1", "last four layers"), columns)
        np.testing.assert_array_equal(result.measures["accuracy"].value[1:], 1.0)


def test_candidates_with_the_same_part_of_speech() -> None:
    """The senses of the word follow from its tag, without vectors."""
    tagged = planted_senses.corpus(("light",)).map_sentences(
        lambda own: replace(own, pos=tuple("ADJ" if sense == "light%1" else "NOUN" for sense in own.senses or ()))
    )
    recorded = planted_senses.recording(tagged, None, None)
    assert curve(recorded).measures["accuracy"].value[0] < 0.9
    assert curve(recorded, same_pos=True).measures["accuracy"].value[0] == 1.0


class FakeSense(str):
    """A sense that is its own key."""


class FakeWord:
    def senses(self) -> list[FakeSense]:
        return [FakeSense("match%1"), FakeSense("match%2")]


def fake_wordnet(monkeypatch: pytest.MonkeyPatch) -> None:
    package, compat, keys = ModuleType("wn"), ModuleType("wn.compat"), ModuleType("wn.compat.sensekey")

    class Error(Exception):
        pass

    class Wordnet:
        def __init__(self, lexicon: str) -> None:
            if lexicon != "there:1":
                raise Error("no lexicon result")

        def words(self, form: str, pos: str | None = None) -> list[FakeWord]:
            return [FakeWord()] if form == "match" and pos in (None, "n") else []

    package.__dict__.update(Error=Error, Wordnet=Wordnet, compat=compat)
    keys.__dict__["sense_key_getter"] = {"there:1": str}.get
    compat.__dict__["sensekey"] = keys
    for name, module in (("wn", package), ("wn.compat", compat), ("wn.compat.sensekey", keys)):
        monkeypatch.setitem(sys.modules, name, module)


def test_fallback_to_the_first_sense_of_wordnet(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_wordnet(monkeypatch)
    first = load_back_off("wordnet", "there:1")
    assert first is not None
    assert [first([])(lemma, pos) for lemma, pos in (("match", "NOUN"), ("match", "VERB"), ("bank", ""))] == [
        "match%1",
        None,
        None,
    ]
    with pytest.raises(Refusal, match="wn download here:2"):
        load_back_off("wordnet", "here:2")
    result = curve(
        planted_senses.recording(unseen(), None, None), fallback="wordnet", wordnet_lexicon="there:1", n_seeds=8
    )
    assert 0 < result.measures["accuracy (unseen words)"].value[0] < 1


def test_missing_wn_package_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wn", cast("Any", None))
    with pytest.raises(Refusal, match="pip install wn"):
        load_back_off("wordnet", "omw-en:1.4")


def test_invalid_options_and_corpora_are_refused() -> None:
    recorded = planted_senses.recording(planted_senses.corpus(n_sentences=2), None, None)
    with pytest.raises(Refusal, match="--k"):
        curve(recorded, k=0)
    with pytest.raises(Refusal, match="--n-seeds"):
        curve(recorded, n_seeds=0)
    bare = planted_senses.corpus().map_sentences(lambda own: replace(own, pos=None))
    with pytest.raises(Refusal, match="parts of speech"):
        planted_senses.run(NAME, planted_senses.recording(bare, None, None), group_by="pos")
    one = Corpus(planted_senses.corpus(n_sentences=2).examples[:1], name="one")
    with pytest.raises(Refusal, match="two documents"):
        curve(planted_senses.recording(one, None, None))
