"""`probes/minimal_pairs`: pseudo-log-likelihoods against a loop, planted preferences, and the rows of the table."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from bertology.analyses import registry
from bertology.analyses.run import RunInputs, run_analysis
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.read import as_corpus, load_corpus
from bertology.corpus.sentence import sentence_from_text
from bertology.encoder.encoder import Encoder, ModelInputs, ModelOutput
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.lazy import torch
from bertology.results.shapes import Table

NAME = "probes/minimal_pairs"


@pytest.fixture(scope="module")
def tiny() -> Encoder:
    return load("tiny")


class FixedPreferences:
    """An encoder whose masked-language-model head has the same logits at every position: `preferences`, else 0."""

    def __init__(self, inner: Encoder, preferences: dict[int, float]) -> None:
        self.inner, self.preferences, self.task_heads = inner, preferences, inner.task_heads

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)

    def forward(self, batch: ModelInputs, **options: object) -> ModelOutput:
        output = self.inner.forward(batch)
        logits = torch.zeros_like(output.logits["mlm"])
        for token_id, logit in self.preferences.items():
            logits[..., token_id] = logit
        return replace(output, logits={"mlm": logits})


def table(encoder: Encoder | FixedPreferences, corpus: Corpus, **options: object) -> Table:
    # The stand-in forwards everything it does not change to the encoder.
    inputs = RunInputs(corpus, cast(Encoder, encoder), random_baseline=False)
    data = run_analysis(registry.get(NAME), inputs, options).data
    assert isinstance(data, Table)
    return data


def make_pairs(*texts: tuple[str, str, str]) -> Corpus:
    examples = [
        Example((sentence_from_text(acceptable), sentence_from_text(unacceptable)), "minimal_pair", source=source)
        for acceptable, unacceptable, source in texts
    ]
    return Corpus(tuple(examples), name="pairs")


def test_a_planted_preference_is_found(tiny: Encoder) -> None:
    plural, singular = (tiny.tokenise([as_corpus([word])[0].text_inputs[0]])[0] for word in ("sleep", "sleeps"))
    assert tuple(plural.ids.tolist()) != tuple(singular.ids.tolist())
    corpus = make_pairs(
        ("the dogs sleep", "the dogs sleeps", "f/agreement/plural"),
        ("they sleep", "they sleeps", "f/agreement/plural"),
        ("the dog sleeps", "the dog sleep", "f/agreement/singular"),
        ("sleep now", "sleeps now", "f/other/order"),
    )
    preferences = {int(token_id): 5.0 for token_id in plural.ids[1:-1]}
    preferences |= {int(token_id): -5.0 for token_id in set(singular.ids) - set(plural.ids)}
    data = table(FixedPreferences(tiny, preferences), corpus)
    values = dict(zip(data.row_names, data.measures["accuracy"].value.tolist(), strict=True))
    assert values == {
        "all paradigms": pytest.approx(2 / 3),  # the mean of 1, 0 and 1 over paradigms, whatever their sizes
        "agreement": 0.5,
        "other": 1.0,
        "agreement/plural": 1.0,
        "agreement/singular": 0.0,
        "other/order": 1.0,
    }
    assert data.measures["accuracy"].n.tolist() == [4, 3, 1, 2, 1, 1]


def test_the_sum_favours_the_shorter_sentence_and_a_tie_is_wrong(tiny: Encoder) -> None:
    corpus = make_pairs(("the dog that sleeps sleeps", "the dog", "a"), ("one two three", "one two", "a"))
    data = table(FixedPreferences(tiny, {}), corpus)  # every token is equally likely
    assert data.measures["accuracy"].value[0] == 0
    assert data.baselines["fewer tokens"]["accuracy"].value[0] == 0
    from bertology.analyses.probes.minimal_pairs import _prefers_acceptable  # pyright: ignore[reportPrivateUsage]

    scores = np.array([[-1.0, -1.0], [-2.0, -3.0], [np.nan, 0.0]])
    np.testing.assert_array_equal(_prefers_acceptable(scores), [0, 1, np.nan])


def test_an_untrained_model_is_at_chance(tiny: Encoder) -> None:
    data = table(tiny, load_corpus("generated:minimal_pairs@1:200"))
    accuracy = data.measures["accuracy"][0]
    assert accuracy.low < 0.6 and accuracy.high > 0.4
    assert accuracy.n == 200


def test_a_model_without_a_masked_language_model_head_is_refused() -> None:
    encoder = FixedPreferences(load("tiny"), {})
    encoder.task_heads = frozenset({"nsp"})
    with pytest.raises(Refusal, match="masked-language-model head"):
        table(encoder, load_corpus("generated:minimal_pairs@1:5"))


def test_a_corpus_without_pairs_is_refused(tiny: Encoder) -> None:
    with pytest.raises(Refusal, match="minimal pairs"):
        table(tiny, as_corpus(["No pair."]))
