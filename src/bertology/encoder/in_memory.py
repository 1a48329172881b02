"""Encoders from models in memory: transformers models, PEFT models, SentenceTransformers and pipelines.

The model that is given is not changed: the encoder gets modules and a configuration of its own, with the same weights.
"""

from __future__ import annotations

import copy
import inspect
from pathlib import Path
from typing import Any

import transformers

from bertology.encoder.encoder import Encoder
from bertology.encoder.families import find_family
from bertology.encoder.huggingface import wrap
from bertology.encoder.huggingface_loading import silence_transformers
from bertology.encoder.load import ACCEPTED
from bertology.encoder.variants import copy_sharing_weights
from bertology.errors import Refusal
from bertology.lazy import torch
from bertology.machine_errors import raise_machine_error


def wrap_in_memory(
    model: Any, tokenizer: Any = None, *, dtype: str | None = None, device: str | None = None
) -> Encoder:
    """An encoder of a model in memory; see `bertology.load`."""
    given = type(model).__name__
    model, own_tokenizer = _unwrap(model)
    if not isinstance(model, transformers.PreTrainedModel):
        raise Refusal(f"A model was given as {given}", ACCEPTED, "Pass the model itself, and its tokenizer beside it")
    tokenizer = own_tokenizer if tokenizer is None else tokenizer
    name = str(getattr(model.config, "_name_or_path", "") or type(model).__name__)
    model = _merge_adapters(model)
    _refuse_decoder(model, name)
    tokenizer = _load_tokenizer(model, name) if tokenizer is None else tokenizer
    _refuse_tokenizer(model, tokenizer, name)
    weights = next(model.parameters())
    dtype_change = dtype is not None and weights.dtype != getattr(torch, dtype)
    if dtype_change or (device is not None and str(weights.device) != device):
        own = copy.deepcopy(model).to(device=device or weights.device, dtype=getattr(torch, dtype) if dtype else None)
    else:
        own = copy_sharing_weights(model)
    return wrap(own, tokenizer, name)


def _unwrap(model: Any) -> tuple[Any, Any]:
    """The transformers model, or a PEFT model's merged copy, inside an object, and the tokenizer that it has."""
    if isinstance(model, transformers.Pipeline):
        model, tokenizer = model.model, model.tokenizer
    elif _is_from(model, "sentence_transformers"):
        # A SentenceTransformer is a sequence of modules, of which one holds the model; a CrossEncoder holds it itself.
        holders = [model, *model.modules()] if isinstance(model, torch.nn.Module) else [model]
        tokenizer = getattr(model, "tokenizer", None)
        inner_models = [getattr(holder, "auto_model", None) or getattr(holder, "model", None) for holder in holders]
        model = next((inner for inner in inner_models if isinstance(inner, torch.nn.Module)), model)
    else:
        tokenizer = None
    model = getattr(model, "_orig_mod", model)  # torch.compile
    return (_merge_peft(model) if _is_from(model, "peft") else model), tokenizer


def _is_from(model: Any, package: str) -> bool:
    return any(base.__module__.partition(".")[0] == package for base in type(model).__mro__)


def _merge_peft(model: Any) -> Any:
    """The base model of a copy, with its active adapters merged into the weights."""
    config = model.active_peft_config
    if config.is_prompt_learning:
        raise Refusal(
            f"The PEFT method {config.peft_type.value} adds virtual tokens to the input",
            "adapters that can be merged into the weights, as LoRA",
            "Analyse the base model, model.get_base_model(), without the prompt",
        )
    merged = copy.deepcopy(model)
    is_enabled = model.get_model_status().enabled is not False
    return merged.merge_and_unload() if is_enabled else merged.unload()


def _merge_adapters(model: Any) -> Any:
    """The model, or where transformers itself has added adapters (`add_adapter`) a copy with these merged."""
    if not any(_is_from(module, "peft") for module in model.modules()):
        return model
    merged = copy.deepcopy(model)
    adapters: list[tuple[str, Any]] = [(path, m) for path, m in merged.named_modules() if _is_from(m, "peft")]
    for path, module in adapters:
        base_layer = getattr(module, "get_base_layer", None)
        if base_layer is not None:
            if not module.disable_adapters:
                module.merge()
            merged.set_submodule(path, base_layer())
    return merged


def _refuse_decoder(model: Any, name: str) -> None:
    if (
        getattr(model.config, "is_encoder_decoder", False)
        and "decoder_input_ids" in inspect.signature(model.forward).parameters
    ):
        family = find_family(model.config.model_type)
        encoder_class = family.encoder_classes.get(model.config.model_type) if family is not None else None
        raise Refusal(
            f"{name} ({type(model).__name__}) has an encoder and a decoder",
            "a model of one stack of layers",
            f"Load it as transformers.{encoder_class}" if encoder_class else "Choose an encoder or a causal decoder",
        )


def _load_tokenizer(model: Any, name: str) -> Any:
    """The tokenizer saved where the model was loaded from."""
    try:
        with silence_transformers():
            return transformers.AutoTokenizer.from_pretrained(
                name, trust_remote_code=False, local_files_only=not Path(name).is_dir()
            )
    except Exception as error:  # whatever is missing, the remedy is the same
        raise_machine_error(error)
        raise Refusal(
            f"{type(model).__name__} was given without a tokenizer, and none was found under its name ({name})",
            "a model and its tokenizer",
            "Pass both: bertology.load(model, tokenizer), or (model, tokenizer) where an encoder is expected",
        ) from error


def _refuse_tokenizer(model: Any, tokenizer: Any, name: str) -> None:
    if not isinstance(tokenizer, transformers.PreTrainedTokenizerBase):
        raise Refusal(
            f"The tokenizer of {name} is {type(tokenizer).__name__}",
            "a fast tokenizer of transformers",
            "Pass what transformers.AutoTokenizer.from_pretrained returns",
        )
    n_embeddings = int(model.get_input_embeddings().weight.shape[0])
    highest = max(tokenizer.get_vocab().values(), default=0)
    if highest >= n_embeddings:
        raise Refusal(
            f"The tokenizer has token ids up to {highest}, and {name} has {n_embeddings} embeddings",
            "the tokenizer that the model was trained with",
            "Pass its own tokenizer, or resize the embeddings (resize_token_embeddings) and train the new ones",
        )
