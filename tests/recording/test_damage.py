"""A shard whose bytes are not those that were recorded never reaches an analysis: it is redone, or refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.recording.material import DETERMINED, assert_same_recording, counting, mixed, tiny

from bertology.errors import Refusal
from bertology.recording import plan as planning
from bertology.recording.opening import open_recording
from bertology.recording.recorder import Policy, record
from bertology.recording.recording import Recording

CORPUS = mixed(12)
POLICY = Policy(batch_pieces=64)
SITES = ["attention", "hidden"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "SHARD_BYTES", 16 * 1024)
        record(tiny(), CORPUS, SITES, policy=POLICY, folder=folder)
    return folder


def _damage(folder: Path, which: int, place: float, bit: int | None) -> Path:
    files = sorted(folder.glob("*/*.safetensors"))
    file = files[which % len(files)]
    content = bytearray(file.read_bytes())
    at = int(place * len(content))
    if bit is None:
        del content[at:]
    else:
        content[at] ^= 1 << bit
    file.write_bytes(content)
    return file


def _read_all(recording: Recording) -> None:
    for site in SITES:
        for array in recording[site]:
            array.sum()


@DETERMINED
@given(which=st.integers(0, 50), place=st.floats(0, 1, exclude_max=True), bit=st.one_of(st.none(), st.integers(0, 7)))
def test_flipped_bits_and_cut_ends_are_refused_when_opened_and_redone_when_recorded(
    which: int, place: float, bit: int | None, whole: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("damaged") / "copy"
    shutil.copytree(whole, folder)
    _damage(folder, which, place, bit)
    with pytest.raises(Refusal, match=r"is damaged|has only"):
        _read_all(open_recording(folder))
    passes: list[str] = []
    mended = record(counting(tiny(), passes.append), CORPUS, SITES, policy=POLICY, folder=folder)
    _read_all(mended)
    assert 0 < len(passes) <= 4
    assert sorted(p.name for p in folder.glob("*/*")) == sorted(p.name for p in whole.glob("*/*"))
    assert_same_recording(open_recording(folder), open_recording(whole))


def test_a_shard_of_other_entries_under_a_true_digest_is_not_taken(whole: Path, tmp_path: Path) -> None:
    """Somebody copied shard 1 of another folder over: its digest is right, its entries are not."""
    folder = tmp_path / "copy"
    shutil.copytree(whole, folder)
    zero, one = (next((folder / "attention").glob(f"0000{n}-*")) for n in (0, 1))
    shutil.copy(zero, one.with_name(one.name[:5] + zero.name[5:]))
    one.unlink()
    with pytest.raises(Refusal, match="is damaged"):
        _read_all(open_recording(folder))
