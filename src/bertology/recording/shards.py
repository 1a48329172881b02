"""Shards: the arrays of one site for some inputs in one safetensors file, memory-mapped when read.

A shard is `NNNNN-<digest>.safetensors`, with the digest of its bytes. It holds three tensors: `values` (all arrays,
flattened and concatenated), `shapes`, and `inputs` (the input indices, in order). It is written as a stream, because
the recorder must not need a second copy of the arrays in memory.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bertology.arrays import Array, IntArray, LazySequence
from bertology.atomic_files import DIGEST_LENGTH, digest_file, partial_file

SHARD_NAME = re.compile(r"(\d{5,})-([0-9a-f]{32})\.safetensors")
DTYPES = {"F32": np.float32, "F16": np.float16, "I64": np.int64}
DTYPE_NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
MAX_HEADER_BYTES = 2**20


class CorruptShardError(Exception):
    """A shard whose bytes do not match the digest in its name."""


def write_shard(folder: Path, shard_index: int, input_indices: Sequence[int], arrays: Sequence[Array]) -> Path:
    """Write one site's arrays of some inputs; the file appears when it is complete."""
    tail = [np.asarray([array.shape for array in arrays], np.int64), np.asarray(input_indices, np.int64)]
    header = _header(arrays[0].dtype, sum(array.size for array in arrays), tail)
    digest = hashlib.sha256()
    with partial_file(folder, f"{shard_index:05d}") as (stream, partial):
        for part in (header, *map(_bytes, arrays), *map(_bytes, tail)):
            digest.update(part)
            stream.write(part)
        stream.flush()
        target = folder / f"{shard_index:05d}-{digest.hexdigest()[:DIGEST_LENGTH]}.safetensors"
        partial.replace(target)
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


def is_complete(file: Path) -> bool:
    """Whether a file is as long as its header says: detects a half-written shard without reading it."""
    try:
        start, fields = _read_header(file)
        return file.stat().st_size == start + max(field["data_offsets"][1] for field in fields.values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
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


def open_shard(file: Path, input_indices: Sequence[int]) -> _Shard:
    """Memory-map a shard after checking all its bytes against the digest in its name."""
    name = SHARD_NAME.fullmatch(file.name)
    try:
        if name is None or digest_file(file) != name[2]:
            raise CorruptShardError(file)
    except OSError as error:
        raise CorruptShardError(file) from error
    start, fields = _read_header(file)

    def memory_map(key: str) -> Array:
        dtype, shape = DTYPES[fields[key]["dtype"]], tuple(fields[key]["shape"])
        if 0 in shape:
            return np.zeros(shape, dtype)
        return np.memmap(file, dtype, "r", offset=start + fields[key]["data_offsets"][0], shape=shape)

    if memory_map("inputs").tolist() != list(input_indices):
        raise CorruptShardError(file)
    shapes = np.array(memory_map("shapes"))
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(shapes.prod(axis=1))])
    return _Shard(memory_map("values"), shapes, starts)


class ShardReader(LazySequence[Array]):
    """The arrays of one site by input index, read from shards.

    The first access to a shard reads it completely to check its digest; later accesses read one input. A corrupt shard
    is passed to `repair`, which returns a good file or raises.
    """

    def __init__(
        self, files: Mapping[int, Path], order: Sequence[Sequence[int]], repair: Callable[[int, Path], Path]
    ) -> None:
        """`order[s]` lists the input indices of shard s in the order in which they were written."""
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
        return self._load_shard(int(self._shard_indices[index]))[int(self._shard_rows[index])]

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
