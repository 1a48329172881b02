"""A corpus recorded in parts: the numbers of the corpus read at once, resumed by parts, read a part at a time."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from tests.recording.material import CountingEncoder, assert_same_recording, tiny

import bertology
from bertology.atomic_files import digest_bytes
from bertology.checked_files import read_checked_json, write_checked_json
from bertology.corpus.stream import CorpusStream
from bertology.encoder.builtin import TINY_WORDS
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.recording import stream_parts
from bertology.recording.manifest import open_recording
from bertology.recording.recorder import record
from bertology.recording.recording import Recording
from bertology.recording.stream_parts import STREAM_FILE
from command import bertology as command
from object_stores import memory_address

__all__ = ["memory_address"]

SITES = ["hidden", "attention"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    rng, words = random.Random(0), TINY_WORDS.split()
    lines = [" ".join(rng.choices(words, k=rng.randint(2, 9))) for _ in range(25)]
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(lines))
    return path


def _stream(file: Path) -> CorpusStream:
    return bertology.stream_corpus(file, part_size=10)


def _record_counting(file: Path, folder: str | Path) -> tuple[Recording, int, int, list[str]]:
    """The recording, and the numbers of forward passes and tokenisations that it took, and its messages."""
    passes: list[str] = []
    messages: list[str] = []
    encoder = CountingEncoder(tiny(), passes.append)
    recording = record(cast(Encoder, encoder), _stream(file), SITES, folder=folder, notify=messages.append)
    return recording, len(passes), encoder.n_tokenised, messages


@pytest.mark.parametrize("place", ["folder", "store", "memory"])
def test_the_parts_are_the_recording_of_the_whole(file: Path, tmp_path: Path, place: str, memory_address: str) -> None:
    target = memory_address if place == "memory" else tmp_path / "recorded"
    arguments: dict[str, Any] = {"store" if place == "store" else "folder": target}
    streamed = record(tiny(), _stream(file), SITES, **arguments)
    whole = record(tiny(), bertology.read(file), SITES)
    assert streamed.summary() == whole.summary()
    assert streamed.corpus.annotations == whole.corpus.annotations
    assert tuple(streamed.corpus) == tuple(whole.corpus)
    for mine, other in zip(streamed.inputs, whole.inputs, strict=True):
        assert (mine.key, mine.text, mine.tokens.tokens) == (other.key, other.text, other.tokens.tokens)
    for site in SITES:
        for array, other in zip(streamed[site], whole[site], strict=True):
            np.testing.assert_allclose(array, other, atol=1e-5)
    if place != "store":
        opened = open_recording(target)
        assert opened.summary() == whole.summary()
        result = bertology.run("attention/entropy", recording=opened)
        expected = bertology.run("attention/entropy", recording=whole)
        assert result.n == expected.n == 25
        for head, estimate in expected["entropy"].items():
            assert result["entropy"][head].value == pytest.approx(estimate.value, abs=1e-5)


def test_an_interrupted_recording_resumes_at_its_first_unfinished_part(file: Path, tmp_path: Path) -> None:
    folder, content = tmp_path / "recorded", file.read_bytes()
    file.write_bytes(content + b"\n\xff\n")
    with pytest.raises(Refusal, match="line 26"):
        _record_counting(file, folder)
    assert sorted(path.name for path in folder.iterdir()) == ["part-00000", "part-00001"]
    with pytest.raises(Refusal, match="unfinished recording in parts"):
        open_recording(folder)
    file.write_bytes(content)
    resumed, passes, tokenised, messages = _record_counting(file, folder)
    assert (passes > 0, tokenised) == (True, 1)
    assert messages == [f"Resuming the recording: 2 parts are finished ({folder})."]
    again, passes, tokenised, messages = _record_counting(file, folder)
    assert (passes, tokenised) == (0, 0)
    assert messages == [f"Using the stored recording of 3 parts ({folder})."]
    assert_same_recording(
        resumed.select_examples(range(25)),
        record(tiny(), _stream(file), SITES, folder=tmp_path / "other").select_examples(range(25)),
    )
    assert again.summary() == resumed.summary()


def test_progress_counts_the_tokens_of_all_parts_read_so_far(file: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []

    def tell(done: int, total: int) -> None:
        told.append((done, total))

    recording = record(tiny(), _stream(file), SITES, folder=tmp_path / "recorded", progress=tell)
    lengths = [len(recorded.tokens) for recorded in recording.inputs]
    ends = [sum(lengths[:end]) for end in (10, 20, 25)]
    assert sorted({total for _, total in told}) == ends and told[-1] == (ends[-1], ends[-1])
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert all(done <= total for done, total in told)


def test_at_most_two_parts_are_open(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = bertology.stream_corpus(file, part_size=5)
    recording = record(tiny(), stream, SITES, folder=tmp_path / "recorded")
    opened: list[str] = []
    original = open_recording

    def open_part(path: Path) -> Recording:
        opened.append(path.name)
        return original(path)

    monkeypatch.setattr("bertology.recording.manifest.open_recording", open_part)
    for _ in zip(recording.inputs, recording["hidden"], recording["attention"], recording.corpus, strict=True):
        pass
    assert opened == [f"part-{number:05d}" for number in range(1, 5)], "each part is opened once, in order"
    assert stream_parts.N_OPEN_PARTS == 2


def test_another_site_is_added_to_the_parts(file: Path, tmp_path: Path) -> None:
    record(tiny(), _stream(file), ["hidden"], folder=tmp_path / "recorded")
    record(tiny(), _stream(file), ["attention"], folder=tmp_path / "recorded")
    assert sorted(open_recording(tmp_path / "recorded").sites) == ["attention", "hidden"]


def test_a_changed_corpus_is_refused(file: Path, tmp_path: Path) -> None:
    record(tiny(), _stream(file), SITES, folder=tmp_path / "recorded")
    file.write_text("Another sentence.\n" + file.read_text())
    with pytest.raises(Refusal, match="another model, corpus or configuration"):
        record(tiny(), _stream(file), SITES, folder=tmp_path / "recorded")


def test_a_damaged_list_of_parts_is_refused(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    record(tiny(), _stream(file), SITES, folder=folder)
    text = (folder / STREAM_FILE).read_text()
    (folder / STREAM_FILE).write_text(text.replace('"examples": 10', '"examples": 11', 1))
    with pytest.raises(Refusal, match="is damaged"):
        open_recording(folder)


def _write_crafted(file: Path, rest: bytes) -> None:
    """Content with the right digest, as somebody could write who knows the format."""
    file.write_bytes(b'{"digest": "' + digest_bytes(rest).encode() + b'", ' + rest)


@pytest.mark.parametrize(
    "change",
    [
        {"inputs": 2**70},
        {"examples": 2**62},
        {"folder": "../recorded/part-00000"},
        {"folder": "part-00009"},
        {"corpus": "x"},
        {"counts": {"inputs": -1}},
    ],
)
def test_a_crafted_list_of_parts_is_refused(file: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    folder = tmp_path / "recorded"
    record(tiny(), _stream(file), ["hidden"], folder=folder)
    content = read_checked_json(folder / STREAM_FILE)
    content["parts"][0] |= change
    write_checked_json(folder / STREAM_FILE, content)
    with pytest.raises(Refusal):
        open_recording(folder)


@pytest.mark.parametrize("rest", [b"nonsense", b'"format": ' + b"[" * 100_000, b'"parts": ["\xff"]}'])
def test_a_list_of_parts_that_is_no_json_is_refused(rest: bytes, tmp_path: Path) -> None:
    _write_crafted(tmp_path / STREAM_FILE, rest)
    with pytest.raises(Refusal, match="is damaged"):
        open_recording(tmp_path)


def test_a_folder_in_place_of_the_list_of_parts_is_refused(tmp_path: Path) -> None:
    (tmp_path / STREAM_FILE).mkdir()
    with pytest.raises(Refusal, match="is damaged"):
        open_recording(tmp_path)


def test_a_stream_needs_a_place(file: Path) -> None:
    with pytest.raises(Refusal, match="neither a store nor a folder"):
        record(tiny(), _stream(file), SITES)


def test_the_command_records_a_stream(file: Path, tmp_path: Path) -> None:
    file.write_bytes(file.read_bytes() + b"\n\xff\n")
    folder = str(tmp_path / "recorded")
    arguments = ("record", "tiny", str(file), "--sites", "attention", "-o", folder, "--stream", "--part-size", "10")
    refused = command(*arguments)
    assert (refused.status, "line 26" in refused.err) == (2, True)
    done = command(*arguments, "--skip-malformed")
    assert done.status == 0
    assert "corpus.txt: 1 not UTF-8." in done.err
    assert f"{folder}: 25 inputs at attention" in done.err
    analysed = command("run", "attention/entropy", "--recording", folder, "--json")
    assert analysed.status == 0
    summary = json.loads(analysed.out)["inputs"]["model"]["corpus"]
    assert (summary["examples"], summary["skipped"]) == (25, {"not UTF-8": 1})
    assert command("record", "tiny", str(file), "--sites", "attention", "-o", folder, "--part-size", "3").status == 2
