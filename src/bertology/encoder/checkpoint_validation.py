"""Validate a model directory before loading: refuse missing, pickled and corrupt files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Annotated, Any, cast

from annotated_types import Interval
from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from bertology.errors import Refusal
from bertology.input_files import check_folder, read_json_object
from bertology.number_ranges import parse_whole_number, shorten_value, to_range

if TYPE_CHECKING:
    from torch import Tensor

SAFETENSORS_FILES = ("model.safetensors", "model.safetensors.index.json")
PICKLE_FILES = ("pytorch_model.bin", "pytorch_model.bin.index.json")
INDEX_FILES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
"""Files that say which file has which weights."""
TOKENISER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model", "spm.model")

MAX_HEADER_BYTES = 100_000_000
CONFIG_SIZES = {
    "hidden_size": Interval(ge=1, le=1_000_000),
    "num_hidden_layers": Interval(ge=1, le=10_000),
    "num_attention_heads": Interval(ge=1, le=100_000),
    "intermediate_size": Interval(ge=1, le=10_000_000),
    "vocab_size": Interval(ge=1, le=100_000_000),
    "max_position_embeddings": Interval(ge=1, le=100_000_000),
    "type_vocab_size": Interval(ge=0, le=1_000_000),
    "embedding_size": Interval(ge=1, le=1_000_000),
    "num_hidden_groups": Interval(ge=1, le=10_000),
}
"""Numbers of a configuration that decide how much memory a model takes."""


class _StoredTensor(TypedDict):
    """A tensor in the header of a safetensors file."""

    dtype: str
    shape: list[Annotated[int, Field(ge=0)]]
    data_offsets: tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]]


_HEADER: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])
_TENSORS = TypeAdapter(dict[str, _StoredTensor])

HUGGING_FACE_FORMAT = "config.json, model.safetensors and tokenizer.json in Hugging Face format"


def validate_checkpoint(folder: Path, *, allow_pickle: bool) -> None:
    """Refuse a directory without configuration, tokeniser or weights, or with pickled weights only."""
    check_folder(folder)
    _refuse_unreadable_config(folder)
    if not any((folder / name).is_file() for name in TOKENISER_FILES):
        raise Refusal(
            f"The model directory {folder} has no tokeniser (none of {', '.join(TOKENISER_FILES)})",
            HUGGING_FACE_FORMAT,
            "Save the tokeniser in the same directory with its save_pretrained()",
        )
    for name in INDEX_FILES:
        _refuse_files_outside(folder / name)
    if any((folder / name).is_file() for name in SAFETENSORS_FILES):
        shapes = {name: shape for file in sorted(folder.glob("*.safetensors")) for name, shape in _read_shapes(file)}
        _refuse_other_sizes(folder, shapes)
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


def _refuse_files_outside(index: Path) -> None:
    """Refuse an index of weights that names files elsewhere: `..`, or an absolute path."""
    if not index.is_file():
        return
    names = read_json_object(index, "an index of the files of the weights").get("weight_map")
    if not isinstance(names, dict):
        raise Refusal(f"{index} has no weight_map", "the name of a file for each weight", "Copy the folder again")
    for name in set(map(str, cast("dict[str, Any]", names).values())):
        if PurePosixPath(name).name != name or PureWindowsPath(name).name != name:
            raise Refusal(
                f"{index} names a file outside of the folder ({shorten_value(name)})",
                "files of the folder itself",
                "Copy the files into the folder, if you trust where they come from",
            )


def read_config(folder: Path) -> dict[str, Any]:
    """The content of config.json: an object, with sizes that a machine can hold."""
    file = folder / "config.json"
    config = read_json_object(file, "the model's configuration")
    for name, bounds in CONFIG_SIZES.items():
        value = config.get(name)
        if value is not None and parse_whole_number(str(value), bounds) is None:
            raise Refusal(
                f"{file} has {name} {shorten_value(value)}",
                f"a whole number {to_range(bounds)}",
                "Copy the file again",
            )
    return config


def read_tensors(file: Path, expected: str) -> dict[str, Tensor]:
    """The tensors of a safetensors file; a file that cannot be read is refused."""
    from safetensors.torch import load_file

    try:
        return load_file(file)
    except Exception as error:  # whatever safetensors and torch report, the file is at fault
        raise Refusal(f"{file} cannot be read ({error})", expected, "Copy the folder again") from error


def _refuse_unreadable_config(folder: Path) -> None:
    file = folder / "config.json"
    if not file.is_file():
        raise Refusal(
            f"The directory {folder} has no config.json",
            HUGGING_FACE_FORMAT,
            "Name the directory that save_pretrained() wrote, not its parent or a subdirectory",
        )
    config = read_config(folder)
    if not isinstance(config.get("model_type"), str):
        raise Refusal(
            f"{file} has no model_type",
            "a configuration written by transformers",
            "Copy it again, or save the model with its save_pretrained()",
        )


def _refuse_other_sizes(folder: Path, shapes: Mapping[str, list[int]]) -> None:
    """Refuse a configuration of a model that is larger than its weights, before memory is taken for it."""
    config = read_config(folder)
    n_numbers = sum(math.prod(shape) for shape in shapes.values())
    width = config.get("hidden_size", 0)
    tables = {"vocab_size": config.get("embedding_size", width), "intermediate_size": width}
    if any("position_embeddings" in name for name in shapes):
        tables["max_position_embeddings"] = config.get("embedding_size", width)
    sizes = {name: int(config.get(name) or 0) * int(columns or 0) for name, columns in tables.items()}
    if not config.get("num_hidden_groups"):  # ALBERT shares the weights of its layers
        sizes["num_hidden_layers"] = 0 if int(config.get("num_hidden_layers") or 0) <= len(shapes) else n_numbers + 1
    for name, size in sizes.items():
        if size > n_numbers:
            raise Refusal(
                f"{folder / 'config.json'} has {name} {config[name]}, and the weights are of a smaller model",
                "the configuration that was saved with the weights",
                "Copy both files again",
            )


def _read_shapes(file: Path) -> list[tuple[str, list[int]]]:
    """The shapes of the tensors in a safetensors file; refused if its header is invalid or says another length."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        header_size = int.from_bytes(stream.read(8), "little")
        is_possible = 0 < header_size <= min(size - 8, MAX_HEADER_BYTES)
        header = stream.read(header_size) if is_possible else b""
    with suppress(ValueError):
        entries = _HEADER.validate_json(header)
        entries.pop("__metadata__", None)
        tensors = _TENSORS.validate_python(entries)
        if 8 + header_size + max((tensor["data_offsets"][1] for tensor in tensors.values()), default=0) == size:
            return [(name, tensor["shape"]) for name, tensor in tensors.items()]
    raise Refusal(
        f"{file} is corrupt or truncated ({size:,} bytes)",
        "a safetensors file of the length its header says",
        "Copy or download it again",
    )
