"""One vector a word, whatever stands around it: the mean over its pieces in a table of static vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.encoder.encoder import Batch, Encoder
from bertology.recording.annotation import pieces_of_words
from bertology.recording.entry import Entry


def word_vectors(table: Encoder, entries: Sequence[Entry]) -> list[NDArray[np.floating[Any]]]:
    """(word, width) for each entry; zeros for a word without pieces or not in the table."""
    import torch

    found: list[NDArray[np.floating[Any]]] = []
    for entry, pieces in zip(entries, table.tokenise([entry.input for entry in entries]), strict=True):
        ids, types = (torch.from_numpy(np.asarray(part, np.int64))[None] for part in (pieces.ids, pieces.types))
        states = table.run(Batch(ids, types, torch.ones_like(ids)), hidden=True).hidden[0][0].cpu().numpy()
        means = np.zeros((pieces.words, states.shape[1]), np.float32)
        for word, own in pieces_of_words(replace(entry, pieces=pieces)).items():
            means[word] = states[own].mean(0)
        found.append(means)
    return found
