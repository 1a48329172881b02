"""Folders of .npz files: published ones open unchanged, faulty ones are refused with the name of the file."""

from __future__ import annotations

import json
import time
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from tests.recording.material import pairs, tiny
from tests.shared_data import shared

from bertology.analyses.attention.entropy import entropy_site
from bertology.analyses.attention.targets.analysis import targets_site
from bertology.corpus.corpus import Corpus
from bertology.corpus.read import load_corpus
from bertology.corpus.sentence import SemanticFrame, Span
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal
from bertology.folder_lock import folder_lock
from bertology.recording.manifest import open_recording
from bertology.recording.recorder import record
from bertology.recording.recording import Recording

TOKENS = ["[CLS]", "she", "ran", "[SEP]"]
LINE: dict[str, Any] = {"file": "a.npz", "words": ["She", "ran"], "heads": [2, 0], "relations": ["nsubj", "root"]}


def _attention(n: int = 4) -> Any:
    return np.full((2, 3, n, n), 1 / n, np.float32)


def _folder(path: Path, *lines: Any, **files: dict[str, Any]) -> Path:
    for name, arrays in files.items():
        np.savez(path / f"{name}.npz", **arrays)
    if lines:
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        (path / "sentences.jsonl").write_text("\n".join(texts), "utf-8")
    return path


def test_a_folder_with_words_and_a_parse(tmp_path: Path) -> None:
    folder = _folder(
        tmp_path, LINE, a={"attention": _attention(), "tokens": TOKENS}, b={"attn": _attention(), "left": TOKENS}
    )
    recording = open_recording(folder)
    assert len(recording) == 1
    assert recording.counts["files without words skipped"] == 1
    (sentence,) = recording.corpus[0].segments
    assert (sentence.words, sentence.governors, sentence.relations) == (("She", "ran"), (1, -1), ("nsubj", "root"))


def test_a_folder_without_words_and_a_single_file(tmp_path: Path) -> None:
    arrays = {"attn": _attention(), "left": TOKENS, "model": ["a-model"]}
    folder = _folder(tmp_path, a=arrays, b=arrays)
    assert len(open_recording(folder)) == 2
    assert open_recording(folder / "b.npz").encoder.name == "a-model"


GOOD: dict[str, Any] = {"attention": _attention(), "tokens": TOKENS}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"attention": _attention()}, r"a\.npz has no list of tokens \(it has: attention\)"),
        ({"tokens": TOKENS}, "Neither attention nor hidden"),
        ({"attention": _attention(5), "tokens": TOKENS}, r"shape \(2, 3, 5, 5\)"),
        ({"attention": _attention(), "tokens": np.array(TOKENS, object)}, "cannot be read"),
        ({"attention": _attention() * 0.9, "tokens": TOKENS}, "do not sum to 1"),
    ],
)
def test_bad_files_are_refused(arrays: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=message):
        open_recording(_folder(tmp_path, a=arrays))


def test_a_file_that_is_not_an_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(b"PK\x03\x04 not an archive")
    with pytest.raises(Refusal, match=r"a\.npz cannot be read"):
        open_recording(tmp_path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "does not describe an input"),
        ({"words": ["She", "ran"]}, "KeyError: 'file'"),
        (LINE | {"heads": [2]}, "differ in number|out of range|root|governor"),
        (LINE | {"heads": [2, 1]}, "root|cycle|governor"),
        (LINE | {"relations": ["root"]}, "differ in number"),
        (LINE | {"pos": ["PRON"]}, "words and pos differ in number: 2 and 1"),
        (LINE | {"mentions": [[0, 3, "1"]]}, "mentions has the word 2 of 2 words"),
        (LINE | {"mentions": [[1, 1, "1"]]}, "mentions has"),
        (LINE | {"marked_words": {"target": [2]}}, "marked_words has the word 2"),
        (LINE | {"frames": [{"predicate": 5, "arguments": []}]}, "frames has the word 5"),
        (LINE | {"governors": [1, -1]}, "both heads and governors"),
        (LINE | {"text": "She  walked"}, "the text does not consist of the words"),
        ({"file": "a.npz", "segments": [{"words": ["She", "ran"]}], "pos": []}, "no field of a line with segments"),
        (LINE | {"mention": []}, "no annotation called 'mention'.*mentions"),
        (LINE | {"file": "c.npz"}, r"c\.npz is missing"),
        (LINE | {"words": ["He", "ran"], "heads": [2, 0]}, "do not spell"),
    ],
)
def test_bad_lines_are_refused(line: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=message):
        open_recording(_folder(tmp_path, line, a=GOOD))


def test_lines_carry_every_annotation(tmp_path: Path) -> None:
    line = LINE | {
        "text": "She  ran",
        "id": 7,
        "document": "novel",
        "pos": ["PRON", "VERB"],
        "lemmas": ["she", "run"],
        "senses": [None, "run.v.1"],
        "mentions": [[0, 1, "3"]],
        "entities": [],
        "frames": [{"predicate": 1, "sense": "run.01", "arguments": [[0, 1, "ARG0"]]}],
        "marked_words": {"target": [1]},
        "label": 1,
    }
    corpus = open_recording(_folder(tmp_path, line, a=GOOD)).corpus
    (sentence,) = corpus[0].segments
    assert (sentence.text, sentence.offsets, sentence.document) == ("She  ran", ((0, 3), (5, 8)), "novel")
    assert (sentence.pos, sentence.lemmas, sentence.senses) == (("PRON", "VERB"), ("she", "run"), (None, "run.v.1"))
    assert (sentence.mentions, sentence.entities) == ((Span(0, 1, "3"),), ())
    assert sentence.frames == (SemanticFrame(1, "run.01", (Span(0, 1, "ARG0"),)),)
    assert dict(sentence.marked_words) == {"target": (1,)}
    assert (corpus[0].label, corpus[0].id) == ("1", "7")


def test_a_saved_recording_is_read_unchanged(tmp_path: Path) -> None:
    corpus = Corpus((*load_corpus("generated:reflexives", limit=4), *load_corpus("english", limit=3), *pairs(3)))
    original = record(tiny(), corpus, ["attention", "hidden"])
    opened = open_recording(original.save(tmp_path / "saved"))
    assert opened.encoder.name == original.encoder.name
    assert opened.corpus.examples == original.corpus.examples and opened.corpus[0].factors
    for ours, theirs in zip(original.inputs, opened.inputs, strict=True):
        assert ours.text == theirs.text
        for name in ("tokens", "word_ids", "segment_ids", "special_kinds"):
            np.testing.assert_array_equal(getattr(ours.tokens, name), getattr(theirs.tokens, name))
    for site in ("attention", "hidden"):
        for one, other in zip(original[site], opened[site], strict=True):
            np.testing.assert_array_equal(one, other)
    with pytest.raises(Refusal, match="not empty"):
        original.save(tmp_path / "saved")
    with pytest.raises(Refusal, match="examples of kind minimal_pair"):
        record(tiny(), load_corpus("generated:minimal_pairs", limit=2), ["attention"]).save(tmp_path / "minimal")
    with pytest.raises(Refusal, match="neither attention nor hidden"):
        record(tiny(), corpus, [entropy_site]).save(tmp_path / "other")


def test_attention_windows_and_odd_special_tokens_are_saved(tmp_path: Path) -> None:
    tokens = ["<|start|>", "she", "ran"]
    diagonal = np.broadcast_to(np.eye(3, dtype=np.float32), (2, 3, 3, 3))
    recording = Recording.from_arrays(
        [tokens], attention=[diagonal], attention_windows=(1, None), special_tokens={"<|start|>": SpecialToken.OTHER}
    )
    opened = open_recording(recording.save(tmp_path / "saved"))
    assert opened.encoder.attention_windows == (1, None)
    assert opened.inputs[0].tokens.special_kinds.tolist() == [SpecialToken.OTHER, 0, 0]
    assert opened.inputs[0].text.words == ("she", "ran")


def test_a_layer_without_an_attention_window_has_minus_one(tmp_path: Path) -> None:
    """The number is part of the format: other programs write it, and files that were saved have it."""
    diagonal = np.broadcast_to(np.eye(4, dtype=np.float32), (2, 3, 4, 4))
    arrays = {"attention": diagonal, "tokens": TOKENS, "attention_windows": np.array([2, -1])}
    recording = open_recording(_folder(tmp_path, a=arrays))
    assert recording.encoder.attention_windows == (2, None)
    with np.load(recording.save(tmp_path / "saved") / "1.npz") as saved:
        assert saved["attention_windows"].tolist() == [2, -1]
    with pytest.raises(Refusal, match="-1 for a layer without a window"):
        open_recording(_folder(tmp_path, a=arrays | {"attention_windows": np.array([2, -2])}))


def test_files_of_several_models_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=r"several models \(one, unnamed\)"):
        open_recording(_folder(tmp_path, a=GOOD | {"model": ["one"]}, b=GOOD))
    with pytest.raises(Refusal, match=r"b\.npz has no hidden"):
        open_recording(_folder(tmp_path, a=GOOD | {"hidden": np.zeros((3, 4, 8))}, b=GOOD))


def test_published_attention_of_bert_base_shows_known_heads() -> None:
    recording = open_recording(shared("data/bert-base-attention")).with_sites([targets_site, entropy_site])
    assert (recording.encoder.layers, recording.encoder.heads, len(recording)) == (12, 12, 57)
    assert recording.counts["words"] == 1501
    assert "tokens across word boundaries" not in recording.counts
    assert "words without tokens" not in recording.counts
    means = recording.stack(targets_site).mean(0)  # the last two measures are among non-special tokens
    to_previous, to_next = means[..., -2], means[..., -1]
    assert to_next[2, 0] > 0.95, "head 3-1 attends to the next token"
    assert to_next[2, 9] > 0.95, "and so does 3-10"
    assert to_previous.argmax() == 3 * 12 + 5, "4-6 attends to the previous token"
    to_sep = means[..., 1].mean(1)
    assert to_sep[3:9].min() > 3 * to_sep[:3].max(), "the middle layers attend to [SEP]"
    assert _accuracy(recording, "det")[7, 10] > 0.8, "8-11 finds the noun of a determiner (Clark et al. 2019)"


def _accuracy(recording: Any, relation: str) -> Any:
    """(layer, head): the proportion of words in this relation that attend most to their governor."""
    is_correct: list[Any] = []
    for recorded, attention in zip(recording.inputs, recording["attention"], strict=True):
        (sentence,) = recorded.text.segments
        is_token_of_word = (recorded.tokens.word_ids[:, None] == np.arange(len(sentence))).astype(np.float32)
        pooled = (is_token_of_word / is_token_of_word.sum(0)).T @ np.asarray(attention, np.float32) @ is_token_of_word
        pooled[..., np.arange(len(sentence)), np.arange(len(sentence))] = 0
        predicted = pooled.argmax(-1)
        words = zip(sentence.governors, sentence.relations, strict=True)
        is_correct += [predicted[..., word] == gold for word, (gold, name) in enumerate(words) if name == relation]
    return np.mean(is_correct, 0)


def test_a_published_pair_has_two_segments() -> None:
    recording = open_recording(shared("data/bert-base-attention/pretrained-pair.npz"))
    assert recording.encoder.name == "bert-base-uncased"
    assert [" ".join(segment.words) for segment in recording.corpus[0].segments] == [
        "the rabbit quickly hopped",
        "the turtle slowly crawled",
    ]


def test_saving_waits_for_another_writer_and_is_refused_beside_its_files(tmp_path: Path) -> None:
    recording = record(tiny(), pairs(1), ["attention"])
    refused: list[Refusal] = []

    def save() -> None:
        try:
            recording.save(tmp_path)
        except Refusal as refusal:
            refused.append(refusal)

    with folder_lock(tmp_path):
        writer = Thread(target=save)
        writer.start()
        time.sleep(0.3)
        assert not list(tmp_path.iterdir()), "nothing is written while the folder is locked"
        (tmp_path / "1.npz").write_bytes(b"of another writer")
    writer.join()
    assert [each.problem for each in refused] == [f"{tmp_path} is not empty"]
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"of another writer"]
