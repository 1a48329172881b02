"""features/comparison on planted features: scores follow what the features encode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import planted_features as planted
from bertology.analyses import registry
from bertology.analyses.run import RunInputs, run_analysis
from bertology.corpus.corpus import Corpus
from bertology.corpus.sentence import Sentence
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.results.measured_shape import change_measure, gain_measure
from bertology.results.shapes import Curve, Table

GOLD, IDENTITY = "call:planted_features:gold_labels", "call:planted_features:identity"
SCORE, DIFFERENCE = "score (linear)", f"{GOLD} - feature (linear)"


def compare(
    corpus: Corpus,
    features: str = f"{GOLD},{IDENTITY},call:planted_features:noise",
    model: str = "tiny",
    **options: Any,
) -> Table:
    inputs, options = RunInputs(corpus, load(model)), {"features": features, "n_seeds": 2, **options}
    table = run_analysis(registry.get("features/comparison"), inputs, options).data
    assert isinstance(table, Table)
    return table


def test_features_with_the_label_beat_word_identity_if_words_are_ambiguous() -> None:
    table = compare(planted.entities(ambiguous=True))
    gold, identity, noise = table.measures[SCORE].value
    assert gold == 1.0 and abs(identity - 0.5) < 0.15 and noise < 0.3
    difference = table.measures[DIFFERENCE]
    np.testing.assert_allclose(difference.value, [0, 1 - identity, 1 - noise])
    assert difference.low[1] > 0.3 and table.baselines["zero"][DIFFERENCE].value[1] == 0
    assert table.baselines["majority class"][SCORE].value[0] == 0  # the majority class is no entity
    assert abs(table.baselines["most frequent label of the word"][SCORE].value[0] - 0.5) < 0.15
    assert "span F1" in table.units[SCORE] and "untrained model" in table.baselines
    assert table.sample["test examples"] == 30 and table.sample["seeds"] == 2


def test_context_does_not_help_if_words_are_unambiguous() -> None:
    table = compare(planted.entities(ambiguous=False), features=f"{IDENTITY},call:planted_features:context")
    np.testing.assert_array_equal(table.measures[SCORE].value, [1.0, 1.0])
    assert table.baselines["most frequent label of the word"][SCORE].value[0] == 1.0


def test_default_features_of_a_model() -> None:
    table = compare(planted.sentiments(count=40), features="model,static,random")
    assert table.row_names == ("model", "static", "random")
    assert table.attribute("width", 2) == 32 and set(table.attributes) >= {"width", "words"}
    assert table.baselines["majority class"][SCORE].value[0] == pytest.approx(0.5, abs=0.3)


def test_two_classifiers_are_two_measures() -> None:
    table = compare(planted.sentiments(count=60), features=GOLD, classifiers="linear,cnn", n_seeds=1)
    assert table.measures[SCORE].value[0] == 1.0 and table.measures["score (cnn)"].value[0] > 0.9


def test_train_corpus_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "train.conll"
    lines = [
        "\n".join(f"{word}\t{tag}" for word, tag in zip(sentence.words, bio_tags(sentence), strict=True))
        for sentence in planted.entities(ambiguous=True, seed=1).sentences
    ]
    file.write_text("\n\n".join(lines) + "\n", "utf-8")
    table = compare(planted.entities(ambiguous=True, count=30), features=GOLD, train_corpus=str(file))
    assert table.measures[SCORE].value[0] == 1.0 and table.measures[SCORE].n[0] == 30


def bio_tags(sentence: Sentence) -> list[str]:
    tags = {span.start: f"B-{span.label}" for span in sentence.entities or ()}
    return [tags.get(index, "O") for index in range(len(sentence))]


def test_unsuitable_features_and_classifiers_are_refused() -> None:
    with pytest.raises(Refusal, match="table of word vectors"):
        compare(planted.sentiments(), features="static", model="random-vectors:4")
    with pytest.raises(Refusal, match="--classifiers"):
        compare(planted.sentiments(), classifiers="bilstm-crf")


def test_what_the_second_half_of_the_training_data_adds() -> None:
    """The same as on a learning curve from half to all of the training data."""
    corpus, features = planted.entities(ambiguous=True), f"{GOLD},{IDENTITY}"
    table = compare(corpus, features=features)
    options = {"features": features, "n_seeds": 2, "n_train_sizes": 2, "min_train_fraction": 0.5}
    curve = run_analysis(registry.get("features/learning_curves"), RunInputs(corpus, load("tiny")), options).data
    assert isinstance(curve, Curve) and curve.x.tolist() == [38, 76]
    scores = np.stack([curve.measures[name].value for name in (GOLD, IDENTITY)])
    gain, change = table.measures[gain_measure(SCORE)], table.measures[change_measure(DIFFERENCE)]
    np.testing.assert_allclose(gain.value, scores[:, 1] - scores[:, 0], atol=1e-12)
    np.testing.assert_allclose(change.value, [0, gain.value[0] - gain.value[1]], atol=1e-12)
    assert (gain.low <= gain.value).all() and (gain.value <= gain.high).all() and (gain.low < gain.high).all()
    assert change.value[1] == curve.measures[change_measure(f"{GOLD} - {IDENTITY}")].value[-1]
    for name in (gain_measure(SCORE), change_measure(DIFFERENCE)):
        assert table.baselines["zero"][name].value.tolist() == [0, 0]
    assert gain_measure(SCORE) in table.baselines["untrained model"]
