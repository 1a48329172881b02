"""The model: BertForPreTraining, with the MLM head applied to masked positions only."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional
from transformers import BertConfig, BertForPreTraining

from pretraining.masking import Masked
from pretraining.pairs import Sequences


@dataclass(frozen=True)
class Shape:
    """The model's size and dropout; `dropout` is of hidden states and embeddings, `attention_dropout` of attention."""

    layers: int = 8
    heads: int = 8
    width: int = 256
    inner: int = 1_024
    positions: int = 128
    vocabulary: int = 16_384
    dropout: float = 0.0
    attention_dropout: float = 0.0


def make_model(shape: Shape, *, seed: int) -> BertForPreTraining:
    """Fresh weights drawn from `seed`, word embeddings tied to the predictions."""
    torch.manual_seed(seed)
    return BertForPreTraining(make_config(shape))


def make_config(shape: Shape) -> BertConfig:
    """The shape in Hugging Face's words."""
    return BertConfig(
        vocab_size=shape.vocabulary,
        hidden_size=shape.width,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=shape.inner,
        max_position_embeddings=shape.positions,
        hidden_dropout_prob=shape.dropout,
        attention_probs_dropout_prob=shape.attention_dropout,
    )


@dataclass(frozen=True)
class Losses:
    """Summed loss in nats and count of guesses: of hidden pieces, and of next sentences."""

    words: Tensor
    word_count: Tensor
    sentences: Tensor
    sentence_count: Tensor


def losses(model: BertForPreTraining, rows: Sequences, hidden: Masked, *, padded: bool) -> Losses:
    """One forward pass; `padded` says whether any row is shorter than the batch is wide."""
    states = model.bert.embeddings(input_ids=hidden.ids, token_type_ids=rows.segments)
    mask = None
    if padded:
        place = torch.arange(hidden.ids.shape[1], device=hidden.ids.device)
        mask = (place[None] < rows.lengths[:, None])[:, None, None, :].expand(-1, 1, hidden.ids.shape[1], -1)
    states = model.bert.encoder(states, attention_mask=mask).last_hidden_state
    at = hidden.places[..., None].expand(-1, -1, states.shape[-1])
    scores = model.cls.predictions(states.gather(1, at)).flatten(0, 1)
    missed = functional.cross_entropy(scores.float(), hidden.truths.flatten(), reduction="none")
    used = hidden.used.flatten()
    pooler = model.bert.pooler
    assert pooler is not None, "BertForPreTraining always has a pooler"
    pooled = pooler(states)
    follows = functional.cross_entropy(
        model.cls.seq_relationship(pooled).float(), rows.random, reduction="sum", ignore_index=-1
    )
    return Losses((missed * used).sum(), used.sum(), follows, (rows.random >= 0).sum())
