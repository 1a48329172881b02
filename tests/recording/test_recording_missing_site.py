"""A site that was not recorded is refused with the way to get it."""

from __future__ import annotations

import numpy as np
import pytest
from tests.recording.material import mixed, tiny

from bertology.errors import Refusal
from bertology.recording.recorder import record
from bertology.recording.recording import Recording


def test_the_command_that_records_it_is_named() -> None:
    with pytest.raises(Refusal, match=r"has no site 'hidden'.*`bertology record tiny mixed --sites hidden -o DIR`"):
        record(tiny(), mixed(1), ["attention"])["hidden"]


@pytest.mark.parametrize(
    ("site", "remedy"), [("hidden", "Add the array `hidden` to the .npz files"), ("query", "Only the model itself")]
)
def test_arrays_of_other_programs_can_have_some_sites(site: str, remedy: str) -> None:
    recording = Recording.from_arrays([["[CLS]", "ran"]], attention=[np.full((1, 1, 2, 2), 0.5, np.float32)])
    with pytest.raises(Refusal, match=remedy):
        recording[site]
