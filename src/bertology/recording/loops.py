"""What numba compiles for a processor: loops over the cells of attention maps; see `compiled`.

Maps are (entry, head, from, to), what is known of pieces is (entry, piece), `heads` are the first and the end of those
that a thread takes. Sums may be taken in any order, so that many cells are taken at once; NaN stays NaN.
"""
# What numba compiles has no types that a checker knows.
# pyright: basic, reportMissingImports=false, reportCallIssue=false

from __future__ import annotations

import numpy as np
from numba import float32, int32, njit
from numba.extending import intrinsic

_compiled = njit(fastmath={"reassoc", "contract", "nsz"}, cache=True, nogil=True)
_NOTHING, _ONE = np.float32(0), np.float32(1)
_HALF_ROOT, _MANTISSA, _POWER_AT = np.int32(0x3F3504F3), np.int32(0x7FFFFF), np.int32(23)
"""The bits of the root of 1/2, the bits that are no power of 2, and where the power begins."""
_NO_SIGN = np.int32(0x7FFFFFFF)
_C0, _C1, _C2 = np.float32(1.442695), np.float32(-0.721347333), np.float32(0.48091061)
_C3, _C4, _C5 = np.float32(-0.360704828), np.float32(0.287918324), np.float32(-0.23892034)
_C6, _C7, _C8 = np.float32(0.215669859), np.float32(-0.207421035), np.float32(0.126148466)
"""The logarithm of 1 + t to the base 2, over t, as a sum of powers of t: least squares, off by 1.3e-8 at most."""


@intrinsic
def _bits(typing, number):
    """The bits of a number."""
    return int32(float32), lambda context, builder, _, given: builder.bitcast(given[0], context.get_value_type(int32))


@intrinsic
def _number(typing, bits):
    return float32(int32), lambda context, builder, _, given: builder.bitcast(given[0], context.get_value_type(float32))


@njit(fastmath={"reassoc", "contract", "nsz"}, inline="always")
def _log2(number):
    """Of a positive number, which is a power of 2 times a number between the roots of 1/2 and 2; for 0 it is finite."""
    bits = int32(_bits(number) - _HALF_ROOT)
    t = _number(int32(int32(bits & _MANTISSA) + _HALF_ROOT)) - _ONE
    high = (((_C8 * t + _C7) * t + _C6) * t + _C5) * t + _C4
    return float32(int32(bits >> _POWER_AT)) + t * ((((high * t + _C3) * t + _C2) * t + _C1) * t + _C0)


@njit(inline="always")
def _rank(number):
    """Numbers that are not negative are in the order of their bits, and NaN, whatever its sign, is above them all."""
    return int32(_bits(number) & _NO_SIGN)


@_compiled
def peaks(maps, ordinary, found, heads):
    """To `found`, (3, entry, head, from): the share of ordinary targets, the highest weight, and that among them."""
    entries, _, sources, targets = maps.shape
    for entry in range(entries):
        inside = ordinary[entry]
        for head in range(heads[0], heads[1]):
            for source in range(sources):
                row = maps[entry, head, source]
                share, peak, inner_peak = _NOTHING, int32(0), int32(0)
                for target in range(targets):
                    inner = row[target] * inside[target]
                    share += inner
                    peak = max(peak, _rank(row[target]))
                    inner_peak = max(inner_peak, _rank(inner))
                found[0, entry, head, source] = share
                found[1, entry, head, source] = _number(int32(peak))
                found[2, entry, head, source] = _number(int32(inner_peak))


@_compiled
def information(maps, ordinary, found, heads):
    """To `found`, (2, entry, head, from): the sums of -a log2 a over all targets, and over ordinary ones."""
    entries, _, sources, targets = maps.shape
    for entry in range(entries):
        inside = ordinary[entry]
        for head in range(heads[0], heads[1]):
            for source in range(sources):
                row = maps[entry, head, source]
                whole, inner = _NOTHING, _NOTHING
                for target in range(targets):
                    own = row[target] * _log2(row[target])
                    whole += own
                    inner += own * inside[target]
                found[0, entry, head, source] = -whole
                found[1, entry, head, source] = -inner


@_compiled
def received(maps, real, found, heads):
    """To `found`, (entry, head, to): what each target gets from all sources that are there."""
    entries, _, sources, targets = maps.shape
    for entry in range(entries):
        for head in range(heads[0], heads[1]):
            own = found[entry, head]
            own[:] = _NOTHING
            for source in range(sources):
                if real[entry, source]:
                    row = maps[entry, head, source]
                    for target in range(targets):
                        own[target] += row[target]


@_compiled
def distances(maps, real, ordinary, word, share, found, heads):
    """To `found`, (entry, head, 4): attention times distance; see `Rows.distances`. `share` is of pieces in words."""
    entries, _, sources, targets = maps.shape
    place = np.arange(targets).astype(np.float32)
    for entry in range(entries):
        there, inside, at = real[entry], ordinary[entry], word[entry]
        for head in range(heads[0], heads[1]):
            found[entry, head] = 0
            for source in range(sources):
                row = maps[entry, head, source]
                pieces, inner_pieces, words, inner_words = _NOTHING, _NOTHING, _NOTHING, _NOTHING
                for target in range(targets):
                    weight = row[target]  # nothing, where it is padding
                    inner = weight * inside[target]
                    step, word_step = abs(place[target] - place[source]), abs(at[target] - at[source])
                    pieces += weight * step
                    inner_pieces += inner * step
                    words += weight * word_step
                    inner_words += inner * word_step
                found[entry, head, 0] += pieces * there[source]
                found[entry, head, 1] += inner_pieces * inside[source]
                found[entry, head, 2] += words * share[entry, source]
                found[entry, head, 3] += inner_words * share[entry, source] * inside[source]


@_compiled
def word_maps(maps, order, starts, sizes, found, heads):
    """To `found`, (entry, head, place, place): means of the rows of a place's pieces, sums of their columns.

    `order` is (entry, piece) the pieces by place; `starts` and `sizes`, (entry, place), say which of them a place has.
    """
    entries, _, _, targets = maps.shape
    places = found.shape[-1]
    mean = np.empty(targets, np.float32)
    first, further, owner = np.empty(places, np.uint32), np.empty(targets, np.uint32), np.empty(targets, np.uint32)
    for entry in range(entries):
        count = 0
        for place in range(places):
            start = starts[entry, place]
            first[place] = order[entry, min(start, targets - 1)]
            for later in range(start + 1, start + sizes[entry, place]):
                further[count], owner[count] = order[entry, later], place
                count += 1
        for head in range(heads[0], heads[1]):
            for place in range(places):
                own = found[entry, head, place]
                size = sizes[entry, place]
                if size == 0:
                    own[:] = _NOTHING
                    continue
                row = maps[entry, head, first[place]]
                if size > 1:
                    mean[:] = row
                    for later in range(starts[entry, place] + 1, starts[entry, place] + size):
                        mean += maps[entry, head, order[entry, later]]
                    mean *= _ONE / float32(size)
                    row = mean
                for target in range(places):
                    own[target] = row[first[target]]
                for number in range(count):
                    own[owner[number]] += row[further[number]]
                for target in range(places):
                    if sizes[entry, target] == 0:
                        own[target] = _NOTHING
