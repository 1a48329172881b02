"""Logarithms of many numbers at once."""

from __future__ import annotations

import numpy as np
from torch import Tensor


def log2_in_place(values: Tensor) -> Tensor:
    """The logarithm of positive numbers to the base 2, written over them.

    On a processor NumPy's is used: measured, it takes a quarter of the time of torch's, and two thirds of that of the
    natural logarithm.
    """
    if values.device.type == "cpu":
        array = values.detach().numpy()
        np.log2(array, out=array)
        return values
    return values.log2_()
