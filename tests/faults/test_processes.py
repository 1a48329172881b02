"""Eight processes on one store at the same moment: each ends well, with what it would have written alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.faults.sharing_processes import print_outcomes

from warm_processes import WarmProcess


@pytest.mark.slow
def test_eight_processes_share_a_store(tmp_path: Path) -> None:
    done = WarmProcess(print_outcomes, tmp_path).wait()
    assert done.status == 0, done.err
    assert json.loads(done.out.splitlines()[-1]) == {
        "statuses": [0] * 8,
        "other": [],
        "tracebacks": 0,
        "damaged": 0,
        "unfinished files": 0,
        "same recording": True,
    }, done.err
