"""Attention between words is what a loop over words and pieces says, and its rows still sum to 1."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bertology.corpus.corpus import Input
from bertology.corpus.sentence import sentence
from bertology.encoder.pieces import Pieces, Special
from bertology.recording.entry import Entry
from bertology.recording.frame import Frame
from bertology.recording.word_level import From, Place, blocks_of_words, to_words, words_of

CLS, SEP, NONE, OTHER = Special.CLS, Special.SEP, Special.NONE, Special.OTHER


def entry(word: list[int], special: list[Special], words: int) -> Entry:
    n = len(word)
    zeros = np.zeros(n, np.int32)
    pieces = Pieces(zeros, ("x",) * n, zeros, zeros, np.array(word, np.int32), np.array(special, np.int32), words)
    return Entry(0, 0, 0, Input((sentence(["w"] * words),)), pieces)


ENTRIES = [
    entry([-1, 0, 1, 1, 2, -1], [CLS, NONE, NONE, NONE, NONE, SEP], 3),
    # Word 1 has no piece, word 3 has three, one piece belongs to no word, and there are two separators.
    entry([-1, 0, 2, -1, -1, 3, 3, 3, -1], [CLS, NONE, NONE, NONE, SEP, NONE, NONE, NONE, SEP], 4),
    entry([-1, -1], [CLS, SEP], 0),
]
MODES: tuple[From, ...] = ("mean", "first", "max")


def maps_of(entries: list[Entry], heads: int = 2) -> torch.Tensor:
    """Random maps as a forward pass makes them: no attention to padding, rows of padding not empty."""
    frame = Frame(entries)
    scores = torch.randn(len(entries), heads, frame.width, frame.width, generator=torch.Generator().manual_seed(1))
    return scores.masked_fill(~frame.real[:, None, None, :], -torch.inf).softmax(-1)


def by_loop(attention: np.ndarray[tuple[int, ...], np.dtype[np.float32]], pieces: Pieces, width: int, rows: From):
    """(place, place) one sentence and head at a time; `width` is the words of the longest entry of the batch."""
    places: list[list[int]] = [[] for _ in range(width + len(Place))]
    for piece, (word, kind) in enumerate(zip(pieces.word, pieces.special, strict=True)):
        after = {CLS: Place.CLS, SEP: Place.SEP}.get(Special(kind), Place.OTHER)
        places[word if word >= 0 else width + after].append(piece)
    found = np.zeros((len(places), len(places)))
    for i, sources in enumerate(places):
        if not sources:
            continue
        taken = np.array([[attention[p, targets].sum() for targets in places] for p in sources])
        row = {"mean": taken.mean(0), "first": taken[0], "max": taken.max(0) / taken.max(0).sum()}[rows]
        found[i] = row
    return found


@pytest.mark.parametrize("rows", MODES)
def test_it_is_what_a_loop_says(rows: From) -> None:
    maps, words = maps_of(ENTRIES), words_of(Frame(ENTRIES))
    found = to_words(maps, words, rows=rows, special=True)
    assert found.shape == (3, 2, 4 + len(Place), 4 + len(Place))
    for row, one in enumerate(ENTRIES):
        for head in range(2):
            expected = by_loop(maps[row, head].numpy(), one.pieces, 4, rows)
            np.testing.assert_allclose(found[row, head].numpy(), expected, atol=1e-6)
    bare = to_words(maps, words, rows=rows)
    torch.testing.assert_close(bare, found[:, :, :4, :4])


@pytest.mark.parametrize("rows", MODES)
def test_rows_still_sum_to_one(rows: From) -> None:
    words = words_of(Frame(ENTRIES))
    sums = to_words(maps_of(ENTRIES), words, rows=rows, special=True).sum(-1)
    torch.testing.assert_close(sums, (words.size[:, None, :-1] > 0).float().expand_as(sums))


@pytest.mark.parametrize("rows", MODES)
def test_without_split_words_nothing_changes(rows: From) -> None:
    whole = entry([-1, 0, 1, 2, -1], [CLS, NONE, NONE, NONE, SEP], 3)
    maps = maps_of([whole])
    found = to_words(maps, words_of(Frame([whole])), rows=rows)
    torch.testing.assert_close(found, maps[:, :, 1:4, 1:4])


def test_summing_first_and_averaging_first_are_one() -> None:
    maps, words = maps_of(ENTRIES[:1]), words_of(Frame(ENTRIES[:1]))
    rows_first = maps[:, :, [1, 2, 4]].clone()
    rows_first[:, :, 1] = (maps[:, :, 2] + maps[:, :, 3]) / 2
    both = rows_first[..., [1, 2, 4]].clone()
    both[..., 1] = rows_first[..., 2] + rows_first[..., 3]
    torch.testing.assert_close(to_words(maps, words), both)


@pytest.mark.parametrize("rows", MODES)
def test_company_in_the_batch_changes_nothing(rows: From) -> None:
    maps = maps_of(ENTRIES)
    together = to_words(maps, words_of(Frame(ENTRIES)), rows=rows)
    for row, one in enumerate(ENTRIES[:2]):
        n, words = len(one.pieces), one.pieces.words
        alone = to_words(maps[row : row + 1, :, :n, :n], words_of(Frame([one])), rows=rows)
        torch.testing.assert_close(together[row, :, :words, :words], alone[0])


def test_gradients_pass_through() -> None:
    maps = maps_of(ENTRIES).double().requires_grad_()
    words = words_of(Frame(ENTRIES))

    def pooled(given: torch.Tensor) -> torch.Tensor:
        return to_words(given, words, special=True)

    assert torch.autograd.gradcheck(pooled, maps)


def test_the_maps_are_left_alone() -> None:
    maps = maps_of([replace(ENTRIES[0])])
    before = maps.clone()
    to_words(maps, words_of(Frame(ENTRIES[:1])), rows="max")
    torch.testing.assert_close(maps, before)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.integers(-1, 3), max_size=60), st.integers(2, 9))
def test_blocks_have_whole_words_and_as_many_as_fit(steps: list[int], most: int) -> None:
    """A step is how far the word of a piece is from the one before; -1 for a piece of no word."""
    word, last = np.full(len(steps), -1, np.int32), 0
    for piece, step in enumerate(steps):
        if step >= 0:
            word[piece] = last = last + step
    blocks = blocks_of_words(word, most)
    if blocks is None:  # a word alone does not fit
        spans = [np.flatnonzero(word == own) for own in set(word[word >= 0].tolist())]
        assert max(span[-1] - span[0] + 1 for span in spans) > most
        return
    covered: list[int] = []
    for start, pieces, first, words in blocks:
        inside = [own for own in word[start : start + pieces].tolist() if own >= 0]
        assert set(inside) == set(range(first, first + words))
        assert max(pieces, words) <= most
        covered.extend(place for place in range(start, start + pieces) if word[place] >= 0)
    assert covered == np.flatnonzero(word >= 0).tolist()
    for (start, _, first, _), (following, _, other, _) in pairwise(blocks):
        own = np.flatnonzero(word == other)
        gap = other - int(word[: int(own[0])].max()) > 1
        assert own[0] == following  # no word is cut
        assert gap or own[-1] - start >= most or other - first >= most  # nor would the next have fitted


def test_words_out_of_order_are_in_no_blocks() -> None:
    assert blocks_of_words(np.array([1, 0], np.int32), 64) is None
