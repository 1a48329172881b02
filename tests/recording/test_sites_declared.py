"""Sites that analyses declare are found by name, whatever was imported before."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bertology.errors import Refusal
from bertology.recording.sites import resolve_sites

PROGRAM = """
import sys, bertology
assert "bertology.analyses.attention.entropy" not in sys.modules
recording = bertology.record("tiny", ["A short text."], ["hidden", "attention.entropy"])
print(*recording.sites)
"""


def test_a_reduced_site_is_found_by_name_in_a_new_process() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("hidden attention.entropy.v"), "beside a site that is known already"


def test_an_unknown_site_is_refused_with_the_closest_name() -> None:
    with pytest.raises(Refusal, match=r"Did you mean 'attention\.entropy'"):
        resolve_sites(["attention.entropyy"])
