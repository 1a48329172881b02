"""Heads as people write them, `1-3,2-4`, and which heads of a model these are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.results.shapes import Head


def named_heads(names: str, encoder: Encoder, option: str, form: str) -> NDArray[np.bool_]:
    """(layer, head) booleans; refused where the encoder has no such head, and `form` says how the option is written."""
    mask = np.zeros((encoder.layers, encoder.heads), np.bool_)
    for name in names.split(","):
        try:
            head = Head.parse(name)
            fits = min(head) >= 0 and head[0] < encoder.layers and head[1] < encoder.heads
        except ValueError:
            head, fits = Head(0, 0), False
        if not fits:
            raise Refusal(
                f"{option} names the head {name.strip()!r}",
                f"heads of {encoder.name} from 1-1 to {encoder.layers}-{encoder.heads}",
                form,
            )
        mask[head] = True
    return mask
