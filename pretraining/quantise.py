"""How small can an early model be kept? Matrices as 8-bit integers with one scale a row, the rest in half precision."""

import argparse
import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

SCALE = ".scale"
"""What the name of a matrix's scales ends with, after the matrix's own name."""


def pack(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Each matrix as int8 in -127..127 and its row scales in float32; the largest error is half a scale."""
    packed: dict[str, Tensor] = {}
    for name, value in weights.items():
        if value.ndim < 2:
            packed[name] = value.half()
            continue
        scale = value.float().abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / 127
        packed[name] = (value.float() / scale).round().to(torch.int8)
        packed[name + SCALE] = scale[:, 0].contiguous()
    return packed


def unpack(packed: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights in half precision, as `pack` was given them but for rounding."""
    return {
        name: (value.float() * packed[name + SCALE][:, None]).half() if name + SCALE in packed else value
        for name, value in packed.items()
        if not name.endswith(SCALE)
    }


def main() -> None:
    """Pack a model directory's model.safetensors into half the size, or unpack one again."""
    parser = argparse.ArgumentParser(prog="python -m pretraining.quantise", description=main.__doc__)
    parser.add_argument("model", type=Path, help="a Hugging Face directory, or with --unpack a packed one")
    parser.add_argument("-o", "--output", type=Path, required=True, help="directory to write")
    parser.add_argument("--unpack", action="store_true", help="back to float16, so that transformers can load it")
    given = parser.parse_args()
    weights = load_file(given.model / "model.safetensors")
    shutil.copytree(given.model, given.output, dirs_exist_ok=True)
    changed = unpack(weights) if given.unpack else pack(weights)
    save_file(changed, given.output / "model.safetensors", metadata={"format": "pt"})


if __name__ == "__main__":
    main()
