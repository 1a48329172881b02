"""A text, tokeniser and configuration small enough to pre-train on in a test."""

from __future__ import annotations

import random
from pathlib import Path

from pretraining.config import PretrainingConfig
from pretraining.model import ModelSize
from pretraining.stream import TokenStream, make_stream
from pretraining.tokens import EncodedText, encode_documents
from pretraining.vocabulary import learn_vocabulary, save_tokeniser
from tokenizers import Tokenizer

MAX_LENGTH = 32
VOCAB_SIZE = 200


def documents(count: int = 40, sentences: int = 12) -> list[tuple[str, ...]]:
    """Documents whose sentences begin and end with both numbers, so that truncated pairs can be checked too."""
    rng = random.Random(0)
    verbs = ["saw", "fed", "lost", "drew", "sold"]
    return [
        tuple(f"d{d} s{s} the fox {rng.choice(verbs)} the hen d{d} s{s} ." for s in range(sentences))
        for d in range(count)
    ]


def tokeniser(directory: Path) -> Tokenizer:
    """A tokeniser learnt from the small text and saved in `directory`, or the one already there."""
    if not (directory / "tokenizer.json").exists():
        sentences = (sentence for document in documents() for sentence in document)
        save_tokeniser(learn_vocabulary(sentences, vocab_size=VOCAB_SIZE), directory, max_length=MAX_LENGTH)
    return Tokenizer.from_file(str(directory / "tokenizer.json"))


def encoded_text(directory: Path) -> EncodedText:
    """The small text as token ids."""
    return encode_documents(documents(), tokeniser(directory), batch_size=7)


def token_stream(directory: Path) -> TokenStream:
    """The small text on the CPU, ready to sample from."""
    return make_stream(encoded_text(directory), max_length=MAX_LENGTH, length_exponent=0.85, device="cpu")


def pretraining_config(steps: int = 30, dropout: float = 0.1) -> PretrainingConfig:
    """A configuration of one layer, with dropout so that a resumed run must reproduce it."""
    size = ModelSize(1, 2, 32, 64, MAX_LENGTH, VOCAB_SIZE, dropout, dropout)
    return PretrainingConfig(
        steps=steps,
        seed=3,
        model=size,
        batch_size=16,
        short_batch_size=16,
        short_max_length=24,
        learning_rate=5e-3,
        warmup_steps=5,
    )
