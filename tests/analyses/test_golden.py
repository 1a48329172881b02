"""A method whose numbers change gets a new version: each version's numbers on one planted recording are kept here.

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
from bertology.analyses.run import Subject, run
from bertology.encoder.pieces import Special
from bertology.recording.entry import Entry
from bertology.recording.sites import ReducedSite, resolve
from bertology.results.shapes import Curve, HeadGrid, LayerCurve, Matrix, Table

GOLDEN = Path(__file__).with_name("golden.json")
TEXTS = ("the cat saw the dog .", "the dog ran , the cat sat", ("where is the cat ?", "the cat is here ."), "the end")

SMALL = {"minimum": 2, "positions": 4}
"""Options that let an analysis run on so few words."""
ANNOTATED = {"geometry/phrases"}
"""Analyses that take one annotation or another, and none of these texts has any."""


def hidden(entry: Entry) -> planted.Floats:
    generator = np.random.default_rng(entry.pieces.ids.tolist())
    return generator.normal(size=(3, len(entry.pieces), 6)) + np.arange(3)[:, None, None]


def subject() -> Subject:
    heads = [planted.looking_at(-1), planted.noise(1), planted.at_kind(Special.SEP), planted.uniform]
    return Subject(recording=planted.recording_of(planted.corpus_of(*TEXTS), [heads, heads[::-1]], hidden))


def can_run(analysis: Analysis) -> bool:
    sites = resolve(analysis.sites(analysis.settled({})))
    recorded = all(
        (isinstance(s, ReducedSite) and not s.gradient and not s.vectors) or s.name in {"attention", "hidden"}
        for s in sites
    )
    inputs = set(analysis.inputs) <= {"recording", "randomised"}
    return recorded and inputs and not analysis.layers and analysis.name not in ANNOTATED


def numbers(analysis: Analysis) -> dict[str, Any]:
    options = {name: value for name, value in SMALL.items() if name in analysis.options}
    data = run(analysis, subject(), options).data
    assert isinstance(data, HeadGrid | LayerCurve | Curve | Matrix | Table)
    return {name: np.round(estimates.value, 4).tolist() for name, estimates in data.measures.items()}


RUNNABLE = [analysis for analysis in registry.load_all() if can_run(analysis)]


@pytest.mark.parametrize("analysis", RUNNABLE, ids=lambda a: a.name)
def test_the_numbers_of_a_version_do_not_change(analysis: Analysis) -> None:
    kept = json.loads(GOLDEN.read_text("utf-8")).get(f"{analysis.name}@{analysis.version}")
    assert kept is not None, f"write the numbers of {analysis.name} version {analysis.version}: see this file's head"
    found = numbers(analysis)
    assert found.keys() == kept.keys()
    for name, values in found.items():
        np.testing.assert_allclose(np.array(values, float), np.array(kept[name], float), atol=2e-4, err_msg=name)


if __name__ == "__main__":
    written = {f"{a.name}@{a.version}": numbers(a) for a in RUNNABLE}
    GOLDEN.write_text(json.dumps(written, indent=1) + "\n", "utf-8")
