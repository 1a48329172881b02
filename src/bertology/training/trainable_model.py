"""A model in training: an encoder with a task head, or a bare encoder with a dependency parser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from bertology.encoder.encoder import ModelInputs, ModelOutput, TaskEncoder
from bertology.lazy import torch
from bertology.training.encoded_examples import EncodedExample, TrainingBatch, iterate_batches

if TYPE_CHECKING:
    from torch import nn

    from bertology.training.biaffine_parser import BiaffineParser

EVALUATION_BATCH_SIZE = 64


@dataclass(frozen=True, eq=False)
class TrainableModel:
    """An encoder and, for dependency parsing, its parser."""

    encoder: TaskEncoder
    parser: BiaffineParser | None = None

    @cached_property
    def module(self) -> nn.Module:
        """Encoder and parser as one module."""
        parts = {"model": self.encoder.model} | ({"parser": self.parser} if self.parser is not None else {})
        return torch.nn.ModuleDict(parts)

    def forward(self, batch: ModelInputs, *, hidden: bool = False) -> ModelOutput:
        """Run one forward pass on the device of the weights."""
        return self.encoder.forward(flatten_options(batch, self.encoder.device), hidden=hidden)

    def predict_batches(
        self, examples: Sequence[EncodedExample], *, hidden: bool = False
    ) -> Iterator[tuple[TrainingBatch, ModelOutput]]:
        """Run all examples in evaluation mode without gradients; yields batches with their outputs."""
        self.module.eval()
        for batch in iterate_batches(examples, EVALUATION_BATCH_SIZE):
            with torch.no_grad():
                output = self.forward(batch.inputs, hidden=hidden)
            yield batch, output


def flatten_options(batch: ModelInputs, device: str) -> ModelInputs:
    """A batch on a device, with the options of an example as separate rows."""
    return ModelInputs(
        *(t.to(device).reshape(-1, t.shape[-1]) for t in (batch.input_ids, batch.token_type_ids, batch.attention_mask))
    )
