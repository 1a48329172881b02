"""Features that know the answer win by as much as they know; what is planted in the words alone is found there."""

from __future__ import annotations

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
from bertology.results.shapes import Table

THREE = "call:planted_features:told,call:planted_features:identity,call:planted_features:noise"


def table(
    corpus: Corpus, features: str = THREE, model: str = "tiny", store: Path | None = None, **options: Any
) -> Table:
    subject = Subject(corpus, load(model), store=store)
    found = run(registry.get("meaning/compare"), subject, {"features": features, "seeds": 2, **options}).data
    assert isinstance(found, Table)
    return found


def test_context_is_worth_what_words_do_not_tell() -> None:
    found = table(planted.names(ambiguous=True))
    told, identity, noise = found.measures["linear"].value
    assert told == 1.0 and abs(identity - 0.5) < 0.15 and noise < 0.3
    lead = found.measures["linear: call:planted_features:told leads by"]
    np.testing.assert_allclose(lead.value, [0, 1 - identity, 1 - noise])
    assert (
        lead.low[1] > 0.3
        and found.baselines["no difference"]["linear: call:planted_features:told leads by"].value[1] == 0
    )
    assert found.baselines["majority"]["linear"].value[0] == 0  # nobody is a name
    assert abs(found.baselines["majority of the word"]["linear"].value[0] - 0.5) < 0.15
    assert "span F1" in found.units["linear"] and set(found.baselines) >= {"random weights"}


def test_where_words_tell_everything_context_is_worth_nothing() -> None:
    found = table(
        planted.names(ambiguous=False), features="call:planted_features:identity,call:planted_features:context"
    )
    np.testing.assert_array_equal(found.measures["linear"].value, [1.0, 1.0])
    assert found.baselines["majority of the word"]["linear"].value[0] == 1.0


def test_the_model_and_what_it_is_compared_with_by_default() -> None:
    found = table(planted.opinions(count=40), features="model,static,random")
    assert found.rows_named == ("model", "static", "random")
    assert found.notes["random"].startswith("width 32; ")
    assert found.baselines["majority"]["linear"].value[0] == pytest.approx(0.5, abs=0.3)


def test_two_learners_side_by_side() -> None:
    found = table(planted.opinions(count=60), features="call:planted_features:told", learners="linear,cnn", seeds=1)
    assert found.measures["linear"].value[0] == 1.0 and found.measures["cnn"].value[0] > 0.9


def test_a_corpus_of_its_own_to_learn_from(tmp_path: Path) -> None:
    file = tmp_path / "train.conll"
    corpus = planted.names(ambiguous=True, seed=1)
    lines = [
        "\n".join(f"{word}\t{tag}" for word, tag in zip(part.words, _tags(part), strict=True))
        for part in corpus.sentences
    ]
    file.write_text("\n\n".join(lines) + "\n", "utf-8")
    found = table(planted.names(ambiguous=True, count=30), features="call:planted_features:told", train=str(file))
    assert found.measures["linear"].value[0] == 1.0 and found.measures["linear"].n[0] == 30


def _tags(part: Any) -> list[str]:
    spans = {span.start: f"B-{span.label}" for span in part.entities}
    return [spans.get(place, "O") for place in range(len(part))]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(Refusal, match="table of vectors"):
        table(planted.opinions(), features="static", model="random-vectors:4")
    with pytest.raises(Refusal, match="--learners"):
        table(planted.opinions(), learners="bilstm-crf")
