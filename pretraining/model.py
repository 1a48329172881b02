"""The model: BertForPreTraining, with the MLM head applied to masked positions only."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional
from transformers import BertConfig, BertForPreTraining

from pretraining.masking import MaskedTokens
from pretraining.pairs import NO_PAIR, Sequences


@dataclass(frozen=True)
class ModelSize:
    """The model's dimensions and dropout; `dropout` applies to hidden states and embeddings."""

    layers: int = 8
    heads: int = 8
    width: int = 256
    feed_forward_width: int = 1_024
    max_length: int = 128
    vocab_size: int = 16_384
    dropout: float = 0.0
    attention_dropout: float = 0.0


def make_model(size: ModelSize, *, seed: int) -> BertForPreTraining:
    """A model with random weights from `seed`; its word embeddings are tied to the MLM head."""
    torch.manual_seed(seed)
    return BertForPreTraining(make_config(size))


def make_config(size: ModelSize) -> BertConfig:
    """The model size as a Hugging Face configuration."""
    return BertConfig(
        vocab_size=size.vocab_size,
        hidden_size=size.width,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        intermediate_size=size.feed_forward_width,
        max_position_embeddings=size.max_length,
        hidden_dropout_prob=size.dropout,
        attention_probs_dropout_prob=size.attention_dropout,
    )


@dataclass(frozen=True)
class SummedLosses:
    """Summed MLM and NSP losses in nats, each with its number of predictions."""

    mlm: Tensor
    mlm_count: Tensor
    nsp: Tensor
    nsp_count: Tensor


def summed_losses(
    model: BertForPreTraining, sequences: Sequences, masked: MaskedTokens, *, has_padding: bool
) -> SummedLosses:
    """MLM and NSP losses from one forward pass; without padding no attention mask is needed."""
    states = model.bert.embeddings(input_ids=masked.ids, token_type_ids=sequences.segments)
    attention_mask = None
    if has_padding:
        length = masked.ids.shape[1]
        positions = torch.arange(length, device=masked.ids.device)
        token_mask = positions[None] < sequences.lengths[:, None]
        attention_mask = token_mask[:, None, None, :].expand(-1, 1, length, -1)
    states = model.bert.encoder(states, attention_mask=attention_mask).last_hidden_state
    indices = masked.positions[..., None].expand(-1, -1, states.shape[-1])
    logits = model.cls.predictions(states.gather(1, indices)).flatten(0, 1)
    mlm = functional.cross_entropy(logits.float(), masked.labels.flatten(), reduction="none")
    slot_mask = masked.slot_mask.flatten()
    pooler = model.bert.pooler
    assert pooler is not None, "BertForPreTraining always has a pooler"
    nsp = functional.cross_entropy(
        model.cls.seq_relationship(pooler(states)).float(),
        sequences.nsp_labels,
        reduction="sum",
        ignore_index=NO_PAIR,
    )
    return SummedLosses((mlm * slot_mask).sum(), slot_mask.sum(), nsp, (sequences.nsp_labels != NO_PAIR).sum())
