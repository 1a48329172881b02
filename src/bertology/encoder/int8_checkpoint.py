"""A model stored at half the size: matrices as 8-bit integers with one scale per row, the rest in half precision.

A folder holds a config.json in Hugging Face format and packed.safetensors, in which the matrix NAME is the integers
NAME times the row scales NAME.scale. The rounding error is at most half a scale per weight.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors.torch import load_file

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.huggingface import HuggingFaceEncoder

TENSORS = "packed.safetensors"
SCALE_SUFFIX = ".scale"
"""End of the name of a matrix's scales, after the name of the matrix."""


def load_int8(folder: Path, *, tokeniser: Path, name: str, device: str, dtype: str) -> HuggingFaceEncoder:
    """Load the model in a folder of this format, with the tokeniser of another folder."""
    from bertology.encoder.huggingface_loading import encoder_from_weights

    weights = unpack_int8(load_file(folder / TENSORS))
    return encoder_from_weights(weights, config=folder, tokenizer=tokeniser, name=name, device=device, dtype=dtype)


def unpack_int8(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights in half precision."""
    return {
        name: (value.float() * tensors[name + SCALE_SUFFIX][:, None]).half()
        if name + SCALE_SUFFIX in tensors
        else value
        for name, value in tensors.items()
        if not name.endswith(SCALE_SUFFIX)
    }
