"""The data of a page of views; the TypeScript types of the front-end are generated from it (see `typescript`).

Arrays are quantised by row: each row has a scale, its largest absolute value, and integers in `levels` steps of it. A
layer is one chunk: the scales of all rows as 32-bit floats, then the integers, deflated, in base64.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from typing import Literal

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
MAX_EXACT_TOKENS = 128
"""Values between up to so many tokens are stored exactly, as 32-bit floats."""
EXACT = 0
"""The number of levels of values that are stored exactly."""


class QuantisedRows(BaseModel):
    """Rows of numbers, one chunk per layer of shape (head, row, size); signed integers are offset by `levels`.

    With `levels` 0 they are exact 32-bit floats, else integers in so many steps of their row's largest.
    """

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
    citations: list[str] = []


class ViewToken(BaseModel):
    """A token; `word_index` is the index of its word or -1, `segment` 0 or 1 in a pair.

    `source` is the text that an unknown token stands for; empty for all other tokens.
    """

    text: str
    word_index: int
    segment: int
    special: bool
    source: str = ""


class HeadLabel(BaseModel):
    """What a head does and the evidence for it; layer and head are counted from 0.

    `score` is a proportion or a share, `effect` its distance from the highest baseline; both are null in labels of the
    user. `citations` are keys of the papers whose method found the label.
    """

    layer: int
    head: int
    label: str
    evidence: str
    score: float | None = None
    effect: float | None = None
    citations: list[str] = []


class HeadBaseline(BaseModel):
    """What a baseline reaches for each head: (layer, head); null where it was not measured."""

    name: str
    values: list[list[float | None]]


class HeadMeasure(BaseModel):
    """One measure of every head over a corpus: (layer, head), null where it was not measured.

    `low` and `high` are the ends of the intervals, whose kind is `interval`; `source` is the analysis and its corpus.
    With `lowest`, the head with the lowest value stands out. p values are compared with their level, not ranked.
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
    is_p_value: bool = False


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


AttentionRole = Literal["", "encoder", "decoder", "cross"]
"""The part of an encoder-decoder whose attention a run has; empty for a model of one part."""


class ModelRun(BaseModel):
    """One model on one input.

    `value_norms` are the norms of f(x), the transformed value vectors: (layer, head, 1, token), null if unknown.
    `causal`: a token attends only to earlier tokens. `attention_windows`: for each layer the distance up to which a
    token attends, null if unlimited; empty if it is unlimited in all layers. `name` tells the runs of a page apart,
    `model` is the name of the model. `labelling` says how many heads are labelled, and what a label needs. `focus` is
    for each layer and head the mean over tokens that are not special of the strongest weight on another of them.

    `role` is the part of an encoder-decoder; in cross-attention the second text, the decoder's, attends to the first.
    `layer_numbers` and `head_numbers` name the layers and heads, if these are not all of the model's; else empty.
    """

    name: str
    role: AttentionRole = ""
    model: str = ""
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
    labelling: str = ""
    focus: list[list[float]] = []
    layer_numbers: list[int] = []
    head_numbers: list[int] = []


class Citation(BaseModel):
    """A paper and its entry for a bibliography."""

    key: str
    bibtex: str


class Payload(BaseModel):
    """Everything a page shows; `state` is the initial state, as in the fragment of its address.

    `command` is the command that makes the page, if there is one; `citations` has all papers that its parts name.
    """

    title: str
    runs: list[ModelRun]
    notes: list[str]
    state: str
    command: str = ""
    citations: list[Citation] = []


def quantise(values: NDArray[np.floating], *, levels: int | None = None) -> QuantisedRows:
    """An array (layer, head, row, size): exact if it is small, else in steps of the largest value of each row."""
    if not np.isfinite(values).all():
        raise Refusal("The values to show contain NaN or infinity", "finite numbers", "Check how they were computed")
    signed = bool((values < 0).any())
    _, heads, rows, size = values.shape
    n_levels = _levels(values, signed) if levels is None else levels
    n_bytes = 4 if n_levels == EXACT else 2 if n_levels * (2 if signed else 1) > 255 else 1
    chunks = [_pack_exact(layer) if n_levels == EXACT else _pack(layer, n_levels, signed, n_bytes) for layer in values]
    return QuantisedRows(
        heads=heads, rows=rows, size=size, levels=n_levels, bytes=n_bytes, signed=signed, chunks=chunks
    )


def _levels(values: NDArray[np.floating], signed: bool) -> int:
    _, _, rows, size = values.shape
    if rows * size <= MAX_EXACT_TOKENS**2:
        return EXACT
    if values.size <= MAX_FINE_VALUES:
        return FINE_LEVELS
    if signed:
        return COARSE_LEVELS // 2
    return COARSE_LEVELS if values.size <= MAX_COARSE_VALUES else COARSEST_LEVELS


def _pack_exact(layer: NDArray[np.floating]) -> str:
    """All lowest bytes first, then the next: the highest bytes, which differ little, compress well side by side."""
    planes = layer.astype("<f4").reshape(-1, 1).view(np.uint8).T
    return _compress(planes.tobytes())


def _pack(layer: NDArray[np.floating], levels: int, signed: bool, n_bytes: int) -> str:
    rows = layer.astype(np.float64)
    scales = np.abs(rows).max(-1, initial=0.0).astype("<f4")
    divisor = np.where(scales > 0, scales, 1).astype(np.float64)[..., None]
    steps = np.clip(np.rint(rows / divisor * levels), -levels, levels) + (levels if signed else 0)
    return _compress(scales.tobytes(), steps.astype("<u2" if n_bytes == 2 else "u1").tobytes())


def _compress(*parts: bytes) -> str:
    compressor = zlib.compressobj(6, zlib.DEFLATED, -15, 9, zlib.Z_FILTERED)  # 4 % smaller than the default strategy
    packed = b"".join([*(compressor.compress(part) for part in parts), compressor.flush()])
    return base64.b64encode(packed).decode("ascii")


def dequantise(rows: QuantisedRows) -> NDArray[np.float32]:
    """The values as a page decodes them: (layer, head, row, size)."""
    layers: Sequence[NDArray[np.float32]] = [_unpack_chunk(rows, chunk) for chunk in rows.chunks]
    return np.stack(layers) if layers else np.empty((0, rows.heads, rows.rows, rows.size), np.float32)


def _unpack_chunk(rows: QuantisedRows, chunk: str) -> NDArray[np.float32]:
    data = zlib.decompress(base64.b64decode(chunk), -15)
    shape = (rows.heads, rows.rows, rows.size)
    if rows.levels == EXACT:
        planes = np.frombuffer(data, np.uint8).reshape(4, -1)
        return np.ascontiguousarray(planes.T).view("<f4").reshape(shape).astype(np.float32)
    n_rows = rows.heads * rows.rows
    scales = np.frombuffer(data, "<f4", n_rows).reshape(rows.heads, rows.rows, 1)
    steps = np.frombuffer(data, "<u2" if rows.bytes == 2 else "u1", offset=4 * n_rows)
    values = steps.reshape(shape).astype(np.float32)
    step_sizes = scales / np.float32(rows.levels)
    return ((values - (rows.levels if rows.signed else 0)) * step_sizes).astype(np.float32)
