"""A kind of input that is fuzzed: how cases are made of a seed, and what reads them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from random import Random
from typing import ClassVar

Files = dict[str, bytes]
"""The files of a case by their path in its folder."""


class Kind(ABC):
    """Cases of one kind; `folder` is for what all of them share."""

    name: ClassVar[str]
    seconds_per_case: ClassVar[float] = 5.0
    """A case that takes longer hangs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @abstractmethod
    def make(self, rng: Random) -> Files:
        """A case."""

    @abstractmethod
    def consume(self, folder: Path) -> None:
        """Read the files of a case as the package does; a `Refusal` refuses it, any other exception is a failure."""


def write_files(folder: Path, files: Files) -> None:
    """Write the files of a case."""
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def read_files(folder: Path) -> Files:
    """All files below a folder."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}
