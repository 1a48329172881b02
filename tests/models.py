"""Tiny models of every supported family, seeded, with tokenisers of the family's own kind, made in memory.

Each is saved once in Hugging Face form and loaded through `load`, as a user's model is. Encoders are shared by all
tests of a process: never change their weights.
"""

from __future__ import annotations

import atexit
import copy
import shutil
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
import transformers
from tokenizers import normalizers

from bertology.corpus.corpus import Input
from bertology.corpus.sentence import from_text
from bertology.encoder.encoder import Batch
from bertology.encoder.huggingface import HuggingFaceEncoder, wrap
from bertology.encoder.load import load
from bertology.encoder.pieces import Pieces
from family_tokenisers import (
    ALBERT_SPECIAL,
    BERT_SPECIAL,
    DEBERTA_SPECIAL,
    GPT2_SPECIAL,
    MPNET_SPECIAL,
    ROBERTA_SPECIAL,
    TEXTS,
    Special,
    bracketed,
    byte_level,
    gpt2_offsets,
    roberta_bracketed,
    unigram,
    word_piece,
)

LAYERS, HEADS, WIDTH, POSITIONS = 2, 4, 32, 64

SENTENCE_HEADS = ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "ForMultipleChoice")
CLASSES = 3


@dataclass(frozen=True)
class Family:
    """How to make a tiny model: `prefix` begins the names of its classes, `heads` end them."""

    prefix: str
    config: Callable[[int], Any]
    special: Special
    tokenizer: Callable[[], Any]
    heads: tuple[str, ...] = SENTENCE_HEADS
    language_model: str = "ForMaskedLM"

    @property
    def kinds(self) -> tuple[str, ...]:
        """The bare model and every head."""
        return ("Model", self.language_model, *self.heads)


COMMON: dict[str, Any] = {
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": 48,
    "initializer_range": 0.2,
}


# One layer that attends to all, two that attend within a window.
THREE_LAYERS: dict[str, Any] = {**COMMON, "num_hidden_layers": 3}


def _deberta(vocabulary: int, **changed: Any) -> Any:
    options: dict[str, Any] = {
        **COMMON,
        "max_position_embeddings": POSITIONS,
        "relative_attention": True,
        "pos_att_type": ["p2c", "c2p"],
        "share_att_key": True,
        "position_buckets": 8,
        "norm_rel_ebd": "layer_norm",
        "position_biased_input": False,
        "type_vocab_size": 0,
        **changed,
    }
    return transformers.DebertaV2Config(vocab_size=vocabulary, **options)


def _gpt2(vocabulary: int, **changed: Any) -> Any:
    return transformers.GPT2Config(
        vocab_size=vocabulary,
        n_embd=WIDTH,
        n_layer=LAYERS,
        n_head=HEADS,
        n_positions=POSITIONS,
        initializer_range=0.2,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=1,
        **changed,
    )


def _deberta_tokenizer() -> Any:
    return bracketed(unigram(DEBERTA_SPECIAL, normalizers.NFKC()), DEBERTA_SPECIAL)


FAMILIES: dict[str, Family] = {
    "bert": Family(
        "Bert",
        lambda size: transformers.BertConfig(vocab_size=size, max_position_embeddings=POSITIONS, **COMMON),
        BERT_SPECIAL,
        lambda: bracketed(word_piece(BERT_SPECIAL), BERT_SPECIAL),
        ("ForPreTraining", "ForNextSentencePrediction", *SENTENCE_HEADS),
    ),
    "roberta": Family(
        "Roberta",
        lambda size: transformers.RobertaConfig(
            vocab_size=size, max_position_embeddings=POSITIONS + 2, type_vocab_size=1, **COMMON
        ),
        ROBERTA_SPECIAL,
        lambda: roberta_bracketed(byte_level(ROBERTA_SPECIAL)),
    ),
    "distilbert": Family(
        "DistilBert",
        lambda size: transformers.DistilBertConfig(
            vocab_size=size,
            max_position_embeddings=POSITIONS,
            dim=WIDTH,
            n_layers=LAYERS,
            n_heads=HEADS,
            hidden_dim=48,
            initializer_range=0.2,
        ),
        BERT_SPECIAL,
        lambda: bracketed(word_piece(BERT_SPECIAL), BERT_SPECIAL),
    ),
    "electra": Family(
        "Electra",
        lambda size: transformers.ElectraConfig(
            vocab_size=size, max_position_embeddings=POSITIONS, embedding_size=16, **COMMON
        ),
        BERT_SPECIAL,
        lambda: bracketed(word_piece(BERT_SPECIAL), BERT_SPECIAL),
        ("ForPreTraining", *SENTENCE_HEADS),
    ),
    "albert": Family(
        "Albert",
        lambda size: transformers.AlbertConfig(
            vocab_size=size, max_position_embeddings=POSITIONS, embedding_size=16, **COMMON
        ),
        ALBERT_SPECIAL,
        lambda: bracketed(
            unigram(ALBERT_SPECIAL, normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()),
            ALBERT_SPECIAL,
        ),
        ("ForPreTraining", *SENTENCE_HEADS),
    ),
    "mpnet": Family(
        "MPNet",
        lambda size: transformers.MPNetConfig(vocab_size=size, max_position_embeddings=POSITIONS + 2, **COMMON),
        MPNET_SPECIAL,
        lambda: roberta_bracketed(word_piece(MPNET_SPECIAL)),
    ),
    "deberta-v2": Family("DebertaV2", _deberta, DEBERTA_SPECIAL, _deberta_tokenizer),
    "modernbert": Family(
        "ModernBert",
        lambda size: transformers.ModernBertConfig(
            vocab_size=size,
            max_position_embeddings=POSITIONS,
            local_attention=6,
            layer_types=["full_attention", "sliding_attention", "sliding_attention"],
            pad_token_id=0,
            bos_token_id=2,
            eos_token_id=3,
            cls_token_id=2,
            sep_token_id=3,
            **THREE_LAYERS,
        ),
        BERT_SPECIAL,
        lambda: bracketed(byte_level(BERT_SPECIAL, normalizers.NFC()), BERT_SPECIAL, types=False),
    ),
    "gpt2": Family(
        "GPT2",
        _gpt2,
        GPT2_SPECIAL,
        lambda: gpt2_offsets(byte_level(GPT2_SPECIAL)),
        ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"),
        "LMHeadModel",
    ),
}
# The same classes set up as other published checkpoints are.
VARIANTS: dict[str, Family] = {
    "deberta-v2 with own position projections and a convolution": Family(
        "DebertaV2",
        lambda size: _deberta(size, share_att_key=False, conv_kernel_size=3, conv_act="gelu", type_vocab_size=2),
        DEBERTA_SPECIAL,
        _deberta_tokenizer,
    ),
    "deberta-v2 without relative positions": Family(
        "DebertaV2",
        lambda size: _deberta(size, relative_attention=False, position_biased_input=True, pos_att_type=None),
        DEBERTA_SPECIAL,
        _deberta_tokenizer,
    ),
    "gpt2 scaled by layer": Family(
        "GPT2",
        lambda size: _gpt2(size, scale_attn_by_inverse_layer_idx=True, reorder_and_upcast_attn=True),
        GPT2_SPECIAL,
        lambda: gpt2_offsets(byte_level(GPT2_SPECIAL)),
    ),
}
KINDS = [(name, kind) for name, family in FAMILIES.items() for kind in family.kinds]


@cache
def root() -> Path:
    """A temporary directory for the models of this process, removed when it ends."""
    folder = tempfile.mkdtemp(prefix="bertology-models-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


@cache
def tokenizer(name: str) -> Any:
    """The tokeniser of a family in transformers' form."""
    family = (FAMILIES | VARIANTS)[name]
    special = family.special
    roles = {"cls": special.cls, "sep": special.sep, "pad": special.pad, "unk": special.unk, "mask": special.mask}
    roles |= {"bos": "<|endoftext|>", "eos": "<|endoftext|>"} if special is GPT2_SPECIAL else {}
    named = {f"{role}_token": token for role, token in roles.items() if token is not None}
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=family.tokenizer(), model_max_length=POSITIONS, **cast("dict[str, Any]", named)
    )


def model(name: str, kind: str = "Model", *, seed: int = 0) -> Any:
    """A new model of a family, every weight random, none of them zero or one as initialisation leaves them."""
    family = (FAMILIES | VARIANTS)[name]
    config = family.config(len(tokenizer(name)))
    config.num_labels = 1 if kind == "ForMultipleChoice" else 2 if kind == "ForQuestionAnswering" else CLASSES
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        with warnings.catch_warnings():
            # DeBERTa's file uses torch.jit.script, which torch calls deprecated when it is imported.
            warnings.simplefilter("ignore", DeprecationWarning)
            made = getattr(transformers, family.prefix + kind)(config)
        with torch.no_grad():
            for weight in made.parameters():
                weight.add_(0.1 * torch.randn_like(weight))
    return made.eval()


@cache
def directory(name: str, kind: str = "Model") -> Path:
    """A family's model in Hugging Face form."""
    folder = root() / f"{name}-{kind}".replace(" ", "-")
    model(name, kind).save_pretrained(folder)
    tokenizer(name).save_pretrained(folder)
    return folder


@cache
def encoder(name: str, kind: str = "Model") -> HuggingFaceEncoder:
    """A family's model as an encoder, loaded from its directory."""
    loaded = load(str(directory(name, kind)))
    assert isinstance(loaded, HuggingFaceEncoder)
    return loaded


def wrapped(made: Any, name: str) -> HuggingFaceEncoder:
    """A model of a test's own as an encoder, with the tokeniser of a family."""
    return wrap(made, tokenizer(name), name)


def step_and_tolerance(name: str) -> tuple[float, float]:
    """What central differences in double precision allow; ModernBERT turns its queries in single precision."""
    return (1e-2, 5e-3) if name == "modernbert" else (1e-5, 1e-6)


def reference(watched: HuggingFaceEncoder) -> Any:
    """A second instance with the same weights that attends eagerly and returns its attention."""
    config = copy.deepcopy(watched.model.config)
    # Two models that share one configuration share its implementation; hence the deep copy.
    config._attn_implementation = "eager"
    config.output_attentions = True
    again = type(watched.model)(config)
    again.load_state_dict(watched.model.state_dict())
    return again.eval()


def inputs(texts: Sequence[str | tuple[str, str]] = TEXTS) -> list[Input]:
    """Texts and pairs of texts as inputs, words split off by `from_text`."""
    parts = [(text,) if isinstance(text, str) else text for text in texts]
    return [Input(tuple(from_text(part) for part in some)) for some in parts]


def batch(pieces: Sequence[Pieces]) -> Batch:
    """Pieces padded on the right."""
    width = max(len(some) for some in pieces)
    padded = np.zeros((3, len(pieces), width), np.int64)
    for row, some in enumerate(pieces):
        padded[:, row, : len(some)] = some.ids, some.types, np.ones_like(some.ids)
    return Batch(*torch.from_numpy(padded))
