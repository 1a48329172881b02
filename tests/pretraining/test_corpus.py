from __future__ import annotations

import lzma
from pathlib import Path

from pretraining.corpus import read_documents


def test_blank_lines_separate_documents_in_plain_and_compressed_files(tmp_path: Path) -> None:
    text = "\nOne.\nTwo.\n\n\nThree – ü.\n"
    plain, compressed = tmp_path / "a.txt", tmp_path / "a.txt.xz"
    plain.write_text(text, encoding="utf-8")
    compressed.write_bytes(lzma.compress(text.encode()))
    expected = [("One.", "Two."), ("Three – ü.",)]
    assert list(read_documents(plain)) == expected
    assert list(read_documents(compressed)) == expected
