"""A reduced site whose numbers change gets a new version: golden_sites.json has the numbers of each version.

Stored recordings are found by the version of a site, not by the code. After raising a version, write its numbers with
`python -m tests.recording.test_sites_golden`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.recording.material import mixed, tiny

from bertology.analyses import registry
from bertology.recording.recorder import record
from bertology.recording.sites import ReducedSite, reductions

GOLDEN = Path(__file__).with_name("golden_sites.json")
CORPUS = mixed(5)

registry.load_all()
SITES = list(reductions().values())


def numbers(site: ReducedSite) -> dict[str, Any]:
    """The shapes of all arrays, their sums, and their sums weighted by position, which tell a changed order."""
    arrays = [np.asarray(array, np.float64) for array in record(tiny(), CORPUS, [site])[site]]
    finite = [np.where(np.isfinite(array), array, 0.0) for array in arrays]
    return {
        "shapes": [list(array.shape) for array in arrays],
        "sums": [float(array.sum()) for array in finite],
        "weighted": [float(array.ravel() @ np.linspace(0, 1, array.size)) for array in finite],
    }


@pytest.mark.parametrize("site", SITES, ids=lambda site: site.name)
def test_the_numbers_of_a_version_do_not_change(site: ReducedSite) -> None:
    golden = json.loads(GOLDEN.read_text("utf-8")).get(site.storage_key)
    assert golden is not None, f"write the numbers of {site.storage_key}: see the docstring"
    computed = numbers(site)
    assert computed["shapes"] == golden["shapes"]
    for name in ("sums", "weighted"):
        np.testing.assert_allclose(computed[name], golden[name], rtol=1e-4, atol=1e-4, err_msg=name)


if __name__ == "__main__":
    lines = [f"{json.dumps(site.storage_key)}: {json.dumps(numbers(site))}" for site in SITES]
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
