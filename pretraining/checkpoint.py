"""Checkpoints: the complete state of a run in one file, replaced atomically."""

from dataclasses import asdict
from pathlib import Path

import torch
from torch.optim import Optimizer
from transformers import BertForPreTraining

from pretraining.config import PretrainingConfig

CHECKPOINT_FILE = "latest.pt"


def save_checkpoint(
    directory: Path, config: PretrainingConfig, step: int, model: BertForPreTraining, optimiser: Optimizer
) -> None:
    """Write weights, optimiser state and the number of finished steps; an interrupted write leaves the old file."""
    state = {"config": asdict(config), "step": step, "model": model.state_dict(), "optimiser": optimiser.state_dict()}
    partial_file = directory / f"{CHECKPOINT_FILE}.part"
    torch.save(state, partial_file)
    partial_file.replace(directory / CHECKPOINT_FILE)


def load_checkpoint(directory: Path, config: PretrainingConfig, model: BertForPreTraining, optimiser: Optimizer) -> int:
    """Restore a saved state and return its number of finished steps, 0 without one; the configuration must match."""
    path = directory / CHECKPOINT_FILE
    if not path.exists():
        return 0
    state = torch.load(path, map_location=model.device, weights_only=True)
    if state["config"] != asdict(config):
        raise ValueError(
            f"{path} has another configuration: {state['config']} instead of {asdict(config)}; "
            "repeat the options of the first run to resume it, or choose another directory"
        )
    model.load_state_dict(state["model"])
    optimiser.load_state_dict(state["optimiser"])
    return int(state["step"])
