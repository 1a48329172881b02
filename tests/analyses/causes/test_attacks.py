"""A bag of words does not mind its order; what reads order is lost without it; chance stays chance; work goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attackable import LABELS, bag_of_words, order_matters, reader_of_order
from bertology.analyses import registry
from bertology.analyses.run import Subject, run
from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.load import load
from bertology.encoder.task_heads import with_head
from bertology.encoder.variant import Variant
from bertology.errors import Refusal
from bertology.finetuning.metrics import Counts
from bertology.measures.causes import attack_rounds
from bertology.measures.causes.attacked import paired_drop
from bertology.measures.work import FOLDER
from bertology.results.estimate import Estimate
from bertology.results.shapes import Table
from finetuning.planted_tasks import planted

ATTACKS = registry.get("causes/attacks")


def attacked(encoder: Encoder, corpus: Corpus, store: Path | None = None, **options: Any) -> Table:
    found = run(ATTACKS, Subject(corpus, encoder, store=store), options).data
    assert isinstance(found, Table)
    return found


def at(table: Table, row: str, measure: str = "drop", baseline: str = "") -> Estimate:
    values = table.baselines[baseline] if baseline else table.measures
    return values[measure][table.rows_named.index(row)]


def headed(task: str) -> HuggingFaceEncoder:
    base = load("tiny")
    assert isinstance(base, HuggingFaceEncoder)
    head, labels = {
        "pair": ("label", LABELS),
        "qa": ("answer", ()),
        "choice": ("choice", ()),
        "token": ("token", LABELS),
    }[task]
    return with_head(base, head, labels, variant=Variant(), seed=3)  # type: ignore[arg-type]  # a literal of these


def test_a_bag_of_words_does_not_mind_its_order() -> None:
    found = attacked(bag_of_words(), planted("sentence", 60, seed=1))
    assert at(found, "words shuffled", "score", "unattacked").value > 0.95
    assert at(found, "words shuffled") == Estimate(0.0, 0.0, 0.0, 60)
    assert at(found, "words shuffled", "changed").value == 1.0
    # Half of the words or more replaced at random: the good word is often gone.
    assert at(found, "words shuffled", baseline="random edit").low > 0.1
    edited = at(found, "words shuffled", "edited")
    assert edited == at(found, "words shuffled", "edited", "random edit") and edited.value > 0.6
    assert at(found, "spaces") == Estimate(np.nan, np.nan, np.nan, 0) or at(found, "spaces").n == 0


def test_what_reads_order_is_lost_without_it() -> None:
    found = attacked(reader_of_order(), order_matters(60, seed=1))
    assert at(found, "words shuffled", "score", "unattacked").value > 0.9
    assert at(found, "words shuffled").low > 0.2
    assert at(found, "words shuffled", "score").value < 0.7
    assert "60 of 60 items changed" in found.notes["words shuffled"]
    assert "changes no item" in found.notes["sentences shuffled"] and at(found, "sentences shuffled").n == 0


def test_every_kind_of_item_has_its_attacks() -> None:
    pairs = attacked(headed("pair"), planted("pair", 12))
    assert {"no first", "no second", "first shuffled"} <= set(pairs.rows_named)
    questions = attacked(headed("qa"), planted("qa", 12))
    assert {"no question", "passage shuffled"} <= set(questions.rows_named) and "no passage" not in questions.rows_named
    choices = attacked(headed("choice"), planted("choice", 12))
    assert {"no passage", "options alone", "AddSent2Pas-Shuffle", "AddAns2Opt"} <= set(choices.rows_named)
    assert "short of what is asked" in choices.notes["AddSent2Pas-Shuffle"]
    for found in (pairs, questions, choices):
        n = found.measures["score"].n[[row != "slips" for row in found.rows_named]]
        assert set(n.tolist()) <= {0, 12}


def test_chosen_attacks_and_unknown_ones() -> None:
    some = attacked(bag_of_words(), planted("sentence", 10), attack="slips, words shuffled")
    assert some.rows_named == ("slips", "words shuffled")
    with pytest.raises(Refusal, match="AddAns2Pas"):
        attacked(headed("choice"), planted("choice", 5), attack="AddAns2Pas")
    with pytest.raises(Refusal, match="no passage"):
        attacked(bag_of_words(), planted("sentence", 5), attack="no passage")
    with pytest.raises(Refusal, match="degree"):
        attacked(bag_of_words(), planted("sentence", 5), degree=2.0)
    with pytest.raises(Refusal, match="tags words"):
        attacked(headed("token"), corpus_named("english", limit=5), task="token")


def test_an_attack_that_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, corpus = headed("choice"), planted("choice", 8)
    whole = attacked(encoder, corpus)
    ask, asked = attack_rounds.Rounds.ask, list[int]()

    def stopped(self: Any, forms: Any) -> Any:
        asked.append(1)
        if len(asked) == 8:
            raise KeyboardInterrupt
        return ask(self, forms)

    monkeypatch.setattr(attack_rounds.Rounds, "ask", stopped)
    with pytest.raises(KeyboardInterrupt):
        attacked(encoder, corpus, tmp_path)
    kept = len(list((tmp_path / FOLDER).glob("*.json")))
    assert kept == 3  # the fourth attack was under way: its items attacked, its random edits not
    assert attacked(encoder, corpus, tmp_path).model_dump_json() == whole.model_dump_json()
    assert len(asked) == 8 + 2 * (len(whole.rows_named) - kept)


def test_drops_are_of_the_same_items() -> None:
    ones, right = np.ones(100), np.repeat([1.0, 0.0], 50)
    before, after = Counts(right, ones), Counts(np.where(np.arange(100) < 10, 0.0, right), ones)
    found = paired_drop(before, after, seed=0)
    # Ten items lost of a hundred: the half that was wrong before adds nothing to the error, as it would unpaired.
    assert found.value == pytest.approx(0.1) and found.n == 100
    assert found.high - found.low == pytest.approx(2 * 1.96 * np.sqrt(0.1 * 0.9 / 100), rel=0.2)
    assert paired_drop(before, Counts(right, np.zeros(100)), seed=0).n == 0
    assert paired_drop(before, Counts(right, np.where(np.arange(100) < 30, 1.0, 0.0)), seed=0).n == 30
