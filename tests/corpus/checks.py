"""What every reader's tests do: write a sample, read it, and hold what was read against the rules of a corpus."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from bertology.corpus.corpus import Corpus
from bertology.corpus.read import read
from bertology.corpus.sentence import PER_WORD, ROOT, SPANS
from bertology.corpus.storage import item_from_json, item_to_json
from bertology.errors import Refusal

DETERMINED = settings(deadline=None, derandomize=True, database=None)


class Reading:
    """Samples of one format, written into a folder and read from it."""

    def __init__(self, folder: Path, format: str, name: str) -> None:
        self.folder = folder
        self.format = format
        self.path = folder / name

    def write(self, text: str | bytes, name: str = "") -> Path:
        """The path of a file with this content; the sample itself where no name is given."""
        path = self.folder / name if name else self.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def read(self, content: str | bytes, /, *, skip_bad: bool = False, **options: Any) -> Corpus:
        """The corpus that the sample holds, checked and carried through JSON."""
        corpus = read(self.write(content), self.format, skip_bad=skip_bad, **options)
        check(corpus)
        return corpus

    def refused(self, content: str | bytes, /, *words: str, line: int | None = None, **options: Any) -> Refusal:
        """The refusal of the sample, which names the file, the line and the words given."""
        with pytest.raises(Refusal) as caught:
            self.read(content, **options)
        message = str(caught.value)
        assert self.folder.name in message
        assert "Traceback" not in message and "Expected" in message
        if line is not None:
            assert f"line {line}:" in message
        for word in words:
            assert word in message
        return caught.value

    def bad(
        self, content: str | bytes, /, reason: str, *, line: int | None = None, kept: int = 0, **options: Any
    ) -> None:
        """The sample is refused at the line; with skip_bad the fault is counted and `kept` items remain."""
        self.refused(content, line=line, **options)
        if not kept:
            self.refused(content, "skipped", skip_bad=True, **options)
            return
        corpus = self.read(content, skip_bad=True, **options)
        assert [skip.reason for skip in corpus.skipped] == [reason]
        assert len(corpus) == kept


def check(corpus: Corpus) -> None:
    """Offsets in order inside the text, layers as long as the words, trees, spans in range, JSON without loss."""
    for item in corpus:
        back = item_from_json(json.loads(json.dumps(item_to_json(item))))
        assert back == item
        assert item.inputs
    for part in corpus.sentences:
        count = len(part.words)
        assert count and len(part.offsets) == count
        assert all(0 <= a < b <= len(part.text) for a, b in part.offsets)
        assert list(part.offsets) == sorted(part.offsets)
        for name in PER_WORD:
            layer: Sequence[object] | None = getattr(part, name)
            assert layer is None or len(layer) == count
        for name in SPANS:
            assert all(0 <= span.start < span.end <= count for span in getattr(part, name) or ())
        assert part.heads is None or (part.heads.count(ROOT) == 1 and all(ROOT <= h < count for h in part.heads))
        assert all(0 <= index < count for indices in part.marks.values() for index in indices)
    assert len(corpus.fingerprint) == 32


def assert_surfaces(corpus: Corpus) -> None:
    """Every word stands in its text at its offsets."""
    for part in corpus.sentences:
        assert tuple(part.text[a:b] for a, b in part.offsets) == part.words
