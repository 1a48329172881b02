"""Task heads on an encoder: add one, map gold labels to its classes, save the model in Hugging Face format."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import transformers

from bertology.encoder.encoder import TaskEncoder
from bertology.encoder.families import find_family
from bertology.encoder.huggingface import HuggingFaceEncoder, from_config, wrap
from bertology.encoder.huggingface_loading import silence_transformers
from bertology.encoder.layer_variants import LayerVariant, freeze, reinitialise, truncate
from bertology.encoder.variants import Variant, set_head_changes, with_layer_order
from bertology.errors import Refusal

TaskHeadName = Literal["label", "token", "answer", "choice", "none"]

MODEL_CLASSES: dict[TaskHeadName, Any] = {
    "label": transformers.AutoModelForSequenceClassification,
    "token": transformers.AutoModelForTokenClassification,
    "answer": transformers.AutoModelForQuestionAnswering,
    "choice": transformers.AutoModelForMultipleChoice,
    "none": transformers.AutoModel,
}


def add_task_head(
    encoder: TaskEncoder, task_head: TaskHeadName, labels: Sequence[str], *, variant: LayerVariant, seed: int
) -> HuggingFaceEncoder:
    """A float32 copy of the encoder with a randomly initialised task head, changed by `variant`.

    The encoder itself is unchanged; its own task head is not copied.
    """
    variant.validate(encoder.layers, encoder.name)
    if encoder.is_pruned:
        raise Refusal(
            f"{encoder.name} is pruned and cannot get another task head",
            "a model with all its heads",
            "Fine-tune the unpruned model, then prune the result",
        )
    config = _build_config(encoder, task_head, labels)
    model = from_config(_model_class(task_head, config, encoder.name), config, seed)
    if not variant.random_weights:
        _copy_weights(encoder, model)
    if variant.kept_layers is not None:
        truncate(model, variant.kept_layers)
    if variant.reinitialised_layers:
        randomised = from_config(type(model), copy.deepcopy(model.config), seed + 1)
        reinitialise(model, randomised, variant.reinitialised_layers)
    if variant.frozen_layers is not None:
        freeze(model.base_model, variant.frozen_layers)
    with_task_head = wrap(model.to(encoder.device), encoder.hf_tokenizer, encoder.name)
    derivation: Variant | None = getattr(encoder, "variant", None)
    if derivation is None:
        return with_task_head
    set_head_changes(with_task_head.model, derivation.heads)
    return replace(with_task_head, variant=with_layer_order(derivation, range(with_task_head.layers)))


def label_index(labels: Sequence[str]) -> dict[str, int]:
    """Class indices by lower-case class name, and by index as text."""
    return {label.lower(): index for index, label in enumerate(labels)} | {str(n): n for n in range(len(labels))}


def label_ids(labels: Sequence[str], gold_labels: Sequence[str | None], model: str) -> list[int]:
    """The class of the task head for each gold label, matched by case-insensitive name or by index."""
    indices = label_index(labels)
    unknown = sorted({str(gold) for gold in gold_labels if str(gold).lower() not in indices})
    if unknown:
        raise Refusal(
            f"The corpus has the label {', '.join(unknown[:5])}, which is no class of {model}",
            f"one of {', '.join(labels)}, or their indices from 0",
            "Rename the labels in the corpus, or choose a model trained on them",
        )
    return [indices[str(gold).lower()] for gold in gold_labels]


def save_pretrained(encoder: TaskEncoder, folder: Path) -> None:
    """Write config.json, model.safetensors and the tokeniser, as transformers' `from_pretrained` reads them.

    Heads without output are written as zeros (see `pruning`); uniform attention cannot be written.
    """
    model = encoder.model
    derivation: Variant | None = getattr(encoder, "variant", None)
    if derivation is not None:
        from bertology.encoder.pruning import zero_variant

        model = zero_variant(encoder, derivation)
    with silence_transformers():
        model.save_pretrained(folder)
        encoder.hf_tokenizer.save_pretrained(folder)


def _build_config(encoder: TaskEncoder, task_head: TaskHeadName, labels: Sequence[str]) -> Any:
    config = copy.deepcopy(encoder.model.config)
    config._attn_implementation = "eager"
    if labels:
        config.id2label = dict(enumerate(labels))
        config.label2id = {label: index for index, label in enumerate(labels)}
    else:
        config.num_labels = 2
    if task_head == "label":
        config.problem_type = "single_label_classification"
    if config.pad_token_id is None:
        config.pad_token_id = encoder.hf_tokenizer.pad_token_id
    if config.pad_token_id is None:
        config.pad_token_id = encoder.hf_tokenizer.eos_token_id
    return config


def _model_class(task_head: TaskHeadName, config: Any, name: str) -> Any:
    model_classes = MODEL_CLASSES[task_head]._model_mapping
    family = find_family(config.model_type)
    encoder_class = family.encoder_classes.get(config.model_type) if family is not None else None
    if encoder_class is not None and task_head == "none":
        return getattr(transformers, encoder_class)
    if type(config) not in model_classes or (
        encoder_class is not None
        and "decoder_input_ids" in inspect.signature(model_classes[type(config)].forward).parameters
    ):
        raise Refusal(
            f"transformers has no class with the task head {task_head!r} for {name} ({config.model_type})",
            "a model of a family that has one",
            "Choose another model or another task",
        )
    return model_classes[type(config)]


def _copy_weights(encoder: TaskEncoder, model: Any) -> None:
    mismatch = model.base_model.load_state_dict(encoder.model.base_model.state_dict(), strict=False)
    lost = [name for name in (*mismatch.missing_keys, *mismatch.unexpected_keys) if "pooler" not in name]
    assert not lost, f"the weights {lost} of {encoder.name} do not fit {type(model).__name__}"
