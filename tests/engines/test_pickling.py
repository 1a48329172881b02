"""Encoders in another process: they compute the same, after a first forward pass too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bertology.analyses import registry
from bertology.encoder.load import load
from bertology.engines.pickling import dump_value, load_value
from bertology.errors import Refusal
from bertology.recording.recorder import record

PROGRAM = """
import sys
from pathlib import Path
import numpy as np
from bertology.engines.pickling import load_value
encoder = load_value(Path(sys.argv[1]).read_bytes())
import torch
torch.set_num_threads(1)
from bertology.recording.recorder import record
np.save(sys.argv[2], record(encoder, ["one small sentence"], ["hidden"])["hidden"][0])
"""


@pytest.mark.slow
def test_an_encoder_computes_the_same_in_another_process(tmp_path: Path) -> None:
    encoder = load("tiny")
    expected = record(encoder, ["one small sentence"], ["hidden"])["hidden"][0]
    (tmp_path / "encoder").write_bytes(dump_value(encoder, "an encoder"))
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "encoder"), str(tmp_path / "hidden.npy")]
    subprocess.run(command, check=True, timeout=300)
    np.testing.assert_array_equal(np.load(tmp_path / "hidden.npy"), expected)


def test_a_site_that_compares_two_encoders_can_be_sent() -> None:
    """Its functions are nested ones, which refer to lazily imported modules."""
    [site, *_] = registry.get("attention/model_similarity").paired_sites
    bound = site.bind(load("tiny"))
    again = load_value(dump_value(bound, "a site"))
    assert again.storage_key == bound.storage_key


def test_what_cannot_be_pickled_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as stream, pytest.raises(Refusal, match="This stream cannot be sent"):
        dump_value({"stream": stream}, "This stream")
