"""The resampled values of a stored result, in a file beside it: models are compared by them resample by resample."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertology.atomic_files import digest_file
from bertology.checked_files import DamagedFileError, write_arrays
from bertology.results.shapes import ResampledValues


def save_resamples(file: Path, resampled: ResampledValues) -> str:
    """Write the values, named by series and measure; returns the digest of the file."""
    names = np.array([json.dumps(key) for key in resampled])
    return write_arrays(file, {"names": names, **{str(i): values for i, values in enumerate(resampled.values())}})


def load_resamples(file: Path, digest: str) -> ResampledValues:
    """The values, each read when it is looked up; `DamagedFileError` if the file is not the one with this digest."""
    if not file.is_file() or digest_file(file) != digest:
        raise DamagedFileError(f"{file} is {'damaged' if file.is_file() else 'missing'}")
    return _StoredResamples(file)


class _StoredResamples(Mapping[tuple[str, str], NDArray[np.floating]]):
    def __init__(self, file: Path) -> None:
        self._file = file
        with np.load(file, allow_pickle=False) as arrays:
            self._positions = {tuple(json.loads(name)): index for index, name in enumerate(arrays["names"])}

    def __getitem__(self, key: tuple[str, str]) -> NDArray[np.floating]:
        position = self._positions[key]
        with np.load(self._file, allow_pickle=False) as arrays:
            return arrays[str(position)]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._positions)

    def __len__(self) -> int:
        return len(self._positions)
