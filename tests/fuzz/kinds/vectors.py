"""Word vectors: text, binary, compressed, and arrays with an index."""

from __future__ import annotations

import io
from pathlib import Path
from random import Random

import numpy as np

from bertology.encoder.word_vector_files import read_vectors
from fuzz.kind import Files, Kind
from fuzz.mutations import compress, mutate_bytes, mutate_lines

WORDS = ["the", "cat", "sat", "a b", "naïve"]


class Vectors(Kind):
    """Five words with four numbers each."""

    name = "word vectors"

    def make(self, rng: Random) -> Files:
        """One file in one of the formats, damaged."""
        numbers = np.arange(20, dtype=np.float32).reshape(5, 4) / 7
        rows = [" ".join([word, *map(str, row)]) for word, row in zip(WORDS, numbers.tolist(), strict=True)]
        match rng.randrange(4):
            case 0:
                name, content = "vectors.txt", "\n".join(rows).encode()
            case 1:
                name, content = "vectors.txt", "\n".join(["5 4", *rows]).encode()
            case 2:
                body = b"".join(
                    word.replace(" ", "_").encode() + b" " + row.tobytes() + b"\n"
                    for word, row in zip(WORDS, numbers, strict=True)
                )
                name, content = "vectors.bin", b"5 4\n" + body
            case _:
                return self._array(rng, numbers)
        content = mutate_bytes(rng, content) if rng.random() < 0.5 else mutate_lines(rng, content)
        return {name + ".gz": compress(rng, content)} if rng.random() < 0.3 else {name: content}

    def consume(self, folder: Path) -> None:
        """Read the file, or the folder of array and index."""
        files = list(folder.iterdir())
        vectors = read_vectors(files[0] if len(files) == 1 else folder)
        assert vectors.fingerprint and vectors.row("the") < len(vectors.matrix)

    def _array(self, rng: Random, numbers: np.ndarray) -> Files:
        import pyarrow
        import pyarrow.parquet as parquet

        buffer, index = io.BytesIO(), io.BytesIO()
        shape = rng.choice((numbers, numbers, numbers[:3], numbers[None], numbers.astype("U5"), numbers.astype("c8")))
        np.save(buffer, shape)
        column = rng.choice((WORDS, WORDS, list(range(5)), [None] * 5, [["x"]] * 5))
        parquet.write_table(pyarrow.table({rng.choice(("word", "", "x")): column}), index)
        files = {"v.npy": buffer.getvalue(), "v.parquet": index.getvalue()}
        name = rng.choice(sorted(files))
        files[name] = mutate_bytes(rng, files[name]) if rng.random() < 0.8 else files[name]
        return files
