"""Planted senses are told apart in the layer that has them; shuffled ones are as good as the most frequent sense."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from types import ModuleType
from typing import Any, cast

import numpy as np
import pytest

import sensed
from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.sentence import Sentence, sentence
from bertology.errors import Refusal
from bertology.measures.division import Division
from bertology.measures.meaning.sense_answers import Method, answers
from bertology.measures.meaning.sense_inventory import fallback_named
from bertology.measures.meaning.sense_material import divided, occurrences
from bertology.results.shapes import LayerCurve, Matrix

NAME = "meaning/senses"


def curve(recorded: Any, **options: Any) -> LayerCurve:
    found = sensed.result(NAME, recorded, **options).data
    assert isinstance(found, LayerCurve)
    return found


def test_planted_clusters_are_separated_in_their_layer() -> None:
    found = curve(sensed.recording(sensed.corpus(), None, sensed.first))
    accuracy = found.measures["accuracy"]
    assert accuracy.value[1] == 1.0
    assert accuracy.low[0] < 0.5 < accuracy.high[0]
    assert found.baselines["last four"]["accuracy"].value[0] == 1.0
    assert found.baselines["embedding layer"]["accuracy"].value[1] == accuracy.value[0]
    assert found.baselines["random sense"]["accuracy"].value[0] == 0.5
    assert found.baselines["best possible"]["accuracy"].value[0] == 1.0
    assert (
        found.baselines["shuffled senses"]["accuracy"][1].low
        < 0.5
        < found.baselines["shuffled senses"]["accuracy"][1].high
    )


def test_shuffled_senses_give_the_score_of_the_most_frequent_sense() -> None:
    corpus = sensed.corpus(each=60, common=0.8)
    generator = np.random.default_rng(3)
    senses = {lemma: generator.permutation(60) >= 48 for lemma in ("bank", "plant")}
    counts: Counter[str] = Counter()

    def shuffle(own: Sentence) -> Sentence:
        lemma = next(sense for sense in own.senses or () if sense).partition("%")[0]
        sense = f"{lemma}%{int(senses[lemma][counts[lemma]])}"
        counts[lemma] += 1
        return replace(own, senses=tuple(one and sense for one in own.senses or ()))

    # The states know the senses that the sentences had before.
    recorded = sensed.recording(corpus, sensed.first, sensed.first)
    relabelled = corpus.map(shuffle)
    entries = tuple(
        replace(entry, input=item.inputs[0]) for entry, item in zip(recorded.entries, relabelled, strict=True)
    )
    found = curve(replace(recorded, corpus=relabelled, entries=entries), k=15, clip=False)
    frequent = found.baselines["most frequent sense"]["accuracy"][1]
    assert frequent.value == pytest.approx(0.8, abs=0.06)
    assert found.measures["accuracy"].value[1] == pytest.approx(frequent.value, abs=0.03)


def test_vectors_without_context_give_the_most_frequent_sense() -> None:
    recorded = sensed.recording(sensed.corpus(common=0.7), lambda _: 0, lambda _: 0, noise=0.0)
    found = curve(recorded)
    np.testing.assert_array_equal(
        found.measures["accuracy"].value, found.baselines["most frequent sense"]["accuracy"].value
    )


@pytest.mark.parametrize(("k", "rule"), [(1, "neighbours"), (5, "neighbours"), (1, "centroids")])
def test_the_answers_are_those_of_a_plain_restatement(k: int, rule: Any) -> None:
    recorded = sensed.recording(sensed.corpus(), None, sensed.first, sensed.first, noise=1.5)
    material = divided(recorded, None, Division("", 0, 0.6, 0), 2, purpose=NAME)
    for run, given in zip(material.runs, answers(material, Method(rule, k, clip=False), None), strict=True):
        own = occurrences(recorded)
        stacked = [*own.examples.features, np.concatenate([own.examples.features[1], own.examples.features[2]], -1)]
        for view, vectors in enumerate(stacked):
            for number, case in enumerate(given.cases.tolist()):
                known = [place for place in run[0].tolist() if own.lemma[place] == own.lemma[case]]
                right = _restated(vectors, case, known, own.sense, k, rule) == own.sense[case]
                assert bool(given.told[view, number]) == right
    assert not set(material.runs[0][0]) & set(material.runs[0][1])


def _restated(vectors: Any, case: int, known: list[int], senses: Any, k: int, rule: str) -> str:
    def cosine(first: Any, second: Any) -> float:
        return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))

    if rule == "centroids":
        means = {s: np.mean([vectors[p] for p in known if senses[p] == s], 0) for s in {senses[p] for p in known}}
        return max(means, key=lambda sense: cosine(vectors[case].astype(float), means[sense].astype(float)))
    nearest = sorted(known, key=lambda place: -cosine(vectors[case].astype(float), vectors[place].astype(float)))[:k]
    return Counter(senses[place] for place in nearest).most_common(1)[0][0]


def test_no_document_is_on_both_sides() -> None:
    material = divided(sensed.recording(sensed.corpus(), None, None), None, Division("", 0, 0.7, 0), 3, purpose=NAME)
    for first, second in material.runs:
        assert not set(material.learned.documents[first]) & set(material.tested.documents[second])


def unseen() -> Corpus:
    """Each of three words is in one document alone, so that no division has it on both sides."""
    items: list[Item] = []
    for number, word in enumerate(("bank", "banks", "match")):
        for _ in range(4):
            made = sentence([f"w{len(items)}", word])
            senses = (None, f"{word.removesuffix('s')}%1")
            items.append(Item((replace(made, senses=senses, document=f"d{number}"),)))
    return Corpus(tuple(items), name="planted")


def test_words_that_training_lacks_are_told_apart() -> None:
    recorded = sensed.recording(unseen(), None, None)
    found = curve(recorded, fallback="none")
    assert found.measures["back-offs"].value[0] == 1.0
    assert found.measures["F1"].value[0] == 0.0
    assert found.measures["accuracy"].value[0] == 0.0
    assert np.isnan(found.measures["accuracy of several senses"].value[0])
    assert found.measures["accuracy of several senses"].n[0] == 0
    backed = curve(recorded, seeds=8).measures
    # The sense that `bank` and `banks` share is found by its name whenever one of them is in training.
    assert 0 < backed["accuracy"].value[0] == backed["accuracy of back-offs"].value[0] < 1
    assert backed["F1"].value[0] == 0.0
    # Nothing is known of `match` when it is tested: its sense must not come from the tested part itself.
    by_word = sensed.result(NAME, recorded, seeds=8, by="lemma").data
    assert isinstance(by_word, Matrix)
    assert by_word.measures["accuracy"].value[0, by_word.columns_named.index("match")] == 0.0


def test_f1_leaves_out_what_was_not_answered() -> None:
    known = sensed.corpus(("bank",), each=20)
    both = Corpus((*known.items, *unseen().items[-4:]), name="planted")
    found = curve(sensed.recording(both, sensed.first, sensed.first), fallback="none", seeds=10)
    answered = 1 - found.measures["back-offs"].value[1]
    assert 0 < answered < 1
    assert found.measures["F1"].value[1] == pytest.approx(2 * answered / (1 + answered))
    assert found.measures["accuracy"].value[1] == pytest.approx(answered)


def test_by_part_of_speech_and_word() -> None:
    recorded = sensed.recording(sensed.corpus(), None, sensed.first)
    for by, columns in (("pos", ("NOUN",)), ("lemma", ("bank", "plant"))):
        found = sensed.result(NAME, recorded, by=by).data
        assert isinstance(found, Matrix)
        assert (found.rows_named, found.columns_named) == (("layer 0", "layer 1", "last four"), columns)
        np.testing.assert_array_equal(found.measures["accuracy"].value[1:], 1.0)


def test_candidates_of_the_same_part_of_speech() -> None:
    """A word whose senses go with its tag: told without looking at vectors."""
    tagged = sensed.corpus(("light",)).map(
        lambda own: replace(own, pos=tuple("ADJ" if sense == "light%1" else "NOUN" for sense in own.senses or ()))
    )
    recorded = sensed.recording(tagged, None, None)
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
                raise Error("no lexicon found")

        def words(self, form: str, pos: str | None = None) -> list[FakeWord]:
            return [FakeWord()] if form == "match" and pos in (None, "n") else []

    package.__dict__.update(Error=Error, Wordnet=Wordnet, compat=compat)
    keys.__dict__["sense_key_getter"] = {"there:1": str}.get
    compat.__dict__["sensekey"] = keys
    for name, module in (("wn", package), ("wn.compat", compat), ("wn.compat.sensekey", keys)):
        monkeypatch.setitem(sys.modules, name, module)


def test_the_first_sense_of_wordnet(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_wordnet(monkeypatch)
    first = fallback_named("wordnet", "there:1")
    assert first is not None
    assert [first([])(lemma, pos) for lemma, pos in (("match", "NOUN"), ("match", "VERB"), ("bank", ""))] == [
        "match%1",
        None,
        None,
    ]
    with pytest.raises(Refusal, match="wn download here:2"):
        fallback_named("wordnet", "here:2")
    found = curve(sensed.recording(unseen(), None, None), fallback="wordnet", lexicon="there:1", seeds=8)
    assert 0 < found.measures["accuracy of back-offs"].value[0] < 1


def test_without_wn_there_are_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wn", cast("Any", None))
    with pytest.raises(Refusal, match="pip install wn"):
        fallback_named("wordnet", "omw-en:1.4")


def test_what_cannot_be_asked_is_refused() -> None:
    recorded = sensed.recording(sensed.corpus(each=2), None, None)
    with pytest.raises(Refusal, match="--k"):
        curve(recorded, k=0)
    with pytest.raises(Refusal, match="--seeds"):
        curve(recorded, seeds=0)
    bare = sensed.corpus().map(lambda own: replace(own, pos=None))
    with pytest.raises(Refusal, match="parts of speech"):
        sensed.result(NAME, sensed.recording(bare, None, None), by="pos")
    one = Corpus(sensed.corpus(each=2).items[:1], name="one")
    with pytest.raises(Refusal, match="two documents"):
        curve(sensed.recording(one, None, None))
