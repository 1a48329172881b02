"""Helpers for tests of corpora: write a sample, read it, and check the invariants of every corpus."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bertology.corpus.corpus import Corpus
from bertology.corpus.example_json import example_from_json, example_to_json
from bertology.corpus.read import read
from bertology.corpus.sentence import ROOT, SPAN_ANNOTATIONS, WORD_ANNOTATIONS
from bertology.errors import Refusal


class ReaderSample:
    """Samples of one format, written to a directory and read from it."""

    def __init__(self, directory: Path, format: str, name: str) -> None:
        self.directory = directory
        self.format = format
        self.path = directory / name

    def write(self, content: str | bytes, name: str = "") -> Path:
        """Write a file, by default the sample itself, and return its path."""
        path = self.directory / name if name else self.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def read(self, content: str | bytes, /, *, skip_malformed: bool = False, **options: Any) -> Corpus:
        """Write the sample, read it and check the corpus."""
        corpus = read(self.write(content), self.format, skip_malformed=skip_malformed, **options)
        assert_valid(corpus)
        return corpus

    def assert_refused(self, content: str | bytes, /, *words: str, line: int | None = None, **options: Any) -> None:
        """Assert that the sample is refused, with a message that names the file, the line and the words."""
        with pytest.raises(Refusal) as caught:
            self.read(content, **options)
        message = str(caught.value)
        assert self.directory.name in message
        assert "Traceback" not in message and "Expected" in message
        if line is not None:
            assert f"line {line}:" in message
        for word in words:
            assert word in message

    def assert_malformed(
        self, content: str | bytes, /, reason: str, *, line: int | None = None, n_examples: int = 0, **options: Any
    ) -> None:
        """Assert that the sample is refused at a line, and that with skip_malformed `n_examples` are read."""
        self.assert_refused(content, line=line, **options)
        if not n_examples:
            self.assert_refused(content, "skipped", skip_malformed=True, **options)
            return
        corpus = self.read(content, skip_malformed=True, **options)
        assert [skip.reason for skip in corpus.skipped] == [reason]
        assert len(corpus) == n_examples


def assert_valid(corpus: Corpus) -> None:
    """Assert sorted offsets, annotations of the right length, trees, spans in range and lossless JSON."""
    for example in corpus:
        assert example_from_json(json.loads(json.dumps(example_to_json(example)))) == example
        assert example.text_inputs
    for sentence in corpus.sentences:
        length = len(sentence.words)
        assert length and len(sentence.offsets) == length
        assert all(0 <= start < end <= len(sentence.text) for start, end in sentence.offsets)
        assert list(sentence.offsets) == sorted(sentence.offsets)
        for name in WORD_ANNOTATIONS:
            values: Sequence[object] | None = getattr(sentence, name)
            assert values is None or len(values) == length
        for name in SPAN_ANNOTATIONS:
            assert all(0 <= span.start < span.end <= length for span in getattr(sentence, name) or ())
        assert all(len(labels) == length for labels in sentence.word_labels.values())
        assert all(0 <= s.start < s.end <= length for spans in sentence.span_labels.values() for s in spans)
        governors = sentence.governors
        assert governors is None or (governors.count(ROOT) == 1 and all(ROOT <= g < length for g in governors))
        assert all(0 <= word < length for words in sentence.marked_words.values() for word in words)
    assert len(corpus.fingerprint) == 32


def assert_offsets_match(corpus: Corpus) -> None:
    """Assert that the text at the offsets of every word is the word."""
    for sentence in corpus.sentences:
        assert tuple(sentence.text[start:end] for start, end in sentence.offsets) == sentence.words
