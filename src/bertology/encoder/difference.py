"""A fine-tuned model as what it changed: the weights of its base plus a stored difference of low rank.

A folder holds a config.json in Hugging Face form, with one more entry, and one file of tensors:

| in config.json | |
|---|---|
| `difference.base` | the fingerprint of the base's files; another base is refused |
| `difference.rank` | the rank of the factors |

| in difference.safetensors | the weight NAME is |
|---|---|
| `NAME.left`, `NAME.right` | the base's plus left times right |
| `NAME.added` | the base's plus this |
| `NAME.whole` | this: the base has none (the head of the task) |

Weights that are not named are the base's own. The sums are taken in float32, whatever type is asked for.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from bertology.encoder import checkpoint
from bertology.errors import Refusal

if TYPE_CHECKING:
    from bertology.encoder.huggingface import HuggingFaceEncoder

CONFIG = "config.json"
TENSORS = "difference.safetensors"
ENTRY = "difference"
LEFT, RIGHT, ADDED, WHOLE = ".left", ".right", ".added", ".whole"
BASE_FILES = ("model.safetensors", "tokenizer.json")
FORM = f"{CONFIG} with an entry {ENTRY!r}, and {TENSORS}, as they were written together"


def load_difference(
    base: str | Path, folder: str | Path, *, name: str = "", device: str = "cpu", dtype: str = "float32"
) -> HuggingFaceEncoder:
    """The encoder that a difference makes of its base; refused where it was taken from another base."""
    from bertology.encoder.transformer_files import assemble

    base, folder = Path(base), Path(folder)
    weights = weights_of(base, folder)
    return assemble(weights, config=folder, tokenizer=base, name=name or str(folder), device=device, dtype=dtype)


def weights_of(base: Path, folder: Path) -> dict[str, Tensor]:
    """The weights in float32 of base plus difference, without those of the base's own heads."""
    checkpoint.refuse_unfit(base, allow_pickle=False)
    _refuse_another_base(base, folder)
    stored = _tensors(folder / TENSORS)
    old = {name: weights.float() for name, weights in load_file(base / BASE_FILES[0]).items()}
    prefix = _encoder_prefix(stored)
    weights = {name: tensor for name, tensor in old.items() if name.startswith(prefix)}
    return weights | {name: _changed(name, stored, old, folder) for name in {_weight(key) for key in stored}}


def base_fingerprint(base: Path) -> str:
    """A hash of the base's weights and tokeniser as they lie in its files, the same under every library version."""
    digest = hashlib.sha256()
    for name in BASE_FILES:
        digest.update((base / name).read_bytes())
    return digest.hexdigest()[:32]


def _changed(name: str, stored: Mapping[str, Tensor], old: Mapping[str, Tensor], folder: Path) -> Tensor:
    if name + WHOLE in stored:
        return stored[name + WHOLE].float()
    try:
        if name + ADDED in stored:
            return old[name] + _same_shape(stored[name + ADDED].float(), old[name])
        return old[name] + _same_shape(stored[name + LEFT].float() @ stored[name + RIGHT].float(), old[name])
    except (KeyError, RuntimeError) as error:
        raise Refusal(
            f"The difference in {folder} changes {name!r}, which its base does not have in that shape",
            FORM,
            "Copy the folder again, or store the difference anew",
        ) from error


def _same_shape(difference: Tensor, old: Tensor) -> Tensor:
    if difference.shape != old.shape:
        raise RuntimeError(f"{tuple(difference.shape)} is not {tuple(old.shape)}")
    return difference


def _weight(key: str) -> str:
    return key.rpartition(".")[0]


def _encoder_prefix(stored: Mapping[str, Tensor]) -> str:
    """What the names of the encoder's weights begin with (`bert.`): that of the first one changed, not replaced."""
    changed = sorted(key for key in stored if not key.endswith(WHOLE))
    return changed[0].partition(".")[0] + "." if changed else ""


def _tensors(file: Path) -> dict[str, Tensor]:
    try:
        return load_file(file)
    except (OSError, SafetensorError) as error:
        raise Refusal(f"{file} cannot be read ({error})", FORM, "Copy the folder again") from error


def _refuse_another_base(base: Path, folder: Path) -> None:
    try:
        config: Any = json.loads((folder / CONFIG).read_text("utf-8"))
        wanted = str(config[ENTRY]["base"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Refusal(f"{folder} does not say which base it was taken from", FORM, "Copy the folder again") from error
    found = base_fingerprint(base)
    if found != wanted:
        raise Refusal(
            f"The difference in {folder} was taken from a base with the fingerprint {wanted}; {base} has {found}",
            "the base that the difference was taken from, to the byte",
            "Use the base that came with it, or fine-tune from this one and store that difference",
        )
