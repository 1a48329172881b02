"""Files of people: pipes, bombs, links, deep JSON and endless lines are refused, quickly and in one paragraph."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bertology
import tiny_models
from bertology.corpus import text_files
from bertology.corpus.readers.wsd_framework import read_wsd_framework
from bertology.corpus.text_files import ParseErrorHandler
from bertology.encoder import word_vector_files
from bertology.encoder.load import load
from bertology.encoder.word_vector_files import read_vectors
from bertology.errors import Refusal
from bertology.input_files import (
    MAX_JSON_DEPTH,
    check_folder,
    check_path,
    expand_path,
    load_array,
    load_arrays,
    parse_json_text,
    path_exists,
    read_bytes,
    read_json_object,
    unpack_gzip,
)
from bertology.results.read_result import read_result

READERS: dict[str, Callable[[Path], Any]] = {
    "corpus": lambda path: bertology.read(path, "text"),
    "npz": bertology.open_recording,
    "vectors": lambda path: load(f"glove:{path}"),
    "npy": lambda path: load_array(path, "an array"),
    "result": read_result,
    "claims": bertology.read_claims,
    "bytes": read_bytes,
}


@pytest.mark.parametrize("name", READERS)
def test_a_named_pipe_is_refused_without_waiting_for_it(name: str, tmp_path: Path) -> None:
    pipe = tmp_path / ("file.npz" if name == "npz" else "file")
    os.mkfifo(pipe)
    with pytest.raises(Refusal):
        READERS[name](pipe)


def test_a_pipe_among_the_files_of_a_folder_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.npz")
    with pytest.raises(Refusal, match="is a named pipe"):
        bertology.open_recording(tmp_path)


def test_names_that_no_file_can_have(tmp_path: Path) -> None:
    assert check_path(tmp_path / ("x" * 255)) and not path_exists(tmp_path / ("x" * 256))
    for name in ("x" * 256, "é" * 128, "a\0b", "x/" * 3000):
        assert not path_exists(name)
        with pytest.raises(Refusal, match="Choose a shorter name") as refused:
            check_path(Path(name))
        assert len(str(refused.value)) < 600
    assert expand_path("~nobody-of-this-name/x") == Path("~nobody-of-this-name/x")


def _npz(tmp_path: Path, **members: bytes) -> Path:
    file = tmp_path / "a.npz"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return file


def _npy(array: Any, **arguments: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **arguments)
    return buffer.getvalue()


def _header(descr: str, shape: str) -> bytes:
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}}}".encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def test_arrays_are_read(tmp_path: Path) -> None:
    file = _npz(tmp_path, a=_npy(np.arange(6).reshape(2, 3)), b=_npy(np.array(["x"])))
    arrays = load_arrays(file, "arrays")
    assert arrays["a"].tolist() == [[0, 1, 2], [3, 4, 5]] and arrays["b"].tolist() == ["x"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (_header("<f4", "(999999999999,)"), "shorter than its shape"),
        (_header("<f4", f"({'9' * 40},)"), "shorter than its shape"),
        (_header("<f4", "(-1,)"), "shorter than its shape"),
        (_header("<U99999999", "(1000000,)"), "shorter than its shape"),
        (_npy(np.array([object()]), allow_pickle=True), "is a pickle"),
        (b"\x93NUMPY\x09\x00", "unknown format"),
        (b"", "magic"),
    ],
)
def test_an_array_that_lies_about_its_size_takes_no_memory(content: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=message):
        load_arrays(_npz(tmp_path, a=content), "arrays")
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(Refusal):
        load_array(tmp_path / "a.npy", "an array")


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertology.input_files.MAX_UNPACKED_BYTES", 10_000_000)
    file = _npz(tmp_path, a=_npy(np.zeros(10_000_000, np.uint8)))
    assert file.stat().st_size < 100_000
    with pytest.raises(Refusal, match="packed or unpacked"):
        load_arrays(file, "arrays")
    with pytest.raises(Refusal, match="packed or unpacked"):
        list(unpack_gzip(file, io.BytesIO(gzip.compress(bytes(20_000_000)))))


def test_long_lines_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "MAX_LINE_BYTES", 1000)
    monkeypatch.setattr(word_vector_files, "MAX_LINE_BYTES", 1000)
    file = tmp_path / "a.txt.gz"
    file.write_bytes(gzip.compress(b"a line\n" + b"x " * 5000))
    errors = ParseErrorHandler()
    with pytest.raises(Refusal, match=r"line 2: The line has more than 1,000 bytes"):
        list(text_files._decode_lines(file, errors, 1000))  # pyright: ignore[reportPrivateUsage]
    file.write_bytes(gzip.compress(b"the 1 2\n" + b"x" * 5000))
    with pytest.raises(Refusal, match="Line 2 has more than 1,000 bytes"):
        read_vectors(file)
    assert text_files.MAX_FILE_BYTES > 100_000_000, "files of one JSON value are read whole"


@pytest.mark.parametrize("depth", [MAX_JSON_DEPTH + 1, 100_000])
def test_deep_json_is_refused(depth: int, tmp_path: Path) -> None:
    text = "[" * depth + "]" * depth
    with pytest.raises(ValueError, match="nested more than"):
        parse_json_text(text)
    file = tmp_path / "a.json"
    file.write_text(f'{{"x": {text}}}')
    with pytest.raises(Refusal, match="nested more than"):
        read_json_object(file, "an object")
    assert parse_json_text("[" * MAX_JSON_DEPTH + "]" * MAX_JSON_DEPTH)


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", '"\\ud800"', "{", '{"a": 1'])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_json_text(text)


def test_a_json_object_is_an_object(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text("[1]")
    with pytest.raises(Refusal, match="holds a list"):
        read_json_object(file, "an object")
    file.write_text('{"a": "é"}', "utf-8")
    assert read_json_object(file, "an object") == {"a": "é"}


def test_links_out_of_a_recording_or_a_model_are_refused(tmp_path: Path) -> None:
    model = shutil.copytree(tiny_models.directory("bert"), tmp_path / "model")
    weights = (model / "model.safetensors").rename(tmp_path / "elsewhere.safetensors")
    (model / "model.safetensors").symlink_to(weights)
    with pytest.raises(Refusal, match=r"is a link to .*outside of its folder"):
        load(str(model))
    recording = tmp_path / "recording"
    bertology.record("tiny", ["A text."], ["hidden"], folder=recording)
    (recording / "x").symlink_to("/etc/passwd")
    with pytest.raises(Refusal, match=r"is a link to .*outside of its folder"):
        bertology.open_recording(recording)


@pytest.mark.parametrize("file", ["manifest.json", "corpus.jsonl", "hidden/*.safetensors"])
def test_named_pipes_in_a_recording_or_a_model_are_refused(file: str, tmp_path: Path) -> None:
    """Whoever opens one waits for ever."""
    recording = tmp_path / "recording"
    bertology.record("tiny", ["A text."], ["hidden"], folder=recording)
    model = shutil.copytree(tiny_models.directory("bert"), tmp_path / "model")
    for path in (next(recording.glob(file)), model / "config.json"):
        path.unlink()
        os.mkfifo(path)
    with pytest.raises(Refusal, match="is a named pipe"):
        bertology.open_recording(recording)
    with pytest.raises(Refusal, match="is a named pipe"):
        load(str(model))


def test_links_inside_a_folder_and_in_the_cache_of_the_hub_are_followed(tmp_path: Path) -> None:
    repository = tmp_path / "models--a--b"
    snapshot = shutil.copytree(tiny_models.directory("bert"), repository / "snapshots" / "0123")
    (repository / "blobs").mkdir()
    blob = (snapshot / "model.safetensors").rename(repository / "blobs" / "abcd")
    (snapshot / "model.safetensors").symlink_to(blob)
    assert load(str(snapshot)).layers
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a").write_text("a")
    (tmp_path / "folder" / "b").symlink_to("a")
    check_folder(tmp_path / "folder")


def test_entities_of_xml_are_refused(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>\n'
    file = tmp_path / "x.data.xml"
    file.write_text(
        f'{bomb}<corpus><text id="d"><sentence id="d.s"><wf lemma="a" pos="X">&b;</wf></sentence></text></corpus>'
    )
    (tmp_path / "x.gold.key.txt").write_text("")
    with pytest.raises(Refusal, match="declares the entity 'a'"):
        list(read_wsd_framework(file, ParseErrorHandler()))


def test_a_tokeniser_of_another_model_is_refused(tmp_path: Path) -> None:
    model = shutil.copytree(tiny_models.directory("bert"), tmp_path / "model")
    file = model / "tokenizer.json"
    tokenizer = json.loads(file.read_text("utf-8"))
    vocabulary = tokenizer["model"]["vocab"]
    vocabulary["the"] = max(vocabulary.values()) + 7
    file.write_text(json.dumps(tokenizer), "utf-8")
    with pytest.raises(Refusal, match=r"gives the token \d+, and the model has \d+ embeddings"):
        bertology.record(load(str(model)), ["the the the"], ["hidden"])


def test_a_configuration_of_a_larger_model_than_its_weights_is_refused(tmp_path: Path) -> None:
    model = shutil.copytree(tiny_models.directory("bert"), tmp_path / "model")
    config = json.loads((model / "config.json").read_text())
    changes = {
        "vocab_size": 50_000_000,
        "num_hidden_layers": 9999,
        "intermediate_size": 9_000_000,
        "hidden_size": 10**7,
    }
    for name, value in changes.items():
        (model / "config.json").write_text(json.dumps({**config, name: value}))
        with pytest.raises(Refusal, match=rf"config.json has {name} {value}"):
            load(str(model))
