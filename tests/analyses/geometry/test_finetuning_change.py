"""`geometry/finetuning_change`: a changed layer and a changed head are found, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import planted
from bertology.analyses.attention.model_similarity.analysis import compare_attention, model_similarity_site
from bertology.analyses.attention_patterns.site import pattern_class_site
from bertology.analyses.geometry.finetuning_change import finetuning_change
from bertology.analyses.run import RunInputs, run_analysis
from bertology.arrays import FloatArray
from bertology.corpus.read import load_corpus
from bertology.encoder.load import load
from bertology.encoder.token_batch import RecordedInput, TokenBatch
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal
from bertology.recording.recording import Recording
from bertology.results.shapes import Table

TEXTS = [" ".join(f"w{(start * 7 + step * 3) % 50}" for step in range(10)) for start in range(20)]
HEADS = [planted.offset_head(-1), planted.special_head(SpecialToken.SEP)]


def original_states(recorded: RecordedInput, seed: int = 0) -> FloatArray:
    return np.random.default_rng([seed, *recorded.tokens.ids.tolist()]).normal(size=(3, len(recorded.tokens), 6))


def changed_states(recorded: RecordedInput) -> FloatArray:
    """States whose last layer is independent of the original."""
    return np.concatenate([original_states(recorded)[:2], original_states(recorded, 1)[2:]])


def make_pair() -> tuple[Recording, Recording]:
    """A model, and the same model with other states in the last layer and another pattern in head 2-2."""
    corpus = planted.make_corpus(*TEXTS)
    site = pattern_class_site()
    before = planted.make_recording(corpus, [HEADS, HEADS], original_states).with_sites([site])
    changed_heads = [HEADS, [HEADS[0], planted.offset_head(1)]]
    after = planted.make_recording(corpus, changed_heads, changed_states).with_sites([site])
    comparisons = [
        np.stack(
            [
                compare_attention(
                    torch.from_numpy(first[layer])[None], torch.from_numpy(second[layer])[None], TokenBatch([recorded])
                )[0]
                for layer in range(2)
            ]
        )
        for first, second, recorded in zip(before["attention"], after["attention"], before.inputs, strict=True)
    ]
    sites = {**before.sites, model_similarity_site.storage_key: comparisons}
    return Recording(before.encoder, corpus, before.inputs, sites), after


def table(show: str = "layers") -> Table:
    data = finetuning_change(*make_pair(), None, show=show)
    assert isinstance(data, Table)
    return data


def test_only_the_changed_layer_is_dissimilar() -> None:
    data = table()
    assert data.row_names == ("layer 0", "layer 1", "layer 2")
    assert data.attributes["layer"] == (0, 1, 2)
    for name in ("RSA", "unbiased CKA"):
        np.testing.assert_allclose(data.measures[name].value[:2], 1, atol=1e-6)
        assert data.measures[name].high[2] < 0.6, name
    cosine = data.measures["cosine similarity"]
    assert np.isnan(cosine.value[0]) and cosine.n[0] == 0
    assert cosine.value[1] == pytest.approx(1, abs=1e-6)
    assert data.measures["pattern class changed"].value[2] == 0.5
    assert list(data.notes) == ["layer 2"] and "2-2: vertical" in data.notes["layer 2"]


def test_the_most_changed_head_comes_first() -> None:
    data = table("heads")
    assert data.row_names[0] == "2-2" and len(data.row_names) == 4
    assert data.attributes["class_before"] == ("vertical", None, None, None)
    assert data.attributes["class_after"] == ("diagonal", None, None, None)
    np.testing.assert_allclose(data.measures["Jensen-Shannon divergence"].value[1:], 0, atol=1e-6)


def test_probing_accuracies_of_both_models_are_added() -> None:
    inputs = RunInputs(
        load_corpus("english", limit=60), load("tiny"), against=load("random:tiny@1"), random_baseline=False
    )
    data = run_analysis(finetuning_change, inputs, {"probe_label": "pos"}).data
    assert isinstance(data, Table)
    for name in ("probing accuracy (model)", "probing accuracy (against)"):
        assert (data.measures[name].value > 0.1).all() and name in data.baselines["majority class"], name
        assert data.units[name]
    with pytest.raises(Refusal, match="pos"):
        run_analysis(finetuning_change, inputs, {"probe_label": "poss"})


def test_without_changes_there_are_no_notes() -> None:
    before, _ = make_pair()
    data = finetuning_change(before, before, None)
    assert isinstance(data, Table) and not data.notes
