"""Options shared by the analyses that evaluate a model on a task."""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import Ge

TaskOption = Annotated[
    Literal["auto", "mlm", "sentence", "pair", "token", "qa", "choice"],
    "Task to evaluate: sentence, pair, token, qa, choice or mlm; `auto`: the task of the model's task head, else "
    "masked language modelling.",
]
AttackedTaskOption = Annotated[
    Literal["auto", "mlm", "sentence", "pair", "qa", "choice"],
    "Task to evaluate: sentence, pair, qa, choice or mlm; `auto`: the task of the model's task head, else masked "
    "language modelling.",
]
AnnotationOption = Annotated[
    str,
    "For --task token: the annotation to predict, such as pos or entities (default: the first available).",
]
SampleSizeOption = Annotated[int, Ge(0), "Evaluate on a random sample of this many examples (0: all)."]
HalvedSampleSizeOption = Annotated[
    int,
    Ge(0),
    "Use a random sample of this many examples (0: all); one half selects or ranks heads, the other is the test set.",
]
TrainSampleSizeOption = Annotated[
    int, Ge(0), "Use a random sample of this many examples; a quarter is the test set (0: all)."
]
NormaliseOption = Annotated[
    Literal["layer", "none"],
    "`layer`: gradients of each layer scaled to unit norm, as in the paper; `none`: nats.",
]
LegacyOption = Annotated[bool, "Reproduce the released code: absolute gradients per token instead of per example."]
ShuffleDistanceOption = Annotated[
    float,
    "Shuffle until the edit distance divided by length reaches this value, 0 to 1 (Si et al. give none).",
]
NSeedsOption = Annotated[
    int,
    Ge(1),
    "Number of repetitions with different random seeds (splits, initial weights, order, control labels); the first is "
    "--seed.",
]
EpochsOption = Annotated[int, Ge(1), "Training epochs."]
LearningRateOption = Annotated[float, "Peak learning rate (0: chosen by model width, 5e-5 for 768)."]
BatchSizeOption = Annotated[int, Ge(1), "Examples per training batch."]
SeedOption = Annotated[
    int,
    "Random seed for every random choice of this analysis: sampling, splits, masking, initial weights, shuffled "
    "baselines and the bootstrap.",
]
