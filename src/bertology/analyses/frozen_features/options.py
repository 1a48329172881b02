"""Options that the analyses of frozen features share."""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import Ge

FeaturesOption = Annotated[
    str,
    "Frozen features to compare, comma-separated: model, model#6 (layer 6), model#mean, model#last4, static, random, "
    "untrained, glove:PATH, flair:PATH, elmo:DIR, call:MODULE:FUNCTION or any model name.",
]
TrainTaskOption = Annotated[
    Literal["auto", "sentence", "pair", "token"], "Task to train; `auto`: what the corpus is annotated for."
]
AnnotationOption = Annotated[
    str, "For --task token: the annotation to predict, such as pos or entities (default: the first available)."
]
SampleSizeOption = Annotated[int, "Use a random sample of this many examples; a quarter is the test set (0: all)."]
TrainCorpusOption = Annotated[
    str, "Corpus to train on, by name or path; empty: the train split, or a part, of --corpus."
]
MaxTrainSizeOption = Annotated[int, "Maximum number of training examples: the first of --train-corpus (0: all)."]
NSeedsOption = Annotated[
    int, Ge(1), "Number of repetitions with different validation sets, data order and initial weights."
]
SeedOption = Annotated[int, "Random seed for sampling, splits, initial weights, shuffled baselines and the bootstrap."]
ClassifiersOption = Annotated[
    str,
    "Classifiers on the frozen features, comma-separated: linear; bilstm-crf for token tasks; cnn for text tasks.",
]
ClassifierOption = Annotated[
    Literal["linear", "bilstm-crf", "cnn"],
    "Classifier on the frozen features: `linear`; `bilstm-crf` for token tasks; `cnn` for text tasks.",
]
TrainSizesOption = Annotated[int, Ge(1), "Number of training sizes, evenly spaced on a log scale."]
MinTrainFractionOption = Annotated[float, "Smallest training size, as a fraction of the training set."]

DEFAULT_FEATURES = "model,static,random"
"""The model's last layer, its input embeddings, and a random vector for each word."""
