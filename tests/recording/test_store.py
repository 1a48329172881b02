"""The store: nothing is recorded twice, damage is repaired or refused, unrelated files stay."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.recording.material import (
    FEW_EXAMPLES,
    CountingEncoder,
    assert_same_recording,
    counting,
    mixed,
    pairs,
    shard_of_batch,
    tiny,
)

import tiny_models
from bertology.analyses.attention.entropy import entropy_site
from bertology.analyses.attention.targets.analysis import targets_site
from bertology.atomic_files import partial_file
from bertology.corpus.corpus import Corpus
from bertology.errors import MachineError, Refusal
from bertology.recording import plan as planning
from bertology.recording.manifest import INPUTS_FILE, open_recording
from bertology.recording.plan import RecordingConfig, make_plan
from bertology.recording.recorder import record
from bertology.recording.store import FORMAT_VERSION, MANIFEST

CORPUS = Corpus((*mixed(40), *pairs(10)), name="sentences and pairs")
SITES = ["attention", "hidden", targets_site]
CONFIG = RecordingConfig(tokens_per_batch=64)


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "SHARD_BYTES", 64 * 1024)


def _shards(folder: Path) -> dict[str, int]:
    return {str(file.relative_to(folder)): file.stat().st_mtime_ns for file in folder.glob("*/*.safetensors")}


def test_a_second_identical_call_runs_nothing_and_says_so(tmp_path: Path) -> None:
    passes: list[str] = []
    messages: list[str] = []
    first = record(tiny(), CORPUS, SITES, config=CONFIG, store=tmp_path, notify=messages.append)
    assert not messages
    encoder = CountingEncoder(tiny(), passes.append)
    second = record(encoder, CORPUS, SITES, config=CONFIG, store=tmp_path, notify=messages.append)
    assert not passes
    assert not encoder.n_tokenised
    assert messages == [f"Using the stored recording of 50 inputs ({next(tmp_path.iterdir())})."]
    assert_same_recording(first, second)


def test_every_batch_runs_once(tmp_path: Path) -> None:
    passes: list[str] = []
    record(counting(tiny(), passes.append), CORPUS, SITES, config=CONFIG, folder=tmp_path)
    plan = make_plan(tiny(), CORPUS, CONFIG)
    assert len(plan.shards) > 3
    assert sorted(passes) == sorted(shard_of_batch(plan))


def test_another_site_is_recorded_alone_and_with_the_stored_batches(tmp_path: Path) -> None:
    record(tiny(), CORPUS, SITES, config=CONFIG, folder=tmp_path)
    before = _shards(tmp_path)
    sites = [*SITES, entropy_site]
    recording = record(tiny(), CORPUS, sites, config=RecordingConfig(tokens_per_batch=900), folder=tmp_path)
    after = _shards(tmp_path)
    assert before.items() <= after.items()
    assert {name.split("/")[0] for name in after.keys() - before.keys()} == {entropy_site.storage_key}
    assert_same_recording(recording, record(tiny(), CORPUS, sites, config=CONFIG), tolerance=1e-5)


def test_only_a_missing_shard_is_recorded_again(tmp_path: Path) -> None:
    record(tiny(), CORPUS, SITES, config=CONFIG, folder=tmp_path)
    before = _shards(tmp_path)
    missing = next((tmp_path / "hidden").glob("00002-*"))
    missing.unlink()
    passes: list[str] = []
    messages: list[str] = []
    record(counting(tiny(), passes.append), CORPUS, SITES, config=CONFIG, folder=tmp_path, notify=messages.append)
    shard_index = shard_of_batch(make_plan(tiny(), CORPUS, CONFIG))
    assert {shard_index[digest] for digest in passes} == {2}
    n_shards = max(shard_index.values()) + 1
    assert messages[0].startswith(f"Resuming the recording: {n_shards - 1} of {n_shards} shards are finished")
    after = _shards(tmp_path)
    assert {name for name in before if before[name] != after[name]} == {str(missing.relative_to(tmp_path))}


def test_an_opened_recording_equals_the_one_in_memory(tmp_path: Path) -> None:
    config = RecordingConfig(overflow="window", max_length=20, tokens_per_batch=64)
    stored = record(tiny(), CORPUS, SITES, config=config, folder=tmp_path)
    assert stored.counts["windows"] > 1
    opened = open_recording(tmp_path)
    assert_same_recording(opened, stored)
    assert_same_recording(opened, record(tiny(), CORPUS, SITES, config=config))
    assert opened.corpus[0].segments[0].governors is not None


def test_attention_windows_are_stored(tmp_path: Path) -> None:
    encoder, config = tiny_models.encoder("modernbert"), RecordingConfig(overflow="truncate")
    stored = record(encoder, mixed(3), [targets_site], config=config, folder=tmp_path)
    assert stored.encoder.attention_windows == (None, 3, 3)
    assert open_recording(tmp_path).encoder == stored.encoder


@pytest.mark.parametrize(("version", "age"), [(1, "an older"), (FORMAT_VERSION + 1, "a newer")])
def test_a_recording_of_another_format_is_refused(tmp_path: Path, version: int, age: str) -> None:
    record(tiny(), mixed(3), [targets_site], folder=tmp_path)
    manifest = json.loads((tmp_path / MANIFEST).read_text("utf-8"))
    (tmp_path / MANIFEST).write_text(json.dumps({**manifest, "format": version}), "utf-8")
    message = (
        f"is a recording of {age} version of bertology \\(format {version}\\). "
        f"Expected a recording in format {FORMAT_VERSION}. Record again into another folder, or delete this one."
    )
    with pytest.raises(Refusal, match=message):
        open_recording(tmp_path)
    with pytest.raises(Refusal, match=message):
        record(tiny(), mixed(3), [targets_site], folder=tmp_path)


def test_arrays_are_memory_mapped_and_slice_like_a_list(tmp_path: Path) -> None:
    arrays = record(tiny(), CORPUS, ["attention"], config=CONFIG, folder=tmp_path).sites["attention"]
    assert isinstance(arrays[3].base, np.memmap)
    assert [a.shape for a in arrays[2:5]] == [arrays[i].shape for i in (2, 3, 4)]
    np.testing.assert_array_equal(arrays[-1], arrays[len(arrays) - 1])
    with pytest.raises(IndexError):
        arrays[len(arrays)]
    with pytest.raises(ValueError, match="read-only"):
        arrays[0][:] = 0


def test_shards_are_plain_safetensors(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    recording = record(tiny(), CORPUS, ["attention"], config=CONFIG, folder=tmp_path)
    tensors = load_file(next((tmp_path / "attention").glob("00001-*")))
    first = int(tensors["inputs"][0])
    size = recording["attention"][first].size
    np.testing.assert_array_equal(tensors["values"][:size], recording["attention"][first].ravel())


def test_unrelated_files_are_left_alone(tmp_path: Path) -> None:
    record(tiny(), CORPUS, SITES, config=CONFIG, folder=tmp_path)
    unrelated = [tmp_path / "notes.txt", tmp_path / "hidden" / "00001.npy", tmp_path / "hidden" / ".DS_Store"]
    (tmp_path / "empty").mkdir()
    for file in unrelated:
        file.write_text("mine")
    repeated = record(tiny(), CORPUS, SITES, config=CONFIG, folder=tmp_path)
    assert_same_recording(open_recording(tmp_path), repeated)
    assert all(file.read_text() == "mine" for file in unrelated)


def test_partial_shards_of_dead_processes_are_removed(tmp_path: Path) -> None:
    record(tiny(), CORPUS, SITES, config=CONFIG, folder=tmp_path)
    with partial_file(tmp_path / "hidden", "00001") as (_, alive):
        process = alive.name.split("-")[-1].split(".")[0]
        dead = alive.with_name(alive.name.replace(f"-{process}.", "-999999999."))
        dead.write_bytes(b"half")
        record(tiny(), CORPUS, SITES, config=CONFIG, folder=tmp_path)
        assert alive.exists()
        assert not dead.exists()


@FEW_EXAMPLES
@given(fraction=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7), truncate=st.booleans())
@pytest.mark.parametrize("name", ["manifest.json", "inputs.jsonl", "corpus.jsonl"])
def test_a_damaged_description_is_refused(
    name: str, fraction: float, bit: int, truncate: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    record(tiny(), mixed(3), [targets_site], folder=folder)
    content = bytearray((folder / name).read_bytes())
    position = int(fraction * len(content))
    if truncate:
        del content[position:]
    else:
        content[position] ^= 1 << bit
    (folder / name).write_bytes(content)
    with pytest.raises(Refusal, match=rf"(?s)({name}|version of bertology).*(Delete the folder|delete this one)"):
        open_recording(folder)


def test_a_missing_description_is_refused(tmp_path: Path) -> None:
    record(tiny(), CORPUS, SITES, config=CONFIG, folder=tmp_path)
    (tmp_path / INPUTS_FILE).unlink()
    with pytest.raises(Refusal, match="No such file"):
        open_recording(tmp_path)
    with pytest.raises(Refusal, match="No such file"):
        record(tiny(), CORPUS, SITES, config=CONFIG, folder=tmp_path)


def test_a_folder_with_another_recording_is_refused(tmp_path: Path) -> None:
    record(tiny(), mixed(3), [targets_site], folder=tmp_path)
    with pytest.raises(Refusal, match="another model, corpus or configuration"):
        record(tiny(), mixed(4), [targets_site], folder=tmp_path)
    with pytest.raises(Refusal, match="another model, corpus or configuration"):
        record(tiny(), mixed(3), [targets_site], config=RecordingConfig(half_precision=True), folder=tmp_path)


def test_a_folder_without_a_recording_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(Refusal, match="holds no recording"):
            open_recording(path)


def test_an_incomplete_site_is_refused_with_the_number_of_shards(tmp_path: Path) -> None:
    record(tiny(), CORPUS, SITES, config=CONFIG, folder=tmp_path)
    next((tmp_path / "hidden").glob("00002-*")).unlink()
    opened = open_recording(tmp_path)
    assert len(opened["attention"]) == len(CORPUS)
    with pytest.raises(Refusal, match=r"only \d+ of \d+ shards of the site 'hidden'"):
        opened["hidden"]


def test_an_unwritable_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(MachineError, match="Cannot write to"):
        record(tiny(), CORPUS, SITES, store=tmp_path / "file")


def test_a_full_disk_is_refused_and_finished_shards_stay(tmp_path: Path) -> None:
    plan = make_plan(tiny(), CORPUS, CONFIG)
    record(tiny(), CORPUS, [targets_site], config=CONFIG, folder=tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, hard))
    try:
        with pytest.raises(MachineError, match=r"(?s)File too large.*Free some space and run the same command again"):
            record(tiny(), CORPUS, ["hidden"], config=CONFIG, folder=tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list(tmp_path.glob("*/.*.partial"))
    before = _shards(tmp_path)
    assert len(before) < 2 * len(plan.shards)
    after = record(tiny(), CORPUS, ["hidden"], config=CONFIG, folder=tmp_path)
    assert before.items() <= _shards(tmp_path).items()
    assert_same_recording(after, record(tiny(), CORPUS, ["hidden"], config=CONFIG))


def test_an_unreadable_folder_is_not_called_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody should delete it."""

    def deny(*_: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", deny)
    with pytest.raises(Refusal, match="No permission to read") as refused:
        open_recording(tmp_path)
    assert "Delete" not in str(refused.value)
