"""What is done with an input that is too long for the encoder: refused, left out, cut, or cut into windows; counted.

Both cuts fall between words, so that the alignment stays valid; only a single word too long for the encoder is cut
inside, which is counted as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, islice, takewhile
from typing import Any

from bertology.corpus.corpus import Input
from bertology.corpus.sentence import SPANS, Sentence
from bertology.encoder.encoder import Encoder
from bertology.encoder.pieces import Pieces
from bertology.errors import Refusal
from bertology.recording.entry import Entry
from bertology.recording.policy import Long


def shortened(encoder: Encoder, entry: Entry, limit: int, long: Long, counts: Counter[str]) -> Iterator[Entry]:
    """The entries that stand for one with more than `limit` pieces: none, one, or several windows."""
    match long:
        case "skip":
            counts["over-long inputs skipped"] += 1
        case "truncate":
            counts["over-long inputs truncated"] += 1
            yield _truncated(encoder, entry, limit, counts)
        case "window":
            counts["over-long inputs windowed"] += 1
            for window in _windows(encoder, entry, limit, counts):
                counts["windows"] += 1
                yield window
        case "error":
            raise Refusal(
                f"Item {entry.item + 1} ({_opening(entry)} ...) has {len(entry.pieces)} pieces",
                f"at most {limit} pieces an input for {encoder.name}",
                "Choose with --long what to do: skip, truncate or window; each is counted in the result",
            )


def cut(part: Sentence, start: int, end: int) -> Sentence:
    """Words `start` to `end` of a sentence with their text; spans that stay whole are kept, the broken tree is not."""
    begin, stop = part.offsets[start][0], part.offsets[end - 1][1]
    kept: dict[str, Any] = {}
    for name in ("lemmas", "pos", "xpos", "features", "tags", "senses"):
        values = getattr(part, name)
        kept[name] = None if values is None else values[start:end]
    for name in SPANS:
        spans = getattr(part, name)
        whole = () if spans is None else (s for s in spans if start <= s.start and s.end <= end)
        moved = tuple(replace(span, start=span.start - start, end=span.end - start) for span in whole)
        kept[name] = None if spans is None else moved
    return Sentence(
        words=part.words[start:end],
        text=part.text[begin:stop],
        offsets=tuple((a - begin, b - begin) for a, b in part.offsets[start:end]),
        id=part.id,
        document=part.document,
        label=part.label,
        marks={name: tuple(i - start for i in indices if start <= i < end) for name, indices in part.marks.items()},
        **kept,
    )


def _truncated(encoder: Encoder, entry: Entry, limit: int, counts: Counter[str], only: int | None = None) -> Entry:
    """The first words of each part, the longer part losing words first, or only of the part `only`.

    At least one word of each part stays.
    """
    parts = entry.input.parts
    sizes = [_sizes(entry.pieces, parts, index) for index in range(len(parts))]
    totals = [sum(part) for part in sizes]
    room = limit - (len(entry.pieces) - sum(totals))
    while True:
        shares = _shares(totals, room, only)
        if any(share < min(1, total) for share, total in zip(shares, totals, strict=True)):
            raise _no_room(encoder, entry, limit)
        kept = [_first(part, sizes[index], shares[index]) for index, part in enumerate(parts)]
        shown = Input(tuple(sentence for sentence, _ in kept))
        pieces = encoder.tokenise([shown])[0]
        if len(pieces) <= limit:
            counts["words cut inside"] += sum(inside for _, inside in kept)
            return replace(entry, input=shown, pieces=pieces)
        # A text that ends elsewhere may be cut into other pieces: ask for as much less as there is too much.
        room -= len(pieces) - limit


def _shares(totals: Sequence[int], room: int, only: int | None) -> list[int]:
    """How many pieces each part may keep: shorter parts whole where that leaves the others their even share."""
    if only is not None:
        others = sum(totals) - totals[only]
        return [room - others if index == only else total for index, total in enumerate(totals)]
    shares = [0] * len(totals)
    left = room
    for rank, index in enumerate(sorted(range(len(totals)), key=lambda i: totals[i])):
        shares[index] = min(totals[index], left // (len(totals) - rank))
        left -= shares[index]
    return shares


def _first(part: Sentence, sizes: Sequence[int], share: int) -> tuple[Sentence, int]:
    """As many whole words as fit into `share` pieces, or the beginning of the first one, and whether that was cut."""
    words = _fitting(sizes, 0, share)
    if words == len(part):
        return part, 0
    if words:
        return cut(part, 0, words), 0
    characters = max(1, len(part.words[0]) * share // sizes[0])
    first = cut(part, 0, 1)
    start, end = first.offsets[0]
    stop = min(end, start + characters)
    return replace(first, words=(first.words[0][:characters],), text=first.text[:stop], offsets=((start, stop),)), 1


def _fitting(sizes: Sequence[int], start: int, room: int) -> int:
    """How many words from `start` on fit into `room` pieces."""
    totals = accumulate(islice(sizes, start, None))
    return sum(1 for _ in takewhile(lambda total: total <= room, totals))


def _windows(encoder: Encoder, entry: Entry, limit: int, counts: Counter[str]) -> Iterator[Entry]:
    """Windows over the words of the longest part, each half over the last one; other parts stay whole.

    Every word is in a window. A word too long for a window of its own is cut.
    """
    parts = entry.input.parts
    totals = [sum(_sizes(entry.pieces, parts, index)) for index in range(len(parts))]
    longest = totals.index(max(totals))
    sizes = _sizes(entry.pieces, parts, longest)
    room = limit - (len(entry.pieces) - sum(sizes))
    if room < 1:
        raise _no_room(encoder, entry, limit)
    start = number = 0
    while start < len(sizes):
        end = start + max(1, _fitting(sizes, start, room))
        window = _window(encoder, entry, longest, start, end, number)
        while len(window.pieces) > limit and end > start + 1:
            end -= 1
            window = _window(encoder, entry, longest, start, end, number)
        yield window if len(window.pieces) <= limit else _truncated(encoder, window, limit, counts, longest)
        number += 1
        if end == len(sizes):
            return
        start += max(1, (end - start) // 2)


def _window(encoder: Encoder, entry: Entry, part: int, start: int, end: int, number: int) -> Entry:
    shown = Input(tuple(cut(p, start, end) if i == part else p for i, p in enumerate(entry.input.parts)))
    return replace(entry, window=number, input=shown, pieces=encoder.tokenise([shown])[0])


def _sizes(pieces: Pieces, parts: Sequence[Sentence], index: int) -> list[int]:
    """How many pieces each word of one part has; a piece that belongs to no word is counted with the word before it."""
    first = sum(len(part) for part in parts[:index])
    sizes = [0] * len(parts[index])
    current = 0
    for word in pieces.word[pieces.part == index].tolist() if sizes else ():
        current = max(current, word - first)
        sizes[current] += 1
    return sizes


def _no_room(encoder: Encoder, entry: Entry, limit: int) -> Refusal:
    return Refusal(
        f"Item {entry.item + 1} ({_opening(entry)} ...) cannot be cut to {limit} pieces: its special tokens and its "
        "other part leave no room",
        f"room for a word of each part within {limit} pieces for {encoder.name}",
        "Raise --max-pieces, or use --long truncate or --long skip",
    )


def _opening(entry: Entry) -> str:
    words = " ".join(entry.input.words[:6])
    return words if len(words) <= 60 else words[:60]
