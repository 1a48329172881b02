"""One thread: for models this small, more threads only compete for the cores."""

from __future__ import annotations

import torch

torch.set_num_threads(1)
