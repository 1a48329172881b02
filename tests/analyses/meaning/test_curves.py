"""A feature that knows the label is perfect at every size; finished cells are kept; features are recorded once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import planted_features as planted
from bertology.analyses import registry
from bertology.analyses.run import Subject, run
from bertology.corpus.corpus import Corpus
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.measures.meaning import cells
from bertology.measures.work import FOLDER
from bertology.results.shapes import Curve

TOLD, IDENTITY = "call:planted_features:told", "call:planted_features:identity"
SORTED = "call:planted_features:sorted_already"


def curve(corpus: Corpus, features: str, store: Path | None = None, **options: Any) -> Curve:
    told: list[tuple[int, int]] = []

    def tell(done: int, total: int) -> None:
        told.append((done, total))

    def meter(title: str) -> Any:
        return tell

    subject = Subject(corpus, load("tiny"), store=store)
    given = {"features": features, "seeds": 2, "sizes": 3, "least": 0.1, **options}
    found = run(registry.get("meaning/curves"), subject, given, progress=meter).data
    assert isinstance(found, Curve) and told[-1][0] == told[-1][1]
    return found


def test_the_label_in_the_vectors_is_found_at_every_size() -> None:
    found = curve(planted.names(ambiguous=True), f"{TOLD},{IDENTITY}")
    np.testing.assert_array_equal(found.measures[TOLD].value, 1.0)
    assert (found.measures[IDENTITY].value < 0.7).all()
    assert found.along == "training items" and found.points.tolist() == [8, 24, 76]
    assert set(found.baselines) == {"majority", "majority of the word", "no difference"}
    assert found.baselines["majority of the word"][TOLD].value[-1] < 0.7


def test_what_must_be_memorised_needs_data() -> None:
    found = curve(planted.names(ambiguous=False), IDENTITY, least=0.02, sizes=4)
    values = found.measures[IDENTITY].value
    assert values[0] < 0.9 and values[-1] == 1.0 and (np.diff(values) >= 0).all()


def test_the_gap_between_two_features_closes_as_the_weaker_one_learns() -> None:
    """One has the labels sorted already, the other must see every word once: both are perfect in the end."""
    found = curve(planted.names(ambiguous=False), f"{SORTED},{IDENTITY}", least=0.02, sizes=4)
    gap = found.measures[f"{SORTED} - {IDENTITY}"]
    np.testing.assert_allclose(gap.value, found.measures[SORTED].value - found.measures[IDENTITY].value, atol=1e-12)
    assert gap.low[0] > gap.high[-1] and gap.value[-1] == gap.low[-1] == gap.high[-1] == 0
    assert (gap.low <= gap.value).all() and (gap.value <= gap.high).all()
    shrinks = found.measures[f"{SORTED} - {IDENTITY}, shrinks by"]
    np.testing.assert_allclose(shrinks.value, gap.value - gap.value[-1], atol=1e-12)
    assert shrinks.low[0] > 0 and shrinks.low[-1] == shrinks.high[-1] == 0
    assert set(found.baselines["no difference"]) == {f"{SORTED} - {IDENTITY}", f"{SORTED} - {IDENTITY}, shrinks by"}


def test_a_gap_that_stays_does_not_shrink() -> None:
    """Where words are ambiguous no data helps those that know the word alone: the lead stays what it is."""
    found = curve(planted.names(ambiguous=True), f"{TOLD},{IDENTITY}")
    gap, shrinks = (found.measures[f"{TOLD} - {IDENTITY}{after}"] for after in ("", ", shrinks by"))
    assert (gap.low > 0.2).all()
    assert shrinks.low[0] < 0.1 and (shrinks.high - shrinks.low)[0] < 2 * (gap.high - gap.low)[0]


def test_work_that_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, both = planted.opinions(count=60), f"model,{IDENTITY}"
    whole = curve(corpus, both)
    answers, learnt = cells.answers, list[int]()

    def stopped(*given: Any) -> Any:
        learnt.append(1)
        if len(learnt) == 4:
            raise KeyboardInterrupt
        return answers(*given)

    monkeypatch.setattr(cells, "answers", stopped)
    with pytest.raises(KeyboardInterrupt):
        curve(corpus, both, tmp_path)
    kept = list((tmp_path / FOLDER).glob("*.json"))
    assert len(kept) == 3 and json.loads(kept[0].read_text("utf-8"))["about"]["analysis"] == "meaning/curves"
    monkeypatch.setattr("bertology.measures.meaning.encoded_words.states_of_words", None)  # recorded already
    assert curve(corpus, both, tmp_path).model_dump_json() == whole.model_dump_json()
    assert len(learnt) == 4 + 3


@pytest.mark.parametrize("options", [{"sizes": 0}, {"least": 0.0}, {"least": 2.0}, {"learner": "cnn"}])
def test_what_makes_no_curve_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(Refusal):
        curve(planted.names(ambiguous=True, count=20), IDENTITY, **options)
