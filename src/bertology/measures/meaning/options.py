"""The options that the comparisons of frozen features share: what each does, said once."""

from __future__ import annotations

from typing import Annotated, Literal

Features = Annotated[
    str,
    "names with commas: model, model#6, model#mean, model#last4, static, random, untrained, glove:PATH, flair:PATH, "
    "elmo:FOLDER, call:MODULE:FUNCTION, or any model",
]
TaskName = Annotated[
    Literal["auto", "sentence", "pair", "token"], "what is learnt; auto: what the corpus has labels for"
]
Layer = Annotated[str, "for the task token: the layer of tags; left out, the first there is, names first"]
Items = Annotated[int, "use so many items, a quarter of them to judge by; 0 for all"]
Train = Annotated[str, "a corpus to learn from, by name or path; empty: a part of this one"]
TrainLimit = Annotated[int, "learn from the first N items of --train; 0 for all"]
Seeds = Annotated[int, "so many models of each, each with its own held-out part, order and first weights"]
Seed = Annotated[int, "the first of these seeds, and that of the division and the bootstrap"]
Learners = Annotated[str, "linear; for token also bilstm-crf, for sentence cnn; commas between them"]
Learner = Annotated[Literal["linear", "bilstm-crf", "cnn"], "what learns: of tokens linear or bilstm-crf, of texts cnn"]
Sizes = Annotated[int, "so many training sizes, in equal steps of the logarithm"]
Least = Annotated[float, "the smallest training size, as a share of all"]

USUAL = "model,static,random"
"""A model's last layer, its input embeddings, and a random vector for each word."""
