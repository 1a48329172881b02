"""`measures.division`: how much a probe is trained on, and what is told of the rest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import probed
from bertology.corpus.corpus import Corpus
from bertology.measures.division import Division
from bertology.recording.recording import Recording
from bertology.results.shapes import LayerCurve


def _trained(shown: Corpus, limit: int, seed: int = 0) -> tuple[set[str], set[str]]:
    recording = probed.recording(shown, None)

    def texts(part: tuple[Recording, Sequence[int]]) -> set[str]:
        return {recording.entries[place].input.parts[0].text for place in part[1]}

    first, second = Division("", limit, 0.7, seed).parts(recording, None, (), purpose="test")
    return texts(first), texts(second)


def test_a_limit_draws_from_what_would_be_trained_on_and_leaves_the_test_alone() -> None:
    shown = probed.corpus()
    whole, tested = _trained(shown, 0)
    some, same_test = _trained(shown, 10)
    assert len(some) == 10 and some < whole and same_test == tested
    assert some == _trained(shown[::-1], 10)[0] != _trained(shown, 10, seed=1)[0]
    assert _trained(shown, 10_000)[0] == whole


def test_what_was_not_drawn_is_counted() -> None:
    recording = probed.recording(probed.corpus(), None)
    here = len(Division("", 0, 0.7, 0).parts(recording, None, (), purpose="test")[0][1])
    assert Division("", 10, 0.7, 0).unused(recording) == here - 10
    assert str(here - 10) in Division("", 10, 0.7, 0).not_drawn(recording)
    for enough in (0, here, 10_000):
        assert Division("", enough, 0.7, 0).not_drawn(recording) == ""
    assert Division("another corpus", 10, 0.7, 0).unused(recording) == 0


@pytest.mark.parametrize("limit", [0, 20])
def test_a_probe_says_how_much_it_did_not_see_and_still_finds_what_is_there(limit: int) -> None:
    recorded = probed.recording(probed.corpus(), None, probed.tag)
    data = probed.result("probes/token", recorded, train_limit=limit, seeds=2).data
    assert isinstance(data, LayerCurve)
    assert ("not drawn" in data.units["accuracy"]) == bool(limit)
    assert data.measures["accuracy"].value[1] > 0.9 > data.measures["accuracy"].value[0]
    assert np.all(data.measures["accuracy"].n == data.measures["accuracy"].n[0])
