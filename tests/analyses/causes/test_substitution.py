"""Like words turn a bag of words where they are what it reads; a stopped attack goes on; a budget ends it cleanly."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attackable import bag_of_words
from bertology.analyses import registry
from bertology.analyses.run import Subject, run
from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.measures.causes import substituted
from bertology.measures.causes.synonyms import Neighbours, Vectors, WordClasses, WordNet, static_vectors, whole_words
from bertology.measures.work import FOLDER
from bertology.results.shapes import Examples, Table
from finetuning.planted_tasks import BAD, GOOD, planted

SUBSTITUTION = registry.get("causes/substitution")
FREE: dict[str, Any] = {"closeness": -1.0, "least": -1.0, "nearest": 2000, "same_class": False, "budget": 5000}


def shown(corpus: Corpus, store: Path | None = None, *, encoder: Encoder | None = None, **options: Any) -> Any:
    return run(SUBSTITUTION, Subject(corpus, encoder or bag_of_words(), store=store), FREE | options).data


def test_the_word_that_matters_is_the_one_replaced() -> None:
    corpus = planted("sentence", 8, seed=5)
    table, examples = shown(corpus), shown(corpus, show="examples")
    assert isinstance(table, Table) and isinstance(examples, Examples)
    success, edited = table.measures["success"], table.measures["edited"]
    assert success.value[0] == 1.0 and table.measures["score"].value[0] == 0.0
    assert table.rows_named == ("all", "bad", "good") and table.baselines["unattacked"]["score"].value[0] > 0.85
    assert table.baselines["random edit"]["success"].value[0] < success.value[0]
    assert edited.value[0] == table.baselines["random edit"]["edited"].value[0] > 0
    for example in examples.examples:
        (place, *_) = example.marked["replaced"]
        assert example.words[place] not in GOOD + BAD or "→" in example.caption
        old = example.caption.split(": ")[1].split(" → ")[0]
        assert old in GOOD + BAD


def test_a_stopped_attack_repeats_no_finished_item(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, options = planted("sentence", 6, seed=5), dict[str, Any](nearest=5)
    whole = shown(corpus, **options)
    search, searched = substituted.search, list[int]()

    def stopped(*given: Any, **named: Any) -> Any:
        searched.append(1)
        if len(searched) == 4:
            raise KeyboardInterrupt
        return search(*given, **named)

    monkeypatch.setattr(substituted, "search", stopped)
    with pytest.raises(KeyboardInterrupt):
        shown(corpus, tmp_path, **options)
    assert len(list((tmp_path / FOLDER).glob("*.json"))) == 3
    assert shown(corpus, tmp_path, **options).model_dump_json() == whole.model_dump_json()
    assert len(searched) == 4 + 3
    shown(corpus, tmp_path, **options)
    assert len(searched) == 4 + 3


def test_an_exhausted_budget_ends_cleanly() -> None:
    table = shown(planted("sentence", 6, seed=5), budget=3)
    assert (table.measures["queries"].value[0] <= 3).all()
    assert "budget spent" in table.notes["all"]
    assert table.measures["score"].value[0] == table.baselines["unattacked"]["score"].value[0]


def test_what_cannot_be_attacked_is_refused() -> None:
    with pytest.raises(Refusal, match="no classes"):
        shown(corpus_named("english", limit=5), encoder=load("tiny"))
    with pytest.raises(Refusal, match="no table of vectors"):
        shown(planted("sentence", 5), candidates="tiny")
    with pytest.raises(Refusal, match="package wn"):
        shown(planted("sentence", 5), candidates="wordnet")


def test_neighbours_are_the_nearest_by_cosine() -> None:
    encoder = bag_of_words()
    vectors = static_vectors("", encoder)
    words = whole_words(encoder)
    assert "happy" in words and not any(word.startswith("##") for word in words)
    table = encoder.input_vectors()
    rows = encoder.tokenizer.convert_tokens_to_ids(words)
    scaled = table[rows] / np.linalg.norm(table[rows], axis=1, keepdims=True)
    cosines = scaled @ scaled[words.index("happy")]
    nearest = [words[row] for row in np.argsort(-cosines) if words[row] != "happy"][:5]
    assert list(Neighbours(vectors, words, count=5, closeness=-1.0)("Happy")) == nearest
    assert Neighbours(vectors, words, count=5, closeness=1.1)("happy") == ()
    np.testing.assert_allclose(Vectors(encoder).alike(["a", "cat"])([["a", "cat"]]), 1.0)


def test_word_classes_by_treebank_and_by_ending() -> None:
    classes = WordClasses(corpus_named("english"))
    assert "DET" in classes.of("the") and classes.of("zorbing") == {"VERB"} and classes.of("zorb") == frozenset()
    assert not classes.agree("the", "zorbing") and classes.agree("zorb", "the")


def test_wordnet_gives_single_other_words(monkeypatch: pytest.MonkeyPatch) -> None:
    synsets = [
        SimpleNamespace(lemmas=lambda: ["dog", "domestic dog", "hound"]),
        SimpleNamespace(lemmas=lambda: ["hound", "Cad"]),
    ]

    def found(word: str) -> list[SimpleNamespace]:
        return synsets if word == "dog" else []

    monkeypatch.setitem(sys.modules, "wn", SimpleNamespace(synsets=found))
    assert WordNet(count=5)("Dog") == ("hound", "Cad") and WordNet(count=1)("dog") == ("hound",)
    assert WordNet(count=5)("cat") == ()
