"""The store: nothing recorded twice, what is damaged redone or refused, files of others left alone."""

from __future__ import annotations

import resource
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.recording.material import (
    DETERMINED,
    Counting,
    assert_same_recording,
    counting,
    mixed,
    pairs,
    shard_of_batch,
    tiny,
)

import models
from bertology.analyses.attention.entropy import ENTROPY
from bertology.analyses.attention.targets import TARGETS
from bertology.corpus.corpus import Corpus
from bertology.errors import Refusal
from bertology.recording import plan as planning
from bertology.recording.opening import open_recording
from bertology.recording.plan import make_plan
from bertology.recording.recorder import Policy, record
from bertology.recording.store import MANIFEST, Shelf

CORPUS = Corpus((*mixed(40), *pairs(10)), name="sentences and pairs")
SITES = ["attention", "hidden", TARGETS]
POLICY = Policy(batch_pieces=64)


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "SHARD_BYTES", 64 * 1024)


def _shards(folder: Path) -> dict[str, int]:
    return {str(file.relative_to(folder)): file.stat().st_mtime_ns for file in folder.glob("*/*.safetensors")}


def test_a_second_identical_call_runs_nothing_and_says_so(tmp_path: Path) -> None:
    passes: list[str] = []
    said: list[str] = []
    first = record(tiny(), CORPUS, SITES, policy=POLICY, store=tmp_path, notify=said.append)
    assert not said
    encoder = Counting(tiny(), passes.append)
    second = record(encoder, CORPUS, SITES, policy=POLICY, store=tmp_path, notify=said.append)  # type: ignore[arg-type]  # a list of anything
    assert not passes
    assert not encoder.tokenised
    assert said == [f"already recorded: 50 inputs at {next(tmp_path.iterdir())}"]
    assert_same_recording(first, second)


def test_there_are_several_shards_and_each_pass_is_made_once(tmp_path: Path) -> None:
    passes: list[str] = []
    record(counting(tiny(), passes.append), CORPUS, SITES, policy=POLICY, folder=tmp_path)
    plan = make_plan(tiny(), CORPUS, POLICY)
    assert len(plan.shards) > 3
    assert sorted(passes) == sorted(shard_of_batch(plan))


def test_another_site_is_recorded_alone_and_with_the_batches_of_before(tmp_path: Path) -> None:
    record(tiny(), CORPUS, SITES, policy=POLICY, folder=tmp_path)
    before = _shards(tmp_path)
    both = record(tiny(), CORPUS, [*SITES, ENTROPY], policy=Policy(batch_pieces=900), folder=tmp_path)
    after = _shards(tmp_path)
    assert before.items() <= after.items()
    assert {name.split("/")[0] for name in after.keys() - before.keys()} == {ENTROPY.identity}
    assert_same_recording(both, record(tiny(), CORPUS, [*SITES, ENTROPY], policy=POLICY), tolerance=1e-5)


def test_a_missing_shard_is_the_only_one_recorded_again(tmp_path: Path) -> None:
    record(tiny(), CORPUS, SITES, policy=POLICY, folder=tmp_path)
    before = _shards(tmp_path)
    gone = next((tmp_path / "hidden").glob("00002-*"))
    gone.unlink()
    passes: list[str] = []
    said: list[str] = []
    record(counting(tiny(), passes.append), CORPUS, SITES, policy=POLICY, folder=tmp_path, notify=said.append)
    where = shard_of_batch(make_plan(tiny(), CORPUS, POLICY))
    assert {where[digest] for digest in passes} == {2}
    assert said[0].startswith(f"resuming: {max(where.values())} of {max(where.values()) + 1} shards")
    after = _shards(tmp_path)
    assert {name for name in before if before[name] != after[name]} == {str(gone.relative_to(tmp_path))}


def test_opened_equals_in_memory(tmp_path: Path) -> None:
    policy = Policy(long="window", max_pieces=20, batch_pieces=64)
    kept = record(tiny(), CORPUS, SITES, policy=policy, folder=tmp_path)
    assert kept.counts["windows"] > 1
    opened = open_recording(tmp_path)
    assert_same_recording(opened, kept)
    assert_same_recording(opened, record(tiny(), CORPUS, SITES, policy=policy))
    assert opened.corpus[0].parts[0].heads is not None


def test_how_far_layers_see_is_kept_and_recordings_made_before_see_all(tmp_path: Path) -> None:
    encoder, policy = models.encoder("modernbert"), Policy(long="truncate")
    kept = record(encoder, mixed(3), [TARGETS], policy=policy, folder=tmp_path)
    assert open_recording(tmp_path).encoder == kept.encoder
    assert kept.encoder.reach == (None, 3, 3)
    shelf = Shelf(tmp_path)
    manifest = dict(shelf.manifest() or {})
    manifest["encoder"] = {name: value for name, value in manifest["encoder"].items() if name != "reach"}
    (tmp_path / MANIFEST).unlink()
    shelf.write_manifest(manifest)
    before = open_recording(tmp_path)
    assert before.encoder == replace(kept.encoder, reach=())
    # Asked for again with the model at hand, the same folder serves and the layers are known.
    assert record(encoder, mixed(3), [TARGETS], policy=policy, folder=tmp_path).encoder == kept.encoder


def test_reading_maps_memory_and_slices_like_a_list(tmp_path: Path) -> None:
    sites = record(tiny(), CORPUS, ["attention"], policy=POLICY, folder=tmp_path).sites["attention"]
    assert isinstance(sites[3].base, np.memmap)
    assert [a.shape for a in sites[2:5]] == [sites[i].shape for i in (2, 3, 4)]
    np.testing.assert_array_equal(sites[-1], sites[len(sites) - 1])
    with pytest.raises(IndexError):
        sites[len(sites)]
    with pytest.raises(ValueError, match="read-only"):
        sites[0][:] = 0


def test_shards_are_plain_safetensors(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    recording = record(tiny(), CORPUS, ["attention"], policy=POLICY, folder=tmp_path)
    tensors = load_file(next((tmp_path / "attention").glob("00001-*")))
    first = int(tensors["entries"][0])
    size = recording["attention"][first].size
    np.testing.assert_array_equal(tensors["values"][:size], recording["attention"][first].ravel())


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    record(tiny(), CORPUS, SITES, policy=POLICY, folder=tmp_path)
    others = [tmp_path / "notes.txt", tmp_path / "hidden" / "00001.npy", tmp_path / "hidden" / ".DS_Store"]
    (tmp_path / "empty").mkdir()
    for file in others:
        file.write_text("mine")
    again = record(tiny(), CORPUS, SITES, policy=POLICY, folder=tmp_path)
    assert_same_recording(open_recording(tmp_path), again)
    assert all(file.read_text() == "mine" for file in others)


def test_partial_files_of_dead_processes_are_cleared_away(tmp_path: Path) -> None:
    from bertology.recording.files import writing

    record(tiny(), CORPUS, SITES, policy=POLICY, folder=tmp_path)
    with writing(tmp_path / "hidden", "00001") as (_, mine):
        alive = mine.name
        dead = mine.with_name(alive.replace(f"-{alive.split('-')[-1].split('.')[0]}.", "-999999999."))
        dead.write_bytes(b"half")
        record(tiny(), CORPUS, SITES, policy=POLICY, folder=tmp_path)
        assert mine.exists()
        assert not dead.exists()


@DETERMINED
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7), cut=st.booleans())
@pytest.mark.parametrize("name", ["manifest.json", "entries.jsonl", "corpus.jsonl"])
def test_a_damaged_description_is_refused(
    name: str, place: float, bit: int, cut: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("described")
    record(tiny(), mixed(3), [TARGETS], folder=folder)
    content = bytearray((folder / name).read_bytes())
    at = int(place * len(content))
    if cut:
        del content[at:]
    else:
        content[at] ^= 1 << bit
    (folder / name).write_bytes(content)
    with pytest.raises(Refusal, match=rf"(?s){name}.*(Delete the folder|delete this one)"):
        open_recording(folder)


def test_a_missing_description_is_refused(tmp_path: Path) -> None:
    record(tiny(), CORPUS, SITES, policy=POLICY, folder=tmp_path)
    (tmp_path / "entries.jsonl").unlink()
    with pytest.raises(Refusal, match="No such file"):
        open_recording(tmp_path)
    with pytest.raises(Refusal, match="No such file"):
        record(tiny(), CORPUS, SITES, policy=POLICY, folder=tmp_path)


def test_a_folder_with_another_recording_is_refused(tmp_path: Path) -> None:
    record(tiny(), mixed(3), [TARGETS], folder=tmp_path)
    with pytest.raises(Refusal, match="another model, corpus or policy"):
        record(tiny(), mixed(4), [TARGETS], folder=tmp_path)
    with pytest.raises(Refusal, match="another model, corpus or policy"):
        record(tiny(), mixed(3), [TARGETS], policy=Policy(half=True), folder=tmp_path)


def test_no_recording_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(Refusal, match="holds no recording"):
            open_recording(path)


def test_an_unfinished_site_is_refused_and_says_how_far_it_got(tmp_path: Path) -> None:
    record(tiny(), CORPUS, SITES, policy=POLICY, folder=tmp_path)
    next((tmp_path / "hidden").glob("00002-*")).unlink()
    opened = open_recording(tmp_path)
    assert len(opened["attention"]) == len(CORPUS)
    with pytest.raises(Refusal, match=r"only \d+ of \d+ shards of the site 'hidden'"):
        opened["hidden"]


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(Refusal, match="cannot be written"):
        record(tiny(), CORPUS, SITES, store=tmp_path / "file")


def test_a_full_disk_is_refused_and_what_is_finished_stays(tmp_path: Path) -> None:
    plan = make_plan(tiny(), CORPUS, POLICY)
    Shelf(tmp_path).path.mkdir(exist_ok=True)
    record(tiny(), CORPUS, [TARGETS], policy=POLICY, folder=tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, hard))
    try:
        with pytest.raises(Refusal, match=r"(?s)File too large.*Free some space and run the same command again"):
            record(tiny(), CORPUS, ["hidden"], policy=POLICY, folder=tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list(tmp_path.glob("*/.*.partial"))
    before = _shards(tmp_path)
    assert len(before) < 2 * len(plan.shards)
    after = record(tiny(), CORPUS, ["hidden"], policy=POLICY, folder=tmp_path)
    assert before.items() <= _shards(tmp_path).items()
    assert_same_recording(after, record(tiny(), CORPUS, ["hidden"], policy=POLICY))


def test_a_folder_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not called damaged: nobody should delete it."""

    def refuse(*_: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(Refusal, match="may not be read") as refused:
        open_recording(tmp_path)
    assert "Delete" not in str(refused.value)
