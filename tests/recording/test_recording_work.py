"""The work of a recording is estimated before it starts: its bytes are right, and what explodes is refused at once."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.read import load_corpus
from bertology.corpus.sentence import sentence_from_words
from bertology.encoder.load import load
from bertology.errors import CostError
from bertology.recording import recording_work
from bertology.recording.plan import RecordingConfig
from bertology.recording.recorder import estimate_missing, missing_proportion, record
from bertology.recording.recording_work import InputLengths, estimate_recording
from bertology.recording.sites import resolve_sites
from command import bertology

SITES = ("attention", "hidden", "hidden.words", "query")


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure small work too."""
    monkeypatch.setattr(recording_work, "SMALL_BYTES", 0.0)


def kept_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*.safetensors"))


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("half_precision", [False, True])
def test_the_bytes_are_those_that_recording_writes(site: str, half_precision: bool, tmp_path: Path) -> None:
    encoder, corpus = load("tiny"), load_corpus("english", limit=60)
    config = RecordingConfig(half_precision=half_precision)
    estimate = estimate_recording(encoder, corpus, resolve_sites([site]), config)
    record(encoder, corpus, [site], config=config, folder=tmp_path)
    assert estimate.n_bytes == pytest.approx(kept_bytes(tmp_path), rel=0.35)
    assert 0 < estimate.seconds < 60


@pytest.mark.usefixtures("measured")
def test_a_busy_machine_does_not_make_the_work_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others have the cores for an hour between two readings of the clock; the processor time stays what it is."""
    encoder, corpus = load("tiny"), load_corpus("english", limit=60)
    hours = count(step=3600.0)
    monkeypatch.setattr(recording_work, "perf_counter", lambda: next(hours))
    estimate = estimate_recording(encoder, corpus, resolve_sites(["attention"]), RecordingConfig())
    assert 0 < estimate.seconds < 600


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize("overflow", ["window", "truncate", "skip"])
def test_long_texts_count_as_they_will_be_recorded(overflow: Any, tmp_path: Path) -> None:
    encoder, words = load("tiny"), ("the", "cat", "sat", "on", "a", "mat") * 500
    long, short = (Example((sentence_from_words(part),), id=str(len(part))) for part in (words, words[:30]))
    corpus = Corpus((long, short, short, short))
    config = RecordingConfig(overflow=overflow)
    estimate = estimate_recording(encoder, corpus, resolve_sites(["attention"]), config)
    record(encoder, corpus, ["attention"], config=config, folder=tmp_path)
    assert estimate.n_bytes == pytest.approx(kept_bytes(tmp_path), rel=0.25)


@pytest.mark.usefixtures("measured")
def test_recorded_shards_are_no_work(tmp_path: Path) -> None:
    encoder, corpus = load("tiny"), load_corpus("english", limit=20)
    sites = resolve_sites(["attention"])
    arguments: Any = {"config": RecordingConfig(), "store": tmp_path}
    whole = estimate_missing(encoder, corpus, sites, **arguments)
    record(encoder, corpus, sites, store=tmp_path)
    rest = estimate_missing(encoder, corpus, sites, **arguments)
    assert whole.n_bytes > 0 and whole.seconds > 0
    assert rest.n_bytes == 0 and rest.seconds == 0


def test_what_is_not_in_a_store_is_missing(tmp_path: Path) -> None:
    encoder, corpus, sites = load("tiny"), load_corpus("english", limit=5), resolve_sites(["hidden"])
    (tmp_path / "empty").mkdir()
    places: list[Any] = [{}, *({place: tmp_path / name} for place in ("store", "folder") for name in ("no", "empty"))]
    for place in places:
        assert missing_proportion(encoder, corpus, sites, config=RecordingConfig(), **place) == 1.0, place


def test_the_work_of_a_pass_is_that_of_its_tokens_and_of_their_pairs() -> None:
    encoder = load("tiny")
    one, twice, two_of_half = (
        InputLengths(np.array(tokens, float), np.array(counts, float)).work(encoder)
        for tokens, counts in (([100], [1]), ([100], [2]), ([50], [2]))
    )
    assert twice == 2 * one
    pairs = 2 * encoder.layers * encoder.width * (100**2 - 2 * 50**2)
    assert one - two_of_half == pytest.approx(pairs), "as many tokens, and half of the pairs"
    assert one > 100 * 12 * encoder.layers * encoder.width**2


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize(("waited", "used"), [(1.0, 2.0), (2.0, 1.0)])
def test_the_time_of_all_measured_batches_counts(waited: float, used: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """By clocks that add the same whenever they are read, which is when progress is told."""
    readings: list[float] = []

    def read_clock() -> float:
        readings.append(float(len(readings)))
        return waited * readings[-1]

    monkeypatch.setattr(recording_work, "perf_counter", read_clock)
    monkeypatch.setattr(recording_work, "process_time", lambda: used * readings[-1])
    sentence = load_corpus("english", limit=1)[0]
    corpus = Corpus((sentence,) * 60, name="equal")
    estimate = estimate_recording(load("tiny"), corpus, resolve_sites(["hidden"]), RecordingConfig())
    assert len(readings) > 3, "several batches"
    assert estimate.seconds == pytest.approx(min(waited, used) * readings[-1])


def test_small_work_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        pytest.fail("a pass was made")

    monkeypatch.setattr(recording_work, "_measure", fail)
    corpus = load_corpus("english", limit=20)
    assert estimate_recording(load("tiny"), corpus, resolve_sites(["attention"]), RecordingConfig()).n_bytes == 0


def test_ten_million_sentences_are_refused_at_once() -> None:
    """The estimate tokenises a sample only; planning them would take half an hour."""
    sentence = load_corpus("english", limit=1)[0]
    corpus = Corpus((sentence,) * 10**7, name="huge")
    start = time.monotonic()
    with pytest.raises(CostError, match=r"Recording tiny on huge takes about .* (hours|TB|GB)"):
        record(load("tiny"), corpus, ["attention"], max_hours=0.5)
    assert time.monotonic() - start < 60
    with pytest.raises(CostError, match="TB to keep"):
        record(load("tiny"), corpus, ["attention"], max_hours=1e6)


def test_one_sentence_of_a_hundred_thousand_words_is_refused_with_the_option_that_allows_it(tmp_path: Path) -> None:
    file = tmp_path / "long.txt"
    file.write_text(" ".join(("the", "cat", "sat", "on", "a", "mat") * 16_667))
    arguments = ["record", "mini", str(file), "--sites", "attention", "--overflow", "window"]
    refused = bertology(*arguments, "-o", str(tmp_path / "out"), "--max-hours", "0.0001")
    assert refused.status == 2 and not refused.out, refused.err
    assert "Recording mini on" in refused.err and "GB to keep" in refused.err
    assert "Expected at most 0.0001 hours." in refused.err and "--max-hours" in refused.err
    assert not (tmp_path / "out").exists()


def test_words_of_a_large_corpus_are_counted_in_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = load_corpus("english")
    words, scale = recording_work.count_words_per_input(corpus)
    monkeypatch.setattr(recording_work, "MAX_COUNTED_EXAMPLES", 100)
    sampled, sampled_scale = recording_work.count_words_per_input(corpus)
    assert scale == 1 and len(sampled) <= 100
    assert np.isclose(sampled.sum() * sampled_scale, words.sum(), rtol=0.2)


def test_an_empty_corpus_is_no_work() -> None:
    corpus = replace(load_corpus("english", limit=1), examples=())
    assert estimate_recording(load("tiny"), corpus, resolve_sites(["hidden"]), RecordingConfig()).seconds == 0
