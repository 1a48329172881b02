"""Tiny seeded models of every supported family, with tokenisers of the family's kind.

Each is saved once in Hugging Face format and loaded by `load`, as a user's model is. Encoders are shared by all tests
of a process: never change their weights.
"""

from __future__ import annotations

import atexit
import copy
import shutil
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
import transformers
from tokenizers import normalizers

from bertology.corpus.example import TextInput
from bertology.corpus.sentence import sentence_from_text
from bertology.encoder.encoder import ModelInputs, TaskEncoder
from bertology.encoder.huggingface import HuggingFaceEncoder, wrap
from bertology.encoder.load import load
from bertology.encoder.tokens import TokenisedInput
from tiny_tokenisers import (
    ALBERT_SPECIAL,
    BERT_SPECIAL,
    DEBERTA_SPECIAL,
    GPT2_SPECIAL,
    MPNET_SPECIAL,
    ROBERTA_SPECIAL,
    TEXTS,
    Specials,
    add_cls_and_sep,
    add_roberta_tokens,
    byte_level,
    keep_space_in_offsets,
    unigram,
    wordpiece,
)

LAYERS, HEADS, WIDTH, POSITIONS = 2, 4, 32, 64

TASK_HEADS = ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "ForMultipleChoice")
N_LABELS = 3


@dataclass(frozen=True)
class TinyFamily:
    """Configuration and tokeniser of a tiny model; class names are `prefix` plus one of `kinds`."""

    prefix: str
    config: Callable[[int], Any]
    special: Specials
    tokenizer: Callable[[], Any]
    task_heads: tuple[str, ...] = TASK_HEADS
    language_model: str = "ForMaskedLM"

    @property
    def kinds(self) -> tuple[str, ...]:
        """Suffixes of model classes: the bare model and every task head."""
        return ("Model", *([self.language_model] if self.language_model else []), *self.task_heads)


COMMON: dict[str, Any] = {
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": 48,
    "initializer_range": 0.2,
}


# One global layer, two with an attention window.
THREE_LAYERS: dict[str, Any] = {**COMMON, "num_hidden_layers": 3}


def _deberta(vocabulary: int, **changes: Any) -> Any:
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
        **changes,
    }
    return transformers.DebertaV2Config(vocab_size=vocabulary, **options)


def _roberta(config: Any, vocabulary: int) -> Any:
    return config(vocab_size=vocabulary, max_position_embeddings=POSITIONS + 2, type_vocab_size=1, **COMMON)


def _gpt2(vocabulary: int, **changes: Any) -> Any:
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
        **changes,
    )


def _causal(config: Any, vocabulary: int, **changes: Any) -> Any:
    special = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 1}
    return config(vocab_size=vocabulary, max_position_embeddings=POSITIONS, **special, **COMMON, **changes)


def _t5(config: Any, vocabulary: int) -> Any:
    return config(
        vocab_size=vocabulary,
        d_model=WIDTH,
        d_kv=WIDTH // HEADS,
        num_layers=LAYERS,
        num_heads=HEADS,
        d_ff=48,
        relative_attention_num_buckets=8,
        relative_attention_max_distance=20,
        pad_token_id=1,
    )


def _deberta_tokenizer() -> Any:
    return add_cls_and_sep(unigram(DEBERTA_SPECIAL, normalizers.NFKC()), DEBERTA_SPECIAL)


FAMILIES: dict[str, TinyFamily] = {
    "bert": TinyFamily(
        "Bert",
        lambda size: transformers.BertConfig(vocab_size=size, max_position_embeddings=POSITIONS, **COMMON),
        BERT_SPECIAL,
        lambda: add_cls_and_sep(wordpiece(BERT_SPECIAL), BERT_SPECIAL),
        ("ForPreTraining", "ForNextSentencePrediction", *TASK_HEADS),
    ),
    "roberta": TinyFamily(
        "Roberta",
        partial(_roberta, transformers.RobertaConfig),
        ROBERTA_SPECIAL,
        lambda: add_roberta_tokens(byte_level(ROBERTA_SPECIAL)),
    ),
    "distilbert": TinyFamily(
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
        lambda: add_cls_and_sep(wordpiece(BERT_SPECIAL), BERT_SPECIAL),
    ),
    "electra": TinyFamily(
        "Electra",
        lambda size: transformers.ElectraConfig(
            vocab_size=size, max_position_embeddings=POSITIONS, embedding_size=16, **COMMON
        ),
        BERT_SPECIAL,
        lambda: add_cls_and_sep(wordpiece(BERT_SPECIAL), BERT_SPECIAL),
        ("ForPreTraining", *TASK_HEADS),
    ),
    "albert": TinyFamily(
        "Albert",
        lambda size: transformers.AlbertConfig(
            vocab_size=size, max_position_embeddings=POSITIONS, embedding_size=16, **COMMON
        ),
        ALBERT_SPECIAL,
        lambda: add_cls_and_sep(
            unigram(ALBERT_SPECIAL, normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()),
            ALBERT_SPECIAL,
        ),
        ("ForPreTraining", *TASK_HEADS),
    ),
    "mpnet": TinyFamily(
        "MPNet",
        lambda size: transformers.MPNetConfig(vocab_size=size, max_position_embeddings=POSITIONS + 2, **COMMON),
        MPNET_SPECIAL,
        lambda: add_roberta_tokens(wordpiece(MPNET_SPECIAL)),
    ),
    "deberta-v2": TinyFamily("DebertaV2", _deberta, DEBERTA_SPECIAL, _deberta_tokenizer),
    "modernbert": TinyFamily(
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
        lambda: add_cls_and_sep(byte_level(BERT_SPECIAL, normalizers.NFC()), BERT_SPECIAL, types=False),
    ),
    "gpt2": TinyFamily(
        "GPT2",
        _gpt2,
        GPT2_SPECIAL,
        lambda: keep_space_in_offsets(byte_level(GPT2_SPECIAL)),
        ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"),
        "LMHeadModel",
    ),
}
# Decoders with other attention than GPT-2's, and the encoder of T5.
CAUSAL_AND_T5: dict[str, TinyFamily] = {
    **{
        name: TinyFamily(
            prefix,
            partial(_causal, getattr(transformers, f"{prefix}Config"), **changes),
            GPT2_SPECIAL,
            lambda: keep_space_in_offsets(byte_level(GPT2_SPECIAL)),
            ("ForSequenceClassification", "ForTokenClassification"),
            "ForCausalLM",
        )
        for name, prefix, changes in (
            ("gpt-neox", "GPTNeoX", {}),
            ("llama", "Llama", {"num_key_value_heads": 2}),
            ("qwen2", "Qwen2", {"num_key_value_heads": 1}),
        )
    },
    "t5": TinyFamily(
        "T5Encoder",
        partial(_t5, transformers.T5Config),
        ROBERTA_SPECIAL,
        lambda: add_roberta_tokens(byte_level(ROBERTA_SPECIAL)),
        (),
        "",
    ),
    **{
        name: TinyFamily(
            prefix,
            partial(_causal, getattr(transformers, f"{prefix}Config"), **changes),
            GPT2_SPECIAL,
            lambda: keep_space_in_offsets(byte_level(GPT2_SPECIAL)),
            (),
            "",
        )
        for name, prefix, changes in (
            ("gpt-neox without parallel residual", "GPTNeoX", {"use_parallel_residual": False}),
            ("mistral", "Mistral", {"num_key_value_heads": 2, "sliding_window": None}),
            ("qwen3", "Qwen3", {"num_key_value_heads": 2, "head_dim": 8}),
        )
    },
    "mt5": TinyFamily(
        "MT5Encoder",
        partial(_t5, transformers.MT5Config),
        ROBERTA_SPECIAL,
        lambda: add_roberta_tokens(byte_level(ROBERTA_SPECIAL)),
        (),
        "",
    ),
}
# Classes of the same architecture, or with the configurations of other published checkpoints.
VARIANTS: dict[str, TinyFamily] = {
    **{
        name: TinyFamily(
            prefix,
            partial(_roberta, getattr(transformers, f"{prefix}Config")),
            ROBERTA_SPECIAL,
            lambda: add_roberta_tokens(byte_level(ROBERTA_SPECIAL)),
        )
        for name, prefix in (("xlm-roberta", "XLMRoberta"), ("camembert", "Camembert"))
    },
    "deberta-v2 with separate position projections and a convolution": TinyFamily(
        "DebertaV2",
        lambda size: _deberta(size, share_att_key=False, conv_kernel_size=3, conv_act="gelu", type_vocab_size=2),
        DEBERTA_SPECIAL,
        _deberta_tokenizer,
    ),
    "deberta-v2 without relative positions": TinyFamily(
        "DebertaV2",
        lambda size: _deberta(size, relative_attention=False, position_biased_input=True, pos_att_type=None),
        DEBERTA_SPECIAL,
        _deberta_tokenizer,
    ),
    "gpt2 scaled by layer": TinyFamily(
        "GPT2",
        lambda size: _gpt2(size, scale_attn_by_inverse_layer_idx=True, reorder_and_upcast_attn=True),
        GPT2_SPECIAL,
        lambda: keep_space_in_offsets(byte_level(GPT2_SPECIAL)),
    ),
}
ALL_FAMILIES = FAMILIES | CAUSAL_AND_T5
KINDS = [(name, kind) for name, family in FAMILIES.items() for kind in family.kinds]
ALL_KINDS = [(name, kind) for name, family in ALL_FAMILIES.items() for kind in family.kinds]


@cache
def root() -> Path:
    """A temporary directory for the models of this process, removed when it ends."""
    folder = tempfile.mkdtemp(prefix="bertology-models-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


@cache
def hf_tokenizer(name: str) -> Any:
    """The transformers tokenizer of a family."""
    family = (ALL_FAMILIES | VARIANTS)[name]
    special = family.special
    roles = {"cls": special.cls, "sep": special.sep, "pad": special.pad, "unk": special.unk, "mask": special.mask}
    roles |= {"bos": "<|endoftext|>", "eos": "<|endoftext|>"} if special is GPT2_SPECIAL else {}
    special_tokens = {f"{role}_token": token for role, token in roles.items() if token is not None}
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=family.tokenizer(), model_max_length=POSITIONS, **cast("dict[str, Any]", special_tokens)
    )


def model(name: str, kind: str = "Model", *, seed: int = 0) -> Any:
    """A new model of a family with all weights random, including biases and LayerNorms."""
    family = (ALL_FAMILIES | VARIANTS)[name]
    config = family.config(len(hf_tokenizer(name)))
    config.num_labels = 1 if kind == "ForMultipleChoice" else 2 if kind == "ForQuestionAnswering" else N_LABELS
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        with warnings.catch_warnings():
            # DeBERTa's module uses torch.jit.script, which is deprecated.
            warnings.simplefilter("ignore", DeprecationWarning)
            new_model = getattr(transformers, family.prefix + kind)(config)
        with torch.no_grad():
            for weight in new_model.parameters():
                weight.add_(0.1 * torch.randn_like(weight))
    return new_model.eval()


@cache
def directory(name: str, kind: str = "Model") -> Path:
    """The directory of a family's model in Hugging Face format."""
    folder = root() / f"{name}-{kind}".replace(" ", "-")
    model(name, kind).save_pretrained(folder)
    hf_tokenizer(name).save_pretrained(folder)
    return folder


@cache
def encoder(name: str, kind: str = "Model") -> HuggingFaceEncoder:
    """A family's model as an encoder, loaded from its directory."""
    loaded = load(str(directory(name, kind)))
    assert isinstance(loaded, HuggingFaceEncoder)
    return loaded


def wrap_model(model: Any, name: str) -> HuggingFaceEncoder:
    """A model as an encoder, with the tokeniser of a family."""
    return wrap(model, hf_tokenizer(name), name)


def step_and_tolerance(name: str) -> tuple[float, float]:
    """Step and tolerance of central differences; ModernBERT rotates its queries in single precision."""
    return (1e-2, 5e-3) if name == "modernbert" else (1e-5, 1e-6)


def reference(encoder: TaskEncoder) -> Any:
    """A second model with the same weights, eager attention, and attention in its output."""
    # A deep copy, because models that share a configuration share its attention implementation.
    config = copy.deepcopy(encoder.model.config)
    config._attn_implementation = "eager"
    config.output_attentions = True
    second = type(encoder.model)(config)
    second.load_state_dict(encoder.model.state_dict())
    return second.eval()


def inputs(texts: Sequence[str | tuple[str, str]] = TEXTS) -> list[TextInput]:
    """Texts and pairs of texts as model inputs."""
    segments = [(text,) if isinstance(text, str) else text for text in texts]
    return [TextInput(tuple(map(sentence_from_text, pair))) for pair in segments]


def batch(inputs: Sequence[TokenisedInput]) -> ModelInputs:
    """Tokenised inputs padded on the right."""
    length = max(len(tokens) for tokens in inputs)
    padded = np.zeros((3, len(inputs), length), np.int64)
    for row, tokens in enumerate(inputs):
        padded[:, row, : len(tokens)] = tokens.ids, tokens.type_ids, np.ones_like(tokens.ids)
    return ModelInputs(*torch.from_numpy(padded))
