from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
import small
import torch
from pretraining.pairs import CLS, PAD, SEP, Sequences, full_pairs, short_sequences
from pretraining.stream import Stream, held_out, make_stream
from tokenizers import Tokenizer


def parts(rows: Sequences, row: int, tokenizer: Tokenizer) -> tuple[str, str]:
    """The text of A and of B, B empty without one."""
    ids, segments = rows.ids[row], rows.segments[row]
    inner = (ids != PAD) & (ids != CLS) & (ids != SEP)
    a = tokenizer.decode(ids[inner & (segments == 0)].tolist())
    return a, tokenizer.decode(ids[inner & (segments == 1)].tolist())


def topics(text: str) -> set[str]:
    return set(re.findall(r"\bd\d+", text))


def check_layout(rows: Sequences) -> None:
    """[CLS] first, [SEP] after A and after B, segment 1 from after the first [SEP] to the last, padding after it."""
    for ids, segments, length, random in zip(rows.ids, rows.segments, rows.lengths, rows.random, strict=True):
        seps = (ids == SEP).nonzero()[:, 0].tolist()
        assert ids[0] == CLS
        assert len(seps) == (1 if random == -1 else 2)
        assert seps[-1] == length - 1
        assert (ids[length:] == PAD).all()
        expected = torch.zeros_like(segments)
        if random != -1:
            expected[seps[0] + 1 : seps[1] + 1] = 1
        assert torch.equal(segments, expected)


def test_full_pairs_fill_the_row_and_b_follows_where_it_is_said_to(tmp_path: Path) -> None:
    tokenizer, stream = small.tokeniser(tmp_path), small.stream(tmp_path)
    rows = full_pairs(stream, 400, torch.Generator().manual_seed(0))
    check_layout(rows)
    assert (rows.lengths == small.WIDTH).all()
    assert 0.42 < rows.random.float().mean() < 0.58
    text = [tokenizer.decode(stream.ids[a:b].tolist()) for a, b in _documents(stream)]
    for row in range(400):
        a, b = parts(rows, row, tokenizer)
        together = any(f"{a} {b}" in one for one in text)
        assert together == (rows.random[row] == 0), (a, b)


def _documents(stream: Stream) -> list[tuple[int, int]]:
    edges = stream.sentences[stream.documents].tolist()
    return list(pairwise(edges))


def test_short_rows_are_half_single_half_pairs_of_neighbours(tmp_path: Path) -> None:
    tokenizer, stream = small.tokeniser(tmp_path), small.stream(tmp_path)
    rows = short_sequences(stream, 400, 40, torch.Generator().manual_seed(1))
    check_layout(rows)
    assert (rows.random[:200] == -1).all()
    assert (rows.random[200:] >= 0).all()
    for row in range(200, 400):
        a, b = parts(rows, row, tokenizer)
        same = topics(a) == topics(b)
        assert same == (rows.random[row] == 0)
        if same:
            numbers = re.findall(r"\bs(\d+)", a)[-1], re.findall(r"\bs(\d+)", b)[0]
            assert int(numbers[1]) == int(numbers[0]) + 1


def test_long_sentences_are_cut_to_the_row(tmp_path: Path) -> None:
    rows = short_sequences(small.stream(tmp_path), 100, 12, torch.Generator().manual_seed(1))
    check_layout(rows)
    assert (rows.lengths <= 12).all()
    first = (rows.ids[50:] == SEP).int().argmax(dim=1) - 1
    assert (first == 4).all()


def test_held_out_documents_are_never_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pretraining.stream.HELD_OUT", 5)
    tokens = small.tokens(tmp_path)
    barred = {f"d{number}" for number in held_out(tokens)}
    assert barred == {f"d{number}" for number in range(4, 40, 5)}
    tokenizer = small.tokeniser(tmp_path)
    stream = make_stream(tokens, width=small.WIDTH, power=0.85, device="cpu")
    rows = short_sequences(stream, 500, 64, torch.Generator().manual_seed(0))
    seen = {topic for row in range(500) for part in parts(rows, row, tokenizer) for topic in topics(part)}
    assert len(seen) > 25
    assert not seen & barred


def test_a_text_with_no_long_document_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no document is long enough"):
        make_stream(small.tokens(tmp_path), width=10_000, power=1.0, device="cpu")
