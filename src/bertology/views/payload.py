"""What a page is given: its schema, from which the TypeScript of the front-end is generated (see `typescript`).

Numbers are coded as rows: each row has one scale, its largest size, and whole numbers in `levels` steps of it. A
layer is one chunk: the scales of all rows as 32-bit floats, then the steps, deflated, in base64.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from bertology.errors import Refusal

FINE, COARSE, COARSEST = 32767, 255, 128
"""Steps of a row's scale: in two bytes, in one, and in one where a page would otherwise be heavy.

The largest error is half a step: 1/256 of a row's largest weight at the coarsest.
"""
FINE_UP_TO, COARSE_UP_TO = 2_000_000, 10_000_000
"""How many numbers a page may hold in the finer steps."""


class Coded(BaseModel):
    """Rows of numbers, one chunk a layer: (head, row, size) each; `signed` steps start at -levels."""

    heads: int
    rows: int
    size: int
    levels: int
    bytes: int
    signed: bool
    chunks: list[str]


class Quantity(BaseModel):
    """One kind of weight between pieces: (layer, head, from, to)."""

    name: str
    about: str
    maps: Coded


class Piece(BaseModel):
    """A piece as it is shown; `word` is its index among the words or -1, `segment` 0 or 1 in a pair."""

    text: str
    word: int
    segment: int
    special: bool


class HeadLabel(BaseModel):
    """What an analysis found a head to do, and on what evidence; counted from 0."""

    layer: int
    head: int
    label: str
    evidence: str


class Arc(BaseModel):
    """An edge between two words: from a dependent to its head where the tree has directions."""

    start: int
    end: int
    label: str


class Tree(BaseModel):
    """Edges over the words of an input, where they come from, and how good they are."""

    name: str
    about: str
    directed: bool
    arcs: list[Arc]


class Run(BaseModel):
    """One model on one input; `lengths` are those of f(x), (layer, head, 1, piece), where they are known.

    `causal`: a piece sees only what is before it. `reach`: by layer, how many pieces away it sees, null as far as there
    are any; empty where all layers do.
    """

    name: str
    pieces: list[Piece]
    words: list[str]
    pair: bool
    causal: bool
    reach: list[int | None]
    quantities: list[Quantity]
    lengths: Coded | None
    query: Coded | None
    key: Coded | None
    labels: list[HeadLabel]
    trees: list[Tree]


class Payload(BaseModel):
    """Everything a page shows; `state` is what it opens with, as in the address of a link."""

    title: str
    runs: list[Run]
    notes: list[str]
    state: str


def coded(numbers: NDArray[np.floating], *, levels: int | None = None) -> Coded:
    """Rows of an array (layer, head, row, size) in steps of their largest size."""
    if not np.isfinite(numbers).all():
        raise Refusal("The numbers to show hold NaN or infinity", "finite numbers", "Look at where they come from")
    signed = bool((numbers < 0).any())
    steps = levels or _levels(numbers.size, signed)
    wide = steps * (2 if signed else 1) > 255
    _, heads, rows, size = numbers.shape
    chunks = [_chunk(layer, steps, signed, np.dtype("<u2" if wide else "u1")) for layer in numbers]
    return Coded(heads=heads, rows=rows, size=size, levels=steps, bytes=2 if wide else 1, signed=signed, chunks=chunks)


def _levels(count: int, signed: bool) -> int:
    if count <= FINE_UP_TO:
        return FINE
    if signed:
        return COARSE // 2
    return COARSE if count <= COARSE_UP_TO else COARSEST


def _chunk(layer: NDArray[np.floating], levels: int, signed: bool, kind: np.dtype[np.unsignedinteger]) -> str:
    rows = layer.astype(np.float64)
    scales = np.abs(rows).max(-1, initial=0.0).astype("<f4")
    divisor = np.where(scales > 0, scales, 1).astype(np.float64)[..., None]
    steps = np.clip(np.rint(rows / divisor * levels), -levels, levels) + (levels if signed else 0)
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    packed = packer.compress(scales.tobytes()) + packer.compress(steps.astype(kind).tobytes()) + packer.flush()
    return base64.b64encode(packed).decode("ascii")


def decoded(rows: Coded) -> NDArray[np.float32]:
    """The numbers a page gets out of them again: (layer, head, row, size)."""
    layers: Sequence[NDArray[np.float32]] = [_unpacked(rows, chunk) for chunk in rows.chunks]
    return np.stack(layers) if layers else np.empty((0, rows.heads, rows.rows, rows.size), np.float32)


def _unpacked(rows: Coded, chunk: str) -> NDArray[np.float32]:
    data = zlib.decompress(base64.b64decode(chunk), -15)
    count = rows.heads * rows.rows
    scales = np.frombuffer(data, "<f4", count).reshape(rows.heads, rows.rows, 1)
    steps = np.frombuffer(data, "<u2" if rows.bytes == 2 else "u1", offset=4 * count)
    shaped = steps.reshape(rows.heads, rows.rows, rows.size).astype(np.float32)
    steps_of_scale = scales / np.float32(rows.levels)
    return ((shaped - (rows.levels if rows.signed else 0)) * steps_of_scale).astype(np.float32)
