"""A model with a fresh head for a task, and a model written in Hugging Face form.

Names the classes that models are trained and saved as: with `huggingface` and `transformer_files`, which run and open
them, all that knows transformers.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import transformers

from bertology.encoder import variant as variants
from bertology.encoder.huggingface import HuggingFaceEncoder, from_config, wrap
from bertology.encoder.pruning import PrunedEncoder
from bertology.encoder.transformer_files import quietly
from bertology.encoder.variant import Variant
from bertology.errors import Refusal

HeadName = Literal["label", "token", "answer", "choice", "none"]

CLASSES: dict[HeadName, Any] = {
    "label": transformers.AutoModelForSequenceClassification,
    "token": transformers.AutoModelForTokenClassification,
    "answer": transformers.AutoModelForQuestionAnswering,
    "choice": transformers.AutoModelForMultipleChoice,
    "none": transformers.AutoModel,
}


def with_head(
    encoder: HuggingFaceEncoder, head: HeadName, labels: Sequence[str], *, variant: Variant, seed: int
) -> HuggingFaceEncoder:
    """The encoder's weights, copied in float32, under a fresh head of the task, changed as `variant` says.

    The encoder itself is left as it is; a head that it had is not carried over.
    """
    variant.refuse_unfit(encoder.layers, encoder.name)
    if isinstance(encoder, PrunedEncoder):
        raise Refusal(
            f"{encoder.name} was pruned, and no other head can be put on it",
            "a model with all its heads",
            "Fine-tune the whole model, and prune that",
        )
    config = _config(encoder, head, labels)
    model = from_config(_class_of(head, config, encoder.name), config, seed)
    if not variant.random:
        _copy_weights(encoder, model)
    if variant.truncate is not None:
        variants.truncate(model, variant.truncate)
    if variant.reinitialise:
        fresh = from_config(type(model), copy.deepcopy(model.config), seed + 1)
        variants.reinitialise(model, fresh, variant.reinitialise)
    if variant.freeze is not None:
        variants.freeze(model.base_model, variant.freeze)
    return wrap(model.to(encoder.device), encoder.tokenizer, encoder.name)


def labels_of(encoder: HuggingFaceEncoder) -> tuple[str, ...]:
    """The classes of a model's head, by number."""
    names: dict[int, str] = encoder.model.config.id2label
    return tuple(str(names[place]) for place in sorted(names))


def class_places(labels: Sequence[str]) -> dict[str, int]:
    """The numbers of classes by their names in small letters, and by their numbers as text."""
    return {label.lower(): place for place, label in enumerate(labels)} | {str(n): n for n in range(len(labels))}


def class_numbers(labels: Sequence[str], golds: Sequence[str | None], model: str) -> list[int]:
    """Which class of a model's head each gold answer is: by its name, whatever its capitals, or by its number."""
    known = class_places(labels)
    strange = sorted({str(gold) for gold in golds if str(gold).lower() not in known})
    if strange:
        raise Refusal(
            f"The corpus has the class {', '.join(strange[:5])}, which {model} does not know",
            f"one of {', '.join(labels)}, or their numbers from 0",
            "Rename the classes in the corpus, or choose a model that was trained on them",
        )
    return [known[str(gold).lower()] for gold in golds]


def save(encoder: HuggingFaceEncoder, folder: Path) -> None:
    """Write config.json, model.safetensors and the tokeniser, as transformers' `from_pretrained` reads them."""
    with quietly():
        encoder.model.save_pretrained(folder)
        encoder.tokenizer.save_pretrained(folder)


def _config(encoder: HuggingFaceEncoder, head: HeadName, labels: Sequence[str]) -> Any:
    config = copy.deepcopy(encoder.model.config)
    config._attn_implementation = "eager"
    if labels:
        config.id2label = dict(enumerate(labels))
        config.label2id = {label: place for place, label in enumerate(labels)}
    else:
        config.num_labels = 2
    if head == "label":
        config.problem_type = "single_label_classification"
    if config.pad_token_id is None:
        config.pad_token_id = encoder.tokenizer.pad_token_id
    if config.pad_token_id is None:
        config.pad_token_id = encoder.tokenizer.eos_token_id
    return config


def _class_of(head: HeadName, config: Any, name: str) -> Any:
    known = CLASSES[head]._model_mapping
    if type(config) not in known:
        raise Refusal(
            f"transformers has no class with the head {head!r} for {name} ({config.model_type})",
            "a model of a family that has one",
            "Choose another model or another task",
        )
    return known[type(config)]


def _copy_weights(encoder: HuggingFaceEncoder, model: Any) -> None:
    found = model.base_model.load_state_dict(encoder.model.base_model.state_dict(), strict=False)
    lost = [name for name in (*found.missing_keys, *found.unexpected_keys) if "pooler" not in name]
    assert not lost, f"the weights {lost} of {encoder.name} do not fit {type(model).__name__}"
