from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
import small_pretraining
import torch
from pretraining.pairs import CLS, NO_PAIR, PAD, SEP, Sequences, full_pairs, short_sequences
from pretraining.stream import TokenStream, held_out_indices, make_stream
from tokenizers import Tokenizer


def segment_texts(sequences: Sequences, row: int, tokenizer: Tokenizer) -> tuple[str, str]:
    """The text of A and of B; B is empty for a single sentence."""
    ids, segments = sequences.ids[row], sequences.segments[row]
    non_special = (ids != PAD) & (ids != CLS) & (ids != SEP)
    a = tokenizer.decode(ids[non_special & (segments == 0)].tolist())
    return a, tokenizer.decode(ids[non_special & (segments == 1)].tolist())


def document_names(text: str) -> set[str]:
    return set(re.findall(r"\bd\d+", text))


def check_layout(sequences: Sequences) -> None:
    """[CLS] A [SEP] B [SEP] and padding, with segment 1 from the first token of B to the last [SEP]."""
    columns = sequences.ids, sequences.segments, sequences.lengths, sequences.nsp_labels
    for ids, segments, length, label in zip(*columns, strict=True):
        seps = (ids == SEP).nonzero()[:, 0].tolist()
        assert ids[0] == CLS
        assert len(seps) == (1 if label == NO_PAIR else 2)
        assert seps[-1] == length - 1
        assert (ids[length:] == PAD).all()
        expected = torch.zeros_like(segments)
        if label != NO_PAIR:
            expected[seps[0] + 1 : seps[1] + 1] = 1
        assert torch.equal(segments, expected)


def test_full_pairs_fill_the_row_and_their_labels_are_right(tmp_path: Path) -> None:
    tokenizer, stream = small_pretraining.tokeniser(tmp_path), small_pretraining.token_stream(tmp_path)
    sequences = full_pairs(stream, 400, torch.Generator().manual_seed(0))
    check_layout(sequences)
    assert (sequences.lengths == small_pretraining.MAX_LENGTH).all()
    assert 0.42 < sequences.nsp_labels.float().mean() < 0.58
    documents = [tokenizer.decode(stream.ids[a:b].tolist()) for a, b in _document_bounds(stream)]
    for row in range(400):
        a, b = segment_texts(sequences, row, tokenizer)
        follows = any(f"{a} {b}" in document for document in documents)
        assert follows == (sequences.nsp_labels[row] == 0), (a, b)


def _document_bounds(stream: TokenStream) -> list[tuple[int, int]]:
    edges = stream.sentences[stream.documents].tolist()
    return list(pairwise(edges))


def test_short_sequences_are_half_single_sentences_and_half_pairs(tmp_path: Path) -> None:
    tokenizer, stream = small_pretraining.tokeniser(tmp_path), small_pretraining.token_stream(tmp_path)
    sequences = short_sequences(stream, 400, 40, torch.Generator().manual_seed(1))
    check_layout(sequences)
    assert (sequences.nsp_labels[:200] == NO_PAIR).all()
    assert (sequences.nsp_labels[200:] >= 0).all()
    for row in range(200, 400):
        a, b = segment_texts(sequences, row, tokenizer)
        same_document = document_names(a) == document_names(b)
        assert same_document == (sequences.nsp_labels[row] == 0)
        if same_document:
            numbers = re.findall(r"\bs(\d+)", a)[-1], re.findall(r"\bs(\d+)", b)[0]
            assert int(numbers[1]) == int(numbers[0]) + 1


def test_long_sentences_are_truncated(tmp_path: Path) -> None:
    sequences = short_sequences(small_pretraining.token_stream(tmp_path), 100, 12, torch.Generator().manual_seed(1))
    check_layout(sequences)
    assert (sequences.lengths <= 12).all()
    first = (sequences.ids[50:] == SEP).int().argmax(dim=1) - 1
    assert (first == 4).all()


def test_held_out_documents_are_never_sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pretraining.stream.HELD_OUT_EVERY", 5)
    text = small_pretraining.encoded_text(tmp_path)
    held_out = {f"d{number}" for number in held_out_indices(text)}
    assert held_out == {f"d{number}" for number in range(4, 40, 5)}
    tokenizer = small_pretraining.tokeniser(tmp_path)
    stream = make_stream(text, max_length=small_pretraining.MAX_LENGTH, length_exponent=0.85, device="cpu")
    sequences = short_sequences(stream, 500, 64, torch.Generator().manual_seed(0))
    sampled = {
        name for row in range(500) for text in segment_texts(sequences, row, tokenizer) for name in document_names(text)
    }
    assert len(sampled) > 25
    assert not sampled & held_out


def test_a_text_without_a_long_document_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no document is long enough"):
        make_stream(small_pretraining.encoded_text(tmp_path), max_length=10_000, length_exponent=1.0, device="cpu")
