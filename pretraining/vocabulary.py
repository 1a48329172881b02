"""Train a lower-case WordPiece vocabulary on the text (Wu et al. 2016)."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.decoders import WordPiece as WordPieceDecoder
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.trainers import WordPieceTrainer
from transformers import BertTokenizer

from pretraining.corpus import read_documents

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
"""The special pieces, in the order of their ids; [PAD] is 0 and [MASK] 4."""


def learn_vocabulary(sentences: Iterator[str], *, size: int = 16_384, alphabet: int = 400) -> list[str]:
    """Word pieces by id, at most `size`, from the `alphabet` most frequent characters of lower-cased text.

    The trainer breaks ties by hash order, so two calls may number pieces differently: keep the vocabulary with the
    weights, and give a repeated run the stored one.
    """
    tokenizer = Tokenizer(WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.decoder = WordPieceDecoder()
    trainer = WordPieceTrainer(
        vocab_size=size, min_frequency=2, limit_alphabet=alphabet, special_tokens=list(SPECIAL), show_progress=False
    )
    tokenizer.train_from_iterator(sentences, trainer)
    ids = tokenizer.get_vocab()
    return sorted(ids, key=lambda piece: ids[piece])


def save_tokeniser(pieces: list[str], folder: Path, *, positions: int = 128) -> None:
    """Write `vocab.txt`, `tokenizer.json` and `tokenizer_config.json` of a fast lower-case BERT tokeniser."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokeniser = BertTokenizer(vocab=vocabulary, do_lower_case=True, model_max_length=positions)
    tokeniser.save_pretrained(folder)
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")


def main() -> None:
    """Learn a vocabulary from TEXT and write the tokeniser's directory."""
    parser = argparse.ArgumentParser(prog="python -m pretraining.vocabulary", description=main.__doc__)
    parser.add_argument("text", type=Path, help="sentences a line, documents between blank lines; may be .xz")
    parser.add_argument("-o", "--output", type=Path, required=True, help="directory of the tokeniser")
    parser.add_argument("--size", type=int, default=16_384, help="pieces, special ones included")
    arguments = parser.parse_args()
    sentences = (sentence for document in read_documents(arguments.text) for sentence in document)
    save_tokeniser(learn_vocabulary(sentences, size=arguments.size), arguments.output)


if __name__ == "__main__":
    main()
