"""Quantise a model: matrices as 8-bit integers with one scale per row, the rest in half precision."""

import argparse
import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from bertology.encoder.int8_checkpoint import SCALE_SUFFIX, TENSORS


def pack(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Each matrix as int8 in -127..127 and its row scales in float32; the largest error is half a scale."""
    packed: dict[str, Tensor] = {}
    for name, value in weights.items():
        if value.ndim < 2:
            packed[name] = value.half()
            continue
        scale = value.float().abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / 127
        packed[name] = (value.float() / scale).round().to(torch.int8)
        packed[name + SCALE_SUFFIX] = scale[:, 0].contiguous()
    return packed


def main() -> None:
    """Quantise a model directory to int8, as `bertology.encoder.int8_checkpoint` reads it, without its tokeniser."""
    parser = argparse.ArgumentParser(prog="python -m pretraining.quantise", description=main.__doc__)
    parser.add_argument("model", type=Path, help="a Hugging Face directory")
    parser.add_argument("-o", "--output", type=Path, required=True, help="directory to write")
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(given.model / "config.json", given.output / "config.json")
    save_file(pack(load_file(given.model / "model.safetensors")), given.output / TENSORS)


if __name__ == "__main__":
    main()
