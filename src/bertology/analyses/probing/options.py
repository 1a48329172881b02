"""Options shared by probes and other analyses of layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from bertology.corpus.corpus import Corpus
from bertology.errors import Refusal
from bertology.number_ranges import LEARNING_RATE, REPETITIONS

ProbeOption = Annotated[
    str, "Probe architecture: linear, rank:N, mlp:N, mlp:N:N, or bilinear:N for span pairs; N: hidden units."
]
ExampleLabelOption = Annotated[
    str,
    "Label of the examples to predict, by the name of its column; empty: the label of the corpus, or its only one.",
]
MinExamplesOption = Annotated[int, "Minimum number of training examples per label."]
NSeedsOption = Annotated[
    int,
    REPETITIONS,
    "Number of repetitions with different random seeds (splits, initial weights); the first is --seed.",
]
SeedOption = Annotated[int, "First random seed (splits, initial weights, samples, random baselines, bootstrap)."]
EpochsOption = Annotated[int, REPETITIONS, "Maximum number of training epochs, with early stopping."]
LearningRateOption = Annotated[float, LEARNING_RATE, "Initial learning rate of Adam."]
NormaliseLayersOption = Annotated[bool, "Scale all layers to the same norm before mixing them."]

Layer = int | Literal["auto"]


def resolve_layer(layer: Layer, n_layers: int, *, auto: int) -> int:
    """The index of a layer among `n_layers`, embeddings included: negative numbers count from the last layer."""
    if layer == "auto":
        return auto
    if not -n_layers <= layer < n_layers:
        raise Refusal(
            f"--layer was given {layer}, but the model has {n_layers - 1} layers",
            f"a number from 0 (embeddings) to {n_layers - 1}, a negative one counted from the last layer (-1), or auto",
            "Choose another --layer",
        )
    return layer % n_layers


def check_example_label(corpus: Corpus, options: Mapping[str, Any]) -> None:
    """Refuse a corpus without the label of examples that is to be predicted."""
    corpus.with_label(options["label"])
