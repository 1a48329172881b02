"""The language of a corpus is told by its letters and function words."""

from __future__ import annotations

import pytest

import bertology
from bertology.corpus.language import detect_language
from bertology.corpus.read import load_corpus

GERMAN = "Der Hund läuft am Abend nach Hause, und die Katze schläft auf dem Sofa, weil sie müde ist. " * 4


@pytest.mark.parametrize(("name", "language"), [("english", "English"), ("chinese", "Chinese")])
def test_the_built_in_treebanks(name: str, language: str) -> None:
    assert detect_language(load_corpus(name)[:100]) == language


def test_another_language_and_too_few_words() -> None:
    assert detect_language(bertology.corpus([GERMAN])) == "other"
    assert detect_language(bertology.corpus(["Hund und Katze"])) is None
