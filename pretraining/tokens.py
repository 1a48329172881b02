"""The training text as one array of token ids, with the starts of sentences and documents."""

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from pretraining.corpus import Document, read_documents


@dataclass(frozen=True)
class Tokens:
    """Piece ids in reading order; `sentences[i]` is where sentence i begins, `documents[d]` its first sentence.

    Both end with one entry more, the total, so differences are lengths.
    """

    ids: NDArray[np.uint16]
    sentences: NDArray[np.int64]
    documents: NDArray[np.int64]

    def save(self, path: Path) -> None:
        """Write an uncompressed NumPy archive."""
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, ids=self.ids, sentences=self.sentences, documents=self.documents)


def load_tokens(path: Path) -> Tokens:
    """Read what `Tokens.save` wrote."""
    with np.load(path) as arrays:
        return Tokens(arrays["ids"], arrays["sentences"], arrays["documents"])


def encode_documents(documents: Iterable[Document], tokenizer: Tokenizer, *, at_once: int = 2_000) -> Tokens:
    """Encode without special pieces, `at_once` documents together so that all cores work; empty sentences go."""
    ids: list[NDArray[np.uint16]] = []
    sentence_lengths: list[int] = []
    document_lengths: list[int] = []
    for batch in _groups(iter(documents), at_once):
        flat = [sentence for document in batch for sentence in document]
        encoded = iter(tokenizer.encode_batch_fast(flat, add_special_tokens=False))
        for document in batch:
            pieces = [one for _ in document if (one := next(encoded).ids)]
            if pieces:
                ids.extend(np.array(one, dtype=np.uint16) for one in pieces)
                sentence_lengths.extend(len(one) for one in pieces)
                document_lengths.append(len(pieces))
    return Tokens(np.concatenate(ids), _starts(sentence_lengths), _starts(document_lengths))


def _groups(documents: Iterator[Document], size: int) -> Iterator[list[Document]]:
    while group := list(islice(documents, size)):
        yield group


def _starts(lengths: list[int]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths, dtype=np.int64)])


def main() -> None:
    """Encode TEXT with a tokeniser's directory into one archive."""
    parser = argparse.ArgumentParser(prog="python -m pretraining.tokens", description=main.__doc__)
    parser.add_argument("text", type=Path, help="sentences a line, documents between blank lines; may be .xz")
    parser.add_argument("tokeniser", type=Path, help="directory with tokenizer.json")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the .npz to write")
    arguments = parser.parse_args()
    tokenizer = Tokenizer.from_file(str(arguments.tokeniser / "tokenizer.json"))
    tokens = encode_documents(read_documents(arguments.text), tokenizer)
    tokens.save(arguments.output)
    print(
        f"{len(tokens.ids):,} pieces, {len(tokens.sentences) - 1:,} sentences, {len(tokens.documents) - 1:,} documents"
    )


if __name__ == "__main__":
    main()
