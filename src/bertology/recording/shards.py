"""One shard: the arrays of one site for some entries in one safetensors file, memory-mapped when read.

A shard is `NNNNN-<digest>.safetensors`, the digest being that of its bytes. It holds three tensors: `values` (all
arrays flattened, one after the other), `shapes` and `entries` (which entries, in which order). It is written as a
stream, since a second copy of everything in memory is what the recorder must not need.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from bertology.recording.files import DIGITS, digest_of_file, writing

Array = NDArray[Any]
Arrays = Sequence[Array]

SHARD = re.compile(r"(\d{5,})-([0-9a-f]{32})\.safetensors")
KINDS = {"F32": np.float32, "F16": np.float16, "I64": np.int64}
NAMES = {np.dtype(kind): name for name, kind in KINDS.items()}
LONGEST_HEADER = 2**20


class BrokenShard(Exception):
    """A shard whose bytes are not those that were written."""


def write_shard(folder: Path, number: int, entries: Sequence[int], arrays: Arrays) -> Path:
    """Keep one site's arrays for `entries` as shard `number`; the file appears when it is complete."""
    kind = arrays[0].dtype
    tail = [np.asarray([array.shape for array in arrays], np.int64), np.asarray(entries, np.int64)]
    header = _header(kind, sum(array.size for array in arrays), tail)
    found = hashlib.sha256()
    with writing(folder, f"{number:05d}") as (stream, partial):
        for part in (header, *map(_bytes, arrays), *map(_bytes, tail)):
            found.update(part)
            stream.write(part)
        stream.flush()
        target = folder / f"{number:05d}-{found.hexdigest()[:DIGITS]}.safetensors"
        partial.replace(target)
    return target


def _header(kind: np.dtype[Any], size: int, tail: Sequence[Array]) -> bytes:
    fields: dict[str, Any] = {}
    start = 0
    for name, of, shape in (
        ("values", kind, (size,)),
        ("shapes", tail[0].dtype, tail[0].shape),
        ("entries", tail[1].dtype, tail[1].shape),
    ):
        end = start + of.itemsize * int(np.prod(shape))
        fields[name] = {"dtype": NAMES[of], "shape": list(shape), "data_offsets": [start, end]}
        start = end
    text = json.dumps(fields).encode()
    text += b" " * (-len(text) % 8)  # so that the values are aligned in memory
    return len(text).to_bytes(8, "little") + text


def _bytes(array: Array) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def has_its_size(file: Path) -> bool:
    """Whether a file is as long as its header says: tells a half-written shard without reading it."""
    try:
        start, fields = _read_header(file)
        return file.stat().st_size == start + max(field["data_offsets"][1] for field in fields.values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _read_header(file: Path) -> tuple[int, dict[str, Any]]:
    """Where the data starts, and what lies where in it."""
    with file.open("rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        if size > LONGEST_HEADER:
            raise ValueError(f"a header of {size} bytes")
        return 8 + size, json.loads(stream.read(size))


@dataclass(frozen=True)
class _Shard:
    values: Array
    shapes: NDArray[np.int64]
    starts: NDArray[np.int64]

    def __getitem__(self, row: int) -> Array:
        return self.values[self.starts[row] : self.starts[row + 1]].reshape(tuple(self.shapes[row]))


def open_shard(file: Path, entries: Sequence[int]) -> _Shard:
    """The shard as memory maps, after every byte was checked against the digest in its name."""
    name = SHARD.fullmatch(file.name)
    try:
        if name is None or digest_of_file(file) != name[2]:
            raise BrokenShard(file)
    except OSError as error:
        raise BrokenShard(file) from error
    start, fields = _read_header(file)

    def mapped(key: str) -> Array:
        kind, shape = KINDS[fields[key]["dtype"]], tuple(fields[key]["shape"])
        if 0 in shape:
            return np.zeros(shape, kind)
        return np.memmap(file, kind, "r", offset=start + fields[key]["data_offsets"][0], shape=shape)

    if mapped("entries").tolist() != list(entries):
        raise BrokenShard(file)
    shapes = np.array(mapped("shapes"))
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(shapes.prod(axis=1))])
    return _Shard(mapped("values"), shapes, starts)


class ShardReader(Sequence[Array]):
    """The arrays of one site in entry order, read from their shards.

    The first touch of a shard reads all of it once to check its digest; after that an entry costs its own bytes. A
    broken shard is handed to `mend`, which gives a good one in its place or raises; it never reaches the caller.
    """

    def __init__(
        self, files: Mapping[int, Path], order: Sequence[Sequence[int]], mend: Callable[[int, Path], Path]
    ) -> None:
        """`order[s]` lists the entries in shard s in the order in which they were written."""
        self._files = dict(files)
        self._order = order
        self._mend = mend
        # Arrays, not a dictionary: there is a reader for each site, and corpora are long.
        self._shard_of = np.empty(sum(map(len, order)), np.int32)
        self._row_of = np.empty_like(self._shard_of)
        for number, entries in enumerate(order):
            self._shard_of[list(entries)] = number
            self._row_of[list(entries)] = np.arange(len(entries))
        self._open: dict[int, _Shard] = {}

    def __len__(self) -> int:
        return len(self._shard_of)

    @overload
    def __getitem__(self, index: int) -> Array: ...
    @overload
    def __getitem__(self, index: slice) -> list[Array]: ...
    def __getitem__(self, index: int | slice) -> Array | list[Array]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        entry = index + len(self) if index < 0 else index
        if not 0 <= entry < len(self):
            raise IndexError(index)
        return self._opened(int(self._shard_of[entry]))[int(self._row_of[entry])]

    def _opened(self, shard: int) -> _Shard:
        if shard not in self._open:
            file = self._files[shard]
            try:
                opened = open_shard(file, self._order[shard])
            except BrokenShard:
                file = self._files[shard] = self._mend(shard, file)
                opened = open_shard(file, self._order[shard])
            self._open[shard] = opened
        return self._open[shard]
