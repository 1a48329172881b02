"""The model, the texts and the attention that tests of pages compare with."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

import bertology
from bertology.encoder.encoder import Encoder
from bertology.encoder.load import load
from bertology.recording.recorder import record
from bertology.views.view import View

TEXT = "I went to the store. At the store, I bought fresh strawberries."


@cache
def mini() -> Encoder:
    """A trained model: the attention of an untrained one is so uniform that wrong numbers would look right."""
    return load("mini")


@cache
def attention(text: str = TEXT) -> NDArray[np.float32]:
    """(layer, head, from, to) attention of the model."""
    return np.asarray(record(mini(), bertology.corpus([text]), ["attention"])["attention"][0])


@cache
def against_younger() -> View:
    """The model and an earlier state of it on the same text."""
    return bertology.view(mini(), TEXT, against="mini@10%")
