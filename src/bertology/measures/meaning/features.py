"""Frozen features of words under one interface: layers of an encoder, tables of vectors, or any callable.

A feature turns sentences into one vector a word and is never trained (arora2020). By name:

model[#LAYERS]            the model at hand (or any name that `load` takes): its last layer
static                    the input embeddings of the model at hand, without context
untrained[#LAYERS]        the model at hand with random weights
random[:DIM][@SEED]       random vectors, a circulant row a word; of the model's width where DIM is left out
glove:PATH, static:MODEL, random-vectors:DIM, circulant:DIM
flair:PATH, elmo:FOLDER   weights from local files, by packages of their own
call:MODULE:FUNCTION      your own function from the words of a sentence to (word, width) numbers

LAYERS is `6` (0 the embeddings, -1 the last), `9+10+11+12` or `last4` (end to end), `mean` or `mean:9+10` (averaged).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from bertology.corpus.sentence import Sentence
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.measures.meaning.frozen_vectors import Meter, Vectors, unheard

if TYPE_CHECKING:
    from torch import Tensor

Floats = NDArray[np.float32]

_LAYERS = re.compile(r"(.+)#((?:mean:)?-?\d+(?:\+-?\d+)*|mean|last\d+)")


class Feature(Protocol):
    """Something that gives every word of a sentence a vector."""

    @property
    def name(self) -> str:
        """What the user calls it."""
        ...

    @property
    def identity(self) -> str:
        """A hash of all that the vectors depend on besides the sentence; empty where nobody can tell."""
        ...

    def vectors(self, sentences: Sequence[Sentence], meter: Meter = unheard) -> Vectors:
        """The vectors of the words of each sentence; `meter` is told how many sentences are done."""
        ...


@dataclass(frozen=True)
class Layers:
    """Which hidden states make the vector of a word, and how: end to end, or averaged. 0 is the embeddings."""

    places: tuple[int, ...] = (-1,)
    how: Literal["concatenated", "mean"] = "concatenated"

    def of(self, states: Sequence[Tensor]) -> Tensor:
        """(..., width) from the states of every layer."""
        import torch

        chosen = [states[place] for place in self.places]
        return torch.cat(chosen, -1) if self.how == "concatenated" else torch.stack(chosen).mean(0)


def layers_named(text: str, depth: int) -> Layers:
    """From `6`, `-1`, `9+10`, `last4`, `mean` or `mean:9+10`; `depth` is how many layers attend."""
    mean, numbers = text.startswith("mean"), text.removeprefix("mean").removeprefix(":")
    if numbers.startswith("last"):
        places = range(depth + 1 - int(numbers.removeprefix("last")), depth + 1)
    else:
        places = [int(number) for number in numbers.split("+")] if numbers else range(depth + 1)
    for place in places:
        if not -depth - 1 <= place <= depth:
            raise Refusal(
                f"#{text} asks for layer {place} of a model with {depth}",
                f"layers from 0 (the embeddings) to {depth}, or from -1 (the last) to {-depth - 1}",
                "Name others",
            )
    return Layers(tuple(place % (depth + 1) for place in places), "mean" if mean else "concatenated")


@dataclass(frozen=True)
class EncoderFeature:
    """Hidden states of an encoder, the mean over a word's pieces; each sentence is read alone, special tokens added.

    A sentence that is too long for the encoder is read in halves (of halves ...), which is counted.
    """

    name: str
    encoder: Encoder
    layers: Layers = field(default_factory=Layers)

    @property
    def identity(self) -> str:
        """The encoder's fingerprint and the layers."""
        return f"{self.encoder.fingerprint} {self.layers}"

    def vectors(self, sentences: Sequence[Sentence], meter: Meter = unheard) -> Vectors:
        """One pass of the encoder over the sentences, the chosen layers alone being kept."""
        from bertology.measures.meaning.encoded_words import states_of_words

        return states_of_words(self.name, self.encoder, self.layers.of, sentences, meter)


@dataclass(frozen=True)
class CalledFeature:
    """Any function from the words of one sentence to their vectors, (word, width)."""

    name: str
    function: Callable[[Sequence[str]], Any]
    identity: str = ""

    def vectors(self, sentences: Sequence[Sentence], meter: Meter = unheard) -> Vectors:
        """The function called once a sentence; what is not one finite vector a word is refused."""
        found: list[Floats] = []
        for done, sentence in enumerate(sentences, 1):
            found.append(self._checked(sentence, found))
            meter(done, len(sentences))
        return Vectors(self.name, tuple(found))

    def _checked(self, sentence: Sentence, before: Sequence[Floats]) -> Floats:
        values = np.asarray(self.function(sentence.words), np.float32)
        width = before[0].shape[1] if before else values.shape[-1] if values.ndim == 2 else 0
        if values.shape != (len(sentence), width) or not np.isfinite(values).all():
            raise Refusal(
                f"{self.name} returned numbers of shape {values.shape} for {len(sentence)} words"
                + ("" if np.isfinite(values).all() else ", not all of them finite"),
                f"one vector a word, all of one width ({width or 'any'})",
                "Correct the function",
            )
        return values


def feature_of(given: str | Feature | Callable[[Sequence[str]], Any], encoder: Encoder | None = None) -> Feature:
    """A feature from its name, or from a function of the words of a sentence; a feature is returned as it is.

    `encoder` is the model at hand, which some names refer to.
    """
    if isinstance(given, str):
        return _named(given.strip(), encoder)
    return CalledFeature(getattr(given, "__name__", "function"), given) if callable(given) else given


def features_named(text: str, encoder: Encoder | None) -> list[Feature]:
    """Features from their names, commas between them; each name once."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names or len(set(names)) < len(names):
        raise Refusal(
            f"--features was given {text!r}",
            "names with commas between them, none of them twice",
            "For example --features model,static,random",
        )
    return [_named(name, encoder) for name in names]


def _named(name: str, encoder: Encoder | None) -> Feature:
    matched = _LAYERS.fullmatch(name)
    base, layers = (matched[1], matched[2]) if matched else (name, "-1")
    kind, _, rest = base.partition(":")
    if kind in {"flair", "elmo", "call"}:
        from bertology.measures.meaning.foreign_features import foreign_feature

        return foreign_feature(kind, rest)
    found = _encoder_named(base, kind, encoder)
    return EncoderFeature(name, found, layers_named(layers, found.layers))


def _encoder_named(base: str, kind: str, at_hand: Encoder | None) -> Encoder:
    from bertology.encoder.load import load, static_form

    device = "cpu" if at_hand is None else at_hand.device
    kind = kind.partition("@")[0]
    if kind == "random" and re.fullmatch(r"random(:\d+)?(@\d+)?", base):
        width, _, seed = base.removeprefix("random").removeprefix(":").partition("@")
        return load(f"circulant:{width or _required(base, at_hand).width}@{seed or 0}", device=device)
    if base == "model":
        return _required(base, at_hand)
    if base in {"static", "untrained"}:
        from bertology.encoder.huggingface import HuggingFaceEncoder

        model = _required(base, at_hand)
        if not isinstance(model, HuggingFaceEncoder):
            raise Refusal(
                f"The feature {base!r} is made from a transformer, and {model.name} is a table of vectors",
                "a transformer as the model at hand",
                "Give one with --model, or leave that feature out",
            )
        return static_form(model) if base == "static" else model.randomised(seed=0)
    return load(base, device=device)


def _required(name: str, at_hand: Encoder | None) -> Encoder:
    if at_hand is None:
        raise Refusal(
            f"The feature {name!r} refers to the model at hand, and there is none",
            "a model",
            "Give one with --model, or name the feature in full",
        )
    return at_hand
