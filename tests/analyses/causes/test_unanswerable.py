"""What is learnt without the passage needs none; the test stays as it is; a stopped sweep goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertology.analyses import registry
from bertology.analyses.run import Subject, run
from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.sentence import from_text
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.finetuning import loop
from bertology.finetuning.tasks.choices import Choices
from bertology.measures.causes.blind_lessons import BLINDINGS, blinded, longest_option
from bertology.measures.causes.perturbations import Shuffling
from bertology.measures.work import FOLDER
from bertology.results.shapes import Table
from finetuning.planted_tasks import planted

UNANSWERABLE = registry.get("causes/unanswerable")


def trained(corpus: Corpus, store: Path | None = None, **options: Any) -> Table:
    found = run(UNANSWERABLE, Subject(corpus, load("tiny"), store=store), {"size": 8} | options).data
    assert isinstance(found, Table)
    return found


def choice(*texts: str, label: int = 0) -> Item:
    return Item(tuple(map(from_text, texts)), "choice", str(label))


def test_a_task_that_needs_no_passage_is_learnt_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    see, judged = Choices.see, list[Item]()

    def noted(self: Choices, items: Any, tokenise: Any, *, longest: int) -> Any:
        if len(items) == 12:
            judged.extend(items)
        return see(self, items, tokenise, longest=longest)

    monkeypatch.setattr(Choices, "see", noted)
    found = trained(planted("choice", 48), epochs=8, rate=5e-3)
    assert found.rows_named == ("clean", *BLINDINGS)
    assert (found.measures["score"].value > 0.85).all()
    assert abs(found.measures["drop"].value).max() < 0.15 and found.measures["drop"].value[0] == 0.0
    assert found.baselines["chance"]["score"].value[0] == 0.5 == found.baselines["longest option"]["score"].value[0]
    assert set(found.baselines) == {"majority", "longest option", "chance", "random weights", "no lead"}
    guess, lead = found.baselines["majority"]["score"], found.measures["score less majority"]
    np.testing.assert_allclose(lead.value, found.measures["score"].value - guess.value, atol=1e-12)
    assert (lead.low > 0).all()
    # What is judged on is seen once, as it is.
    assert len(judged) == 12 and all(all(map(len, item.parts)) for item in judged)


def test_passages_with_marked_answers_are_never_removed() -> None:
    found = trained(planted("qa", 16), epochs=1)
    assert found.rows_named == ("clean", "P-Shuffle", "Q-Shuffle", "PQ-Shuffle", "Q-Remove")
    assert "longest option" not in found.baselines
    assert "score less majority" not in found.measures


@pytest.mark.parametrize("name", BLINDINGS)
def test_blinding_changes_what_it_names_and_nothing_else(name: str) -> None:
    before = choice("Ann has a big red dog.", "What does Ann have?", "a dog", "a cat")
    after = blinded(before, name, Shuffling(), 0)
    which, how = BLINDINGS[name]
    for letter, place in (("P", 0), ("Q", 1)):
        old, new = before.parts[place], after.parts[place]
        assert (old.words != new.words) == (letter in which)
        if letter in which:
            assert sorted(new.words) == (sorted(old.words) if how == "shuffled" else [])
    assert after.parts[2:] == before.parts[2:] and after.label == before.label
    assert blinded(before, name, Shuffling(), 0) == after


def test_the_longest_option_shares_what_is_as_long() -> None:
    items = [
        choice("p", "q", "one", "one two", label=1),
        choice("p", "q", "one two", "one", label=1),
        choice("p", "q", "one two", "two one", "one", label=1),
    ]
    assert longest_option(items).right.tolist() == [1.0, 0.0, 0.5]


def test_a_sweep_that_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = planted("choice", 12)
    whole = trained(corpus, epochs=1)
    train, runs = loop.train, list[int]()

    def stopped(*given: Any, **named: Any) -> Any:
        runs.append(1)
        if len(runs) == 4:
            raise KeyboardInterrupt
        return train(*given, **named)

    monkeypatch.setattr("bertology.finetuning.learn.train", stopped)
    with pytest.raises(KeyboardInterrupt):
        trained(corpus, tmp_path, epochs=1)
    assert len(list((tmp_path / FOLDER).glob("*.json"))) == 3
    assert trained(corpus, tmp_path, epochs=1).model_dump_json() == whole.model_dump_json()
    assert len(runs) == 4 + (len(BLINDINGS) + 2 - 3)


def test_what_has_no_questions_is_refused() -> None:
    with pytest.raises(Refusal, match="generated:reading"):
        trained(corpus_named("english", limit=10))


def test_lessons_can_be_chosen() -> None:
    found = trained(planted("choice", 16), epochs=1, lessons="Q-Remove, P-Shuffle")
    assert found.rows_named == ("clean", "P-Shuffle", "Q-Remove")
    whole = trained(planted("choice", 16), epochs=1)
    places = [whole.rows_named.index(name) for name in found.rows_named]
    assert (found.measures["score"].value == whole.measures["score"].value[places]).all()
    with pytest.raises(Refusal, match="P-Shuffel"):
        trained(planted("choice", 16), lessons="P-Shuffel")
