"""`Head`, printed as `layer-head` counted from 1, and masks parsed from `1-3,2-4`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bertology.arrays import BoolArray
from bertology.errors import Refusal

if TYPE_CHECKING:
    from bertology.encoder.encoder import Encoder


class Head(tuple[int, int]):
    """An attention head by layer and index, both from 0; printed from 1 as `layer-head`, as Clark et al. write 8-11."""

    def __new__(cls, layer: int, head: int) -> Head:
        """From 0-based indices."""
        return super().__new__(cls, (layer, head))

    @classmethod
    def parse(cls, text: str) -> Head:
        """From the printed form, `8-11`."""
        layer, head = text.split("-")
        return cls(int(layer) - 1, int(head) - 1)

    def __str__(self) -> str:
        return f"{self[0] + 1}-{self[1] + 1}"


def parse_head_mask(names: str, encoder: Encoder, option: str, usage: str) -> BoolArray:
    """(layer, head) booleans; refuses heads the encoder does not have, with `usage` as the remedy."""
    mask = np.zeros((encoder.layers, encoder.heads), np.bool_)
    for name in names.split(","):
        try:
            head = Head.parse(name)
            is_valid = min(head) >= 0 and head[0] < encoder.layers and head[1] < encoder.heads
        except ValueError:
            head, is_valid = Head(0, 0), False
        if not is_valid:
            raise Refusal(
                f"{option} names the head {name.strip()!r}",
                f"heads of {encoder.name} from 1-1 to {encoder.layers}-{encoder.heads}",
                usage,
            )
        mask[head] = True
    return mask
