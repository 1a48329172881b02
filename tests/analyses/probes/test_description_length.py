"""Labels that the states do not tell cost the uniform code; those that they do cost next to nothing."""

from __future__ import annotations

import numpy as np
import pytest

import probed
from bertology.errors import Refusal
from bertology.measures.probes.code_lengths import online, portions
from bertology.measures.probes.probe_material import Examples, Task
from bertology.measures.probes.probe_scores import setting_of
from bertology.results.shapes import LayerCurve


def curve(recorded: probed.Recording, **options: object) -> LayerCurve:
    data = probed.result("probes/description_length", recorded, **options).data
    assert isinstance(data, LayerCurve)
    return data


@pytest.mark.parametrize("probe", ["linear", "mlp:16"])
def test_independent_labels_cost_the_uniform_code(probe: str) -> None:
    data = curve(probed.recording(probed.corpus(120), None, probed.tag), probe=probe, seeds=2)
    for code in ("online", "variational"):
        bits = data.measures[code].value
        np.testing.assert_allclose(bits[0], np.log2(3), rtol=0.05)
        np.testing.assert_allclose(data.measures[f"{code} compression"].value[0], 1, atol=0.05)
        assert bits[1] < 0.4 * np.log2(3), code
        control = data.baselines["control labels"]
        assert control[code].value[1] > 3 * bits[1]


def test_the_online_code_is_the_sum_of_its_portions() -> None:
    generator = np.random.default_rng(0)
    shown = probed.corpus(16)
    entries = probed.planted.entries_of(shown)
    entry = np.repeat(np.arange(16), 8)
    features = generator.normal(size=(1, 128, 4)).astype(np.float32)
    label = np.array(probed.NAMES, object)[generator.integers(3, size=128)]
    part = Examples(features, label, label, entry, entries)
    setting = setting_of("linear", 1, 0)
    task = Task(part, part, probed.NAMES, {})
    bits, counted = online(task, setting, control=False)
    nats, _ = online(task, setting, control=False, legacy_nats=True)
    first = portions(int(counted[0]) // 8)[0] * 8 * np.log2(3)
    np.testing.assert_allclose((bits - first) * np.log(2), nats - first, rtol=1e-6)
    assert bits[0, 0, 0] > nats[0, 0, 0]


def test_portions_are_those_of_the_paper_where_there_are_enough_sentences() -> None:
    assert portions(10_000) == [10, 20, 40, 80, 160, 320, 625, 1250, 2500, 5000, 10_000]
    assert portions(3) == [1, 2, 3]


def test_what_cannot_be_coded_is_refused() -> None:
    recorded = probed.recording(probed.corpus(), probed.tag)
    with pytest.raises(Refusal, match="no variational code for 'rank:3'"):
        curve(recorded, probe="rank:3")
    with pytest.raises(Refusal, match="needs the annotation entities"):
        curve(recorded, label="entity")
