"""The batch of one training step: a function of seed and step only, so that resumed runs see the same batches."""

from dataclasses import dataclass

import torch

from pretraining.masking import Masked, mask_pieces
from pretraining.pairs import Sequences, full_pairs, short_sequences
from pretraining.recipe import Recipe
from pretraining.stream import Stream


@dataclass(frozen=True)
class Batch:
    """The full rows and the short rows of one step, with what is hidden in each."""

    full: Sequences
    full_hidden: Masked
    short: Sequences
    short_hidden: Masked


def step_seed(recipe: Recipe, step: int) -> int:
    """A seed for one step that no other step of a run of under a billion steps has."""
    return recipe.seed * 1_000_000_007 + step


def draw_batch(stream: Stream, recipe: Recipe, step: int) -> Batch:
    """The rows of one step, drawn and masked on the stream's device."""
    generator = torch.Generator(device=stream.device).manual_seed(step_seed(recipe, step))
    full = full_pairs(stream, recipe.full_rows, generator)
    short = short_sequences(stream, recipe.short_rows, recipe.short_width, generator)
    words = recipe.shape.vocabulary
    return Batch(full, mask_pieces(full.ids, words, generator), short, mask_pieces(short.ids, words, generator))
