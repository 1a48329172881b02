"""A model directory looked at before anything is loaded from it: what is missing, pickled or broken is refused here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bertology.errors import Refusal

SAFE = ("model.safetensors", "model.safetensors.index.json")
PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json")
TOKENISER = ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model", "spm.model")

HUGGING_FACE_FORM = "config.json, model.safetensors and tokenizer.json in Hugging Face form"


def refuse_unfit(folder: Path, *, allow_pickle: bool) -> None:
    """Refuse a directory that cannot hold a model: no config, no tokeniser, no weights or only pickled ones."""
    _refuse_unreadable_config(folder)
    if not any((folder / name).is_file() for name in TOKENISER):
        raise Refusal(
            f"The model directory {folder} has no tokeniser (none of {', '.join(TOKENISER)})",
            HUGGING_FACE_FORM,
            "Save the tokeniser beside the weights with its save_pretrained()",
        )
    if any((folder / name).is_file() for name in SAFE):
        for file in sorted(folder.glob("*.safetensors")):
            _refuse_corrupt(file)
        return
    pickled = next((name for name in PICKLED if (folder / name).is_file()), None)
    if pickled is None:
        raise Refusal(
            f"The model directory {folder} has no weights",
            HUGGING_FACE_FORM,
            "Save the model with its save_pretrained()",
        )
    if not allow_pickle:
        raise Refusal(
            f"The model directory {folder} has only pickled weights ({pickled}), and a pickle can run any code",
            HUGGING_FACE_FORM,
            "If you trust where it comes from, add --allow-pickle; or convert it once to safetensors",
        )


def _refuse_unreadable_config(folder: Path) -> None:
    file = folder / "config.json"
    if not file.is_file():
        raise Refusal(
            f"The directory {folder} has no config.json",
            HUGGING_FACE_FORM,
            "Name the directory that save_pretrained() wrote, not one above or below it",
        )
    try:
        config: Any = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise Refusal(
            f"{file} is not readable as JSON ({error})", "the model's configuration", "Copy it again"
        ) from error
    if not isinstance(config, dict) or "model_type" not in config:
        raise Refusal(
            f"{file} does not say which model_type it configures",
            "a configuration that transformers wrote",
            "Copy it again, or save the model with its save_pretrained()",
        )


def _refuse_corrupt(file: Path) -> None:
    """Refuse a safetensors file whose header is not one, or that is shorter or longer than its header says."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        announced = int.from_bytes(stream.read(8), "little")
        try:
            header: dict[str, Any] = json.loads(stream.read(announced)) if 0 < announced <= size - 8 else {}
        except ValueError:
            header = {}
    if header:
        ends = [tensor["data_offsets"][1] for name, tensor in header.items() if name != "__metadata__"]
        if 8 + announced + max(ends, default=0) == size:
            return
    raise Refusal(
        f"{file} is corrupt or was not copied whole ({size:,} bytes)",
        "a safetensors file as long as its header says",
        "Copy or download it again",
    )
