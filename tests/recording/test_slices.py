"""Slices: each process records its shards, together they record all, and the bytes are those of one process."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertology.errors import Refusal
from bertology.recording import plan
from bertology.recording.manifest import open_recording
from bertology.recording.plan import RecordingConfig
from bertology.recording.recorder import record
from bertology.recording.slices import parse_slice, record_slice
from command import bertology
from recording.material import mixed, tiny
from recording.test_engine_shards import digests
from warm_processes import BERTOLOGY, WarmProcess, run_main

CORPUS, SITES, CONFIG = mixed(40), ["attention", "hidden"], RecordingConfig(tokens_per_batch=64)


@given(st.integers(1, 40), st.integers(0, 200))
def test_every_shard_is_in_one_slice(count: int, shard: int) -> None:
    slices = [parse_slice(f"{number}/{count}") for number in range(1, count + 1)]
    assert [each.contains(shard) for each in slices].count(True) == 1
    assert [str(each) for each in slices][-1] == f"{count}/{count}"


@pytest.mark.parametrize("text", ["0/16", "17/16", "1/0", "-1/4", "3", "3/", "/3", "a/b", "1/2/3", "1.5/2", "", "٣/٩"])
def test_nonsense_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="NUMBER/COUNT"):
        parse_slice(text)
    if text in {"0/16", "17/16"}:
        words = ("record", "tiny", "english", "--sites", "hidden", "-o", str(tmp_path / "r"), "--slice", text)
        result = bertology(*words)
        assert result.status == 2 and f"The slice was given as {text!r}" in result.err
        assert not (tmp_path / "r").exists()


def test_slices_in_any_order_make_the_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "SHARD_BYTES", 16 * 1024)
    record(tiny(), CORPUS, SITES, config=CONFIG, folder=tmp_path / "one")
    reports = [
        record_slice(tiny(), CORPUS, SITES, slice=f"{number}/3", config=CONFIG, folder=tmp_path / "r")
        for number in (2, 1, 1, 3)
    ]
    n_shards = reports[0].shards
    assert n_shards > 4 and [report.is_complete for report in reports] == [False, False, False, True]
    assert reports[2].recorded == 0 and sum(report.recorded for report in reports) == n_shards
    assert reports[0].finished == reports[0].recorded == len(range(1, n_shards, 3))
    assert digests(tmp_path / "r") == digests(tmp_path / "one")
    with pytest.raises(Refusal, match="neither a folder nor a store"):
        record_slice(tiny(), CORPUS, SITES, slice="1/3")


def record_small_shards(*words: str) -> None:
    """`bertology record`, with more shards than processes."""
    plan.SHARD_BYTES = 64 * 1024
    run_main([*BERTOLOGY, "record", "tiny", "english", "--limit", "120", "--sites", "attention,hidden", *words])


@pytest.mark.slow
def test_eight_processes_at_once_make_one_recording(tmp_path: Path) -> None:
    """Six slices, of which two are recorded by two processes each: shards collide, and nothing is damaged."""
    eight, one = tmp_path / "eight", tmp_path / "one"
    slices = [f"{number}/6" for number in (1, 2, 3, 4, 5, 6, 1, 4)]
    processes = [WarmProcess(record_small_shards, "-o", str(eight), "--slice", each) for each in slices]
    ended = [process.wait() for process in processes]
    assert [each.status for each in ended] == [0] * 8, ended
    assert any("complete" in each.err for each in ended)
    alone = WarmProcess(record_small_shards, "-o", str(one)).wait()
    assert alone.status == 0, alone.err
    assert digests(eight) == digests(one)
    assert len(open_recording(eight)) == 120
