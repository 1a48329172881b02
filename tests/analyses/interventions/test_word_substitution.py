"""Substitutions change the predictions of a bag of words; interrupted attacks resume; a budget ends them cleanly."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attackable import bag_of_words_classifier
from bertology.analyses import registry
from bertology.analyses.cache import FOLDER
from bertology.analyses.interventions.word_substitution import attack as attack_module
from bertology.analyses.interventions.word_substitution.candidates import (
    EmbeddingNeighbours,
    PartOfSpeechLexicon,
    SentenceEmbedder,
    WordNetSynonyms,
    static_embedder,
    vocabulary_words,
)
from bertology.analyses.run import RunInputs, run_analysis
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.read import load_corpus
from bertology.corpus.sentence import sentence_from_words
from bertology.encoder.encoder import Encoder
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.results.illustrations import Examples
from bertology.results.shapes import Table
from planted_tasks import BAD, GOOD, planted_corpus

WORD_SUBSTITUTION = registry.get("interventions/word_substitution")
ACCURACY, SUCCESS_RATE, PERTURBED = "accuracy under attack", "attack success rate", "perturbed words (proportion)"
RANDOM_EDITS = "random edits (same amount)"
UNLIMITED: dict[str, Any] = {
    "min_cosine": -1.0,
    "min_similarity": -1.0,
    "n_synonyms": 2000,
    "same_pos": False,
    "max_queries": 5000,
}


def run(corpus: Corpus, store: Path | None = None, *, encoder: Encoder | None = None, **options: Any) -> Any:
    inputs = RunInputs(corpus, encoder or bag_of_words_classifier(), store=store)
    return run_analysis(WORD_SUBSTITUTION, inputs, UNLIMITED | options).data


def test_the_word_that_determines_the_class_is_replaced() -> None:
    corpus = planted_corpus("sentence", 8, seed=5)
    table, examples = run(corpus), run(corpus, show="examples")
    assert isinstance(table, Table) and isinstance(examples, Examples)
    success_rate, perturbed = table.measures[SUCCESS_RATE], table.measures[PERTURBED]
    assert success_rate.value[0] == 1.0 and table.measures[ACCURACY].value[0] == 0.0
    assert table.row_names == ("all examples", "bad", "good")
    assert table.attributes["n_examples"] == (8, 4, 4)
    assert table.baselines["clean input"][ACCURACY].value[0] > 0.85
    assert table.baselines[RANDOM_EDITS][SUCCESS_RATE].value[0] < success_rate.value[0]
    assert perturbed.value[0] == table.baselines[RANDOM_EDITS][PERTURBED].value[0] > 0
    for example in examples.examples:
        (index, *_) = example.highlights["replaced"]
        assert example.words[index] not in GOOD + BAD or "→" in example.caption
        old = example.caption.split(": ")[1].split(" → ")[0]
        assert old in GOOD + BAD


def test_random_edits_replace_content_words_by_content_words() -> None:
    text = "He saw the very Happy king with his poor queen and not the doctor ."
    example = Example((sentence_from_words(text.split()),), label="good")
    content = ["rich", "strong", "weak"]
    for n_words in range(6):
        changed: set[str] = set()
        for seed in range(20):
            edited = attack_module.replace_random_words(example, n_words, content, Random(seed)).segments[0].words
            pairs = [(old, new) for old, new in zip(text.split(), edited, strict=True) if old != new]
            assert len(pairs) == n_words
            assert all(attack_module.is_content_word(old) and new.lower() in content for old, new in pairs)
            assert all(old[0].isupper() == new[0].isupper() for old, new in pairs)
            changed |= {old for old, _ in pairs}
        assert not n_words or changed == {"saw", "very", "Happy", "king", "poor", "queen", "doctor"}
    assert attack_module.replace_random_words(example, 2, ["king", "Queen"], Random(0)) == example


def test_the_result_says_what_was_cut_and_what_was_learnt() -> None:
    corpus = planted_corpus("sentence", 8, seed=5)
    long = replace(corpus[0], segments=(sentence_from_words(corpus[0].segments[0].words * 200),))
    longer = replace(corpus, examples=(long, *corpus.examples[1:]))
    table = run(longer, max_queries=30)
    assert table.sample == {"examples": 8, "skipped examples": 0, "long examples truncated": 1}
    assert table.reference.name == "clean input" and table.reference.baseline == "majority class"
    assert run(longer, max_queries=3, overflow="skip").sample["long examples skipped"] == 1
    result = run_analysis(
        WORD_SUBSTITUTION,
        RunInputs(corpus, bag_of_words_classifier()),
        UNLIMITED | {"show": "examples", "sample_size": 5},
    )
    assert isinstance(result.data, Examples) and result.n == len(result.data.examples) <= 5
    with pytest.raises(Refusal, match="--min-similarity"):
        run(corpus, min_similarity=2.0)


def test_an_interrupted_attack_repeats_no_finished_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, options = planted_corpus("sentence", 6, seed=5), dict[str, Any](n_synonyms=5)
    expected = run(corpus, **options)
    search, calls = attack_module.search, list[int]()

    def interrupted(*args: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return search(*args, **options)

    monkeypatch.setattr(attack_module, "search", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(corpus, tmp_path, **options)
    assert len(list((tmp_path / FOLDER).glob("*.json"))) == 3  # their controls follow all searches
    assert run(corpus, tmp_path, **options).model_dump_json() == expected.model_dump_json()
    assert len(calls) == 4 + 3
    run(corpus, tmp_path, **options)
    assert len(calls) == 4 + 3


def test_an_exhausted_budget_ends_cleanly() -> None:
    table = run(planted_corpus("sentence", 6, seed=5), max_queries=3)
    assert (table.measures["queries"].value[0] <= 3).all()
    assert table.attributes["n_budget_exhausted"][0] == table.attributes["n_attacked"][0] > 0
    assert table.measures[ACCURACY].value[0] == table.baselines["clean input"][ACCURACY].value[0]


def test_unsuitable_models_and_synonym_sources_are_refused() -> None:
    with pytest.raises(Refusal, match="needs a classifier; tiny would be evaluated on masked language modelling"):
        run(load_corpus("english", limit=5), encoder=load("tiny"))
    with pytest.raises(Refusal, match="not static word vectors"):
        run(planted_corpus("sentence", 5), synonym_source="tiny")
    with pytest.raises(Refusal, match="package `wn`"):
        run(planted_corpus("sentence", 5), synonym_source="wordnet")


def test_neighbours_are_the_nearest_by_cosine() -> None:
    encoder = bag_of_words_classifier()
    embedder, words = static_embedder("", encoder), vocabulary_words(encoder)
    assert "happy" in words and not any(word.startswith("##") for word in words)
    rows = encoder.hf_tokenizer.convert_tokens_to_ids(words)
    vectors = encoder.input_embeddings()[rows]
    unit_vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit_vectors @ unit_vectors[words.index("happy")]
    nearest = [words[row] for row in np.argsort(-cosines) if words[row] != "happy"][:5]
    assert list(EmbeddingNeighbours(embedder, words, n_synonyms=5, min_cosine=-1.0)("Happy")) == nearest
    assert EmbeddingNeighbours(embedder, words, n_synonyms=5, min_cosine=1.1)("happy") == ()
    np.testing.assert_allclose(SentenceEmbedder(encoder).similarity(["a", "cat"])([["a", "cat"]]), 1.0)


def test_parts_of_speech_come_from_the_treebank_or_the_suffix() -> None:
    lexicon = PartOfSpeechLexicon(load_corpus("english"))
    assert "DET" in lexicon.tags("the") and lexicon.tags("zorbing") == {"VERB"} and lexicon.tags("zorb") == frozenset()
    assert not lexicon.share_tag("the", "zorbing") and lexicon.share_tag("zorb", "the")


def test_wordnet_synonyms_are_other_single_words(monkeypatch: pytest.MonkeyPatch) -> None:
    synsets = [
        SimpleNamespace(lemmas=lambda: ["dog", "domestic dog", "hound"]),
        SimpleNamespace(lemmas=lambda: ["hound", "Cad"]),
    ]

    def synsets_of(word: str) -> list[SimpleNamespace]:
        return synsets if word == "dog" else []

    monkeypatch.setitem(sys.modules, "wn", SimpleNamespace(synsets=synsets_of, lexicons=list))
    assert WordNetSynonyms(n_synonyms=5)("Dog") == ("hound", "Cad")
    assert WordNetSynonyms(n_synonyms=1)("dog") == ("hound",)
    assert WordNetSynonyms(n_synonyms=5)("cat") == ()
