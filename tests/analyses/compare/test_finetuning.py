"""Planted fine-tuning: the last layer's states and one head changed; the table says so and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

import planted
from bertology.analyses.attention.change import CHANGE, compare
from bertology.analyses.attention.kovaleva import shapes
from bertology.analyses.compare.finetuning import finetuning
from bertology.analyses.run import Subject, run
from bertology.corpus.builtin import corpus_named
from bertology.encoder.load import load
from bertology.encoder.pieces import Special
from bertology.errors import Refusal
from bertology.recording.entry import Entry
from bertology.recording.frame import Frame
from bertology.recording.recording import Recording
from bertology.results.shapes import Table

TEXTS = [" ".join(f"w{(start * 7 + step * 3) % 50}" for step in range(10)) for start in range(20)]
HEADS = [planted.looking_at(-1), planted.at_kind(Special.SEP)]


def states(entry: Entry, seed: int = 0) -> planted.Floats:
    return np.random.default_rng([seed, *entry.pieces.ids.tolist()]).normal(size=(3, len(entry.pieces), 6))


def tuned(entry: Entry) -> planted.Floats:
    """The last layer is another's."""
    return np.concatenate([states(entry)[:2], states(entry, 1)[2:]])


def pair() -> tuple[Recording, Recording]:
    import torch

    corpus = planted.corpus_of(*TEXTS)
    before = planted.recording_of(corpus, [HEADS, HEADS], states).with_derived([shapes()])
    after = planted.recording_of(corpus, [HEADS, [HEADS[0], planted.looking_at(1)]], tuned).with_derived([shapes()])
    compared = [
        np.stack(
            [
                compare(torch.from_numpy(one[layer])[None], torch.from_numpy(two[layer])[None], Frame([entry]))[0]
                for layer in range(2)
            ]
        )
        for one, two, entry in zip(before["attention"], after["attention"], before.entries, strict=True)
    ]
    sites = {**before.sites, CHANGE.identity: compared}
    return Recording(before.encoder, corpus, before.entries, sites), after


def table(by: str = "layers") -> Table:
    found = finetuning.function(*pair(), None, **finetuning.settled({"by": by}))
    assert isinstance(found, Table)
    return found


def test_layers_that_stayed_and_the_layer_that_changed() -> None:
    found = table()
    assert found.rows_named == ("embeddings", "layer 1", "layer 2")
    for name in ("rsa", "unbiased-cka"):
        np.testing.assert_allclose(found.measures[name].value[:2], 1, atol=1e-6)
        assert found.measures[name].high[2] < 0.6, name
    assert np.isnan(found.measures["cosine"].value[0]) and found.measures["cosine"].n[0] == 0
    assert found.measures["cosine"].value[1] == pytest.approx(1, abs=1e-6)
    assert found.measures["shape changed"].value[2] == 0.5
    assert list(found.notes) == ["layer 2"] and "2-2: vertical" in found.notes["layer 2"]


def test_heads_that_changed_most_come_first() -> None:
    found = table("heads")
    assert found.rows_named[0] == "2-2" and len(found.rows_named) == 4
    assert list(found.notes) == ["2-2"] and "diagonal" in found.notes["2-2"]
    np.testing.assert_allclose(found.measures["divergence"].value[1:], 0, atol=1e-6)


def test_probes_of_both_models_are_joined() -> None:
    corpus = corpus_named("english", limit=60)
    subject = Subject(corpus, load("tiny"), against=load("random:tiny@1"), randomise=False)
    found = run(finetuning, subject, {"probe": "upos"}).data
    assert isinstance(found, Table)
    for name in ("probe before", "probe after"):
        assert (found.measures[name].value > 0.1).all() and name in found.baselines["majority"], name
        assert found.units[name]
    with pytest.raises(Refusal, match="upos"):
        run(finetuning, subject, {"probe": "uposs"})


def test_nothing_changed_has_no_notes() -> None:
    before, _ = pair()
    found = finetuning.function(before, before, None, **finetuning.settled({}))
    assert isinstance(found, Table) and not found.notes
