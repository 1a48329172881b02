"""The store is listed as it was written, and `prune` deletes what was chosen, wholly, and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from bertology.atomic_files import partial_file
from bertology.cli.store import store_entries
from command import bertology

DAY = 86_400


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with recordings of two models and their untrained versions, and with the results of claims."""
    store = tmp_path_factory.mktemp("filled")
    for arguments in (
        ("run", "attention/entropy", "-m", "tiny", "--limit", "3"),
        ("run", "attention/entropy", "-m", "random:tiny@5", "--limit", "3"),
        ("claims", "tiny", "--paper", "clark2019", "--limit", "3"),
    ):
        completed = bertology(*arguments, "--store", str(store))
        assert completed.status == 0, completed.err
    return store


@pytest.fixture
def store(filled: Path, tmp_path: Path) -> Path:
    """A copy of the filled store."""
    return Path(shutil.copytree(filled, tmp_path / "store"))


def run_json(store: Path, *arguments: str) -> dict[str, Any]:
    completed = bertology("store", *arguments, "--store", str(store), "--json")
    assert completed.status == 0, completed.err
    return json.loads(completed.out)


def files(store: Path) -> set[str]:
    return {str(path.relative_to(store)) for path in store.rglob("*") if path.is_file()}


def test_entries_name_their_models_corpus_content_and_size(store: Path) -> None:
    entries = run_json(store, "list")["entries"]
    recordings = [entry for entry in entries if entry["kind"] == "recording"]
    assert {tuple(entry["models"]) for entry in recordings} >= {("tiny",), ("random:tiny@5",)}
    assert {entry["corpus"] for entry in recordings} >= {"english.conllu"}
    assert any("attention.entropy" in site for entry in recordings for site in entry["content"])
    results = [entry for entry in entries if entry["kind"] == "result"]
    assert results and "attention/targets" in {entry["content"][0] for entry in results}
    assert {tuple(entry["models"]) for entry in results} == {("tiny",)}
    assert sum(entry["bytes"] for entry in entries) == sum((store / file).stat().st_size for file in files(store))
    assert run_json(store, "list")["foreign"] == []


def test_sizes_add_up(store: Path) -> None:
    report = run_json(store, "size")
    assert report["bytes"] == sum((store / file).stat().st_size for file in files(store))
    for totals in report["totals"].values():
        assert sum(total["bytes"] for total in totals.values()) == report["bytes"]


def test_tables_are_printed_for_people(store: Path) -> None:
    listed, size = (bertology("store", action, "--store", str(store)) for action in ("list", "size"))
    assert listed.out.splitlines()[0].split() == ["kind", "model", "corpus", "size", "age", "content", "path"]
    assert "attention/targets" in listed.out and "in all" in size.out and str(store) in size.err


def test_a_dry_run_deletes_nothing_and_names_what_would_go(store: Path) -> None:
    before = files(store)
    report = run_json(store, "prune", "--model", "tiny", "--dry-run")
    assert files(store) == before and report["dry_run"]
    assert {entry["path"] for entry in report["deleted"]} == {
        e.path for e in store_entries(store) if "tiny" in e.models
    }
    deleted = run_json(store, "prune", "--model", "tiny")["deleted"]
    assert [entry["path"] for entry in deleted] == [entry["path"] for entry in report["deleted"]]
    assert not [entry for entry in store_entries(store) if "tiny" in entry.models]


def test_only_what_meets_all_conditions_is_deleted(store: Path) -> None:
    old, *others = [entry for entry in store_entries(store) if entry.kind == "recording"]
    past = time.time() - 40 * DAY
    for path in ((store / old.path), *(store / old.path).rglob("*")):
        os.utime(path, (past, past))
    too_large = run_json(store, "prune", "--older-than", "30d", "--larger-than", "1GB")
    assert too_large["deleted"] == []
    report = run_json(store, "prune", "--older-than", "30d", "--larger-than", "1B")
    assert [entry["path"] for entry in report["deleted"]] == [old.path]
    remaining = {entry.path for entry in store_entries(store)}
    assert old.path not in remaining and {entry.path for entry in others} <= remaining
    assert not (store / old.path).exists()


def test_the_age_is_that_of_the_last_change(store: Path) -> None:
    entry = next(entry for entry in store_entries(store) if entry.kind == "recording")
    past = time.time() - 40 * DAY
    for path in ((store / entry.path), *(store / entry.path).rglob("*")):
        os.utime(path, (past, past))
    newest = next(path for path in (store / entry.path).rglob("*.safetensors"))
    recently = time.time() - 3 * DAY
    os.utime(newest, (recently, recently))
    report = run_json(store, "prune", "--older-than", "30d", "--dry-run")
    assert entry.path not in {deleted["path"] for deleted in report["deleted"]}


def test_files_that_bertology_did_not_write_stay(store: Path) -> None:
    recording = next(entry for entry in store_entries(store) if entry.kind == "recording")
    foreign = [
        store / "notes.txt",
        store / recording.path / "thesis.tex",
        store / "analysis_cache" / "mine.json",
        store / "0123456789abcdef01234567" / "photo.jpg",
    ]
    for file in foreign:
        file.parent.mkdir(exist_ok=True)
        file.write_text("mine", "utf-8")
    outside = store.parent / "outside"
    outside.mkdir()
    (outside / "precious.txt").write_text("mine", "utf-8")
    (store / "fedcba987654321001234567").symlink_to(outside, target_is_directory=True)
    report = run_json(store, "prune", "--older-than", "0s")
    assert all(file.is_file() for file in foreign) and (outside / "precious.txt").is_file()
    kept = {entry["path"]: entry["reason"] for entry in report["kept"]}
    assert kept.keys() == {recording.path, "0123456789abcdef01234567"}
    assert "thesis.tex" in kept[recording.path]
    assert (store / recording.path / "manifest.json").is_file(), "a recording is deleted wholly or not at all"
    assert {"notes.txt", "analysis_cache/mine.json", f"{recording.path}/thesis.tex"} <= set(report["foreign"])
    assert {entry.path for entry in store_entries(store)} == kept.keys()


def test_a_recording_that_a_running_process_writes_stays(store: Path) -> None:
    entry = next(entry for entry in store_entries(store) if entry.kind == "recording")
    with partial_file(store / entry.path, "00001"):
        report = run_json(store, "prune", "--older-than", "0s")
    assert [kept["path"] for kept in report["kept"]] == [entry.path] and (store / entry.path).is_dir()


def test_damaged_entries_are_listed_and_can_be_deleted(store: Path) -> None:
    entry = next(entry for entry in store_entries(store) if entry.kind == "recording")
    (store / entry.path / "manifest.json").write_text("{}", "utf-8")
    listed = {entry.path: entry for entry in store_entries(store)}[entry.path]
    assert listed.problem and listed.is_deletable and listed.models == ()
    run_json(store, "prune", "--older-than", "0s")
    assert store_entries(store) == []


def test_a_failed_deletion_is_named_and_the_exit_status_is_1(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: Path) -> None:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr("bertology.atomic_files.remove_folder", refuse)
    completed = bertology("store", "prune", "--older-than", "0s", "--store", str(store))
    assert completed.status == 1 and "could not delete" in completed.out and "Permission denied" in completed.out


def test_a_pruned_recording_is_recorded_again(store: Path) -> None:
    arguments = ("run", "attention/entropy", "-m", "tiny", "--limit", "3", "--store", str(store), "--json")
    before = json.loads(bertology(*arguments).out)
    run_json(store, "prune", "--older-than", "0s")
    after = json.loads(bertology(*arguments).out)
    assert after["data"] == before["data"] and store_entries(store)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("prune",), "what to delete"),
        (("prune", "--older-than", "soon"), "not an age"),
        (("prune", "--larger-than", "big"), "not a size"),
        (("list", "--older-than", "3d"), "store prune"),
        (("list", "--dry-run"), "store prune"),
    ],
)
def test_mistakes_are_refused(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    completed = bertology("store", *arguments, "--store", str(tmp_path))
    assert completed.status == 2 and message in completed.err


def test_a_store_that_does_not_exist_is_empty(tmp_path: Path) -> None:
    assert run_json(tmp_path / "absent", "list")["entries"] == []
    assert not (tmp_path / "absent").exists()
