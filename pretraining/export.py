"""Export the weights in half precision, with the tokeniser, in Hugging Face format."""

import copy
import shutil
from pathlib import Path

import torch
from transformers import BertForPreTraining

TOKENISER_FILES = ("vocab.txt", "tokenizer.json", "tokenizer_config.json")


def export_model(model: BertForPreTraining, tokeniser: Path, folder: Path) -> None:
    """Write `config.json`, `model.safetensors` (float16, tied weights once) and the tokeniser's files."""
    half = copy.deepcopy(model)
    torch.nn.Module.to(half, device="cpu", dtype=torch.float16)
    for name, weights in half.named_parameters():
        if not bool(torch.isfinite(weights).all()):
            raise ValueError(f"{name} does not fit float16; the model has diverged or must be kept in float32")
    half.save_pretrained(folder)
    for name in TOKENISER_FILES:
        shutil.copyfile(tokeniser / name, folder / name)
