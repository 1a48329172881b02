"""What learns: an encoder with a head of its own, or a bare one under a parser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import nn

from bertology.encoder.encoder import Batch, Output
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.finetuning.examples import Example, Padded, batches
from bertology.finetuning.parser import Parser

JUDGED_AT_ONCE = 64


@dataclass(frozen=True, eq=False)
class Learner:
    """A model on its way from one encoder to another."""

    encoder: HuggingFaceEncoder
    parser: Parser | None = None

    @cached_property
    def module(self) -> nn.Module:
        """All that learns, as one module."""
        parts = {"model": self.encoder.model} | ({"parser": self.parser} if self.parser is not None else {})
        return nn.ModuleDict(parts)

    def run(self, batch: Batch, *, hidden: bool = False) -> Output:
        """One forward pass, wherever the weights are."""
        return self.encoder.run(in_rows(batch, self.encoder.device), hidden=hidden)

    @torch.no_grad()
    def shown(self, examples: Sequence[Example], *, hidden: bool = False) -> Iterator[tuple[Padded, Output]]:
        """Every example in evaluation mode, in batches with what came of them."""
        for batch in self.batches(examples):
            yield batch, self.run(batch.shown, hidden=hidden)

    def batches(self, examples: Sequence[Example]) -> Iterator[Padded]:
        """Every example once, for a model in evaluation mode."""
        self.module.eval()
        yield from batches(examples, JUDGED_AT_ONCE)


def in_rows(batch: Batch, device: str) -> Batch:
    """A batch on a device; the options of each item, where it has some, one after the other."""
    return Batch(*(t.to(device).reshape(-1, t.shape[-1]) for t in (batch.ids, batch.types, batch.mask)))
