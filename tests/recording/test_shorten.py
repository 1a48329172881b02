"""Inputs that are too long: refused, skipped, truncated or windowed, counted, with every alignment valid."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.recording.material import DETERMINED, mixed, random_sentence, tiny

from bertology.corpus.corpus import Corpus, Input, Item, of_sentences
from bertology.corpus.sentence import Sentence, Span, sentence
from bertology.encoder.encoder import Encoder
from bertology.encoder.load import load
from bertology.encoder.pieces import Pieces, Special
from bertology.errors import Refusal
from bertology.recording.entry import Entry
from bertology.recording.plan import make_plan
from bertology.recording.policy import Long, Policy
from bertology.recording.recorder import record
from bertology.recording.shorten import cut

GIANT = "abcdefghi" * 10
"""One piece a letter; beyond a hundred letters the tokeniser would make it one unknown piece."""


def _long(words: int, *, parts: int = 1, giant: int | None = None, seed: int = 0) -> Corpus:
    random_ = random.Random(seed)
    made = [random_sentence(random_, words) for _ in range(parts)]
    if giant is not None:
        words_ = list(made[-1].words)
        words_[giant] = GIANT
        made[-1] = sentence(words_)
    return Corpus((Item(tuple(made), "pair" if parts > 1 else "sentence"),), name="long")


def _entries(corpus: Corpus, long: Long, limit: int) -> tuple[tuple[Entry, ...], dict[str, int]]:
    plan = make_plan(tiny(), corpus, Policy(long=long, max_pieces=limit))
    return plan.entries, plan.counts


def assert_aligned(entry: Entry, limit: int) -> None:
    """The entry fits, its word axis is its input's, and its pieces are those of its own text."""
    pieces = entry.pieces
    assert 0 < len(pieces) <= limit
    assert pieces.words == len(entry.input.words)
    assert pieces.word.max() < pieces.words
    for part in entry.input.parts:
        assert tuple(part.text[a:b] for a, b in part.offsets) == part.words
    again = tiny().tokenise([entry.input])[0]
    assert again.tokens == pieces.tokens
    np.testing.assert_array_equal(again.word, pieces.word)
    assert pieces.special[0] == Special.CLS
    assert pieces.special[-1] == Special.SEP


def test_error_says_how_long_and_what_to_do() -> None:
    with pytest.raises(Refusal, match=r"(?s)has \d+ pieces.*at most 16 pieces.*skip, truncate or window"):
        _entries(_long(30), "error", 16)


def test_the_encoders_own_limit_holds_without_a_policy() -> None:
    with pytest.raises(Refusal, match=f"at most {tiny().max_pieces} pieces"):
        make_plan(tiny(), _long(tiny().max_pieces), Policy())


def test_skip_leaves_out_and_counts() -> None:
    corpus = Corpus((*mixed(6, longest=3), *_long(40)))
    entries, counts = _entries(corpus, "skip", 40)
    assert [entry.item for entry in entries] == list(range(6))
    assert counts["over-long inputs skipped"] == 1
    assert counts["inputs"] == 7
    with pytest.raises(Refusal, match="No input"):
        _entries(_long(40), "skip", 16)


@pytest.mark.parametrize("parts", [1, 2])
def test_truncation_keeps_the_first_words_and_fills_the_room(parts: int) -> None:
    corpus = _long(40, parts=parts)
    (entry,), counts = _entries(corpus, "truncate", 24)
    assert_aligned(entry, 24)
    assert counts["over-long inputs truncated"] == 1
    assert "words cut inside" not in counts
    assert len(entry.pieces) > 24 - 9, "no more is cut than a word"
    for whole, kept in zip(corpus[0].parts, entry.input.parts, strict=True):
        assert whole.words[: len(kept)] == kept.words
        assert len(kept) > 0
        assert kept.heads is None, "a tree that lost its words is no tree"


def test_the_shorter_part_of_a_pair_stays_whole_where_it_can() -> None:
    short, long = mixed(1, longest=1)[0].parts[0], _long(60)[0].parts[0]
    for parts in ((short, long), (long, short)):
        (entry,), _ = _entries(Corpus((Item(parts, "pair"),)), "truncate", 30)
        assert_aligned(entry, 30)
        assert entry.input.parts[parts.index(short)] == short
        assert len(entry.pieces) > 30 - 9


def test_two_parts_of_very_different_length_both_keep_words() -> None:
    (entry,), _ = _entries(_long(50, parts=2), "truncate", 12)
    assert all(len(part) > 0 for part in entry.input.parts)
    assert_aligned(entry, 12)


@pytest.mark.parametrize("parts", [1, 2])
def test_windows_cover_every_word_and_half_overlap(parts: int) -> None:
    shown = (*mixed(1, longest=4)[0].parts, *_long(60)[0].parts)[-parts:]
    corpus = Corpus((Item(shown, "pair" if parts > 1 else "sentence"),))
    entries, counts = _entries(corpus, "window", 40)
    assert counts["windows"] == len(entries) > 2
    assert [entry.window for entry in entries] == list(range(len(entries)))
    for entry in entries:
        assert_aligned(entry, 40)
        assert entry.item == 0
    _assert_covered(corpus[0].parts[-1], [entry.input.parts[-1] for entry in entries])
    if parts == 2:
        assert all(entry.input.parts[0] == corpus[0].parts[0] for entry in entries)


def _assert_covered(whole: Sentence, windows: list[Sentence]) -> None:
    """The windows are runs of the words, each begins inside the one before it or right behind it, none is missing."""
    reached = start = 0
    for window in windows:
        start = next(at for at in range(start, reached + 1) if whole.words[at : at + len(window)] == window.words)
        reached = max(reached, start + len(window))
    assert reached == len(whole)


@pytest.mark.parametrize("long", ["truncate", "window"])
@pytest.mark.parametrize("giant", [0, 5, 19])
@pytest.mark.parametrize("parts", [1, 2])
def test_a_word_longer_than_the_encoder_is_cut_and_counted(long: Long, giant: int, parts: int) -> None:
    entries, counts = _entries(_long(20, giant=giant, parts=parts), long, 70)
    for entry in entries:
        assert_aligned(entry, 70)
    if long == "window":
        assert counts["words cut inside"] >= 1
        words = [word for entry in entries for word in entry.input.words]
        assert any(word.startswith(GIANT[:3]) for word in words), "the beginning of the giant word is recorded"
        if parts == 2:
            assert all(entry.input.parts[0] == entries[0].input.parts[0] for entry in entries)


STRANGE = ["the", "cat", "qzx", "é", "。", "\u200b", "☃", "a" * 40, "don't"]


@DETERMINED
@given(
    words=st.lists(st.sampled_from(STRANGE), min_size=1, max_size=60),
    second=st.lists(st.sampled_from(["and", "zzzz", "…"]), max_size=8),
    limit=st.integers(12, 40),
    long=st.sampled_from(["truncate", "window"]),
)
def test_whatever_the_words_they_align(words: list[str], second: list[str], limit: int, long: Long) -> None:
    parts = (sentence(words), sentence(second)) if second else (sentence(words),)
    corpus = Corpus((Item(parts, "pair" if second else "sentence"),))
    try:
        entries, counts = _entries(corpus, long, limit)
    except Refusal as refusal:
        assert "leave no room" in str(refusal)
        return
    for entry in entries:
        assert 0 < len(entry.pieces) <= limit
        assert entry.pieces.words == len(entry.input.words)
    if long == "window" and "words cut inside" not in counts:
        of_part = tiny().tokenise(corpus[0].inputs)[0].part
        longest = int(np.argmax([int((of_part == index).sum()) for index in range(len(parts))]))
        _assert_covered(parts[longest], [entry.input.parts[longest] for entry in entries])


def test_no_room_at_all_is_refused() -> None:
    for long in ("truncate", "window"):
        with pytest.raises(Refusal, match="leave no room"):
            _entries(_long(20), long, 2)
    pair = Corpus((Item((mixed(1, longest=9, seed=3)[0].parts[0], _long(30)[0].parts[0]), "pair"),))
    first = int((tiny().tokenise(pair[0].inputs)[0].part == 0).sum())
    with pytest.raises(Refusal, match="leave no room"):
        _entries(pair, "window", first + 3)
    assert _entries(pair, "window", first + 4 + 8)[0]


def test_a_cut_keeps_the_annotation_that_stays_true() -> None:
    whole = Sentence(
        words=("a", "b", "c", "d"),
        text="a b c d",
        offsets=((0, 1), (2, 3), (4, 5), (6, 7)),
        pos=("A", "B", "C", "D"),
        heads=(1, -1, 1, 2),
        entities=(Span(0, 1, "X"), Span(1, 3, "Y"), Span(2, 4, "Z")),
        marks={"target": (2,), "other": (0,)},
        label="good",
    )
    part = cut(whole, 1, 3)
    assert (part.words, part.text, part.offsets) == (("b", "c"), "b c", ((0, 1), (2, 3)))
    assert part.pos == ("B", "C")
    assert part.heads is None
    assert part.entities == (Span(0, 2, "Y"),)
    assert part.marks == {"target": (1,), "other": ()}
    assert part.label == "good"


def test_windows_are_recorded_like_any_other_entry() -> None:
    recording = record(tiny(), _long(60), ["attention"], policy=Policy(long="window", max_pieces=20))
    for index, entry in enumerate(recording.entries):
        assert recording["attention"][index].shape[-1] == len(entry.pieces)


def test_static_vectors_have_no_limit() -> None:
    corpus = of_sentences([sentence(["word"] * 5000)])
    assert len(record(load("random-vectors:4"), corpus, ["hidden"])) == 1


class Contextual:
    """An encoder that cuts the first word of a text into two pieces more than it would inside another."""

    def __init__(self, whole: Sentence) -> None:
        self.whole = whole

    def __getattr__(self, name: str) -> Any:
        return getattr(tiny(), name)

    def tokenise(self, inputs: Sequence[Input]) -> list[Pieces]:
        return [self._longer(shown, pieces) for shown, pieces in zip(inputs, tiny().tokenise(inputs), strict=True)]

    def _longer(self, shown: Input, pieces: Pieces) -> Pieces:
        if shown.parts[0] == self.whole:
            return pieces
        rows = [0, 1, 1, *range(1, len(pieces))]
        arrays: dict[str, Any] = {
            name: getattr(pieces, name)[rows] for name in ("ids", "types", "part", "word", "special")
        }
        return replace(pieces, tokens=tuple(pieces.tokens[row] for row in rows), **arrays)


@pytest.mark.parametrize("long", ["truncate", "window"])
def test_a_text_that_is_cut_otherwise_alone_still_fits_and_loses_no_word(long: Long) -> None:
    corpus = _long(60)
    whole = corpus[0].parts[0]
    encoder = cast(Encoder, Contextual(whole))
    for limit in range(20, 32):
        plan = make_plan(encoder, corpus, Policy(long=long, max_pieces=limit))
        assert all(len(entry.pieces) <= limit for entry in plan.entries)
        assert "words cut inside" not in plan.counts
        if long == "window":
            _assert_covered(whole, [entry.input.parts[0] for entry in plan.entries])
