"""Static encoders: the vector of each token, counts of unknown words, and files of word vectors."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.linalg import circulant

import tiny_models
from bertology.corpus.example import TextInput
from bertology.corpus.sentence import sentence_from_words
from bertology.encoder.encoder import Encoder
from bertology.encoder.load import load
from bertology.encoder.static import circulant_rows, scale_to_norm
from bertology.encoder.word_vector_files import read_vectors
from bertology.errors import Refusal

GLOVE = "the 1 2 3\ndog 4 5 6\nDog -1 -2 -3\nto be 7 8 9\n. 0.5 1e-1 -2.5\n"
WORD2VEC = "2 3\nthe 1 2 3 \ndog 4 5 6 \n"


# The vector of `dog` in random-vectors:4@7; a change of the generator needs a new version in the fingerprint.
GOLDEN = [-0.29493877, 0.48752871, -1.02087379, 0.88478637]


def _vectors(encoder: Encoder, *words: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    tokens = encoder.tokenise([TextInput((sentence_from_words(words),))])
    with torch.inference_mode():
        (hidden,) = encoder.forward(tiny_models.batch(tokens), hidden=True).hidden_states
    return hidden[0].numpy()


def _file(folder: Path, text: str, name: str = "vectors.txt") -> Path:
    file = folder / name
    file.write_text(text, "utf-8")
    return file


def test_words_are_looked_up_as_written_and_then_in_lower_case(tmp_path: Path) -> None:
    encoder = load(f"glove:{_file(tmp_path, GLOVE)}")
    assert (encoder.layers, encoder.heads, encoder.width, encoder.task_heads) == (0, 0, 3, frozenset())
    vectors = _vectors(encoder, "The", "dog", "Dog", "DOG", "zebra", "to be", ".")
    expected = [[1, 2, 3], [4, 5, 6], [-1, -2, -3], [4, 5, 6], [0, 0, 0], [7, 8, 9], [0.5, 0.1, -2.5]]
    np.testing.assert_allclose(vectors, expected, rtol=1e-6)


def test_unknown_words_are_counted(tmp_path: Path) -> None:
    encoder = load(f"glove:{_file(tmp_path, GLOVE)}")
    text_input = TextInput((sentence_from_words(["the", "zebra"]), sentence_from_words(["Okapi", "dog", "."])))
    (tokens,) = encoder.tokenise([text_input])
    assert tokens.n_unknown == 2
    assert tokens.tokens == ("the", "zebra", "Okapi", "dog", ".")
    assert tokens.word_ids.tolist() == [0, 1, 2, 3, 4]
    assert tokens.segment_ids.tolist() == [0, 0, 1, 1, 1]
    assert (tokens.dropped_words, tokens.n_straddling, tokens.n_unaligned, tokens.n_words) == ((), 0, 0, 5)


def test_batches_are_padded_and_have_no_layers(tmp_path: Path) -> None:
    encoder = load(f"glove:{_file(tmp_path, GLOVE)}")
    tokens = encoder.tokenise(
        [TextInput((sentence_from_words(["dog"]),)), TextInput((sentence_from_words(["the", "dog"]),))]
    )
    activations: list[object] = []
    output = encoder.forward(tiny_models.batch(tokens), on_layer=activations.append, hidden=True)
    assert (len(output.hidden_states), tuple(output.hidden_states[0].shape), activations) == (1, (2, 2, 3), [])
    assert encoder.forward(tiny_models.batch(tokens)).hidden_states == ()


@pytest.mark.parametrize("text", [GLOVE, WORD2VEC, GLOVE.replace("\n", "\r\n"), GLOVE.rstrip("\n")])
def test_text_formats(tmp_path: Path, text: str) -> None:
    vectors = read_vectors(_file(tmp_path, text))
    np.testing.assert_array_equal(vectors.matrix[vectors.row("dog")], [4, 5, 6])
    np.testing.assert_array_equal(vectors.matrix[0], [0, 0, 0])
    with gzip.open(tmp_path / "vectors.txt.gz", "wb") as stream:
        stream.write(text.encode())
    assert read_vectors(tmp_path / "vectors.txt.gz").fingerprint == vectors.fingerprint


def test_an_array_with_a_parquet_index(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = np.asfortranarray(np.arange(12, dtype=np.float32).reshape(4, 3))
    np.save(tmp_path / "vectors.npy", table)
    parquet.write_table(pyarrow.table({"index": ["the", "dog", "the", "."]}), tmp_path / "words.parquet")
    for name in (tmp_path, tmp_path / "vectors.npy"):
        encoder = load(f"glove:{name}")
        np.testing.assert_array_equal(_vectors(encoder, "dog", "The", "x"), [[3, 4, 5], [0, 1, 2], [0, 0, 0]])
    assert read_vectors(tmp_path).duplicates == 1
    np.save(tmp_path / "vectors.npy", table[:3])
    with pytest.raises(Refusal, match="names 4 words"):
        load(f"glove:{tmp_path}")
    np.save(tmp_path / "vectors.npy", np.array([object()]), allow_pickle=True)
    with pytest.raises(Refusal, match="is a pickle, which can run code"):
        load(f"glove:{tmp_path}")
    (tmp_path / "words.parquet").unlink()
    with pytest.raises(Refusal, match=r"1 \.npy and 0 \.parquet"):
        load(f"glove:{tmp_path}")


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("the 1 2\ndog 3\n", 2, "has 1 numbers"),
        ("the 1 2\ndog 3 x\n", 2, "not a number"),
        ("the 1 2\n\ncat 1 2\n", 2, "has 0 numbers"),
        ("the 1 2\ndog 3 nan\n", 2, "not finite"),
        ("the 1 2\n 3 4\n", 2, "has 2 numbers"),
        ("the\n", 1, "has no numbers"),
        ("", 1, "has no numbers"),
        ("3 2\nthe 1 2\ndog 3 4\n", 1, "announces 3 words, but 2 follow"),
    ],
)
def test_malformed_lines_are_refused_with_their_number(tmp_path: Path, text: str, line: int, problem: str) -> None:
    file = _file(tmp_path, text)
    with pytest.raises(Refusal) as caught:
        load(f"glove:{file}")
    assert str(caught.value).startswith(f"{file}: Line {line} ")
    assert problem in str(caught.value)


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "vectors.txt").write_bytes(b"the 1 2\nd\xffg 3 4\n")
    with pytest.raises(Refusal, match="Line 2 is not UTF-8"):
        load(f"glove:{tmp_path / 'vectors.txt'}")
    compressed = gzip.compress(GLOVE.encode() * 50)
    (tmp_path / "vectors.txt.gz").write_bytes(compressed[: len(compressed) // 2])
    with pytest.raises(Refusal, match="ended before the end-of-stream marker"):
        load(f"glove:{tmp_path / 'vectors.txt.gz'}")
    (tmp_path / "other.gz").write_text(GLOVE)
    with pytest.raises(Refusal, match="Not a gzipped file"):
        load(f"glove:{tmp_path / 'other.gz'}")
    with pytest.raises(Refusal, match="There is no file"):
        load(f"glove:{tmp_path / 'nowhere.txt'}")


def test_static_vectors_are_the_input_embeddings_of_the_model() -> None:
    for name in ("bert", "albert", "gpt2"):
        model = tiny_models.encoder(name)
        static = load(f"static:{tiny_models.directory(name)}")
        tokens = static.tokenise(tiny_models.inputs())
        expected = model.tokenise(tiny_models.inputs())
        assert [row.tokens for row in tokens] == [row.tokens for row in expected]
        embeddings = model.model.get_input_embeddings().weight.detach().numpy()
        assert static.width == embeddings.shape[1]
        (hidden,) = static.forward(tiny_models.batch(tokens), hidden=True).hidden_states
        for row, row_tokens in enumerate(tokens):
            np.testing.assert_array_equal(hidden[row, : len(row_tokens)].numpy(), embeddings[row_tokens.ids])
        assert static.name == f"static:{tiny_models.directory(name)}"
    assert load("static:tiny").fingerprint != load("static:random:tiny@1").fingerprint


def test_random_vectors_depend_on_word_and_seed_only() -> None:
    first, same_seed, other_seed = (
        load(name) for name in ("random-vectors:300", "random-vectors:300@0", "random-vectors:300@1")
    )
    vectors = _vectors(first, "dog", "cat", "dog", "Dog")
    np.testing.assert_array_equal(vectors[0], vectors[2])
    np.testing.assert_array_equal(_vectors(same_seed, "cat", "dog"), vectors[[1, 0]])
    assert abs(np.corrcoef(vectors[0], vectors[3])[0, 1]) < 0.25
    assert abs(np.corrcoef(vectors[0], _vectors(other_seed, "dog")[0])[0, 1]) < 0.25
    assert first.fingerprint == same_seed.fingerprint != other_seed.fingerprint
    assert _vectors(load("random-vectors:3"), "dog").shape == (1, 3)


def test_random_vectors_are_the_same_on_every_machine() -> None:
    np.testing.assert_allclose(_vectors(load("random-vectors:4@7"), "dog")[0], GOLDEN, rtol=1e-6)


def test_random_vectors_are_normal_and_independent() -> None:
    """The p-values of many seeds are uniform, so that the test does not depend on one seed."""
    from scipy.stats import kstest

    words = [f"word{number}" for number in range(200)]
    samples = [_vectors(load(f"random-vectors:50@{seed}"), *words) for seed in range(40)]
    assert kstest([kstest(sample.ravel(), "norm").pvalue for sample in samples], "uniform").pvalue > 0.01
    # Correlations of n independent numbers have the standard deviation 1 / sqrt(n): between words and dimensions.
    between_words: Any = np.corrcoef(samples[0])
    between_dimensions: Any = np.corrcoef(samples[0].T)
    np.testing.assert_allclose(between_words[np.triu_indices(200, 1)].std() * np.sqrt(50), 1, atol=0.05)
    np.testing.assert_allclose(between_dimensions[np.triu_indices(50, 1)].std() * np.sqrt(200), 1, atol=0.05)


def test_static_encoders_have_no_attention_to_record() -> None:
    from bertology.corpus.corpus import corpus_from_sentences
    from bertology.recording.recorder import record

    encoder = load("random-vectors:6")
    corpus = corpus_from_sentences([sentence_from_words(["A", "dog"]), sentence_from_words(["It", "rains", "."])])
    recording = record(encoder, corpus, ["hidden"])
    assert [array.shape for array in recording["hidden"]] == [(1, 2, 6), (1, 3, 6)]
    with pytest.raises(Refusal, match="static vectors and no attention"):
        record(encoder, corpus, ["attention"])


def test_circulant_rows_are_those_of_the_dense_matrix() -> None:
    generator = np.random.default_rng(0)
    weights, signs = generator.normal(size=(3, 5)), generator.choice([-1.0, 1.0], size=(3, 5))
    dense = np.concatenate([circulant(g) * e for g, e in zip(weights, signs, strict=True)])
    np.testing.assert_array_equal(circulant_rows(np.arange(15), weights, signs), dense)
    np.testing.assert_array_equal(circulant_rows(np.array([[14, 2]]), weights, signs), dense[[[14, 2]]])


def test_invalid_circulant_rows_are_errors() -> None:
    ones = np.ones((2, 3))
    for rows in ([6], [-1]):
        with pytest.raises(IndexError):
            circulant_rows(np.array(rows), ones, ones)
    with pytest.raises(TypeError):
        circulant_rows(np.array([1.0]), ones, ones)


def test_weights_are_scaled_to_a_mean_norm() -> None:
    weights = np.random.default_rng(1).normal(size=(3, 4))
    scaled = scale_to_norm(2.5, weights, 10)  # two full blocks, and half of the third
    rows = circulant_rows(np.arange(10), scaled, np.ones((3, 4)))
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1).mean(), 2.5)
