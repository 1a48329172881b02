"""Words that know their neighbours without a model: what structural probes are compared with (hewitt2019structural).

`decayed` averages the embeddings around each word with weights that halve at every step; `projected` puts them through
a bidirectional LSTM with random weights.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]

NAMES = ("decayed embeddings", "projected embeddings")


def contextless(embeddings: Sequence[Numbers], *, twice: bool = False, seed: int = 0) -> list[Numbers]:
    """(2, word, width) an entry, in the order of `NAMES`, from (word, width).

    With `twice` a word counts twice in its own average, as in the released code.
    """
    projections = projected(embeddings, seed=seed)
    return [
        np.stack([decayed(states, twice=twice), projection])
        for states, projection in zip(embeddings, projections, strict=True)
    ]


def decayed(states: Numbers, *, twice: bool = False) -> Numbers:
    """(word, width) averages with weights 2 ** -|i - j|."""
    place = np.arange(len(states))
    weights = 0.5 ** np.abs(place[:, None] - place)
    if twice:
        np.fill_diagonal(weights, 2.0)
    weights /= weights.sum(1, keepdims=True)
    return (weights.astype(np.float32) @ states.astype(np.float32)).astype(np.float32)


def projected(embeddings: Sequence[Numbers], *, seed: int = 0) -> list[Numbers]:
    """(word, width) outputs of one random bidirectional LSTM layer, half the width in each direction."""
    import torch

    width = embeddings[0].shape[-1]
    half = (width + 1) // 2
    with torch.random.fork_rng(devices=[]), torch.inference_mode():
        torch.manual_seed(seed)
        network = torch.nn.LSTM(width, half, bidirectional=True, batch_first=True)
        by_length: dict[int, list[int]] = defaultdict(list)
        for place, states in enumerate(embeddings):
            by_length[len(states)].append(place)
        found: list[Numbers] = [np.empty(0)] * len(embeddings)
        for places in by_length.values():
            batch = torch.from_numpy(np.stack([embeddings[place] for place in places]).astype(np.float32))
            outputs = network(batch)[0].numpy()
            for place, output in zip(places, outputs, strict=True):
                found[place] = output[:, :width]
    return found
