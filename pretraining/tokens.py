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
class EncodedText:
    """Token ids in reading order, the first token of each sentence and the first sentence of each document.

    `sentences` and `documents` end with the total, so that their differences are lengths.
    """

    ids: NDArray[np.uint16]
    sentences: NDArray[np.int64]
    documents: NDArray[np.int64]

    def save(self, path: Path) -> None:
        """Write an uncompressed NumPy archive."""
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, ids=self.ids, sentences=self.sentences, documents=self.documents)


def load_encoded_text(path: Path) -> EncodedText:
    """Read the archive that `EncodedText.save` writes."""
    with np.load(path) as arrays:
        return EncodedText(arrays["ids"], arrays["sentences"], arrays["documents"])


def encode_documents(documents: Iterable[Document], tokenizer: Tokenizer, *, batch_size: int = 2_000) -> EncodedText:
    """Encode documents without special tokens; sentences without tokens are dropped."""
    ids: list[NDArray[np.uint16]] = []
    sentence_lengths: list[int] = []
    document_lengths: list[int] = []
    for batch in _batches(iter(documents), batch_size):
        texts = [sentence for document in batch for sentence in document]
        encoded = iter(tokenizer.encode_batch_fast(texts, add_special_tokens=False))
        for document in batch:
            sentences = [sentence_ids for _ in document if (sentence_ids := next(encoded).ids)]
            if sentences:
                ids.extend(np.array(sentence_ids, dtype=np.uint16) for sentence_ids in sentences)
                sentence_lengths.extend(map(len, sentences))
                document_lengths.append(len(sentences))
    return EncodedText(np.concatenate(ids), _starts(sentence_lengths), _starts(document_lengths))


def _batches(documents: Iterator[Document], size: int) -> Iterator[list[Document]]:
    while batch := list(islice(documents, size)):
        yield batch


def _starts(lengths: list[int]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths, dtype=np.int64)])


def main() -> None:
    """Encode TEXT with a tokeniser into one archive."""
    parser = argparse.ArgumentParser(prog="python -m pretraining.tokens", description=main.__doc__)
    parser.add_argument("text", type=Path, help="one sentence per line, a blank line between documents; may be .xz")
    parser.add_argument("tokeniser", type=Path, help="directory with tokenizer.json")
    parser.add_argument("-o", "--output", type=Path, required=True, help=".npz file to write")
    options = parser.parse_args()
    tokenizer = Tokenizer.from_file(str(options.tokeniser / "tokenizer.json"))
    text = encode_documents(read_documents(options.text), tokenizer)
    text.save(options.output)
    print(f"{len(text.ids):,} tokens, {len(text.sentences) - 1:,} sentences, {len(text.documents) - 1:,} documents")


if __name__ == "__main__":
    main()
