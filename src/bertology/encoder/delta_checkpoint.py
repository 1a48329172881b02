"""A fine-tuned model stored as a delta: the weights of its base model plus a low-rank difference.

A folder holds a config.json in Hugging Face format with one more entry, and one file of tensors:

| in config.json | |
|---|---|
| `difference.base` | the fingerprint of the base model's files; another base is refused |
| `difference.rank` | the rank of the factors |

| in difference.safetensors | the weight NAME is |
|---|---|
| `NAME.left`, `NAME.right` | the base's plus left times right |
| `NAME.added` | the base's plus this |
| `NAME.whole` | this: the base does not have it (the task head) |

Other weights are those of the base. Sums are computed in float32, whatever type is loaded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors.torch import load_file

from bertology.encoder.checkpoint_validation import read_tensors, validate_checkpoint
from bertology.errors import Refusal

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.huggingface import HuggingFaceEncoder

CONFIG = "config.json"
TENSORS = "difference.safetensors"
ENTRY = "difference"
LEFT_SUFFIX, RIGHT_SUFFIX, DELTA_SUFFIX, FULL_SUFFIX = ".left", ".right", ".added", ".whole"
BASE_FILES = ("model.safetensors", "tokenizer.json")
EXPECTED_FILES = f"{CONFIG} with an entry {ENTRY!r}, and the {TENSORS} written with it"


def load_delta(
    base: str | Path, folder: str | Path, *, name: str = "", device: str = "cpu", dtype: str = "float32"
) -> HuggingFaceEncoder:
    """Load base plus delta; refuses a base other than the one the delta was computed from."""
    from bertology.encoder.huggingface_loading import encoder_from_weights

    base, folder = Path(base), Path(folder)
    weights = apply_delta(base, folder)
    return encoder_from_weights(
        weights, config=folder, tokenizer=base, name=name or str(folder), device=device, dtype=dtype
    )


def apply_delta(base: Path, folder: Path) -> dict[str, Tensor]:
    """The float32 weights of base plus delta, without the base's task heads."""
    validate_checkpoint(base, allow_pickle=False)
    _refuse_other_base(base, folder)
    delta = read_tensors(folder / TENSORS, EXPECTED_FILES)
    base_weights = {name: weights.float() for name, weights in load_file(base / BASE_FILES[0]).items()}
    prefix = _encoder_prefix(delta)
    weights = {name: tensor for name, tensor in base_weights.items() if name.startswith(prefix)}
    names = {key.rpartition(".")[0] for key in delta}
    return weights | {name: _apply_weight_delta(name, delta, base_weights, folder) for name in names}


def base_fingerprint(base: Path) -> str:
    """A hash of the base's weight and tokeniser files, independent of library versions."""
    digest = hashlib.sha256()
    for name in BASE_FILES:
        digest.update((base / name).read_bytes())
    return digest.hexdigest()[:32]


def _apply_weight_delta(name: str, delta: Mapping[str, Tensor], base: Mapping[str, Tensor], folder: Path) -> Tensor:
    if name + FULL_SUFFIX in delta:
        return delta[name + FULL_SUFFIX].float()
    try:
        if name + DELTA_SUFFIX in delta:
            difference = delta[name + DELTA_SUFFIX].float()
        else:
            difference = delta[name + LEFT_SUFFIX].float() @ delta[name + RIGHT_SUFFIX].float()
        if difference.shape != base[name].shape:
            raise RuntimeError(f"{tuple(difference.shape)} is not {tuple(base[name].shape)}")
        return base[name] + difference
    except (KeyError, RuntimeError) as error:
        raise Refusal(
            f"The delta in {folder} changes {name!r}, which its base does not have in that shape",
            EXPECTED_FILES,
            "Copy the folder again, or store the delta again",
        ) from error


def _encoder_prefix(delta: Mapping[str, Tensor]) -> str:
    """The prefix of the encoder's weight names (`bert.`): that of the first weight with a difference."""
    changed = sorted(key for key in delta if not key.endswith(FULL_SUFFIX))
    return changed[0].partition(".")[0] + "." if changed else ""


def _refuse_other_base(base: Path, folder: Path) -> None:
    try:
        config: Any = json.loads((folder / CONFIG).read_text("utf-8"))
        expected = str(config[ENTRY]["base"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Refusal(f"{folder} does not name its base model", EXPECTED_FILES, "Copy the folder again") from error
    fingerprint = base_fingerprint(base)
    if fingerprint != expected:
        raise Refusal(
            f"The delta in {folder} belongs to a base model with the fingerprint {expected}; {base} has {fingerprint}",
            "the base model of the delta, byte for byte",
            "Use the base model that came with it, or fine-tune from this one and store that delta",
        )
