"""An analysis whose numbers change gets a new version: golden.json has each version's numbers on a planted recording.

After raising a version, write its numbers with `python tests/analyses/test_golden.py`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

import planted
from bertology.analyses import registry
from bertology.analyses.declaration import Analysis
from bertology.analyses.run import RunInputs, run_analysis
from bertology.encoder.token_batch import RecordedInput
from bertology.encoder.tokens import SpecialToken
from bertology.recording.sites import ReducedSite, resolve_sites
from bertology.results.shapes import Curve, HeadGrid, LayerCurve, Matrix, Table

GOLDEN = Path(__file__).with_name("golden.json")
TEXTS = ("the cat saw the dog .", "the dog ran , the cat sat", ("where is the cat ?", "the cat is here ."), "the end")

SMALL = {"min_occurrences": 2, "min_examples": 2, "n_positions": 4}
"""Options for a corpus of few words."""
NEEDS_ANNOTATION = {"geometry/phrase_clusters"}
"""Analyses that need one of several annotations; these texts have none."""


def hidden_states(recorded: RecordedInput) -> planted.FloatArray:
    generator = np.random.default_rng(recorded.tokens.ids.tolist())
    return generator.normal(size=(3, len(recorded.tokens), 6)) + np.arange(3)[:, None, None]


def inputs() -> RunInputs:
    sep_head = planted.special_head(SpecialToken.SEP)
    heads = [planted.offset_head(-1), planted.random_head(1), sep_head, planted.uniform_head]
    return RunInputs(recording=planted.make_recording(planted.make_corpus(*TEXTS), [heads, heads[::-1]], hidden_states))


def can_run(analysis: Analysis) -> bool:
    sites = resolve_sites(analysis.sites(analysis.resolve_options({})))
    recorded = all(
        (isinstance(s, ReducedSite) and not s.needs_gradient and not s.needs_values)
        or s.name in {"attention", "hidden"}
        for s in sites
    )
    from_recording = set(analysis.inputs) <= {"recording", "randomised"}
    return recorded and from_recording and not analysis.annotations and analysis.name not in NEEDS_ANNOTATION


def numbers(analysis: Analysis) -> dict[str, Any]:
    options = {name: value for name, value in SMALL.items() if name in analysis.options}
    data = run_analysis(analysis, inputs(), options).data
    assert isinstance(data, HeadGrid | LayerCurve | Curve | Matrix | Table)
    return {name: np.round(estimates.value, 4).tolist() for name, estimates in data.measures.items()}


RUNNABLE = [analysis for analysis in registry.load_all() if can_run(analysis)]


@pytest.mark.parametrize("analysis", RUNNABLE, ids=lambda a: a.name)
def test_the_numbers_of_a_version_do_not_change(analysis: Analysis) -> None:
    golden = json.loads(GOLDEN.read_text("utf-8")).get(f"{analysis.name}@{analysis.version}")
    assert golden is not None, f"write the numbers of {analysis.name} version {analysis.version}: see the docstring"
    computed = numbers(analysis)
    assert computed.keys() == golden.keys()
    for name, values in computed.items():
        np.testing.assert_allclose(np.array(values, float), np.array(golden[name], float), atol=2e-4, err_msg=name)


if __name__ == "__main__":
    written = {f"{a.name}@{a.version}": numbers(a) for a in RUNNABLE}
    GOLDEN.write_text(json.dumps(written, indent=1) + "\n", "utf-8")
