"""Corpora in every format, compressed or not."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path
from random import Random

from bertology.corpus.read import read, readers
from corpus.readers.samples import FURTHER_FILES, NAMES
from fuzz.kind import Files, Kind
from fuzz.mutations import mutate_bytes, mutate_lines

COMPRESSORS = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}


class Corpora(Kind):
    """The example of a format, damaged; read with and without the name of the format."""

    name = "corpora"

    def make(self, rng: Random) -> Files:
        """A file of examples, and the files that belong to it."""
        format = rng.choice(sorted(readers()))
        content = b"\n\n".join([readers()[format].example.encode()] * rng.choice((1, 2, 2)))
        content = mutate_bytes(rng, content) if rng.random() < 0.4 else mutate_lines(rng, content)
        name = NAMES.get(format, "sample.txt")
        further = {other: text.encode() for other, text in FURTHER_FILES.get(format, {}).items()}
        if further and rng.random() < 0.5:
            other = rng.choice(sorted(further))
            further[other] = mutate_bytes(rng, further[other])
        if rng.random() < 0.1:
            suffix = rng.choice(sorted(COMPRESSORS))
            name, content = name + suffix, COMPRESSORS[suffix](content)
            content = mutate_bytes(rng, content) if rng.random() < 0.7 else content
        return {f"{format}/{name}": content, **{f"{format}/{other}": text for other, text in further.items()}}

    def consume(self, folder: Path) -> None:
        """Read it with and without the format."""
        format = next(folder.iterdir())
        path = next(file for file in sorted(format.iterdir()) if file.name.startswith(NAMES.get(format.name, "sample")))
        read(path, skip_malformed=True)
        corpus = read(path, format.name)
        assert corpus.fingerprint
