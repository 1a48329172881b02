"""`bertology.probe` and `bertology.states`: the numbers of the analyses, groups, units, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, cross_val_score

import bertology
from bertology.analyses.probe import label_unit
from bertology.analyses.probing.estimator import LayerProbe
from bertology.errors import Refusal
from bertology.results.shapes import LayerCurve

WORDS = [["The", "cat", "sat", "."], ["A", "dog", "ran", "home", "."]]
TAGS = [["D", "N", "V", "."], ["D", "N", "V", "A", "."]]


@pytest.fixture(scope="module")
def english() -> Any:
    return bertology.read("english")[:40]


@pytest.fixture(scope="module")
def sentences(english: Any) -> Any:
    texts = [example.segments[0].text for example in bertology.read("english")[:80]]
    labels = ["long" if len(text) > 60 else "short" for text in texts]
    return bertology.corpus({"text": texts, "length": labels}, text="text", label="length")


def test_a_word_probe_has_the_numbers_of_the_analysis(english: Any) -> None:
    options: dict[str, Any] = {"n_seeds": 1, "min_examples": 5}
    fitted = bertology.probe("tiny", english, "pos", layer=1, **options)
    result = bertology.run("probes/word", "tiny", english, label="pos", **options)
    assert isinstance(fitted, LayerProbe)
    assert fitted.result_.to_json()["data"] == result.to_json()["data"]
    assert (fitted.result_.analysis, fitted.result_.options) == (result.analysis, result.options)


def test_the_classifier_scores_on_the_test_part_as_the_analysis_says(english: Any) -> None:
    from bertology.analyses.probe import _dataset, _record  # pyright: ignore[reportPrivateUsage]

    fitted = bertology.probe("tiny", english, "pos", layer=2, n_seeds=1, min_examples=5, random_baseline=False)
    encoder = bertology.load("tiny")
    dataset = _dataset(
        _record(encoder, english, "word", None, None, None), encoder, "word", dict(fitted.result_.options)
    )
    score = fitted.score(dataset.test.features.transpose(1, 0, 2), dataset.test.labels.astype(str))
    curve = fitted.result_.data
    assert isinstance(curve, LayerCurve)
    measured = curve.measures["accuracy"].value[2]
    assert score == pytest.approx(measured, abs=1.5 / len(dataset.test))
    assert score > curve.baselines["majority class"]["accuracy"].value[0]


def test_a_sentence_probe_has_the_numbers_of_the_analysis(sentences: Any) -> None:
    options: dict[str, Any] = {"n_seeds": 1, "pooling": "cls"}
    fitted = bertology.probe("tiny", sentences, "length", **options)
    result = bertology.run("probes/sentence", "tiny", sentences, label="length", **options)
    assert fitted.result_.to_json()["data"] == result.to_json()["data"]
    curve = fitted.result_.data
    assert isinstance(curve, LayerCurve)
    assert {"majority class", "control task", "untrained model"} <= curve.baselines.keys()
    assert set(fitted.classes_) == {"long", "short"}
    x, _, _ = bertology.states("tiny", ["One more sentence."], unit="sentence", pooling="cls")
    assert fitted.predict(x).tolist() == ["short"]


def test_states_are_in_the_order_of_the_corpus(english: Any) -> None:
    x, y, groups = bertology.states("tiny", english, "pos")
    encoder = bertology.load("tiny")
    assert x.shape == (len(groups), encoder.layers + 1, encoder.width)
    gold = [tag for sentence in english.sentences for tag in sentence.pos]
    assert y is not None
    assert len(y) <= len(gold) and y[:20].tolist() == gold[:20]
    recording = bertology.record(encoder, english, ["hidden.words"])
    np.testing.assert_allclose(x[0], np.asarray(recording["hidden.words"][0])[:, 0], atol=1e-6)
    scores = cross_val_score(LayerProbe(), x, y, groups=groups, cv=GroupKFold(3))
    assert scores.mean() > np.unique(y, return_counts=True)[1].max() / len(y)


def test_words_of_a_sentence_have_one_group() -> None:
    texts = ["The cat sat.", "A dog ran home.", "The cat sat."]
    x, y, groups = bertology.states("tiny", texts, unit="word")
    assert y is None and len(x) == len(groups) == 4 + 5 + 4
    assert groups[:4].tolist() == groups[9:].tolist() and set(groups[:4]) != set(groups[4:9])  # equal sentences too


def test_labels_of_words_and_spans_are_probed_under_their_own_names() -> None:
    corpus = bertology.corpus(WORDS * 20, word_labels={"mine": TAGS * 20})
    assert label_unit(corpus, "mine", None) == "word"
    states = bertology.states("tiny", corpus, "mine")
    assert states.y is not None and states.y[:4].tolist() == TAGS[0]


def test_a_label_that_does_not_exist_is_refused_with_the_names_that_do(english: Any, sentences: Any) -> None:
    with pytest.raises(Refusal, match=r"no label of .* called 'poz'.*pos"):
        bertology.probe("tiny", english, "poz")
    with pytest.raises(Refusal, match=r"text has no labels\..* label=\.\.\."):
        bertology.probe("tiny", ["A text."], "pos")
    with pytest.raises(Refusal, match="length"):
        bertology.states("tiny", sentences, "lengths")
    with pytest.raises(Refusal, match='Add unit="word"'):
        bertology.states("tiny", english)
    with pytest.raises(Refusal, match="There is no unit called"):
        bertology.states("tiny", english, "pos", unit="paragraph")  # pyright: ignore[reportArgumentType]
