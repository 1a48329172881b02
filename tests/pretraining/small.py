"""A text, tokeniser and recipe small enough to pre-train on in a test."""

from __future__ import annotations

import random
from pathlib import Path

from pretraining.model import Shape
from pretraining.recipe import Recipe
from pretraining.stream import Stream, make_stream
from pretraining.tokens import Tokens, encode_documents
from pretraining.vocabulary import learn_vocabulary, save_tokeniser
from tokenizers import Tokenizer

WIDTH = 32


def documents(count: int = 40, sentences: int = 12) -> list[tuple[str, ...]]:
    """A sentence begins and ends with its document's and its own number, so that cut pairs can be checked too."""
    choose = random.Random(0)
    verbs = ["saw", "fed", "lost", "drew", "sold"]
    return [
        tuple(f"d{d} s{s} the fox {choose.choice(verbs)} the hen d{d} s{s} ." for s in range(sentences))
        for d in range(count)
    ]


def tokeniser(folder: Path) -> Tokenizer:
    """A tokeniser learned from the small text, written to `folder`; one already there is used."""
    if not (folder / "tokenizer.json").exists():
        pieces = learn_vocabulary((text for one in documents() for text in one), size=200)
        save_tokeniser(pieces, folder, positions=WIDTH)
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


def tokens(folder: Path) -> Tokens:
    """The small text as piece ids."""
    return encode_documents(documents(), tokeniser(folder), at_once=7)


def stream(folder: Path) -> Stream:
    """The small text ready to draw from, on the CPU."""
    return make_stream(tokens(folder), width=WIDTH, power=0.85, device="cpu")


def recipe(steps: int = 30, dropout: float = 0.1) -> Recipe:
    """A recipe of one layer; dropout is on, so that a resumed run must draw it alike."""
    shape = Shape(1, 2, 32, 64, WIDTH, 200, dropout, dropout)
    return Recipe(steps=steps, seed=3, shape=shape, full_rows=16, short_rows=16, short_width=24, rate=5e-3, warm_up=5)
