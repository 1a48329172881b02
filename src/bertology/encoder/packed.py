"""A model kept at half the size: matrices as 8-bit integers with one scale a row, the rest in half precision.

A folder holds a config.json in Hugging Face form and packed.safetensors, in which the matrix NAME is the integers NAME
times the row scales NAME.scale. What is lost is at most half a scale an entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors.torch import load_file
from torch import Tensor

if TYPE_CHECKING:
    from bertology.encoder.huggingface import HuggingFaceEncoder

TENSORS = "packed.safetensors"
SCALE = ".scale"
"""What the name of a matrix's scales ends with, after the matrix's own name."""


def load_packed(folder: Path, *, tokeniser: Path, name: str, device: str, dtype: str) -> HuggingFaceEncoder:
    """The encoder that a packed folder holds, with the tokeniser of another folder."""
    from bertology.encoder.transformer_files import assemble

    weights = unpack(load_file(folder / TENSORS))
    return assemble(weights, config=folder, tokenizer=tokeniser, name=name, device=device, dtype=dtype)


def unpack(packed: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights in half precision, as they were packed but for rounding."""
    return {
        name: (value.float() * packed[name + SCALE][:, None]).half() if name + SCALE in packed else value
        for name, value in packed.items()
        if not name.endswith(SCALE)
    }
