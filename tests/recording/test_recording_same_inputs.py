"""Recordings are compared only if they are of the same inputs."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bertology.errors import Refusal
from bertology.recording.recording import Recording, check_same_inputs


def make_recording(*words: str, scale: float = 1.0) -> Recording:
    attention = [np.full((1, 1, 2, 2), 0.5, np.float32) for _ in words]
    hidden = [np.full((2, 2, 3), scale, np.float32) for _ in words]
    return Recording.from_arrays([["[CLS]", word] for word in words], attention=attention, hidden=hidden)


def test_inputs_must_agree_in_number_and_words() -> None:
    recording = make_recording("ran", "sat")
    check_same_inputs(recording, make_recording("ran", "sat", scale=2.0))
    with pytest.raises(Refusal, match="have 2 and 1 inputs"):
        check_same_inputs(recording, make_recording("ran"))
    with pytest.raises(Refusal, match="differ in the words of input 2"):
        check_same_inputs(recording, make_recording("ran", "ran"))


def test_the_fingerprint_of_arrays_is_a_digest_of_them() -> None:
    fingerprint = make_recording("ran").encoder.fingerprint
    assert re.fullmatch("[0-9a-f]{32}", fingerprint)
    assert make_recording("ran").encoder.fingerprint == fingerprint
    others = {make_recording("sat").encoder.fingerprint, make_recording("ran", scale=2.0).encoder.fingerprint}
    assert len(others - {fingerprint}) == 2
