"""The resampled values of a stored result, in a file beside it: models are compared by them resample by resample."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertology.atomic_files import atomic_writer
from bertology.results.shapes import ResampledValues


def save_resamples(file: Path, resampled: ResampledValues) -> None:
    """Write the values, named by series and measure."""
    arrays = {json.dumps(key): values for key, values in resampled.items()}
    names = np.array(list(arrays))
    with atomic_writer(file) as stream:
        np.savez(stream, names, *arrays.values())


def load_resamples(file: Path) -> ResampledValues:
    """The values, each read when it is looked up; none if there is no file."""
    return _StoredResamples(file) if file.is_file() else {}


class _StoredResamples(Mapping[tuple[str, str], NDArray[np.floating]]):
    def __init__(self, file: Path) -> None:
        self._file = file
        with np.load(file, allow_pickle=False) as arrays:
            self._positions = {tuple(json.loads(name)): index + 1 for index, name in enumerate(arrays["arr_0"])}

    def __getitem__(self, key: tuple[str, str]) -> NDArray[np.floating]:
        position = self._positions[key]
        with np.load(self._file, allow_pickle=False) as arrays:
            return arrays[f"arr_{position}"]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._positions)

    def __len__(self) -> int:
        return len(self._positions)
