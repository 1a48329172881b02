"""Load encoders from files in Hugging Face format: a directory, or weights, configuration and tokeniser apart."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import transformers
from transformers.utils import logging as transformers_logging

from bertology.encoder.checkpoint_validation import HUGGING_FACE_FORMAT, validate_checkpoint
from bertology.encoder.huggingface import HuggingFaceEncoder, from_config, task_head_fields, wrap
from bertology.errors import Refusal
from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor


def load_directory(
    path: str | Path, *, name: str = "", device: str = "cpu", dtype: str = "float32", allow_pickle: bool = False
) -> HuggingFaceEncoder:
    """Load a local directory: safetensors only, unless pickle is allowed; code in the directory is never run."""
    folder = Path(path)
    validate_checkpoint(folder, allow_pickle=allow_pickle)
    use_safetensors = None if allow_pickle else True  # None: whichever exists
    try:
        model, tokenizer, missing = _load_pretrained(
            folder,
            folder,
            folder,
            dtype,
            use_safetensors=use_safetensors,
            trust_remote_code=False,
            local_files_only=True,
        )
    except Exception as error:  # whatever transformers, tokenizers or torch report, the directory is at fault
        raise Refusal(
            f"The model directory {folder} cannot be loaded: {' '.join(str(error).split())[:300]}",
            f"{HUGGING_FACE_FORMAT}, of an architecture in transformers",
            "Save it again with save_pretrained(); code that comes with a model is never run",
        ) from error
    _refuse_missing_weights(str(folder), missing, is_bare=not task_head_fields(type(model)))
    return wrap(model.to(device), tokenizer, name or str(folder), missing_weights=missing)


def encoder_from_weights(
    weights: Mapping[str, Tensor], *, config: Path, tokenizer: Path, name: str, device: str, dtype: str
) -> HuggingFaceEncoder:
    """An encoder from weights in memory, the configuration in one directory and the tokeniser in another."""
    model, hf_tokenizer, missing = _load_pretrained(None, config, tokenizer, dtype, state_dict=dict(weights))
    _refuse_missing_weights(str(config), missing, is_bare=not task_head_fields(type(model)))
    return wrap(model.to(device), hf_tokenizer, name, missing_weights=missing)


def _load_pretrained(
    source: Path | None, config: Path, tokenizer: Path, dtype: str, **weights: Any
) -> tuple[Any, Any, frozenset[str]]:
    """The model of the class that a config.json names, its tokeniser, and the names of missing weights."""
    with silence_transformers():
        model_config = transformers.AutoConfig.from_pretrained(config, trust_remote_code=False, local_files_only=True)
        model, info = _model_class(model_config).from_pretrained(
            source,
            config=model_config,
            # Every family has it, whatever the checkpoint asks for; `forward` switches to its own implementation.
            attn_implementation="eager",
            dtype=getattr(torch, dtype),
            output_loading_info=True,
            **weights,
        )
        hf_tokenizer = transformers.AutoTokenizer.from_pretrained(
            tokenizer, trust_remote_code=False, local_files_only=True
        )
    return model, hf_tokenizer, frozenset(cast("set[str]", info["missing_keys"]))


def untrained_bert(definition: str, name: str, *, layers: int, heads: int, width: int, seed: int) -> HuggingFaceEncoder:
    """A BertForPreTraining with random weights and a WordPiece tokeniser defined by the content of a tokenizer.json."""
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
    architecture = (config.architectures or [None])[0]
    return getattr(transformers, architecture or "", transformers.AutoModel)


def _refuse_missing_weights(source: str, missing_weights: frozenset[str], *, is_bare: bool) -> None:
    """Refuse a checkpoint that lacks weights the outputs depend on; no output depends on a bare model's pooler."""
    missing = sorted(name for name in missing_weights if not (is_bare and "pooler" in name))
    if missing:
        raise Refusal(
            f"{source} lacks {len(missing)} weights of its architecture, for example {missing[0]}",
            "a checkpoint whose config.json names the architecture it was saved from",
            "Correct `architectures` in config.json (for a bare encoder: the *Model class), or save the model again",
        )


@contextmanager
def silence_transformers() -> Generator[None]:
    """Hide transformers' progress bars, load reports, and deprecation warnings when a family is first imported."""
    verbosity = transformers_logging.get_verbosity()
    shows_progress = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if shows_progress:
            transformers_logging.enable_progress_bar()
