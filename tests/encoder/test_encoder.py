"""The protocol of transformers with task heads, checked at run time."""

from __future__ import annotations

from typing import Any

import pytest

import tiny_models
from bertology.encoder.encoder import Randomisable, TaskEncoder
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.load import load


def test_transformers_are_task_encoders_and_static_vectors_are_not() -> None:
    assert isinstance(tiny_models.encoder("bert"), TaskEncoder)
    assert isinstance(tiny_models.encoder("bert"), Randomisable)
    for name in ("static:tiny", "random-vectors:8", "circulant:8"):
        assert not isinstance(load(name), TaskEncoder)


def test_the_check_does_not_evaluate_properties(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fingerprint hashes all weights."""

    def fail(self: Any) -> str:
        raise AssertionError

    encoder = tiny_models.encoder("bert")
    monkeypatch.setattr(HuggingFaceEncoder, "fingerprint", property(fail))
    assert isinstance(encoder, TaskEncoder)
