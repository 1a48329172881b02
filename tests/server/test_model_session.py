"""Corpora are read when they are first asked for, and what fails says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertology.corpus.corpus import Corpus
from bertology.server.model_session import ModelSession, Sources
from bertology.server.problems import ApiError
from serving import wait_for, write_sample


def test_a_corpus_is_read_when_it_is_first_asked_for(tmp_path: Path) -> None:
    session = ModelSession(Sources.from_names(["tiny"], [write_sample(tmp_path, 3)]))

    def ask() -> Corpus | None:
        try:
            return session.corpus("")
        except ApiError as refused:
            assert refused.status == 503 and "being read" in str(refused)
            return None

    try:
        assert session.corpus_states[0].status == "not loaded"
        assert len(wait_for(ask)) == 3 and session.corpus_states[0].status == "ready"
    finally:
        session.close()


def test_a_corpus_that_cannot_be_read_is_not_read_again(tmp_path: Path) -> None:
    file = tmp_path / "corpus.conllu"
    file.write_bytes(b"\xff")
    session = ModelSession(Sources.from_names(["tiny"], [str(file)]))
    try:
        session.load_corpus("")
        wait_for(lambda: session.corpus_states[0].status == "failed")
        with pytest.raises(ApiError, match="could not be read") as refused:
            session.corpus("")
        assert refused.value.status == 409 and session.corpus_states[0].status == "failed"
    finally:
        session.close()
