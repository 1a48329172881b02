"""What Python prints of corpora, encoders, recordings and verdicts is one short line."""

from __future__ import annotations

import bertology
from bertology.claims.verdict import Verdict
from bertology.corpus.read import load_corpus
from bertology.encoder.load import load


def test_every_value_is_printed_in_one_line() -> None:
    corpus, encoder = load_corpus("english", limit=5), load("tiny")
    recording = bertology.record(encoder, corpus, ["hidden"])
    verdict = Verdict("not applicable", obstacle="the corpus has no governors")
    expected: list[tuple[object, str]] = [
        (corpus, "Corpus('english"),
        (encoder, "HuggingFaceEncoder('tiny', "),
        (recording, "Recording('tiny' on 'english"),
        (verdict, "Verdict(not applicable: the corpus has no governors)"),
    ]
    for value, start in expected:
        for text in (repr(value), str(value)):
            assert text.startswith(start) and len(text.splitlines()) == 1 and len(text) < 200, text
    assert "5 examples" in repr(corpus) and "5 inputs" in repr(recording) and "hidden" in repr(recording)
