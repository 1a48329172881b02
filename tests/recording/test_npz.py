"""Folders of .npz files: those people publish open as they are, what is wrong with them is told with the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.shared_data import shared

from bertology.analyses.attention.entropy import ENTROPY
from bertology.analyses.attention.targets import MEASURES, TARGETS
from bertology.errors import Refusal
from bertology.recording.opening import open_recording

TOKENS = ["[CLS]", "she", "ran", "[SEP]"]
LINE: dict[str, Any] = {"file": "a.npz", "words": ["She", "ran"], "heads": [2, 0], "relations": ["nsubj", "root"]}


def _maps(n: int = 4) -> Any:
    return np.full((2, 3, n, n), 1 / n, np.float32)


def _folder(path: Path, *lines: Any, **files: dict[str, Any]) -> Path:
    for name, arrays in files.items():
        np.savez(path / f"{name}.npz", **arrays)
    if lines:
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        (path / "sentences.jsonl").write_text("\n".join(texts), "utf-8")
    return path


def test_a_folder_with_words_and_a_parse(tmp_path: Path) -> None:
    folder = _folder(tmp_path, LINE, a={"attention": _maps(), "tokens": TOKENS}, b={"attn": _maps(), "left": TOKENS})
    recording = open_recording(folder)
    assert len(recording) == 1
    assert recording.counts["files without words left out"] == 1
    (part,) = recording.corpus[0].parts
    assert (part.words, part.heads, part.relations) == (("She", "ran"), (1, -1), ("nsubj", "root"))


def test_a_folder_without_words_and_a_single_file(tmp_path: Path) -> None:
    arrays = {"attn": _maps(), "left": TOKENS, "model": ["a-model"]}
    folder = _folder(tmp_path, a=arrays, b=arrays)
    assert len(open_recording(folder)) == 2
    assert open_recording(folder / "b.npz").encoder.name == "a-model"


GOOD: dict[str, Any] = {"attention": _maps(), "tokens": TOKENS}


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"attention": _maps()}, r"a\.npz has no list of tokens \(it has attention\)"),
        ({"tokens": TOKENS}, "Neither attention nor hidden"),
        ({"attention": _maps(5), "tokens": TOKENS}, r"shape \(2, 3, 5, 5\)"),
        ({"attention": _maps(), "tokens": np.array(TOKENS, object)}, "cannot be read"),
        ({"attention": _maps() * 0.9, "tokens": TOKENS}, "do not sum to 1"),
    ],
)
def test_bad_files_are_refused(arrays: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=says):
        open_recording(_folder(tmp_path, a=arrays))


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(b"PK\x03\x04 not an archive")
    with pytest.raises(Refusal, match=r"a\.npz cannot be read"):
        open_recording(tmp_path)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "describes no input"),
        ({"words": ["She", "ran"]}, "KeyError: 'file'"),
        (LINE | {"heads": [2]}, "differ in number|outside the sentence|No word"),
        (LINE | {"heads": [2, 1]}, "No word has the head 0"),
        (LINE | {"relations": ["root"]}, "differ in number"),
        (LINE | {"file": "c.npz"}, r"c\.npz is missing"),
        (LINE | {"words": ["He", "ran"], "heads": [2, 0]}, "do not spell"),
    ],
)
def test_bad_lines_are_refused(line: Any, says: str, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=says):
        open_recording(_folder(tmp_path, line, a=GOOD))


def test_files_of_several_models_are_not_mixed(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=r"several models \(one, unnamed\)"):
        open_recording(_folder(tmp_path, a=GOOD | {"model": ["one"]}, b=GOOD))
    with pytest.raises(Refusal, match=r"b\.npz has no hidden"):
        open_recording(_folder(tmp_path, a=GOOD | {"hidden": np.zeros((3, 4, 8))}, b=GOOD))


def test_published_attention_of_bert_base_shows_what_is_known_of_it() -> None:
    recording = open_recording(shared("data/bert-base-attention")).with_derived([TARGETS, ENTROPY])
    assert (recording.encoder.layers, recording.encoder.heads, len(recording)) == (12, 12, 57)
    assert recording.counts["words"] == 1501
    assert "straddling pieces" not in recording.counts
    assert "vanished words" not in recording.counts
    shares = dict(zip(MEASURES, np.moveaxis(recording.stacked(TARGETS).mean(0), -1, 0), strict=True))
    following = shares["to next, ordinary"]
    assert following[2, 0] > 0.95, "head 3-1 looks at the next piece"
    assert following[2, 9] > 0.95, "and so does 3-10"
    assert shares["to previous, ordinary"].argmax() == 3 * 12 + 5, "4-6 looks one back"
    to_sep = shares["to [SEP]"].mean(1)
    assert to_sep[3:9].min() > 3 * to_sep[:3].max(), "the middle layers rest on [SEP]"
    assert _accuracy(recording, "det")[7, 10] > 0.8, "8-11 finds the noun of a determiner (Clark et al. 2019)"


def _accuracy(recording: Any, relation: str) -> Any:
    """Share of words in this relation whose head is where a map looks most: (layer, head)."""
    hits: list[Any] = []
    for entry, maps in zip(recording.entries, recording["attention"], strict=True):
        (part,) = entry.input.parts
        belongs = (entry.pieces.word[:, None] == np.arange(len(part))).astype(np.float32)
        words = (belongs / belongs.sum(0)).T @ np.asarray(maps, np.float32) @ belongs
        words[..., np.arange(len(part)), np.arange(len(part))] = 0
        looked = words.argmax(-1)
        pairs = zip(part.heads, part.relations, strict=True)
        hits += [looked[..., word] == head for word, (head, kind) in enumerate(pairs) if kind == relation]
    return np.mean(hits, 0)


def test_a_published_pair_is_a_pair() -> None:
    recording = open_recording(shared("data/bert-base-attention/pretrained-pair.npz"))
    assert recording.encoder.name == "bert-base-uncased"
    assert [" ".join(part.words) for part in recording.corpus[0].parts] == [
        "the rabbit quickly hopped",
        "the turtle slowly crawled",
    ]
