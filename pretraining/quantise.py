"""Quantise a model: matrices as 8-bit integers with one scale per row, the rest in half precision."""

import argparse
import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from bertology.encoder.int8_checkpoint import SCALE_SUFFIX, TENSORS


def quantise(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Each matrix as int8 in -127..127 with one float32 scale per row; the largest error is half a scale."""
    quantised: dict[str, Tensor] = {}
    for name, value in weights.items():
        if value.ndim < 2:
            quantised[name] = value.half()
            continue
        scale = value.float().abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / 127
        quantised[name] = (value.float() / scale).round().to(torch.int8)
        quantised[name + SCALE_SUFFIX] = scale[:, 0].contiguous()
    return quantised


def main() -> None:
    """Quantise a model directory to int8, as `bertology.encoder.int8_checkpoint` reads it, without its tokeniser."""
    parser = argparse.ArgumentParser(prog="python -m pretraining.quantise", description=main.__doc__)
    parser.add_argument("model", type=Path, help="directory in Hugging Face format")
    parser.add_argument("-o", "--output", type=Path, required=True, help="directory to write")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(options.model / "config.json", options.output / "config.json")
    save_file(quantise(load_file(options.model / "model.safetensors")), options.output / TENSORS)


if __name__ == "__main__":
    main()
