"""The options that probes share: what they learn from and how often, said once."""

from __future__ import annotations

from typing import Annotated

Train = Annotated[str, "a corpus to train on, by name or path; empty: a part of the test corpus"]
TrainLimit = Annotated[int, "train on at most N sentences: the first of --train, or drawn at random; 0 for all"]
Share = Annotated[float, "without --train: the share of the sentences to train on, whole documents"]
Half = Annotated[bool, "keep the word vectors of --train in float16: half the memory"]
Seeds = Annotated[int, "how many probes, each with its own held-out documents, first weights and control"]
Seed = Annotated[int, "the first of these seeds, and that of the division and the bootstrap"]
Epochs = Annotated[int, "passes over the training sentences at most"]
Rate = Annotated[float, "Adam's rate at the start; the paper's is 0.001"]
Batch = Annotated[int, "sentences in a batch"]
