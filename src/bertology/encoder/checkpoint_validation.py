"""Validate a model directory before loading: refuse missing, pickled and corrupt files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertology.errors import Refusal

if TYPE_CHECKING:
    from torch import Tensor

SAFETENSORS_FILES = ("model.safetensors", "model.safetensors.index.json")
PICKLE_FILES = ("pytorch_model.bin", "pytorch_model.bin.index.json")
TOKENISER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model", "spm.model")

HUGGING_FACE_FORMAT = "config.json, model.safetensors and tokenizer.json in Hugging Face format"


def validate_checkpoint(folder: Path, *, allow_pickle: bool) -> None:
    """Refuse a directory without configuration, tokeniser or weights, or with pickled weights only."""
    _refuse_unreadable_config(folder)
    if not any((folder / name).is_file() for name in TOKENISER_FILES):
        raise Refusal(
            f"The model directory {folder} has no tokeniser (none of {', '.join(TOKENISER_FILES)})",
            HUGGING_FACE_FORMAT,
            "Save the tokeniser in the same directory with its save_pretrained()",
        )
    if any((folder / name).is_file() for name in SAFETENSORS_FILES):
        for file in sorted(folder.glob("*.safetensors")):
            _refuse_corrupt(file)
        return
    pickle_file = next((name for name in PICKLE_FILES if (folder / name).is_file()), None)
    if pickle_file is None:
        raise Refusal(
            f"The model directory {folder} has no weights",
            HUGGING_FACE_FORMAT,
            "Save the model with its save_pretrained()",
        )
    if not allow_pickle:
        raise Refusal(
            f"The model directory {folder} has only pickled weights ({pickle_file}), and a pickle can run any code",
            HUGGING_FACE_FORMAT,
            "If you trust its source, add --allow-pickle; or convert it once to safetensors",
        )


def read_tensors(file: Path, expected: str) -> dict[str, Tensor]:
    """The tensors of a safetensors file; a file that cannot be read is refused."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(file)
    except (OSError, SafetensorError) as error:
        raise Refusal(f"{file} cannot be read ({error})", expected, "Copy the folder again") from error


def _refuse_unreadable_config(folder: Path) -> None:
    file = folder / "config.json"
    if not file.is_file():
        raise Refusal(
            f"The directory {folder} has no config.json",
            HUGGING_FACE_FORMAT,
            "Name the directory that save_pretrained() wrote, not its parent or a subdirectory",
        )
    try:
        config: Any = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise Refusal(
            f"{file} is not readable as JSON ({error})", "the model's configuration", "Copy it again"
        ) from error
    if not isinstance(config, dict) or "model_type" not in config:
        raise Refusal(
            f"{file} has no model_type",
            "a configuration written by transformers",
            "Copy it again, or save the model with its save_pretrained()",
        )


def _refuse_corrupt(file: Path) -> None:
    """Refuse a safetensors file with an invalid header, or of another length than its header says."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        header_size = int.from_bytes(stream.read(8), "little")
        try:
            header: dict[str, Any] = json.loads(stream.read(header_size)) if 0 < header_size <= size - 8 else {}
        except ValueError:
            header = {}
    if header:
        ends = [tensor["data_offsets"][1] for name, tensor in header.items() if name != "__metadata__"]
        if 8 + header_size + max(ends, default=0) == size:
            return
    raise Refusal(
        f"{file} is corrupt or truncated ({size:,} bytes)",
        "a safetensors file of the length its header says",
        "Copy or download it again",
    )
