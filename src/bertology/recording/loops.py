"""What numba compiles for a processor: loops over the cells of attention maps; see `compiled`.

Maps are (map, from, to), those of all heads of an entry after each other; what is known of pieces is (entry, piece).
`part` is the first map that a thread takes, and the one after its last. Sums may be taken in any order, so that many
cells are taken at once; NaN stays NaN.
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
def peaks(maps, ordinary, found, part):
    """To `found`, (3, map, from): the share of ordinary targets, the highest weight, and that among them."""
    _, sources, targets = maps.shape
    for number in range(part[0], part[1]):
        inside = ordinary[number * len(ordinary) // len(maps)]
        for source in range(sources):
            row = maps[number, source]
            share, peak, inner_peak = _NOTHING, int32(0), int32(0)
            for target in range(targets):
                inner = row[target] * inside[target]
                share += inner
                peak = max(peak, _rank(row[target]))
                inner_peak = max(inner_peak, _rank(inner))
            found[0, number, source] = share
            found[1, number, source] = _number(int32(peak))
            found[2, number, source] = _number(int32(inner_peak))


@_compiled
def information(maps, ordinary, found, part):
    """To `found`, (2, map, from): the sums of -a log2 a over all targets, and over ordinary ones."""
    _, sources, targets = maps.shape
    for number in range(part[0], part[1]):
        inside = ordinary[number * len(ordinary) // len(maps)]
        for source in range(sources):
            row = maps[number, source]
            whole, inner = _NOTHING, _NOTHING
            for target in range(targets):
                own = row[target] * _log2(row[target])
                whole += own
                inner += own * inside[target]
            found[0, number, source] = -whole
            found[1, number, source] = -inner


@_compiled
def received(maps, real, found, part):
    """To `found`, (map, to): what each target gets from all sources that are there."""
    _, sources, targets = maps.shape
    for number in range(part[0], part[1]):
        there, own = real[number * len(real) // len(maps)], found[number]
        own[:] = _NOTHING
        for source in range(sources):
            if there[source]:
                row = maps[number, source]
                for target in range(targets):
                    own[target] += row[target]


@_compiled
def distances(maps, ordinary, word, found, part):
    """To `found`, (4, map, from): attention times distance, in pieces and words, over all targets and ordinary ones."""
    _, sources, targets = maps.shape
    place = np.arange(targets).astype(np.float32)
    for number in range(part[0], part[1]):
        entry = number * len(ordinary) // len(maps)
        inside, at = ordinary[entry], word[entry]
        for source in range(sources):
            row = maps[number, source]
            pieces, inner_pieces, words, inner_words = _NOTHING, _NOTHING, _NOTHING, _NOTHING
            for target in range(targets):
                inner = row[target] * inside[target]
                step, word_step = abs(place[target] - place[source]), abs(at[target] - at[source])
                pieces += row[target] * step
                inner_pieces += inner * step
                words += row[target] * word_step
                inner_words += inner * word_step
            found[0, number, source], found[1, number, source] = pieces, inner_pieces
            found[2, number, source], found[3, number, source] = words, inner_words


@_compiled
def word_maps(maps, order, starts, sizes, found, part):
    """To `found`, (map, place, place): means of the rows of a place's pieces, sums of their columns.

    `order` is (entry, piece) the pieces by place; `starts` and `sizes`, (entry, place), say which of them a place has.
    """
    targets, places = maps.shape[-1], found.shape[-1]
    mean = np.empty(targets, np.float32)
    first, further, owner = np.empty(places, np.uint32), np.empty(targets, np.uint32), np.empty(targets, np.uint32)
    for number in range(part[0], part[1]):
        entry = number * len(order) // len(maps)
        pieces, begins, counts = order[entry], starts[entry], sizes[entry]
        later = 0
        for place in range(places):
            first[place] = pieces[min(begins[place], targets - 1)]
            for other in range(begins[place] + 1, begins[place] + counts[place]):
                further[later], owner[later] = pieces[other], place
                later += 1
        for place in range(places):
            own = found[number, place]
            if counts[place] == 0:
                own[:] = _NOTHING
                continue
            row = maps[number, first[place]]
            if counts[place] > 1:
                mean[:] = row
                for other in range(begins[place] + 1, begins[place] + counts[place]):
                    mean += maps[number, pieces[other]]
                mean *= _ONE / float32(counts[place])
                row = mean
            for target in range(places):
                own[target] = row[first[target]]
            for other in range(later):
                own[owner[other]] += row[further[other]]
            for target in range(places):
                if counts[target] == 0:
                    own[target] = _NOTHING
