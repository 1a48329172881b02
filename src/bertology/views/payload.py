"""The data of a page of views; the TypeScript types of the front-end are generated from it (see `typescript`).

Arrays are quantised by row: each row has a scale, its largest absolute value, and integers in `levels` steps of it. A
layer is one chunk: the scales of all rows as 32-bit floats, then the integers, deflated, in base64.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from bertology.errors import Refusal

FINE_LEVELS, COARSE_LEVELS, COARSEST_LEVELS = 32767, 255, 128
"""Steps of a row's scale: in two bytes, in one byte, and in one byte for pages that would otherwise be large.

The error is at most half a step: 1/256 of a row's largest weight with the coarsest steps.
"""
MAX_FINE_VALUES, MAX_COARSE_VALUES = 2_000_000, 10_000_000
"""Pages with more values than this use coarser steps."""


class QuantisedRows(BaseModel):
    """Rows of numbers, one chunk per layer of shape (head, row, size); signed integers are offset by `levels`."""

    heads: int
    rows: int
    size: int
    levels: int
    bytes: int
    signed: bool
    chunks: list[str]


class Quantity(BaseModel):
    """A kind of weight between tokens: (layer, head, from, to)."""

    name: str
    description: str
    weights: QuantisedRows


class ViewToken(BaseModel):
    """A token; `word_index` is the index of its word or -1, `segment` 0 or 1 in a pair."""

    text: str
    word_index: int
    segment: int
    special: bool


class HeadLabel(BaseModel):
    """What a head does and the evidence for it; layer and head are counted from 0."""

    layer: int
    head: int
    label: str
    evidence: str


class HeadBaseline(BaseModel):
    """What a baseline reaches for each head: (layer, head); null where it was not measured."""

    name: str
    values: list[list[float | None]]


class HeadMeasure(BaseModel):
    """One measure of every head over a corpus: (layer, head), null where it was not measured.

    `low` and `high` are the ends of the intervals, whose kind is `interval`; `source` is the analysis and its corpus.
    With `lowest`, the head with the lowest value stands out.
    """

    name: str
    unit: str
    source: str
    interval: str
    values: list[list[float | None]]
    low: list[list[float | None]]
    high: list[list[float | None]]
    n: list[list[int]]
    baselines: list[HeadBaseline]
    lowest: bool


class DependencyArc(BaseModel):
    """An edge between two words; in a directed tree from a dependent to its governor."""

    start: int
    end: int
    label: str


class DependencyTree(BaseModel):
    """Edges over the words of an input, and their source."""

    name: str
    description: str
    directed: bool
    arcs: list[DependencyArc]


class ModelRun(BaseModel):
    """One model on one input.

    `value_norms` are the norms of f(x), the transformed value vectors: (layer, head, 1, token), null if unknown.
    `causal`: a token attends only to earlier tokens. `attention_windows`: for each layer the distance up to which a
    token attends, null if unlimited; empty if it is unlimited in all layers.
    """

    name: str
    tokens: list[ViewToken]
    words: list[str]
    is_pair: bool
    causal: bool
    attention_windows: list[int | None]
    quantities: list[Quantity]
    value_norms: QuantisedRows | None
    query: QuantisedRows | None
    key: QuantisedRows | None
    labels: list[HeadLabel]
    trees: list[DependencyTree]
    measures: list[HeadMeasure] = []


class Payload(BaseModel):
    """Everything a page shows; `state` is the initial state, as in the fragment of its address."""

    title: str
    runs: list[ModelRun]
    notes: list[str]
    state: str


def quantise(values: NDArray[np.floating], *, levels: int | None = None) -> QuantisedRows:
    """An array (layer, head, row, size) in steps of the largest absolute value of each row."""
    if not np.isfinite(values).all():
        raise Refusal("The values to show contain NaN or infinity", "finite numbers", "Check how they were computed")
    signed = bool((values < 0).any())
    n_levels = levels or _levels(values.size, signed)
    two_bytes = n_levels * (2 if signed else 1) > 255
    _, heads, rows, size = values.shape
    chunks = [_chunk(layer, n_levels, signed, np.dtype("<u2" if two_bytes else "u1")) for layer in values]
    return QuantisedRows(
        heads=heads, rows=rows, size=size, levels=n_levels, bytes=2 if two_bytes else 1, signed=signed, chunks=chunks
    )


def _levels(n_values: int, signed: bool) -> int:
    if n_values <= MAX_FINE_VALUES:
        return FINE_LEVELS
    if signed:
        return COARSE_LEVELS // 2
    return COARSE_LEVELS if n_values <= MAX_COARSE_VALUES else COARSEST_LEVELS


def _chunk(layer: NDArray[np.floating], levels: int, signed: bool, dtype: np.dtype[np.unsignedinteger]) -> str:
    rows = layer.astype(np.float64)
    scales = np.abs(rows).max(-1, initial=0.0).astype("<f4")
    divisor = np.where(scales > 0, scales, 1).astype(np.float64)[..., None]
    steps = np.clip(np.rint(rows / divisor * levels), -levels, levels) + (levels if signed else 0)
    compressor = zlib.compressobj(6, zlib.DEFLATED, -15)
    packed = compressor.compress(scales.tobytes()) + compressor.compress(steps.astype(dtype).tobytes())
    return base64.b64encode(packed + compressor.flush()).decode("ascii")


def dequantise(rows: QuantisedRows) -> NDArray[np.float32]:
    """The values as a page decodes them: (layer, head, row, size)."""
    layers: Sequence[NDArray[np.float32]] = [_unpack_chunk(rows, chunk) for chunk in rows.chunks]
    return np.stack(layers) if layers else np.empty((0, rows.heads, rows.rows, rows.size), np.float32)


def _unpack_chunk(rows: QuantisedRows, chunk: str) -> NDArray[np.float32]:
    data = zlib.decompress(base64.b64decode(chunk), -15)
    n_rows = rows.heads * rows.rows
    scales = np.frombuffer(data, "<f4", n_rows).reshape(rows.heads, rows.rows, 1)
    steps = np.frombuffer(data, "<u2" if rows.bytes == 2 else "u1", offset=4 * n_rows)
    values = steps.reshape(rows.heads, rows.rows, rows.size).astype(np.float32)
    step_sizes = scales / np.float32(rows.levels)
    return ((values - (rows.levels if rows.signed else 0)) * step_sizes).astype(np.float32)
