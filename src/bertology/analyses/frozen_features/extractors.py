"""Frozen word features under one interface: layers of an encoder, tables of word vectors, or any function.

A feature extractor gives each word of a sentence a vector and is never trained (arora2020). By name:

model[#LAYERS]            the analysed model (or any name that `load` takes): its last layer
static                    the input embeddings of the analysed model, without context
untrained[#LAYERS]        the analysed model with random weights
random[:DIM][@SEED]       random vectors, a circulant row per word; DIM defaults to the model's width
glove:PATH, static:MODEL, random-vectors:DIM, circulant:DIM
flair:PATH, elmo:DIR      weights from local files, through their own packages
call:MODULE:FUNCTION      a function from the words of a sentence to a (word, width) array

LAYERS is `6` (0: embeddings, -1: last), `9+10+11+12` or `last4` (concatenated), `mean` or `mean:9+10` (averaged).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.cache_key import describe_value
from bertology.analyses.frozen_features.word_features import WordFeatures
from bertology.atomic_files import digest_bytes
from bertology.corpus.sentence import Sentence
from bertology.encoder.encoder import Encoder, TaskEncoder
from bertology.errors import Refusal
from bertology.lazy import torch
from bertology.progress import ProgressCallback, no_progress

if TYPE_CHECKING:
    from torch import Tensor

FloatArray = NDArray[np.float32]
FeaturesOption = Annotated[
    str,
    "Frozen features to compare, comma-separated: model, model#6 (layer 6), model#mean, model#last4, static, random, "
    "untrained, glove:PATH, flair:PATH, elmo:DIR, call:MODULE:FUNCTION or any model name.",
]
DEFAULT_FEATURES = "model,static,random"
"""The model's last layer, its input embeddings, and a random vector for each word."""

_LAYERS = re.compile(r"(.+)#((?:mean:)?-?[0-9]{1,4}(?:\+-?[0-9]{1,4})*|mean|last[0-9]{1,4})")


class FeatureExtractor(Protocol):
    """Gives every word of a sentence a vector."""

    @property
    def name(self) -> str:
        """The name given by the user."""
        ...

    @property
    def fingerprint(self) -> str:
        """A hash of everything the vectors depend on besides the sentence; empty if unknown."""
        ...

    def extract(self, sentences: Sequence[Sentence], on_progress: ProgressCallback = no_progress) -> WordFeatures:
        """The vectors of the words of each sentence; `on_progress` is called with the number of sentences done."""
        ...


@dataclass(frozen=True)
class LayerSelection:
    """The layers that form a word's vector, concatenated or averaged; layer 0 is the embeddings."""

    layers: tuple[int, ...] = (-1,)
    pooling: Literal["concatenated", "mean"] = "concatenated"

    def combine(self, states: Sequence[Tensor]) -> Tensor:
        """(..., width) from the states of every layer."""
        selected = [states[layer] for layer in self.layers]
        return torch.cat(selected, -1) if self.pooling == "concatenated" else torch.stack(selected).mean(0)


def parse_layer_selection(text: str, n_layers: int) -> LayerSelection:
    """Parse `6`, `-1`, `9+10`, `last4`, `mean` or `mean:9+10`; `n_layers` leaves out the embeddings."""
    mean, numbers = text.startswith("mean"), text.removeprefix("mean").removeprefix(":")
    if numbers.startswith("last"):
        layers = range(n_layers + 1 - int(numbers.removeprefix("last")), n_layers + 1)
    else:
        layers = [int(number) for number in numbers.split("+")] if numbers else range(n_layers + 1)
    for layer in layers:
        if not -n_layers - 1 <= layer <= n_layers:
            raise Refusal(
                f"#{text} selects layer {layer} of a model with {n_layers} layers",
                f"layers from 0 (embeddings) to {n_layers}, or from -1 (last) to {-n_layers - 1}",
                "Select other layers",
            )
    return LayerSelection(tuple(layer % (n_layers + 1) for layer in layers), "mean" if mean else "concatenated")


@dataclass(frozen=True)
class EncoderFeatureExtractor:
    """Hidden states of an encoder, averaged over the tokens of a word; each sentence is one input with special tokens.

    A sentence that is too long for the encoder is split in halves, recursively, and counted.
    """

    name: str
    encoder: Encoder
    layers: LayerSelection = field(default_factory=LayerSelection)

    @property
    def fingerprint(self) -> str:
        """A hash of the encoder and of the selected layers."""
        return digest_bytes(json.dumps(describe_value((self.encoder, self.layers))).encode())

    def extract(self, sentences: Sequence[Sentence], on_progress: ProgressCallback = no_progress) -> WordFeatures:
        """One forward pass over the sentences that keeps only the selected layers."""
        from bertology.analyses.frozen_features.encoder_states import encode_words

        return encode_words(self.name, self.encoder, self.layers.combine, sentences, on_progress)


@dataclass(frozen=True)
class FunctionFeatureExtractor:
    """A function from the words of a sentence to their vectors, (word, width)."""

    name: str
    function: Callable[[Sequence[str]], Any]
    fingerprint: str = ""

    def extract(self, sentences: Sequence[Sentence], on_progress: ProgressCallback = no_progress) -> WordFeatures:
        """Call the function on each sentence; anything but one finite vector per word is refused."""
        vectors: list[FloatArray] = []
        for done, sentence in enumerate(sentences, 1):
            vectors.append(self._check_vectors(sentence, vectors))
            on_progress(done, len(sentences))
        return WordFeatures(self.name, tuple(vectors))

    def _check_vectors(self, sentence: Sentence, previous: Sequence[FloatArray]) -> FloatArray:
        values = np.asarray(self.function(sentence.words), np.float32)
        width = previous[0].shape[1] if previous else values.shape[-1] if values.ndim == 2 else 0
        if values.shape != (len(sentence), width) or not np.isfinite(values).all():
            raise Refusal(
                f"{self.name} returned an array of shape {values.shape} for {len(sentence)} words"
                + ("" if np.isfinite(values).all() else ", with non-finite values"),
                f"one vector per word, all of the same width ({width or 'any'})",
                "Correct the function",
            )
        return values


def feature_extractor(
    feature: str | FeatureExtractor | Callable[[Sequence[str]], Any], encoder: Encoder | None = None
) -> FeatureExtractor:
    """A feature extractor from its name, or from a function of the words of a sentence.

    `encoder` is the analysed model, which some names refer to.
    """
    if isinstance(feature, str):
        return _parse_feature(feature.strip(), encoder)
    return FunctionFeatureExtractor(getattr(feature, "__name__", "function"), feature) if callable(feature) else feature


def parse_features(text: str, encoder: Encoder | None) -> list[FeatureExtractor]:
    """Feature extractors from comma-separated, distinct names."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names or len(set(names)) < len(names):
        raise Refusal(
            f"--features was given {text!r}",
            "distinct names, comma-separated",
            "Try --features model,static,random",
        )
    return [_parse_feature(name, encoder) for name in names]


def _parse_feature(name: str, encoder: Encoder | None) -> FeatureExtractor:
    matched = _LAYERS.fullmatch(name)
    base, layers = (matched[1], matched[2]) if matched else (name, "-1")
    kind, _, rest = base.partition(":")
    if kind in {"flair", "elmo", "call"}:
        from bertology.analyses.frozen_features.third_party import third_party_extractor

        return third_party_extractor(kind, rest)
    base_encoder = _load_base_encoder(base, kind, encoder)
    return EncoderFeatureExtractor(name, base_encoder, parse_layer_selection(layers, base_encoder.layers))


def _load_base_encoder(base: str, kind: str, encoder: Encoder | None) -> Encoder:
    from bertology.encoder.load import load, static_encoder

    device = "cpu" if encoder is None else encoder.device
    kind = kind.partition("@")[0]
    if kind == "random" and re.fullmatch(r"random(:\d+)?(@\d+)?", base):
        width, _, seed = base.removeprefix("random").removeprefix(":").partition("@")
        return load(f"circulant:{width or _require_encoder(base, encoder).width}@{seed or 0}", device=device)
    if base == "model":
        return _require_encoder(base, encoder)
    if base in {"static", "untrained"}:
        model = _require_encoder(base, encoder)
        if not isinstance(model, TaskEncoder):
            raise Refusal(
                f"The feature {base!r} needs a transformer, and {model.name} is a table of word vectors",
                "a transformer as --model",
                "Choose another --model, or remove this feature",
            )
        return static_encoder(model) if base == "static" else model.randomised(seed=0)
    return load(base, device=device)


def _require_encoder(name: str, encoder: Encoder | None) -> Encoder:
    if encoder is None:
        raise Refusal(
            f"The feature {name!r} refers to the analysed model, and there is none",
            "a model",
            "Name one with --model, or write the feature's model name",
        )
    return encoder
