"""The models that come with bertology, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bertology.encoder.huggingface import HuggingFaceEncoder

# Given the device and the type of number the weights are wanted in.
Loader = Callable[[str, str], "HuggingFaceEncoder"]

MODELS = Path(__file__).parent / "models"


@dataclass(frozen=True)
class BuiltIn:
    """What a built-in model is, in one sentence, and how to get it."""

    about: str
    load: Loader


def in_folder(name: str, about: str) -> BuiltIn:
    """A model that lies in the package, in Hugging Face form."""

    def load(device: str, dtype: str) -> HuggingFaceEncoder:
        from bertology.encoder.transformer_files import load_directory

        return load_directory(MODELS / name, name=name, device=device, dtype=dtype)

    return BuiltIn(about, load)


def packed(name: str, about: str, *, base: str) -> BuiltIn:
    """A model that lies in the package as 8-bit integers and reads with the tokeniser of another one."""

    def load(device: str, dtype: str) -> HuggingFaceEncoder:
        from bertology.encoder.packed import load_packed

        return load_packed(MODELS / name, tokeniser=MODELS / base, name=name, device=device, dtype=dtype)

    return BuiltIn(about, load)


def fine_tuned(name: str, about: str, *, base: str) -> BuiltIn:
    """A fine-tuned model that lies in the package as its difference from another one."""

    def load(device: str, dtype: str) -> HuggingFaceEncoder:
        from bertology.encoder.difference import load_difference

        return load_difference(MODELS / base, MODELS / name, name=name, device=device, dtype=dtype)

    return BuiltIn(about, load)


def _tiny(device: str, dtype: str) -> HuggingFaceEncoder:
    import torch

    from bertology.encoder.huggingface import wrap
    from bertology.encoder.tiny import untrained

    made = untrained()
    return wrap(made.model.to(device=device, dtype=getattr(torch, dtype)), made.tokenizer, made.name)


BUILT_IN: dict[str, BuiltIn] = {
    "mini": in_folder("mini", "a small English BERT trained for this project: 8 layers of 8 heads, MLM and NSP heads"),
    "mini@10%": packed("mini@10%", "mini after a tenth of its training, stored as 8-bit integers", base="mini"),
    "mini-sentiment": fine_tuned("mini-sentiment", "mini fine-tuned to tell good from bad film reviews", base="mini"),
    "mini-ner": fine_tuned("mini-ner", "mini fine-tuned to tag names: PER, LOC, ORG, MISC", base="mini"),
    "mini-pairs": fine_tuned("mini-pairs", "mini fine-tuned on entailment, neutral, contradiction", base="mini"),
    "tiny": BuiltIn("random weights, never trained: 2 layers of 4 heads, only for trying things out", _tiny),
}
