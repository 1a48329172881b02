"""A damaged shard never reaches an analysis: it is recorded again, or refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.recording.material import FEW_EXAMPLES, assert_same_recording, counting, mixed, tiny

from bertology.errors import Refusal
from bertology.recording import plan as planning
from bertology.recording.manifest import open_recording
from bertology.recording.plan import RecordingConfig
from bertology.recording.recorder import record
from bertology.recording.recording import Recording

CORPUS = mixed(12)
CONFIG = RecordingConfig(tokens_per_batch=64)
SITES = ["attention", "hidden"]


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("intact")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "SHARD_BYTES", 16 * 1024)
        record(tiny(), CORPUS, SITES, config=CONFIG, folder=folder)
    return folder


def _damage(folder: Path, file_index: int, fraction: float, bit: int | None) -> Path:
    """Flip a bit of a shard, or cut its end off (`bit` None)."""
    files = sorted(folder.glob("*/*.safetensors"))
    file = files[file_index % len(files)]
    content = bytearray(file.read_bytes())
    position = int(fraction * len(content))
    if bit is None:
        del content[position:]
    else:
        content[position] ^= 1 << bit
    file.write_bytes(content)
    return file


def _read_all(recording: Recording) -> None:
    for site in SITES:
        for array in recording[site]:
            array.sum()


@FEW_EXAMPLES
@given(
    file_index=st.integers(0, 50),
    fraction=st.floats(0, 1, exclude_max=True),
    bit=st.one_of(st.none(), st.integers(0, 7)),
)
def test_damaged_shards_are_refused_when_opened_and_repeated_when_recorded(
    file_index: int, fraction: float, bit: int | None, intact: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("damaged") / "copy"
    shutil.copytree(intact, folder)
    _damage(folder, file_index, fraction, bit)
    with pytest.raises(Refusal, match=r"is damaged|has only"):
        _read_all(open_recording(folder))
    passes: list[str] = []
    repaired = record(counting(tiny(), passes.append), CORPUS, SITES, config=CONFIG, folder=folder)
    _read_all(repaired)
    assert 0 < len(passes) <= 4
    assert sorted(p.name for p in folder.glob("*/*")) == sorted(p.name for p in intact.glob("*/*"))
    assert_same_recording(open_recording(folder), open_recording(intact))


def test_a_shard_of_other_inputs_with_a_valid_digest_is_refused(intact: Path, tmp_path: Path) -> None:
    """Shard 0 is copied over shard 1: its digest is right, its inputs are not."""
    folder = tmp_path / "copy"
    shutil.copytree(intact, folder)
    shard_0, shard_1 = (next((folder / "attention").glob(f"0000{n}-*")) for n in (0, 1))
    shutil.copy(shard_0, shard_1.with_name(shard_1.name[:5] + shard_0.name[5:]))
    shard_1.unlink()
    with pytest.raises(Refusal, match="is damaged"):
        _read_all(open_recording(folder))
