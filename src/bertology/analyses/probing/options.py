"""Options shared by probes and other analyses of layers."""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import Ge

from bertology.errors import Refusal

TrainCorpusOption = Annotated[str, "Corpus to train on, by name or path; empty: a part of --corpus."]
MaxTrainSizeOption = Annotated[
    int, "Maximum number of training sentences: the first of --train-corpus, else a random sample (0: all)."
]
TrainFractionOption = Annotated[
    float, "Fraction of sentences used for training, in whole documents, if there is no --train-corpus."
]
HalfPrecisionOption = Annotated[bool, "Store word vectors of --train-corpus in float16, which halves memory."]
MinExamplesOption = Annotated[int, "Minimum number of training examples per label."]
NSeedsOption = Annotated[
    int,
    Ge(1),
    "Number of repetitions with different random seeds (held-out documents, initial weights, control labels); "
    "the first is --seed.",
]
SeedOption = Annotated[int, "First random seed (splits, initial weights, control labels, bootstrap)."]
EpochsOption = Annotated[int, Ge(1), "Maximum number of training epochs, with early stopping."]
LearningRateOption = Annotated[float, "Initial learning rate of Adam."]
BatchSizeOption = Annotated[int, Ge(1), "Sentences per training batch."]
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
