"""Checkpoints: the complete state of a run in one file, replaced atomically."""

from dataclasses import asdict
from pathlib import Path

import torch
from torch.optim import Optimizer
from transformers import BertForPreTraining

from pretraining.recipe import Recipe

NAME = "latest.pt"


def save_checkpoint(folder: Path, recipe: Recipe, step: int, model: BertForPreTraining, optimiser: Optimizer) -> None:
    """Write weights, optimiser and the number of steps done; the old file is replaced only by a whole new one."""
    state = {"recipe": asdict(recipe), "step": step, "model": model.state_dict(), "optimiser": optimiser.state_dict()}
    part = folder / f"{NAME}.part"
    torch.save(state, part)
    part.replace(folder / NAME)


def load_checkpoint(folder: Path, recipe: Recipe, model: BertForPreTraining, optimiser: Optimizer) -> int:
    """Put back the state, if there is one, and return the steps done; another recipe's checkpoint is refused."""
    path = folder / NAME
    if not path.exists():
        return 0
    state = torch.load(path, map_location=model.device, weights_only=True)
    if state["recipe"] != asdict(recipe):
        raise ValueError(
            f"{path} is of another recipe: found {state['recipe']}, asked for {asdict(recipe)}; "
            "give the same options to resume, or another folder to start afresh"
        )
    model.load_state_dict(state["model"])
    optimiser.load_state_dict(state["optimiser"])
    return int(state["step"])
