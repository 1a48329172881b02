"""Labels under their own names: a planted label is learnt from a file, in Python and on the command line alike."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import bertology
from bertology.analyses.probing.edge_labels import edge_task
from bertology.analyses.probing.word_labels import word_task
from bertology.cli.main import app
from bertology.corpus.corpus import Corpus
from bertology.errors import Refusal

ANIMALS, TOOLS, VERBS = ("dog", "cat", "horse"), ("hammer", "knife", "saw"), ("moved", "fell", "stood")
OPTIONS: dict[str, Any] = {"n_seeds": 1}


def planted_table(n_sentences: int = 300) -> str:
    """A table of words: `kind` is animal or tool by the noun, `coin` is random."""
    generator = random.Random(0)
    lines = ["word\tkind\tcoin"]
    for _ in range(n_sentences):
        noun = generator.choice(ANIMALS + TOOLS)
        kinds = ("", "B-animal" if noun in ANIMALS else "B-tool", "O", "O")
        words = ("the", noun, generator.choice(VERBS), ".")
        labels = (kind or "O" for kind in kinds)
        lines += [f"{w}\t{k}\t{generator.choice(('heads', 'tails'))}" for w, k in zip(words, labels, strict=True)] + [
            ""
        ]
    return "\n".join(lines) + "\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "planted.tsv"
    file.write_text(planted_table())
    return file


def accuracies(result: bertology.Result) -> list[float]:
    data: Any = result.data
    return data.measures["accuracy"].value.tolist()


def test_a_planted_label_is_learnt_and_noise_is_not(path: Path) -> None:
    corpus = bertology.read(path)
    planted = bertology.run("probes/word", "tiny", corpus, label="kind", **OPTIONS)
    assert max(accuracies(planted)) > 0.95
    noise = bertology.run("probes/word", "tiny", corpus, label="coin", **OPTIONS)
    assert max(accuracies(noise)) < 0.7


def test_the_command_line_equals_python(path: Path) -> None:
    arguments = ["run", "probes/word", "--model", "tiny", "--corpus", str(path), "--label", "kind", "--n-seeds", "1"]
    done = CliRunner().invoke(app, [*arguments, "--no-store", "--json"])
    assert done.exit_code == 0, done.output
    result = bertology.run("probes/word", "tiny", path, label="kind", **OPTIONS)
    assert json.loads(done.stdout)["data"] == result.to_json()["data"]


def test_spans_are_learnt_under_their_own_name(path: Path) -> None:
    result = bertology.run("probes/edge", "tiny", path, label="kind", **OPTIONS)
    assert max(accuracies(result)) > 0.95
    corpus = bertology.read(path)
    cases = list(edge_task("kind", corpus).extract(corpus[0].segments[0]))
    assert [(case.label in ("animal", "tool"), case.spans) for case in cases] == [(True, ((1, 2),))]


def test_unlabelled_words_are_left_out() -> None:
    corpus = bertology.corpus([["a", "b"]], word_labels={"mood": [["glad", ""]]})
    cases = list(word_task("mood", corpus).extract(corpus[0].segments[0]))
    assert [case.label for case in cases] == ["glad"]


def test_a_label_of_the_corpus_comes_before_an_annotation_of_the_same_name() -> None:
    corpus = bertology.corpus([["a", "b"]], word_labels={"number": [["one", "two"]]})
    assert [case.label for case in word_task("number", corpus).extract(corpus[0].segments[0])] == ["one", "two"]


@pytest.mark.parametrize(
    "analysis", ["probes/word", "probes/edge", "probes/control_tasks", "probes/description_length"]
)
def test_a_missing_label_is_refused_before_any_forward_pass(
    analysis: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse_to_record(*_: object, **__: object) -> None:
        raise AssertionError("a forward pass was made")

    monkeypatch.setattr("bertology.analyses.recordings_by_role.record", refuse_to_record)
    for label, message in (("knid", "Did you mean 'kind'"), ("pos", "word labels: coin, kind")):
        with pytest.raises(Refusal, match=message) as caught:
            bertology.run(analysis, "tiny", path, label=label)
        assert "--label" in str(caught.value)


def test_the_message_lists_only_labels_that_the_corpus_has() -> None:
    corpus: Corpus = bertology.corpus([(["Ann", "sang"], ["B-PER", "O"])], word_labels="ner")
    with pytest.raises(Refusal) as caught:
        word_task("mood", corpus)
    assert "Expected one of: entity, ner. Choose one with --label." in str(caught.value)
    with pytest.raises(Refusal, match=r"text has no labels of words or spans.*--corpus.*word_labels=") as caught:
        word_task("ner", bertology.corpus(["Ann sang."]))
    assert "Did you mean" not in str(caught.value)


def test_a_label_of_examples_is_no_label_of_words() -> None:
    corpus: Corpus = bertology.corpus([{"text": "A film.", "topic": "war"}])
    with pytest.raises(Refusal, match="probes/sentence --label topic"):
        word_task("topic", corpus)
