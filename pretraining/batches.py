"""The batch of one training step: a function of seed and step only, so that resumed runs see the same batches."""

from dataclasses import dataclass

import torch

from pretraining.config import PretrainingConfig
from pretraining.masking import MaskedTokens, mask_tokens
from pretraining.pairs import Sequences, full_pairs, short_sequences
from pretraining.stream import TokenStream


@dataclass(frozen=True)
class PretrainingBatch:
    """The full and the short sequences of one step, each with its masked tokens."""

    full: Sequences
    full_masked: MaskedTokens
    short: Sequences
    short_masked: MaskedTokens


def step_seed(config: PretrainingConfig, step: int) -> int:
    """A seed for one step, unique within a run of fewer than a billion steps."""
    return config.seed * 1_000_000_007 + step


def sample_batch(stream: TokenStream, config: PretrainingConfig, step: int) -> PretrainingBatch:
    """Sample and mask the sequences of one step on the stream's device."""
    generator = torch.Generator(device=stream.device).manual_seed(step_seed(config, step))
    full = full_pairs(stream, config.batch_size, generator)
    short = short_sequences(stream, config.short_batch_size, config.short_max_length, generator)
    vocab_size = config.model.vocab_size
    full_masked = mask_tokens(full.ids, vocab_size, generator)
    return PretrainingBatch(full, full_masked, short, mask_tokens(short.ids, vocab_size, generator))
