"""Export the weights in half precision, with the tokeniser, in Hugging Face format."""

import copy
import shutil
from pathlib import Path

import torch
from transformers import BertForPreTraining

TOKENISER_FILES = ("tokenizer.json", "tokenizer_config.json")
"""The vocabulary is in `tokenizer.json`: the built-in models have no `vocab.txt`."""


def export_model(model: BertForPreTraining, tokeniser: Path, directory: Path) -> None:
    """Write `config.json`, `model.safetensors` (float16, tied weights once) and the tokeniser's files."""
    half_model = copy.deepcopy(model)
    torch.nn.Module.to(half_model, device="cpu", dtype=torch.float16)
    for name, weights in half_model.named_parameters():
        if not bool(torch.isfinite(weights).all()):
            raise ValueError(f"{name} overflows float16: the model has diverged or needs float32")
    half_model.save_pretrained(directory)
    for name in TOKENISER_FILES:
        shutil.copyfile(tokeniser / name, directory / name)
