"""The commands with stores behind addresses: they work, or refuse in one paragraph with status 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from command import bertology
from object_stores import memory_address, s3_address, s3_server

__all__ = ["memory_address", "s3_address", "s3_server"]


@pytest.fixture
def corpus(tmp_path: Path) -> str:
    file = tmp_path / "corpus.txt"
    file.write_text("The cat sat.\nThe dog barked at the cat.\n")
    return str(file)


def test_a_recording_at_an_address_is_analysed_and_viewed(s3_address: str, corpus: str, tmp_path: Path) -> None:
    recorded = bertology("record", "tiny", corpus, "--sites", "attention", "-o", s3_address)
    assert (recorded.status, recorded.out) == (0, f"{s3_address}\n")
    run = bertology("run", "attention/entropy", "--recording", s3_address, "--no-store")
    local = bertology("record", "tiny", corpus, "--sites", "attention", "-o", str(tmp_path / "local"))
    assert local.status == run.status == 0
    assert bertology("run", "attention/entropy", "--recording", str(tmp_path / "local"), "--no-store").out == run.out
    page = tmp_path / "view.html"
    assert bertology("view", "--recording", s3_address, "--example", "2", "-o", str(page)).status == 0
    assert page.is_file()


def test_a_store_at_an_address_is_used_again(memory_address: str, corpus: str) -> None:
    arguments = ("run", "attention/entropy", "--model", "tiny", "--corpus", corpus, "--store", memory_address)
    first, second = bertology(*arguments), bertology(*arguments)
    assert first.status == second.status == 0
    assert first.out == second.out
    assert "Using the stored recording" not in first.err
    assert f"Using the stored recording of 2 inputs ({memory_address}/" in second.err


@pytest.mark.parametrize("command", ["store", "serve", "doctor"])
def test_commands_that_need_a_local_store_say_so(command: str) -> None:
    done = bertology(command, "--store", "s3://bucket/store")
    assert done.status == 2
    assert "needs a folder of this machine" in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("output", ["s3://user:hunter2@bucket/x", "sftp://host/x", "s3://"])
def test_what_is_no_address_is_refused_before_any_work(output: str, corpus: str) -> None:
    done = bertology("record", "tiny", corpus, "--sites", "attention", "-o", output)
    assert done.status == 2
    assert done.err.count("\n") == 1
    assert "hunter2" not in done.err


def test_a_file_cannot_be_written_to_an_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = bertology("report", "tiny", "-o", "s3://bucket/report.html")
    assert done.status == 2
    assert "is an address" in done.err
    assert not (tmp_path / "s3:").exists()


def test_a_missing_bucket_ends_the_command(s3_address: str, corpus: str) -> None:
    arguments = ("claims", "tiny", "--corpus", corpus, "--store", "s3://no-such-bucket/store")
    for done in (
        bertology("record", "tiny", corpus, "--sites", "attention", "-o", arguments[-1]),
        bertology(*arguments),
    ):
        assert done.status == 2
        assert "There is no bucket s3://no-such-bucket" in done.err
