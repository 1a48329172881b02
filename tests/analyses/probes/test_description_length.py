"""`probes/description_length`: labels not in the states cost the uniform code; encoded labels cost almost nothing."""

from __future__ import annotations

import numpy as np
import pytest

import planted_probes
from bertology.analyses.probes import description_length
from bertology.errors import Refusal


@pytest.mark.parametrize("probe", ["linear", "mlp:16"])
def test_independent_labels_cost_the_uniform_code(probe: str) -> None:
    recording = planted_probes.make_recording(planted_probes.make_corpus(120), None, planted_probes.tag)
    data = planted_probes.run_curve("probes/description_length", recording, probe=probe, n_seeds=2)
    for code in ("online", "variational"):
        length = f"{code} code length"
        bits = data.measures[length].value
        np.testing.assert_allclose(bits[0], np.log2(3), rtol=0.05)
        np.testing.assert_allclose(data.measures[f"compression ({code})"].value[0], 1, atol=0.05)
        assert bits[1] < 0.4 * np.log2(3), code
        assert data.baselines["control task"][length].value[1] > 3 * bits[1]
        assert data.measures[length].interval == {"online": "bootstrap", "variational": "range"}[code]


def test_probes_without_a_code_and_missing_annotations_are_refused() -> None:
    recording = planted_probes.make_recording(planted_probes.make_corpus(), planted_probes.tag)
    with pytest.raises(Refusal, match="no variational code for 'rank:3'"):
        planted_probes.run("probes/description_length", recording, probe="rank:3")
    with pytest.raises(Refusal, match="needs the annotation entities"):
        planted_probes.run("probes/description_length", recording, label="entity")


def test_the_default_message_stays_within_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    recording = planted_probes.make_recording(planted_probes.make_corpus(), planted_probes.tag)
    everything = planted_probes.run_curve("probes/description_length", recording, n_seeds=1)
    assert not any(name.startswith("unused") for name in everything.sample)
    monkeypatch.setattr(description_length, "MAX_WORK", 2000.0)
    sampled = planted_probes.run_curve("probes/description_length", recording, n_seeds=1)
    assert any(name.startswith("unused training sentences") for name in sampled.sample)
    assert sampled.sample["training examples"] < everything.sample["training examples"]
    asked = planted_probes.run_curve("probes/description_length", recording, n_seeds=1, sample_size=0)
    assert asked.sample == everything.sample
