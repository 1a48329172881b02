"""Every feature extractor gives one vector per word, equal to that of an independent computation."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch

from bertology.analyses.cache import AnalysisCache
from bertology.analyses.frozen_features.extractors import (
    FunctionFeatureExtractor,
    LayerSelection,
    feature_extractor,
    parse_features,
    parse_layer_selection,
)
from bertology.analyses.frozen_features.word_features import WordFeatures, extract_cached
from bertology.corpus.corpus import corpus_from_sentences
from bertology.corpus.sentence import sentence_from_words
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.recording.recorder import record

SENTENCES = [
    sentence_from_words(["the", "cat", "sat"]),
    sentence_from_words([]),
    sentence_from_words(["Incomprehensibilities", "the", "end", "."]),
    sentence_from_words(["cat"]),
]


def extract(name: str, model: str | None = "tiny") -> WordFeatures:
    return feature_extractor(name, load(model) if model else None).extract(SENTENCES)


@pytest.mark.parametrize(
    ("name", "layers"), [("model", [2]), ("tiny#0", [0]), ("model#1+2", [1, 2]), ("model#-2", [1])]
)
def test_layers_equal_recorded_hidden_states(name: str, layers: list[int]) -> None:
    vectors = extract(name)
    recording = record(load("tiny"), corpus_from_sentences([SENTENCES[0], SENTENCES[2]]), ["hidden.words"])
    for features, states in zip(
        (vectors.by_sentence[0], vectors.by_sentence[2]), recording["hidden.words"], strict=True
    ):
        np.testing.assert_allclose(features, np.concatenate([states[layer] for layer in layers], -1), atol=1e-5)
    assert vectors.by_sentence[1].shape == (0, vectors.width) and vectors.counts["words"] == 8


def test_layers_are_averaged() -> None:
    layers = [extract(f"model#{layer}").by_sentence[0] for layer in range(3)]
    np.testing.assert_allclose(extract("model#mean").by_sentence[0], np.mean(layers, 0), atol=1e-6)
    np.testing.assert_allclose(extract("model#mean:0+2").by_sentence[0], (layers[0] + layers[2]) / 2, atol=1e-6)
    assert parse_layer_selection("last4", 12) == LayerSelection((9, 10, 11, 12))


def test_long_sentence_is_split_into_parts() -> None:
    long = sentence_from_words([f"word{number}" for number in range(700)])
    vectors = feature_extractor("tiny").extract([long, SENTENCES[0]])
    assert vectors.by_sentence[0].shape[0] == 700 and vectors.by_sentence[0].any(1).all()
    assert vectors.counts["sentences split into parts"] == 1
    with_endless_word = sentence_from_words(["the", "x y" * 5000])
    truncated = feature_extractor("tiny").extract([with_endless_word])
    assert truncated.by_sentence[0].any(1).tolist() == [True, False]
    assert truncated.counts["words without a vector"] == 1


def test_names_that_refer_to_the_analysed_model() -> None:
    static, other = extract("static"), extract("static:tiny", None)
    np.testing.assert_array_equal(static.by_sentence[0], other.by_sentence[0])
    assert not np.allclose(extract("untrained").by_sentence[0], extract("model").by_sentence[0])
    assert extract("random").width == load("tiny").width
    np.testing.assert_array_equal(
        extract("random:10@3", None).by_sentence[0], extract("circulant:10@3", None).by_sentence[0]
    )


@pytest.mark.parametrize("name", ["random-vectors:40", "circulant:40"])
def test_random_vectors_are_fixed_by_word(name: str) -> None:
    vectors = extract(name, None)
    np.testing.assert_array_equal(vectors.by_sentence[0][1], vectors.by_sentence[3][0])
    np.testing.assert_array_equal(vectors.by_sentence[0][0], vectors.by_sentence[2][1])
    assert not np.allclose(vectors.by_sentence[0][0], vectors.by_sentence[0][1])
    assert not np.allclose(vectors.by_sentence[0], extract(f"{name}@1", None).by_sentence[0])


def test_circulant_vectors_have_mean_norm_one_and_mean_zero() -> None:
    vectors = (
        feature_extractor("circulant:50")
        .extract([sentence_from_words([f"w{number}" for number in range(3000)])])
        .by_sentence[0]
    )
    assert abs(np.linalg.norm(vectors, axis=1).mean() - 1) < 0.01
    assert np.linalg.norm(vectors.mean(0)) < 0.05


def test_word_vectors_from_a_file(tmp_path: Path) -> None:
    text, binary = tmp_path / "glove.txt", tmp_path / "word2vec.bin"
    text.write_text("the 1 2\ncat 3 4\n", "utf-8")
    rows = [np.array(pair, "<f4").tobytes() for pair in ([1, 2], [3, 4], [9, 9])]
    binary.write_bytes(b"3 2\nthe " + rows[0] + b"\ncat " + rows[1] + b"\ncat " + rows[2] + b"\n")
    for file in (text, binary):
        vectors = extract(f"glove:{file}", None)
        np.testing.assert_array_equal(vectors.by_sentence[0], [[1, 2], [3, 4], [0, 0]])
        assert vectors.counts["words without a vector"] == 4
    binary.write_bytes(binary.read_bytes()[:20])
    with pytest.raises(Refusal, match="announces 3 words"):
        extract(f"glove:{binary}", None)


def letters(words: Sequence[str]) -> list[list[int]]:
    return [[len(word), ord(word[0])] for word in words]


def test_function_of_words() -> None:
    extractor = FunctionFeatureExtractor("letters", lambda words: np.array(letters(words)).reshape(-1, 2))
    np.testing.assert_array_equal(extractor.extract(SENTENCES).by_sentence[0], [[3, 116], [3, 99], [3, 115]])
    with pytest.raises(Refusal, match="one vector per word"):
        feature_extractor("call:builtins:len").extract(SENTENCES)  # a single number
    with pytest.raises(Refusal, match="finite"):
        feature_extractor(lambda words: np.full((len(words), 2), np.nan)).extract(SENTENCES)


def test_features_are_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    extractor, cache = feature_extractor("tiny"), AnalysisCache(tmp_path)
    first = extract_cached(extractor, SENTENCES, cache)
    monkeypatch.setattr("bertology.analyses.frozen_features.encoder_states.encode_words", None)
    cached = extract_cached(extractor, SENTENCES, cache)
    assert cached.fingerprint == first.fingerprint and cached.counts == first.counts
    np.testing.assert_array_equal(cached.sentence_means()[0], first.by_sentence[0].mean(0))
    assert cached.sentence_means()[1].tolist() == [0.0] * first.width


def test_flair_with_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is optional: it is refused if missing, and otherwise replaced by a stub with the names in use."""
    weights = tmp_path / "forward.pt"
    weights.write_bytes(b"weights")
    monkeypatch.setitem(sys.modules, "flair.embeddings", None)
    with pytest.raises(Refusal, match="pip install flair"):
        feature_extractor(f"flair:{weights}")
    with pytest.raises(Refusal, match="does not exist"):
        feature_extractor("flair:absent.pt")

    class Stacked:
        embedding_length = 1

        def __init__(self, embeddings: list[str]) -> None:
            assert embeddings == [str(weights)]

        def embed(self, tokens: list[SimpleNamespace]) -> None:
            for token in tokens:
                token.embedding = torch.tensor([float(len(token.text))])

    def make_tokens(words: list[str]) -> list[SimpleNamespace]:
        return [SimpleNamespace(text=word) for word in words]

    embeddings, data = ModuleType("flair.embeddings"), ModuleType("flair.data")
    embeddings.__dict__.update(StackedEmbeddings=Stacked, FlairEmbeddings=str)
    data.__dict__.update(Sentence=make_tokens)
    monkeypatch.setitem(sys.modules, "flair", ModuleType("flair"))
    monkeypatch.setitem(sys.modules, "flair.embeddings", embeddings)
    monkeypatch.setitem(sys.modules, "flair.data", data)
    vectors = feature_extractor(f"flair:{weights}").extract(SENTENCES)
    assert vectors.by_sentence[0].tolist() == [[3.0], [3.0], [3.0]] and vectors.by_sentence[1].shape == (0, 1)


def test_elmo_needs_files_and_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Refusal, match=r"0 \.json and 0 \.hdf5"):
        feature_extractor(f"elmo:{tmp_path}")
    for name in ("options.json", "weights.hdf5"):
        (tmp_path / name).write_bytes(b"")
    monkeypatch.setitem(sys.modules, "allennlp", None)
    with pytest.raises(Refusal, match="pip install allennlp"):
        feature_extractor(f"elmo:{tmp_path}")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("", "distinct names, comma-separated"),
        ("tiny,tiny", "distinct names, comma-separated"),
        ("tiny#7", "layer 7 of a model with 2"),
        ("tiny#last9", "layer -6"),
        ("model", "there is none"),
        ("call:no_module:no_function", "cannot be used"),
        ("circulant:x", "not a vector size"),
        ("no-such-feature", "neither a built-in model"),
    ],
)
def test_unknown_features_are_refused(names: str, message: str) -> None:
    with pytest.raises(Refusal, match=message):
        parse_features(names, None)
