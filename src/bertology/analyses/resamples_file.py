"""The resampled values of a stored result, in a file beside it: models are compared by them resample by resample."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import numpy as np

from bertology.checked_files import DamagedFileError, write_arrays
from bertology.download_cache import checked_copy
from bertology.results.measured_shape import KeptResamples, Resamples
from bertology.store_paths import StorePath


def save_resamples(file: StorePath, resamples: KeptResamples) -> str:
    """Write the resamples, named by series and measure; returns the digest of the file."""
    names = np.array([json.dumps(key) for key in resamples])
    arrays = {str(index): each.values for index, each in enumerate(resamples.values())}
    n_rows = {f"n_rows {index}": each.n_rows for index, each in enumerate(resamples.values())}
    return write_arrays(file, {"names": names, **arrays, **n_rows})


def load_resamples(file: StorePath, digest: str) -> KeptResamples:
    """The resamples, each read when it is looked up; `DamagedFileError` if the file is not the one with this digest."""
    try:
        return _StoredResamples(file, digest)
    except FileNotFoundError as error:
        raise DamagedFileError(f"{file} is missing") from error


class _StoredResamples(Mapping[tuple[str, str], Resamples]):
    def __init__(self, file: StorePath, digest: str) -> None:
        self._file, self._digest = file, digest
        self._copy = checked_copy(file, digest)
        with np.load(self._copy, allow_pickle=False) as arrays:
            self._positions = {tuple(json.loads(name)): index for index, name in enumerate(arrays["names"])}

    def __getitem__(self, key: tuple[str, str]) -> Resamples:
        position = self._positions[key]
        if not self._copy.is_file():  # copies of remote files are deleted when there are too many
            self._copy = checked_copy(self._file, self._digest)
        with np.load(self._copy, allow_pickle=False) as arrays:
            return Resamples(arrays[str(position)], arrays[f"n_rows {position}"])

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._positions)

    def __len__(self) -> int:
        return len(self._positions)
