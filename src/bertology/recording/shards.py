"""Shards: the arrays of one site for some inputs in one safetensors file, memory-mapped when read.

A shard is `NNNNN-<digest>.safetensors`, with the digest of its bytes. It holds three tensors: `values` (all arrays,
flattened and concatenated), `shapes`, and `inputs` (the input indices, in order). It is written as a stream, because
the recorder must not need a second copy of the arrays in memory.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, Field, model_validator

from bertology.arrays import Array, IntArray, LazySequence
from bertology.atomic_files import DIGEST_LENGTH, partial_file, publish
from bertology.download_cache import checked_copy, keep_copy
from bertology.store_paths import RemotePath, StorePath

SHARD_NAME = re.compile(r"(\d{5,})-([0-9a-f]{32})\.safetensors")
DTYPES = {"F32": np.float32, "F16": np.float16, "I64": np.int64}
DTYPE_NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
MAX_HEADER_BYTES = 2**20


class _Field(BaseModel):
    """One tensor of a shard: its type, shape, and where its bytes are."""

    dtype: Literal["F32", "F16", "I64"]
    shape: list[Annotated[int, Field(ge=0)]]
    data_offsets: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=2, max_length=2)]

    @model_validator(mode="after")
    def _check_length(self) -> _Field:
        start, end = self.data_offsets
        if end - start != math.prod(self.shape) * np.dtype(DTYPES[self.dtype]).itemsize:
            raise ValueError("the length does not fit the shape")
        return self


class _Header(BaseModel):
    """The header of a shard: three tensors, one after the other."""

    values: _Field
    shapes: _Field
    inputs: _Field

    @model_validator(mode="after")
    def _check_order(self) -> _Header:
        follow = self.values.data_offsets[0] == 0 and self.values.data_offsets[1] == self.shapes.data_offsets[0]
        if not follow or self.shapes.data_offsets[1] != self.inputs.data_offsets[0]:
            raise ValueError("the tensors do not follow each other")
        if len(self.values.shape) != 1 or len(self.shapes.shape) != 2 or len(self.inputs.shape) != 1:
            raise ValueError("the tensors have other axes")
        return self


class CorruptShardError(Exception):
    """A shard whose bytes do not match the digest in its name."""


def write_shard(
    folder: StorePath, shard_index: int, input_indices: Sequence[int], arrays: Sequence[Array]
) -> StorePath:
    """Write one site's arrays of some inputs; the file appears when it is complete."""
    tail = [np.asarray([array.shape for array in arrays], np.int64), np.asarray(input_indices, np.int64)]
    header = _header(arrays[0].dtype, sum(array.size for array in arrays), tail)
    digest = hashlib.sha256()
    with partial_file(folder, f"{shard_index:05d}") as (stream, partial):
        for part in (header, *map(_bytes, arrays), *map(_bytes, tail)):
            digest.update(part)
            stream.write(part)
        stream.flush()
        name = digest.hexdigest()[:DIGEST_LENGTH]
        target = folder / f"{shard_index:05d}-{name}.safetensors"
        publish(partial, target)
        keep_copy(partial, target, name)
    return target


def _header(dtype: np.dtype[Any], size: int, tail: Sequence[Array]) -> bytes:
    fields: dict[str, Any] = {}
    start = 0
    for name, field_dtype, shape in (
        ("values", dtype, (size,)),
        ("shapes", tail[0].dtype, tail[0].shape),
        ("inputs", tail[1].dtype, tail[1].shape),
    ):
        end = start + field_dtype.itemsize * int(np.prod(shape))
        fields[name] = {"dtype": DTYPE_NAMES[field_dtype], "shape": list(shape), "data_offsets": [start, end]}
        start = end
    text = json.dumps(fields).encode()
    text += b" " * (-len(text) % 8)  # aligns the values in memory
    return len(text).to_bytes(8, "little") + text


def _bytes(array: Array) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def is_complete(file: StorePath) -> bool:
    """Whether a file is as long as its header says: detects a half-written shard without reading it.

    An object store shows complete files only.
    """
    if isinstance(file, RemotePath):
        return True
    try:
        start, fields = _read_header(file)
        return file.stat().st_size == start + max(field["data_offsets"][1] for field in fields.values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False


def _read_header(file: Path) -> tuple[int, dict[str, Any]]:
    """The offset of the data, and the fields of the header."""
    with file.open("rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        if size > MAX_HEADER_BYTES:
            raise ValueError(f"a header of {size} bytes")
        return 8 + size, json.loads(stream.read(size))


@dataclass(frozen=True)
class _Shard:
    values: Array
    shapes: IntArray
    starts: IntArray

    def __getitem__(self, row: int) -> Array:
        return self.values[self.starts[row] : self.starts[row + 1]].reshape(tuple(self.shapes[row]))


def open_shard(shard_file: StorePath, input_indices: Sequence[int]) -> _Shard:
    """Memory-map a shard, or the local copy of a remote one, after checking all its bytes by the digest in its name."""
    name = SHARD_NAME.fullmatch(shard_file.name)
    if name is None:
        raise CorruptShardError(shard_file)
    try:
        file = checked_copy(shard_file, name[2])
        start, header = _read_header(file)
        fields = _Header.model_validate(header)
    except (OSError, ValueError, RecursionError) as error:
        raise CorruptShardError(shard_file) from error

    def memory_map(field: _Field) -> Array:
        dtype, shape = DTYPES[field.dtype], tuple(field.shape)
        if 0 in shape:
            return np.zeros(shape, dtype)
        return np.memmap(file, dtype, "r", offset=start + field.data_offsets[0], shape=shape)

    if start + fields.inputs.data_offsets[1] != file.stat().st_size:
        raise CorruptShardError(shard_file)
    shapes = np.array(memory_map(fields.shapes))
    ends = np.cumsum([math.prod(shape) for shape in shapes.tolist()], dtype=object)
    if (
        memory_map(fields.inputs).tolist() != list(input_indices)
        or shapes.ndim != 2
        or len(shapes) != len(input_indices)
        or (shapes < 0).any()
        or (ends[-1] if len(ends) else 0) != fields.values.shape[0]
    ):
        raise CorruptShardError(shard_file)
    return _Shard(memory_map(fields.values), shapes, np.concatenate([np.zeros(1, np.int64), ends.astype(np.int64)]))


class ShardReader(LazySequence[Array]):
    """The arrays of one site by input index, read from shards.

    The first access to a shard reads it completely to check its digest; later accesses read one input. A corrupt shard
    is passed to `repair`, which returns a good file or raises.
    """

    def __init__(
        self,
        files: Mapping[int, StorePath],
        order: Sequence[Sequence[int]],
        repair: Callable[[int, StorePath], StorePath],
        check: Callable[[int, Array], None] | None = None,
    ) -> None:
        """`order[s]` lists the input indices of shard s in the order in which they were written.

        `check` refuses an array that does not fit its input.
        """
        self._check = check
        self._files = dict(files)
        self._order = order
        self._repair = repair
        # Arrays, not a dictionary: every site has a reader, and corpora are long.
        self._shard_indices = np.empty(sum(map(len, order)), np.int32)
        self._shard_rows = np.empty_like(self._shard_indices)
        for shard, input_indices in enumerate(order):
            self._shard_indices[list(input_indices)] = shard
            self._shard_rows[list(input_indices)] = np.arange(len(input_indices))
        self._open_shards: dict[int, _Shard] = {}

    def __len__(self) -> int:
        return len(self._shard_indices)

    def load(self, index: int) -> Array:
        """The array of one input."""
        array = self._load_shard(int(self._shard_indices[index]))[int(self._shard_rows[index])]
        if self._check is not None:
            self._check(index, array)
        return array

    def _load_shard(self, shard: int) -> _Shard:
        if shard not in self._open_shards:
            file = self._files[shard]
            try:
                opened = open_shard(file, self._order[shard])
            except CorruptShardError:
                file = self._files[shard] = self._repair(shard, file)
                opened = open_shard(file, self._order[shard])
            self._open_shards[shard] = opened
        return self._open_shards[shard]
