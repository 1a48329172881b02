"""A task that needs no passage is learnt without one; test questions stay intact; an interrupted sweep resumes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertology.analyses import registry
from bertology.analyses.cache import FOLDER
from bertology.analyses.interventions.unanswerable_training import (
    CORRUPTIONS,
    corrupt_example,
    longest_option_baseline,
)
from bertology.analyses.run import RunInputs, run_analysis
from bertology.analyses.text_attacks.perturbations import AttackConfig
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.read import load_corpus
from bertology.corpus.sentence import sentence_from_text, sentence_from_words
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.results.shapes import Table
from bertology.training import loop
from bertology.training.tasks.multiple_choice import MultipleChoice
from planted_tasks import planted_corpus

UNANSWERABLE_TRAINING = registry.get("interventions/unanswerable_training")


def run(corpus: Corpus, store: Path | None = None, **options: Any) -> Table:
    inputs = RunInputs(corpus, load("tiny"), store=store)
    table = run_analysis(UNANSWERABLE_TRAINING, inputs, {"batch_size": 8} | options).data
    assert isinstance(table, Table)
    return table


def choice(*texts: str, label: int = 0) -> Example:
    return Example(tuple(map(sentence_from_text, texts)), "choice", str(label))


def test_a_task_that_needs_no_passage_is_learnt_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    encode, test_examples = MultipleChoice.encode, list[Example]()

    def recorded(self: MultipleChoice, examples: Any, tokenise: Any, *, max_length: int) -> Any:
        if len(examples) == 12:
            test_examples.extend(examples)
        return encode(self, examples, tokenise, max_length=max_length)

    monkeypatch.setattr(MultipleChoice, "encode", recorded)
    table = run(planted_corpus("choice", 48), epochs=8, learning_rate=5e-3)
    score, drop = table.measures["score"], table.measures["score drop"]
    assert table.row_names == ("uncorrupted", *CORRUPTIONS)
    assert (score.value > 0.85).all()
    assert abs(drop.value).max() < 0.15 and drop.value[0] == 0.0
    assert table.baselines["chance"]["score"].value[0] == 0.5 == table.baselines["longest option"]["score"].value[0]
    assert set(table.baselines) == {"majority class", "longest option", "chance", "untrained model", "zero"}
    majority, difference = table.baselines["majority class"]["score"], table.measures["score - majority class"]
    np.testing.assert_allclose(difference.value, score.value - majority.value, atol=1e-12)
    assert (difference.low > 0).all()
    assert test_examples and all(all(map(len, example.segments)) for example in test_examples)
    assert table.reference is not None and table.reference.is_above_baseline
    assert table.reference.name == "uncorrupted" and table.reference.score.value == score.value[0]


def test_a_model_no_better_than_guessing_is_named_first() -> None:
    table = run(planted_corpus("choice", 48, shuffled=True), epochs=1, corruptions="Q-Remove")
    reference = table.reference
    assert reference is not None and not reference.is_above_baseline
    guesses = [table.baselines[name]["score"].value[0] for name in ("majority class", "chance")]
    assert reference.baseline_score.value == max(guesses)
    assert "no better than" in reference.describe()


def test_the_untrained_model_can_be_left_out() -> None:
    inputs = RunInputs(planted_corpus("choice", 16), load("tiny"), random_baseline=False)
    result = run_analysis(UNANSWERABLE_TRAINING, inputs, {"epochs": 1, "corruptions": "Q-Remove"})
    assert isinstance(result.data, Table)
    assert "untrained model" not in result.data.baselines and not result.options["random_baseline"]


def test_what_is_shuffled_is_what_the_model_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    encode, encoded = MultipleChoice.encode, list[Example]()

    def recorded(self: MultipleChoice, examples: Any, tokenise: Any, *, max_length: int) -> Any:
        encoded.extend(examples)
        return encode(self, examples, tokenise, max_length=max_length)

    monkeypatch.setattr(MultipleChoice, "encode", recorded)
    corpus = planted_corpus("choice", 12)
    endings = ("king",) * 600 + ("queen",) * 200
    passages = [sentence_from_words(example.segments[0].words + endings) for example in corpus]
    long_examples = tuple(
        replace(example, segments=(passage, *example.segments[1:]))
        for example, passage in zip(corpus, passages, strict=True)
    )
    table = run(replace(corpus, examples=long_examples), epochs=1, corruptions="P-Shuffle")
    shuffled = [example for example in encoded if len(example.segments[0]) < 700]
    assert shuffled and all("queen" not in example.segments[0].words for example in shuffled)
    assert table.sample["long examples truncated"] == 12


@pytest.mark.parametrize(("option", "value"), [("shuffle_distance", -3.0), ("learning_rate", -1.0), ("epochs", 0)])
def test_impossible_numbers_are_refused(option: str, value: float) -> None:
    options: dict[str, Any] = {option: value}
    with pytest.raises(Refusal, match=f"--{option.replace('_', '-')} (is|was given) {value}"):
        run(planted_corpus("choice", 12), **options)


def test_passages_with_marked_answers_are_never_removed() -> None:
    table = run(planted_corpus("qa", 16), epochs=1)
    assert table.row_names == ("uncorrupted", "P-Shuffle", "Q-Shuffle", "PQ-Shuffle", "Q-Remove")
    assert "longest option" not in table.baselines
    assert "score - majority class" not in table.measures


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_corruption_changes_only_the_segments_it_names(name: str) -> None:
    before = choice("Ann has a big red dog.", "What does Ann have?", "a dog", "a cat")
    after = corrupt_example(before, name, AttackConfig().shuffle_distance, 0)
    letters, method = CORRUPTIONS[name]
    for letter, index in (("P", 0), ("Q", 1)):
        old, new = before.segments[index], after.segments[index]
        assert (old.words != new.words) == (letter in letters)
        if letter in letters:
            assert sorted(new.words) == (sorted(old.words) if method == "shuffled" else [])
    assert after.segments[2:] == before.segments[2:] and after.label == before.label
    assert corrupt_example(before, name, AttackConfig().shuffle_distance, 0) == after


def test_equally_long_options_share_the_credit() -> None:
    examples = [
        choice("p", "q", "one", "one two", label=1),
        choice("p", "q", "one two", "one", label=1),
        choice("p", "q", "one two", "two one", "one", label=1),
    ]
    assert longest_option_baseline(examples).correct.tolist() == [1.0, 0.0, 0.5]


def test_an_interrupted_sweep_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = planted_corpus("choice", 12)
    expected = run(corpus, epochs=1)
    train, calls = loop.train, list[int]()

    def interrupted(*args: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return train(*args, **options)

    monkeypatch.setattr("bertology.training.job.train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(corpus, tmp_path, epochs=1)
    assert len(list((tmp_path / FOLDER).glob("*.json"))) == 3
    assert run(corpus, tmp_path, epochs=1).model_dump_json() == expected.model_dump_json()
    assert len(calls) == 4 + (len(CORRUPTIONS) + 2 - 3)


def test_a_corpus_without_questions_is_refused() -> None:
    with pytest.raises(Refusal, match="generated:reading_comprehension"):
        run(load_corpus("english", limit=10))


def test_corruptions_can_be_selected() -> None:
    table = run(planted_corpus("choice", 16), epochs=1, corruptions="Q-Remove, P-Shuffle")
    assert table.row_names == ("uncorrupted", "P-Shuffle", "Q-Remove")
    complete = run(planted_corpus("choice", 16), epochs=1)
    rows = [complete.row_names.index(name) for name in table.row_names]
    assert (table.measures["score"].value == complete.measures["score"].value[rows]).all()
    with pytest.raises(Refusal, match="P-Shuffel"):
        run(planted_corpus("choice", 16), corruptions="P-Shuffel")
