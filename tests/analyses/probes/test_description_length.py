"""`probes/description_length`: labels not in the states cost the uniform code; encoded labels cost almost nothing."""

from __future__ import annotations

import numpy as np
import pytest

import planted_probes
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
        assert data.measures[length].interval == "range"


def test_probes_without_a_code_and_missing_annotations_are_refused() -> None:
    recording = planted_probes.make_recording(planted_probes.make_corpus(), planted_probes.tag)
    with pytest.raises(Refusal, match="no variational code for 'rank:3'"):
        planted_probes.run("probes/description_length", recording, probe="rank:3")
    with pytest.raises(Refusal, match="needs the annotation entities"):
        planted_probes.run("probes/description_length", recording, label="entity")
