"""What an analysis of a model in training needs of transformers: its Trainer's callback class, and a snapshot."""

from __future__ import annotations

import random
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
from transformers import TrainerCallback as TrainerCallback

from bertology.encoder.encoder import Encoder
from bertology.encoder.in_memory import wrap_in_memory
from bertology.errors import Refusal
from bertology.lazy import torch


def encoder_in_training(model: Any, tokenizer: Any) -> Encoder:
    """An encoder with the present weights of a model that a Trainer trains; the model stays as it is."""
    model = getattr(model, "module", model)  # DataParallel and DistributedDataParallel
    # In mixed precision accelerate replaces `forward` on the instance; a copy of that would run the model itself.
    patches = {name: vars(model).pop(name) for name in ("forward", "_original_forward") if name in vars(model)}
    try:
        return wrap_in_memory(model, tokenizer)
    finally:
        vars(model).update(patches)


def refuse_tokenizer_missing(tokenizer: Any) -> None:
    """Refuse a Trainer without a tokenizer where none was given."""
    if tokenizer is None:
        raise Refusal(
            "The Trainer has no tokenizer (processing_class)",
            "the tokenizer of the model",
            "Give it to the Trainer as processing_class=..., or to the callback as tokenizer=...",
        )


@contextmanager
def unchanged_random_state() -> Generator[None]:
    """Restore the random state of Python, NumPy and PyTorch on all devices, so that training goes on as it would."""
    python_state, numpy_state = random.getstate(), np.random.get_state()  # the state that others use
    with torch.random.fork_rng():
        try:
            yield
        finally:
            random.setstate(python_state)
            np.random.set_state(numpy_state)
