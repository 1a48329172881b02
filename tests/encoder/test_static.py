"""Encoders without attention: the right vector for each piece, and unknown words counted."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import models
from bertology.corpus.corpus import Input
from bertology.corpus.sentence import sentence
from bertology.encoder.encoder import Encoder
from bertology.encoder.load import load
from bertology.encoder.vectors import read_vectors
from bertology.errors import Refusal

GLOVE = "the 1 2 3\ndog 4 5 6\nDog -1 -2 -3\nto be 7 8 9\n. 0.5 1e-1 -2.5\n"
WORD2VEC = "2 3\nthe 1 2 3 \ndog 4 5 6 \n"


# What `dog` is in random-vectors:4@7: whoever changes the generator gives it a new version in the fingerprint.
GOLDEN = [-0.29493877, 0.48752871, -1.02087379, 0.88478637]


def _vectors(encoder: Encoder, *words: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    pieces = encoder.tokenise([Input((sentence(words),))])
    with torch.inference_mode():
        (hidden,) = encoder.run(models.batch(pieces), hidden=True).hidden
    return hidden[0].numpy()


def _file(folder: Path, text: str, name: str = "vectors.txt") -> Path:
    file = folder / name
    file.write_text(text, "utf-8")
    return file


def test_words_are_looked_up_as_they_are_and_then_lower_cased(tmp_path: Path) -> None:
    encoder = load(f"glove:{_file(tmp_path, GLOVE)}")
    assert (encoder.layers, encoder.heads, encoder.width, encoder.outputs) == (0, 0, 3, frozenset())
    found = _vectors(encoder, "The", "dog", "Dog", "DOG", "zebra", "to be", ".")
    expected = [[1, 2, 3], [4, 5, 6], [-1, -2, -3], [4, 5, 6], [0, 0, 0], [7, 8, 9], [0.5, 0.1, -2.5]]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_unknown_words_are_counted(tmp_path: Path) -> None:
    encoder = load(f"glove:{_file(tmp_path, GLOVE)}")
    shown = Input((sentence(["the", "zebra"]), sentence(["Okapi", "dog", "."])))
    (pieces,) = encoder.tokenise([shown])
    assert pieces.unknown == 2
    assert pieces.tokens == ("the", "zebra", "Okapi", "dog", ".")
    assert pieces.word.tolist() == [0, 1, 2, 3, 4]
    assert pieces.part.tolist() == [0, 0, 1, 1, 1]
    assert (pieces.vanished, pieces.straddling, pieces.unaligned, pieces.words) == ((), 0, 0, 5)


def test_batches_are_padded_and_layers_never_called(tmp_path: Path) -> None:
    encoder = load(f"glove:{_file(tmp_path, GLOVE)}")
    pieces = encoder.tokenise([Input((sentence(["dog"]),)), Input((sentence(["the", "dog"]),))])
    seen: list[object] = []
    output = encoder.run(models.batch(pieces), on_layer=seen.append, hidden=True)
    assert (len(output.hidden), tuple(output.hidden[0].shape), seen) == (1, (2, 2, 3), [])
    assert encoder.run(models.batch(pieces)).hidden == ()


@pytest.mark.parametrize("text", [GLOVE, WORD2VEC, GLOVE.replace("\n", "\r\n"), GLOVE.rstrip("\n")])
def test_forms_of_text(tmp_path: Path, text: str) -> None:
    found = read_vectors(_file(tmp_path, text))
    np.testing.assert_array_equal(found.table[found.row("dog")], [4, 5, 6])
    np.testing.assert_array_equal(found.table[0], [0, 0, 0])
    with gzip.open(tmp_path / "vectors.txt.gz", "wb") as stream:
        stream.write(text.encode())
    assert read_vectors(tmp_path / "vectors.txt.gz").fingerprint == found.fingerprint


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
    with pytest.raises(Refusal, match="not readable"):
        load(f"glove:{tmp_path}")
    (tmp_path / "words.parquet").unlink()
    with pytest.raises(Refusal, match=r"1 \.npy and 0 \.parquet"):
        load(f"glove:{tmp_path}")


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        ("the 1 2\ndog 3\n", 2, "has 1 numbers"),
        ("the 1 2\ndog 3 x\n", 2, "not a number"),
        ("the 1 2\n\ncat 1 2\n", 2, "has 0 numbers"),
        ("the 1 2\ndog 3 nan\n", 2, "not finite"),
        ("the 1 2\n 3 4\n", 2, "has 2 numbers"),
        ("the\n", 1, "has no numbers"),
        ("", 1, "has no numbers"),
        ("3 2\nthe 1 2\ndog 3 4\n", 1, "announces 3 words and 2 follow"),
    ],
)
def test_malformed_lines_are_refused_with_their_place(tmp_path: Path, text: str, line: int, found: str) -> None:
    file = _file(tmp_path, text)
    with pytest.raises(Refusal) as caught:
        load(f"glove:{file}")
    assert str(caught.value).startswith(f"{file}: Line {line} ")
    assert found in str(caught.value)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "vectors.txt").write_bytes(b"the 1 2\nd\xffg 3 4\n")
    with pytest.raises(Refusal, match="Line 2 is not UTF-8"):
        load(f"glove:{tmp_path / 'vectors.txt'}")
    whole = gzip.compress(GLOVE.encode() * 50)
    (tmp_path / "vectors.txt.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(Refusal, match="the gzip stream breaks off"):
        load(f"glove:{tmp_path / 'vectors.txt.gz'}")
    (tmp_path / "other.gz").write_text(GLOVE)
    with pytest.raises(Refusal, match="the gzip stream breaks off"):
        load(f"glove:{tmp_path / 'other.gz'}")
    with pytest.raises(Refusal, match="There is no file"):
        load(f"glove:{tmp_path / 'nowhere.txt'}")


def test_static_is_the_input_embeddings_of_the_model() -> None:
    for name in ("bert", "albert", "gpt2"):
        model = models.encoder(name)
        static = load(f"static:{models.directory(name)}")
        pieces = static.tokenise(models.inputs())
        assert [one.tokens for one in pieces] == [one.tokens for one in model.tokenise(models.inputs())]
        embeddings = model.model.get_input_embeddings().weight.detach().numpy()
        assert static.width == embeddings.shape[1]
        (hidden,) = static.run(models.batch(pieces), hidden=True).hidden
        for row, one in enumerate(pieces):
            np.testing.assert_array_equal(hidden[row, : len(one)].numpy(), embeddings[one.ids])
        assert static.name == f"static:{models.directory(name)}"
    assert load("static:tiny").fingerprint != load("static:random:tiny@1").fingerprint


def test_random_vectors_depend_on_the_word_and_the_seed_alone() -> None:
    first, again, other = (
        load(name) for name in ("random-vectors:300", "random-vectors:300@0", "random-vectors:300@1")
    )
    found = _vectors(first, "dog", "cat", "dog", "Dog")
    np.testing.assert_array_equal(found[0], found[2])
    np.testing.assert_array_equal(_vectors(again, "cat", "dog"), found[[1, 0]])
    assert abs(np.corrcoef(found[0], found[3])[0, 1]) < 0.25
    assert abs(np.corrcoef(found[0], _vectors(other, "dog")[0])[0, 1]) < 0.25
    assert first.fingerprint == again.fingerprint != other.fingerprint
    assert _vectors(load("random-vectors:3"), "dog").shape == (1, 3)


def test_random_vectors_are_the_same_on_every_machine() -> None:
    np.testing.assert_allclose(_vectors(load("random-vectors:4@7"), "dog")[0], GOLDEN, rtol=1e-6)


def test_random_vectors_are_normal_and_independent() -> None:
    """Over many seeds, so that no lucky or unlucky one decides: then the p-values themselves must be uniform."""
    from scipy.stats import kstest

    words = [f"word{number}" for number in range(200)]
    found = [_vectors(load(f"random-vectors:50@{seed}"), *words) for seed in range(40)]
    assert kstest([kstest(some.ravel(), "norm").pvalue for some in found], "uniform").pvalue > 0.01
    # For independent ones the correlations of n numbers have the spread 1 / sqrt(n): between words, and dimensions.
    between_words: Any = np.corrcoef(found[0])
    between_dimensions: Any = np.corrcoef(found[0].T)
    np.testing.assert_allclose(between_words[np.triu_indices(200, 1)].std() * np.sqrt(50), 1, atol=0.05)
    np.testing.assert_allclose(between_dimensions[np.triu_indices(50, 1)].std() * np.sqrt(200), 1, atol=0.05)


def test_static_vectors_have_no_attention_to_record() -> None:
    from bertology.corpus.corpus import of_sentences
    from bertology.recording.recorder import record

    encoder = load("random-vectors:6")
    corpus = of_sentences([sentence(["A", "dog"]), sentence(["It", "rains", "."])])
    recorded = record(encoder, corpus, ["hidden"])
    assert [array.shape for array in recorded["hidden"]] == [(1, 2, 6), (1, 3, 6)]
    with pytest.raises(Refusal, match="has no attention"):
        record(encoder, corpus, ["attention"])
