"""Load encoders from files in Hugging Face format: a directory, or weights, configuration and tokeniser apart."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import transformers
from transformers.utils import logging as transformers_logging

from bertology.encoder.checkpoint_validation import HUGGING_FACE_FORMAT, read_config, validate_checkpoint
from bertology.encoder.families import find_family
from bertology.encoder.huggingface import HuggingFaceEncoder, from_config, task_head_fields, wrap
from bertology.encoder.tokens import refuse_panics
from bertology.errors import LoadWarning, Refusal
from bertology.lazy import torch
from bertology.machine_errors import raise_machine_error
from bertology.number_ranges import shorten_value

if TYPE_CHECKING:
    from torch import Tensor


def load_directory(
    path: str | Path, *, name: str = "", device: str = "cpu", dtype: str = "float32", allow_pickle: bool = False
) -> HuggingFaceEncoder:
    """Load a local directory: safetensors only, unless pickle is allowed; code in the directory is never run.

    A model whose configuration names code of its own (`auto_map`) is loaded by the class of transformers, with a
    `LoadWarning`; without such a class it is refused. A checkpoint without any weight of the language-model head that
    its configuration names, as sentence encoders are distributed, is loaded as a bare encoder, with a `LoadWarning`.
    """
    folder = Path(path)
    validate_checkpoint(folder, allow_pickle=allow_pickle)
    if own_code := read_config(folder).get("auto_map"):
        warnings.warn(
            f"{name or folder} names code of its own ({_describe_code(own_code)}), which is never run; the class of "
            "transformers is loaded instead.",
            LoadWarning,
            stacklevel=2,
        )
    load_pretrained = partial(
        _load_pretrained,
        folder,
        folder,
        folder,
        dtype,
        use_safetensors=None if allow_pickle else True,  # None: whichever exists
        trust_remote_code=False,
        local_files_only=True,
    )
    warning = ""
    try:
        model, tokenizer, missing = load_pretrained()
        if _lacks_language_model_head(model, missing):
            warning = f"{name or folder} has no weights of the language-model head of {type(model).__name__}"
            model, tokenizer, missing = load_pretrained(is_bare=True)
        elif type(model).__name__ == _encoder_class(model.config) != (model.config.architectures or [""])[0]:
            warning = f"{name or folder} ({(model.config.architectures or [''])[0]}) has a decoder, which is left out"
    except Refusal as refusal:
        raise Refusal(refusal.problem, refusal.expected, refusal.remedy, location=str(folder)) from refusal
    except Exception as error:  # whatever else transformers, tokenizers or torch report, the directory is at fault
        raise_machine_error(error)
        raise Refusal(
            f"The model directory {folder} cannot be loaded: {' '.join(str(error).split())[:300]}",
            f"{HUGGING_FACE_FORMAT}, of an architecture in transformers",
            "Save it again with save_pretrained(); code that comes with a model is never run",
        ) from error
    _refuse_missing_weights(str(folder), missing, is_bare=not task_head_fields(type(model)))
    if warning:
        consequence = f"it is loaded as a bare encoder ({type(model).__name__}) and cannot predict tokens."
        warnings.warn(f"{warning}; {consequence}", LoadWarning, stacklevel=2)
    try:
        return wrap(model.to(device), tokenizer, name or str(folder), missing_weights=missing)
    except RecursionError as error:  # transformers looks for a special token that is not there, without end
        raise Refusal(
            f"The tokeniser in {folder} lacks a special token that it needs",
            HUGGING_FACE_FORMAT,
            "Save the tokeniser again with its save_pretrained()",
        ) from error


def _describe_code(auto_map: Any) -> str:
    """The modules that an `auto_map` names, in few words whatever it holds."""
    values = list(cast("Mapping[str, Any]", auto_map).values()) if isinstance(auto_map, Mapping) else [auto_map]
    return shorten_value(", ".join(dict.fromkeys(str(value) for value in values)))


def encoder_from_weights(
    weights: Mapping[str, Tensor], *, config: Path, tokenizer: Path, name: str, device: str, dtype: str
) -> HuggingFaceEncoder:
    """An encoder from weights in memory, the configuration in one directory and the tokeniser in another."""
    model, hf_tokenizer, missing = _load_pretrained(None, config, tokenizer, dtype, state_dict=dict(weights))
    _refuse_missing_weights(str(config), missing, is_bare=not task_head_fields(type(model)))
    return wrap(model.to(device), hf_tokenizer, name, missing_weights=missing)


def _load_pretrained(
    source: Path | None, config: Path, tokenizer: Path, dtype: str, *, is_bare: bool = False, **weights: Any
) -> tuple[Any, Any, frozenset[str]]:
    """The model of the class that a config.json names, its tokeniser, and the names of missing weights.

    With `is_bare`, the model without its task head.
    """
    with silence_transformers():
        model_config = transformers.AutoConfig.from_pretrained(config, trust_remote_code=False, local_files_only=True)
        model_class = transformers.AutoModel if is_bare else _model_class(model_config)
        model, info = cast(Any, model_class).from_pretrained(
            source,
            config=model_config,
            # Every family has it, whatever the checkpoint asks for; `forward` switches to its own implementation.
            attn_implementation="eager",
            dtype=getattr(torch, dtype),
            output_loading_info=True,
            **weights,
        )
        with refuse_panics():
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
    """The class that a configuration names; of a model with a decoder, the class of its encoder alone."""
    architecture = (config.architectures or [None])[0]
    model_class = getattr(transformers, architecture or "", transformers.AutoModel)
    encoder_class = _encoder_class(config)
    if not encoder_class:
        return model_class
    forward = getattr(model_class, "forward", None)
    has_decoder = forward is None or "decoder_input_ids" in inspect.signature(forward).parameters
    return getattr(transformers, encoder_class) if has_decoder else model_class


def _encoder_class(config: Any) -> str:
    family = find_family(config.model_type)
    return family.encoder_classes.get(config.model_type, "") if family is not None else ""


def _lacks_language_model_head(model: Any, missing_weights: frozenset[str]) -> bool:
    """Whether a model with a language-model head, and no other, lacks all weights of the head and none of the encoder.

    Weights that the head shares with the encoder (the token embeddings) are not its own.
    """
    if {name for name, _ in task_head_fields(type(model))} not in ({"mlm"}, {"lm"}):
        return False
    prefix = f"{model.base_model_prefix}."
    if not missing_weights or any(name.startswith(prefix) for name in missing_weights):
        return False
    weights = cast("dict[str, Tensor]", model.state_dict())
    shared = {tensor.data_ptr() for name, tensor in weights.items() if name.startswith(prefix)}
    shared |= {tensor.data_ptr() for name, tensor in weights.items() if name in missing_weights}
    return all(name.startswith(prefix) or tensor.data_ptr() in shared for name, tensor in weights.items())


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
