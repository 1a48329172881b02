"""Every kind of frozen feature gives one vector a word: the right one, whatever it is read with."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch

from bertology.corpus.corpus import of_sentences
from bertology.corpus.sentence import sentence
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.measures.meaning.features import CalledFeature, Layers, feature_of, features_named, layers_named
from bertology.measures.meaning.frozen_vectors import Vectors, recorded
from bertology.measures.work import Work
from bertology.recording.recorder import record

SENTENCES = [
    sentence(["the", "cat", "sat"]),
    sentence([]),
    sentence(["Incomprehensibilities", "the", "end", "."]),
    sentence(["cat"]),
]


def found(name: str, model: str | None = "tiny") -> Vectors:
    return feature_of(name, load(model) if model else None).vectors(SENTENCES)


@pytest.mark.parametrize(
    ("name", "layers"), [("model", [2]), ("tiny#0", [0]), ("model#1+2", [1, 2]), ("model#-2", [1])]
)
def test_layers_are_those_that_are_recorded(name: str, layers: list[int]) -> None:
    vectors = found(name)
    recording = record(load("tiny"), of_sentences([SENTENCES[0], SENTENCES[2]]), ["hidden.words"])
    for ours, states in zip((vectors.of[0], vectors.of[2]), recording["hidden.words"], strict=True):
        np.testing.assert_allclose(ours, np.concatenate([states[layer] for layer in layers], -1), atol=1e-5)
    assert vectors.of[1].shape == (0, vectors.width) and vectors.counts["words"] == 8


def test_layers_are_mixed() -> None:
    apart = [found(f"model#{layer}").of[0] for layer in range(3)]
    np.testing.assert_allclose(found("model#mean").of[0], np.mean(apart, 0), atol=1e-6)
    np.testing.assert_allclose(found("model#mean:0+2").of[0], (apart[0] + apart[2]) / 2, atol=1e-6)
    assert layers_named("last4", 12) == Layers((9, 10, 11, 12))


def test_a_long_sentence_is_read_in_parts() -> None:
    long = sentence([f"word{number}" for number in range(700)])
    vectors = feature_of("tiny").vectors([long, SENTENCES[0]])
    assert vectors.of[0].shape[0] == 700 and vectors.of[0].any(1).all()
    assert vectors.counts["sentences read in parts"] == 1
    endless = sentence(["the", "x y" * 5000])
    cut = feature_of("tiny").vectors([endless])
    assert cut.of[0].any(1).tolist() == [True, False] and cut.counts["words without a vector"] == 1


def test_names_of_the_model_at_hand() -> None:
    static, other = found("static"), found("static:tiny", None)
    np.testing.assert_array_equal(static.of[0], other.of[0])
    assert not np.allclose(found("untrained").of[0], found("model").of[0])
    assert found("random").width == load("tiny").width
    np.testing.assert_array_equal(found("random:10@3", None).of[0], found("circulant:10@3", None).of[0])


@pytest.mark.parametrize("name", ["random-vectors:40", "circulant:40"])
def test_random_vectors_belong_to_words(name: str) -> None:
    vectors = found(name, None)
    np.testing.assert_array_equal(vectors.of[0][1], vectors.of[3][0])
    np.testing.assert_array_equal(vectors.of[0][0], vectors.of[2][1])
    assert not np.allclose(vectors.of[0][0], vectors.of[0][1])
    assert not np.allclose(vectors.of[0], found(f"{name}@1", None).of[0])


def test_circulant_vectors_have_mean_norm_one_and_no_direction() -> None:
    many = feature_of("circulant:50").vectors([sentence([f"w{number}" for number in range(3000)])]).of[0]
    assert abs(np.linalg.norm(many, axis=1).mean() - 1) < 0.01
    assert np.linalg.norm(many.mean(0)) < 0.05


def test_a_table_from_a_file(tmp_path: Path) -> None:
    text, binary = tmp_path / "glove.txt", tmp_path / "word2vec.bin"
    text.write_text("the 1 2\ncat 3 4\n", "utf-8")
    numbers = [np.array(pair, "<f4").tobytes() for pair in ([1, 2], [3, 4], [9, 9])]
    binary.write_bytes(b"3 2\nthe " + numbers[0] + b"\ncat " + numbers[1] + b"\ncat " + numbers[2] + b"\n")
    for file in (text, binary):
        vectors = found(f"glove:{file}", None)
        np.testing.assert_array_equal(vectors.of[0], [[1, 2], [3, 4], [0, 0]])
        assert vectors.counts["words without a vector"] == 4
    binary.write_bytes(binary.read_bytes()[:20])
    with pytest.raises(Refusal, match="announces 3 words"):
        found(f"glove:{binary}", None)


def letters(words: Sequence[str]) -> list[list[int]]:
    return [[len(word), ord(word[0])] for word in words]


def test_any_function_of_words() -> None:
    plain = CalledFeature("letters", lambda words: np.array(letters(words)).reshape(-1, 2))
    np.testing.assert_array_equal(plain.vectors(SENTENCES).of[0], [[3, 116], [3, 99], [3, 115]])
    named = feature_of("call:builtins:len")  # a number, and no vector a word
    with pytest.raises(Refusal, match="one vector a word"):
        named.vectors(SENTENCES)
    with pytest.raises(Refusal, match="finite"):
        feature_of(lambda words: np.full((len(words), 2), np.nan)).vectors(SENTENCES)


def test_vectors_are_kept_and_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feature, work = feature_of("tiny"), Work(tmp_path)
    first = recorded(feature, SENTENCES, work)
    monkeypatch.setattr("bertology.measures.meaning.encoded_words.states_of_words", None)
    again = recorded(feature, SENTENCES, work)
    assert again.fingerprint == first.fingerprint and again.counts == first.counts
    np.testing.assert_array_equal(again.means()[0], first.of[0].mean(0))
    assert again.means()[1].tolist() == [0.0] * first.width


def test_flair_through_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is not required: a stand-in with the few names that are used, and the refusal without it."""
    weights = tmp_path / "forward.pt"
    weights.write_bytes(b"weights")
    monkeypatch.setitem(sys.modules, "flair.embeddings", None)
    with pytest.raises(Refusal, match="pip install flair"):
        feature_of(f"flair:{weights}")
    with pytest.raises(Refusal, match="no file"):
        feature_of("flair:absent.pt")

    class Stacked:
        embedding_length = 1

        def __init__(self, some: list[str]) -> None:
            assert some == [str(weights)]

        def embed(self, tokens: list[SimpleNamespace]) -> None:
            for token in tokens:
                token.embedding = torch.tensor([float(len(token.text))])

    def tokens_of(words: list[str]) -> list[SimpleNamespace]:
        return [SimpleNamespace(text=word) for word in words]

    embeddings, data = ModuleType("flair.embeddings"), ModuleType("flair.data")
    embeddings.__dict__.update(StackedEmbeddings=Stacked, FlairEmbeddings=str)
    data.__dict__.update(Sentence=tokens_of)
    monkeypatch.setitem(sys.modules, "flair", ModuleType("flair"))
    monkeypatch.setitem(sys.modules, "flair.embeddings", embeddings)
    monkeypatch.setitem(sys.modules, "flair.data", data)
    vectors = feature_of(f"flair:{weights}").vectors(SENTENCES)
    assert vectors.of[0].tolist() == [[3.0], [3.0], [3.0]] and vectors.of[1].shape == (0, 1)


def test_elmo_needs_its_files_and_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Refusal, match=r"0 \.json and 0 \.hdf5"):
        feature_of(f"elmo:{tmp_path}")
    for name in ("options.json", "weights.hdf5"):
        (tmp_path / name).write_bytes(b"")
    monkeypatch.setitem(sys.modules, "allennlp", None)
    with pytest.raises(Refusal, match="pip install allennlp"):
        feature_of(f"elmo:{tmp_path}")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("", "names with commas"),
        ("tiny,tiny", "none of them twice"),
        ("tiny#7", "layer 7 of a model with 2"),
        ("tiny#last9", "layer -6"),
        ("model", "there is none"),
        ("call:nowhere:nothing", "leads to"),
        ("circulant:x", "not a size"),
        ("nothing-such", "neither a built-in model"),
    ],
)
def test_what_is_no_feature_is_refused(names: str, message: str) -> None:
    with pytest.raises(Refusal, match=message):
        features_named(names, None)
