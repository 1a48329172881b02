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

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
"""In the order of their ids: [PAD] is 0 and [MASK] 4."""


def learn_vocabulary(sentences: Iterator[str], *, vocab_size: int = 16_384, alphabet_size: int = 400) -> list[str]:
    """At most `vocab_size` tokens by id, built from the most frequent characters of the lower-cased text.

    The trainer breaks ties by hash order, so two calls may number tokens differently: store the vocabulary with the
    weights and reuse it when a run is repeated.
    """
    tokenizer = Tokenizer(WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.decoder = WordPieceDecoder()
    trainer = WordPieceTrainer(
        vocab_size=vocab_size,
        min_frequency=2,
        limit_alphabet=alphabet_size,
        special_tokens=list(SPECIAL_TOKENS),
        show_progress=False,
    )
    tokenizer.train_from_iterator(sentences, trainer)
    ids = tokenizer.get_vocab()
    return sorted(ids, key=lambda token: ids[token])


def save_tokeniser(vocabulary: list[str], directory: Path, *, max_length: int = 128) -> None:
    """Write `vocab.txt`, `tokenizer.json` and `tokenizer_config.json` of a fast lower-case BERT tokeniser."""
    directory.mkdir(parents=True, exist_ok=True)
    ids = {token: index for index, token in enumerate(vocabulary)}
    tokeniser = BertTokenizer(vocab=ids, do_lower_case=True, model_max_length=max_length)
    tokeniser.save_pretrained(directory)
    (directory / "vocab.txt").write_text("".join(f"{token}\n" for token in vocabulary), encoding="utf-8")


def main() -> None:
    """Learn a vocabulary from TEXT and write the tokeniser's directory."""
    parser = argparse.ArgumentParser(prog="python -m pretraining.vocabulary", description=main.__doc__)
    parser.add_argument("text", type=Path, help="one sentence per line, a blank line between documents; may be .xz")
    parser.add_argument("-o", "--output", type=Path, required=True, help="directory of the tokeniser")
    parser.add_argument("--vocab-size", type=int, default=16_384, help="number of tokens, including special tokens")
    options = parser.parse_args()
    sentences = (sentence for document in read_documents(options.text) for sentence in document)
    save_tokeniser(learn_vocabulary(sentences, vocab_size=options.vocab_size), options.output)


if __name__ == "__main__":
    main()
