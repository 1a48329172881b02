"""Encoders from files in Hugging Face form: a whole directory, weights and tokeniser apart, a tokeniser alone."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import torch
import transformers
from torch import Tensor
from transformers.utils import logging as transformers_logging

from bertology.encoder import checkpoint
from bertology.encoder.huggingface import HuggingFaceEncoder, from_config, wrap
from bertology.encoder.output_heads import fields_of
from bertology.errors import Refusal


def load_directory(
    path: str | Path, *, name: str = "", device: str = "cpu", dtype: str = "float32", allow_pickle: bool = False
) -> HuggingFaceEncoder:
    """The encoder in a local directory; safetensors only, unless pickle is allowed; no code from the directory."""
    folder = Path(path)
    checkpoint.refuse_unfit(folder, allow_pickle=allow_pickle)
    safe = None if allow_pickle else True  # None: whichever there is
    try:
        model, tokenizer, absent = _opened(
            folder, folder, folder, dtype, use_safetensors=safe, trust_remote_code=False, local_files_only=True
        )
    except Exception as error:  # whatever transformers, tokenizers or torch say, the directory is at fault
        raise Refusal(
            f"The model directory {folder} cannot be loaded: {' '.join(str(error).split())[:300]}",
            checkpoint.HUGGING_FACE_FORM + ", of a family that transformers itself knows",
            "Save it again with save_pretrained(); code that comes with a model is never run",
        ) from error
    _refuse_fresh_weights(str(folder), absent, bare=not fields_of(type(model)))
    return wrap(model.to(device), tokenizer, name or str(folder), absent=absent)


def assemble(
    weights: Mapping[str, Tensor], *, config: Path, tokenizer: Path, name: str, device: str, dtype: str
) -> HuggingFaceEncoder:
    """An encoder of weights that lie in no one file: the class that a config.json names, and another's tokeniser."""
    model, made, absent = _opened(None, config, tokenizer, dtype, state_dict=dict(weights))
    _refuse_fresh_weights(str(config), absent, bare=not fields_of(type(model)))
    return wrap(model.to(device), made, name, absent=absent)


def _opened(
    source: Path | None, config: Path, tokenizer: Path, dtype: str, **weights: Any
) -> tuple[Any, Any, frozenset[str]]:
    """The model of the class that a config.json names, a tokeniser, and the weights that were not there."""
    with quietly():
        stated = transformers.AutoConfig.from_pretrained(config, trust_remote_code=False, local_files_only=True)
        model, info = _model_class(stated).from_pretrained(
            source,
            config=stated,
            # Every family has it, whatever the checkpoint asks for; `run` attends in its own way.
            attn_implementation="eager",
            dtype=getattr(torch, dtype),
            output_loading_info=True,
            **weights,
        )
        made = transformers.AutoTokenizer.from_pretrained(tokenizer, trust_remote_code=False, local_files_only=True)
    return model, made, frozenset(cast("set[str]", info["missing_keys"]))


def untrained_bert(definition: str, name: str, *, layers: int, heads: int, width: int, seed: int) -> HuggingFaceEncoder:
    """A BertForPreTraining with fresh weights over a WordPiece tokeniser given as the text of a tokenizer.json."""
    from tokenizers import Tokenizer

    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(definition),
        cls_token="[CLS]",
        sep_token="[SEP]",
        pad_token="[PAD]",
        unk_token="[UNK]",
        mask_token="[MASK]",
        model_max_length=512,
    )
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
    )
    return wrap(from_config(transformers.BertForPreTraining, config, seed), tokenizer, name)


def _model_class(config: Any) -> Any:
    named = (config.architectures or [None])[0]
    kind = getattr(transformers, named, None) if named else None
    return kind if kind is not None else transformers.AutoModel


def _refuse_fresh_weights(source: str, absent: frozenset[str], *, bare: bool) -> None:
    """Refuse a checkpoint without weights that the numbers depend on; nothing here depends on a bare model's pooler."""
    fresh = sorted(name for name in absent if not (bare and "pooler" in name))
    if fresh:
        raise Refusal(
            f"{source} lacks {len(fresh)} weights that its architecture needs, {fresh[0]} among them",
            "a checkpoint whose config.json names the architecture it was saved from",
            "Correct `architectures` in config.json (for a bare encoder: the *Model class), or save the model again",
        )


@contextmanager
def quietly() -> Generator[None]:
    """Without transformers' progress bars and load report, whose missing pooler is nothing to worry about here.

    Nor with what torch finds deprecated in the file of a family, when that is first imported.
    """
    verbosity = transformers_logging.get_verbosity()
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if bars:
            transformers_logging.enable_progress_bar()
