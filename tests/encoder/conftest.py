"""One thread: the models are so small that more only fight over the cores."""

from __future__ import annotations

import torch

torch.set_num_threads(1)
